# Completion of sluicectl for bash. SPDX-License-Identifier: BSD-3-Clause
# Names of back ends, as the daemon that the words before name has them.
_sluicectl_backends()
{
	local i options=()

	for ((i = 1; i + 1 < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--name | --socket) options+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}") ;;
		esac
	done
	"${COMP_WORDS[0]}" "${options[@]}" backend 2>/dev/null | awk 'NR > 1 { print $2 }' | sort -u
}

_sluicectl()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
	local commands='info ports services sockets lcores drops outcomes neigh routes exceptions bridge backend explain audit reload diff top trace capture'
	local dir

	case $before in
	--name)
		# Daemons that run, by the folders of their sockets.
		COMPREPLY=()
		for dir in /var/run/dpdk/sluiced-*/; do
			dir=${dir%/}
			[ -S "$dir/dpdk_telemetry.v2" ] && COMPREPLY+=("${dir##*/sluiced-}")
		done
		COMPREPLY=($(compgen -W "${COMPREPLY[*]}" -- "$word"))
		return ;;
	--socket|-w)
		COMPREPLY=($(compgen -f -- "$word"))
		return ;;
	diff)
		COMPREPLY=($(compgen -f -- "$word"))
		return ;;
	backend)
		COMPREPLY=($(compgen -W 'drain undrain' -- "$word"))
		return ;;
	drain | undrain)
		COMPREPLY=($(compgen -W "$(_sluicectl_backends)" -- "$word"))
		return ;;
	explain)
		COMPREPLY=($(compgen -W udp -- "$word"))
		return ;;
	--for)
		COMPREPLY=($(compgen -W '30s 60s 5m' -- "$word"))
		return ;;
	esac
	case " ${COMP_WORDS[*]} " in
	*' backend drain '*)
		COMPREPLY=($(compgen -W '--for --wait' -- "$word"))
		return ;;
	esac
	# Options of the command that is there already.
	for dir in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case $dir in
		top) COMPREPLY=($(compgen -W '--once --interval' -- "$word")); return ;;
		trace) COMPREPLY=($(compgen -W '-c' -- "$word")); return ;;
		capture) COMPREPLY=($(compgen -W '-w -c --port' -- "$word")); return ;;
		esac
	done
	COMPREPLY=($(compgen -W "$commands --name --socket --json --help" -- "$word"))
}
complete -F _sluicectl sluicectl
