# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
#
# What quickstart.sh and appliance.sh share; they set `program` and `build` (where to build);
# `log` is a folder for what others print, once there is one.

say() { echo "$program: $*"; }

fail() {
	echo "$program: $*" >&2
	exit 1
}

# End what runs in the background. False: this is no place to clean up, since a background job that a
# signal finds before it has become its program is still this shell, traps and list of jobs included.
end_jobs() {
	[ "$BASHPID" = $$ ] || return 1
	trap '' INT TERM
	# The shell's own list: a signal may come between the start of a job and the script's next line.
	kill $(jobs -p) 2>/dev/null || true
	wait
}

# prepare TARGET...: what comes before a demonstration. The script has a function `cleanup`.
prepare() {
	[ "$(id -u)" = 0 ] || {
		echo "$program needs root: it installs packages and makes network namespaces" >&2
		exit 2
	}
	trap cleanup EXIT
	trap 'exit 130' INT TERM
	log=$(mktemp -d)
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
