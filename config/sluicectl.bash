# Completion of sluicectl for bash. SPDX-License-Identifier: BSD-3-Clause

# _sluicectl_names COMMAND COLUMN: names in a table of the daemon that the words before ask for.
_sluicectl_names()
{
	local i options=()

	for ((i = 1; i + 1 < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--name | --socket) options+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}") ;;
		esac
	done
	"${COMP_WORDS[0]}" "${options[@]}" "$1" 2>/dev/null | awk -v n="$2" 'NR > 1 { print $n }' | sort -u
}

# Daemons, by the folders of their sockets, which are where sluicectl looks for them.
_sluicectl_daemons()
{
	local dir base=/var/run

	[ "$(id -u)" = 0 ] || base=${XDG_RUNTIME_DIR:-/tmp}
	for dir in "${RUNTIME_DIRECTORY:-$base}"/dpdk/sluiced-*/; do
		dir=${dir%/}
		[ ! -S "$dir/dpdk_telemetry.v2" ] || echo "${dir##*/sluiced-}"
	done
}

_sluicectl_files()
{
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
}

# Of the words, those that fit and are not there yet.
_sluicectl_words()
{
	local word

	COMPREPLY=()
	for word in $(compgen -W "$*" -- "${COMP_WORDS[COMP_CWORD]}"); do
		case " ${COMP_WORDS[*]:1:COMP_CWORD-1} " in
		*" $word "*) ;;
		*) COMPREPLY+=("$word") ;;
		esac
	done
}

# _sluicectl_command N: what may follow the command, which is word N.
_sluicectl_command()
{
	local before=${COMP_WORDS[COMP_CWORD-1]} behind=$((COMP_CWORD - $1))

	COMPREPLY=()
	case ${COMP_WORDS[$1]}:$behind in
	diff:1) _sluicectl_files ;;
	bridge:1) _sluicectl_words "$(_sluicectl_names bridge 1)" ;;
	backend:1) _sluicectl_words drain undrain ;;
	backend:2) _sluicectl_words "$(_sluicectl_names backend 2)" ;;
	backend:*)
		case ${COMP_WORDS[$1 + 1]}:$before in
		drain:--for) _sluicectl_words 30s 60s 5m ;;
		drain:*) _sluicectl_words --for --wait ;;
		esac ;;
	explain:1) _sluicectl_words udp ;;
	top:*) [ "$before" = --interval ] || _sluicectl_words --once --interval ;;
	trace:1) _sluicectl_words -c ;;
	capture:*)
		case $before in
		-w) _sluicectl_files ;;
		-c) ;;
		--port) _sluicectl_words "$(_sluicectl_names ports 1)" ;;
		*) _sluicectl_words -w -c --port ;;
		esac ;;
	esac
}

_sluicectl()
{
	local i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--name | --socket) i=$((i + 1)) ;;
		-*) ;;
		*)
			_sluicectl_command "$i"
			return ;;
		esac
	done
	case ${COMP_WORDS[COMP_CWORD-1]} in
	--name) _sluicectl_words "$(_sluicectl_daemons)" ;;
	--socket) _sluicectl_files ;;
	*)
		_sluicectl_words info ports services sockets lcores drops outcomes neigh routes exceptions \
			bridge backend explain audit reload diff top trace capture \
			--name --socket --json --help --version ;;
	esac
}
complete -F _sluicectl sluicectl
