#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
#
# From a fresh clone, as root on Debian 12: install what is missing, build, and run the appliance with
# config/appliance.conf: UDP of a client is balanced over three back ends, of which one is killed and one
# drained; TCP to the same address goes to the kernel beside it.
#
#     client                    appliance                             back ends, UDP port 5000
#     198.18.0.1  w0 <-veth-> w1  sluiced  l1 <-veth-> l0 (bridge)    198.19.0.11, .12, .13
#                    198.18.0.2 |          198.19.0.1
#                               wan0 (tap)
#                               kernel: TCP services on 198.18.0.2
#
# Everything it makes is removed at the end, also after Ctrl-C. BUILD=FOLDER sets where to build.
set -euo pipefail
cd "$(dirname "$0")/.."
program=appliance
. config/demo.sh
build=${BUILD:-build}
name=demo$id
client=sluiceC$id box=sluiceD$id
back=(sluice1x$id sluice2x$id sluice3x$id)

cleanup() {
	local ns
	for ns in "$client" "$box" "${back[@]}"; do
		ip netns del "$ns" 2>/dev/null || true
	done
	rm -rf "/var/run/dpdk/sluiced-$name"
}

make_wires() {
	local i ns
	for ns in "$client" "$box" "${back[@]}"; do
		ip netns add "$ns"
		ip netns exec "$ns" sysctl -qw net.ipv6.conf.default.disable_ipv6=1 net.ipv4.conf.all.rp_filter=0
	done
	ip -n "$client" link add w0 type veth peer name w1 netns "$box"
	ip -n "$client" addr add 198.18.0.1/24 dev w0
	ip -n "$box" link add l0 type veth peer name l1
	ip -n "$box" link add br0 type bridge
	ip -n "$box" link set l0 master br0
	for i in 1 2 3; do
		ns=${back[i - 1]}
		ip -n "$ns" link add eth0 type veth peer name "e$i" netns "$box"
		ip -n "$box" link set "e$i" master br0 up
		ip -n "$ns" addr add "198.19.0.1$i/24" dev eth0
		ip -n "$ns" link set eth0 up
		# They see the clients' own addresses, and answer by way of the appliance.
		ip -n "$ns" route add default via 198.19.0.1
	done
	ip -n "$client" link set w0 up
	for i in w1 l0 l1 br0; do
		ip -n "$box" link set "$i" up
	done
}

# Says its name in front of what it was sent.
start_back_end() {
	ip netns exec "${back[$1 - 1]}" /usr/bin/python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5000))
while True:
    data, peer = s.recvfrom(2000)
    s.sendto(b"yes" if data == b"alive?" else sys.argv[1].encode() + b" " + data, peer)' "b$1" &
	server[$1]=$!
}

start_sluiced() {
	local cpu
	cpu=$(taskset -cp $$ | sed 's/.*[-,: ]//')
	# Its name is its own, and the processor one that this machine has; the rest is as the file says.
	sed -e "s/^name = .*/name = $name/" -e "s/^lcores = .*/lcores = $cpu/" config/appliance.conf >"$log/conf"
	ip netns exec "$box" "$build/apps/sluiced" --check "$log/conf" >"$log/check" 2>&1 ||
		fail "the configuration has mistakes: $(cat "$log/check")"
	: >"$log/sluiced"
	ip netns exec "$box" "$build/apps/sluiced" "$log/conf" >"$log/sluiced" 2>&1 &
	sluiced=$!
	until grep -q 'ready, control' "$log/sluiced"; do
		kill -0 "$sluiced" 2>/dev/null || fail "sluiced did not start: $(cat "$log/sluiced")"
		sleep 0.1
	done
}

ctl() { "$build/apps/sluicectl" --name "$name" "$@"; }

# until_state NAME STATE: wait for a back end.
until_state() {
	local i
	for i in $(seq 200); do
		! ctl backend | grep -Eq "\b$1 .*\b$2\b" || return 0
		sleep 0.05
	done
	ctl backend >&2
	fail "$1 did not become $2"
}

