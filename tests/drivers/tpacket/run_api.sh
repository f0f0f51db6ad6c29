#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
#
# Runs test_api or test_faults in a network namespace of its own with a veth pair, and with a run
# directory of its own for DPDK; both end with it.
#
#     port A on t0 ---- veth ---- t1: port B
set -euo pipefail
api=$1 plugin=$2
if [ "$(id -u)" != 0 ]; then
	echo 'SKIP all: needs root for a network namespace'
	echo '0 passed, 0 failed, 1 skipped'
	exit 77
fi
mkdir -p /var/run/dpdk
exec unshare --net --mount bash -c '
	set -e
	mount -t tmpfs none /var/run/dpdk
	sysctl -qw net.ipv6.conf.default.disable_ipv6=1
	ip link set lo up
	ip link add t0 type veth peer name t1
	for dev in t0 t1; do
		ip link set $dev arp off
		ip link set $dev up
	done
	exec "$0" "$1"
' "$api" "$plugin"
