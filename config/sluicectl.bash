# Completion of sluicectl for bash. SPDX-License-Identifier: BSD-3-Clause
_sluicectl()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
	local commands='info ports services sockets lcores drops outcomes neigh routes exceptions bridge audit reload'
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
	--socket)
		COMPREPLY=($(compgen -f -- "$word"))
		return ;;
	esac
	COMPREPLY=($(compgen -W "$commands --name --socket --json --help" -- "$word"))
}
complete -F _sluicectl sluicectl
