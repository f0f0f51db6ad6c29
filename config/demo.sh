# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
#
# What quickstart.sh and appliance.sh share; they set `program` and `build` (where to build), and have a
# function `cleanup`. `id` makes their names unique; `log` is a folder for what others print.
#
# A demonstration is two shells: one that waits and cleans up, and one in a process group of its own that
# does the work. A trap runs within whatever its shell is doing, and bash may be reading a command then
# and lose its way; a shell that only waits does nothing else.
id=${DEMO_ID:-$$}
log=${DEMO_LOG:-}

say() { echo "$program: $*"; }

fail() {
	echo "$program: $*" >&2
	exit 1
}

# End all that a demonstration has started. A zombie is over: it waits for an init that may be slow.
end_group() {
	local i
	kill -- "-$1" 2>/dev/null || return 0
	for i in $(seq 200); do
		pgrep -g "$1" -r D,R,S,T >/dev/null || return 0
		sleep 0.05
	done
	kill -KILL -- "-$1" 2>/dev/null || true
}

# The shell that waits. Does not return.
oversee() {
	local work status=0 interrupted=
	log=$(mktemp -d)
	set -m
	DEMO_ID=$id DEMO_LOG=$log "config/$program.sh" </dev/null &
	work=$!
	set +m
	trap 'interrupted=130; kill "$work" 2>/dev/null' INT TERM
	wait "$work" || status=$?
	# A signal ends a wait, too.
	while kill -0 "$work" 2>/dev/null; do
		status=0
		wait "$work" || status=$?
	done
	trap '' INT TERM
	end_group "$work"
	cleanup
	rm -rf "$log"
	exit "${interrupted:-$status}"
}

# prepare TARGET...: what comes before a demonstration.
prepare() {
	[ "$(id -u)" = 0 ] || {
		echo "$program needs root: it installs packages and makes network namespaces" >&2
		exit 2
	}
	[ -n "${DEMO_ID:-}" ] || oversee
	config/install-deps.sh
	say 'building'
	build_programs "$@"
}

build_programs() {
	local again=()
	# A folder from before the driver headers were there makes programs without net_tpacket.
	[ ! -f "$build/build.ninja" ] || again=(--reconfigure)
	grep -qs librte_net_tpacket "$build/build.ninja" ||
		meson setup "${again[@]}" "$build" >"$log/build" 2>&1 || {
		tail -20 "$log/build" >&2
		fail 'meson setup failed; its last lines are above'
	}
	ninja -C "$build" "$@" >"$log/build" 2>&1 || {
		tail -20 "$log/build" >&2
		fail 'the build failed; its last lines are above'
	}
}
