#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
#
# From a fresh clone, as root on Debian 12: install what is missing, build, and receive UDP that the
# host kernel sends.
#
#     namespace A                               namespace B
#     kernel sockets, IPv4 and IPv6             sluice-udp-sink
#     198.18.0.1, 2001:db8::1  va <--veth--> vb 198.18.0.2, 2001:db8::2
#
# Everything it makes is removed at the end, also after Ctrl-C. COUNT=N sets the datagrams a row,
# BUILD=FOLDER where to build.
set -euo pipefail
cd "$(dirname "$0")/.."
program=quickstart
. config/demo.sh
count=${COUNT:-50000}
build=${BUILD:-build}
a=sluiceA$id b=sluiceB$id
cpu=$(taskset -cp $$ | sed 's/.*[-,: ]//')

cleanup() {
	ip netns del "$a" 2>/dev/null || true
	ip netns del "$b" 2>/dev/null || true
}

make_wire() {
	ip netns add "$a"
	ip netns add "$b"
	ip -n "$a" link add va type veth peer name vb netns "$b"
	ip -n "$a" addr add 198.18.0.1/24 dev va
	ip -n "$a" addr add 2001:db8::1/64 dev va nodad
	ip -n "$b" link set vb up
	ip -n "$a" link set va up
}

# The sink prints its table to our output; what it says besides goes to a file, where we wait for it.
start_sink() {
	ip netns exec "$b" "$build/apps/sluice-udp-sink" --iface vb --addr 198.18.0.2/24 \
		--addr 2001:db8::2/64 --ipv6 --count "$count" --check 2>"$log/sink" &
	sink=$!
	until grep -q ready "$log/sink"; do
		kill -0 "$sink" 2>/dev/null || fail "the sink did not start: $(cat "$log/sink")"
		sleep 0.1
	done
}

ping_sink() {
	local address
	for address in 198.18.0.2 2001:db8::2; do
		ip netns exec "$a" ping -c 2 -i 0.2 -W 2 "$address" >"$log/ping" ||
			fail "$address does not answer ping"
		say "ping $address: $(grep received "$log/ping")"
	done
}

# Without an end of their own: they stop when the sink has what it wants. On one processor each: the
# kernel can reorder the flows of a sender that it moves to another.
start_sender() {
	ip netns exec "$a" taskset -c "$cpu" "$build/apps/sluice-udp-flood" --kernel --to "$1" --flows 4 \
		--first-flow "$2" --check --rate 100000 --duration 600 >"$log/send$2" 2>&1 &
}

prepare apps/sluice-udp-sink apps/sluice-udp-flood
make_wire
start_sink
ping_sink
say '8 flows from kernel sockets, 4 of IPv4 and 4 of IPv6; a row for each receive call:'
start_sender 198.18.0.2 0
start_sender 2001:db8::2 4
wait "$sink" || fail "the sink failed: $(cat "$log/sink")"
grep -v ready "$log/sink" >&2 || true
say 'done; namespaces and interfaces are removed'