# The client: "new N" opens flows and sends a datagram on each, "again 0" one on each that is open.
client_program='
import collections, socket, sys
flows = {}  # who answered last
for line in sys.stdin:
    word, n = line.split()
    asked = list(flows)
    if word == "new":
        asked = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(int(n))]
    count, moved = collections.Counter(), 0
    for s in asked:
        s.settimeout(2)
        s.connect(("198.18.0.2", 5000))
        try:
            s.send(b"hello")
            who = s.recv(100).split()[0].decode()
        except OSError:
            who = "nobody"
        count[who] += 1
        moved += flows.get(s, who) != who
        flows[s] = who
    print(", ".join(f"{n} by {who}" for who, n in sorted(count.items())) + f"; {moved} moved", flush=True)
'

# A TCP service of the kernel beside the appliance: every line is answered.
start_session_server() {
	ip netns exec "$box" /usr/bin/python3 -c '
import socket
server = socket.create_server(("198.18.0.2", 22))
while True:
    peer, _ = server.accept()
    with peer.makefile("rw") as lines:
        for line in lines:
            print("you said", line, end="", file=lines, flush=True)' &
}

# session LINE...: type lines, print what comes back.
session() {
	ip netns exec "$client" bash -c '
	for ((i = 0; i < 100; i++)); do
		{ exec 3<>/dev/tcp/198.18.0.2/22; } 2>/dev/null && break
		sleep 0.05
	done
	for line; do
		echo "$line" >&3 && read -r -t 5 answer <&3 || exit 1
		said+=("$answer")
	done
	(IFS=,; echo "${said[*]}")' session "$@" || fail 'no TCP session with the kernel'
}

# Two seconds of TCP; what arrived goes to a file. iperf3 takes a moment to listen.
bulk() {
	ip netns exec "$box" iperf3 -s -1 -B 198.18.0.2 >/dev/null &
	for _ in $(seq 100); do
		! ip netns exec "$box" ss -Hltn | grep -q ':5201 ' || break
		sleep 0.05
	done
	ip netns exec "$client" iperf3 -c 198.18.0.2 -t 2 -f m >"$log/bulk" &
	bulk=$!
}

# ask WORD N: what the client has to tell.
ask() {
	local told
	echo "$1 $2" >&"${CLIENT[1]}"
	read -r told <&"${CLIENT[0]}" || fail 'the client ended'
	say "  $told"
}

prepare apps/sluiced apps/sluicectl
make_wires
for i in 1 2 3; do
	start_back_end "$i"
done
start_sluiced
coproc CLIENT { exec ip netns exec "$client" /usr/bin/python3 -c "$client_program"; }
for i in 1 2 3; do
	until_state "b$i" up
done
told=$(ip netns exec "$client" ping -c 2 -i 0.2 -W 2 198.18.0.2 | grep received) || fail 'no answer to ping'
say "ping: $told"
say '30 flows, a datagram each, answered:'
ask new 30
say 'the same flows again:'
ask again 0
say 'TCP to the same address is the kernel'\''s, by the tap wan0; a session on port 22:'
start_session_server
told=$(session one two three)
say "  $told"
say 'the same flows again, while iperf3 sends TCP:'
bulk
ask again 0
wait "$bulk" || fail "iperf3 failed: $(cat "$log/bulk")"
say "  TCP: $(awk '/receiver/ { print $7, $8 }' "$log/bulk")"
say 'b1 is killed; the checks take it out:'
kill "${server[1]}"
until_state b1 down
ask again 0
say 'b1 is back, b2 is drained; its flows stay:'
start_back_end 1
until_state b1 up
ctl backend drain b2
ask again 0
say '30 new flows go elsewhere:'
ask new 30
say 'sluicectl backend:'
ctl backend
say 'sluicectl services:'
ctl services
say 'sluicectl exceptions:'
ctl exceptions
say 'sluicectl audit:'
ctl audit
kill "$sluiced"
wait "$sluiced" || fail "sluiced failed: $(cat "$log/sluiced")"
say 'done; namespaces and interfaces are removed'
