#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""config/appliance.sh: what it shows is so, and nothing is left whatever ends it. The argument is the build
folder that it is to use."""
import os
import re
import signal
import subprocess
import sys

import apps

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'config', 'appliance.sh')
FLOWS = 30


def start():
    # A session of its own, as a terminal's; Ctrl-C reaches the group in front.
    return subprocess.Popen([SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            start_new_session=True, env=dict(os.environ, BUILD=sys.argv[1]))


def gone(process):
    """No namespace of that run, no process of its session, no file of the daemon."""
    names = apps.wire.sh('ip', 'netns')
    assert not re.search(rf'sluice([CD]|[123]x){process.pid}\b', names), names
    left = apps.session(process.pid)
    assert left == [], left
    assert not os.path.exists(f'/var/run/dpdk/sluiced-demo{process.pid}')


def answers(out):
    """Of each question to all flows: ({who: answers}, flows that moved)."""
    return [({who: int(n) for n, who in re.findall(r'(\d+) by (\w+)', line)}, int(moved))
            for line, moved in re.findall(r'^appliance:   (.*); (\d+) moved$', out, re.M)]


def case_shows(cases):
    process = start()
    out, _ = process.communicate(timeout=150)
    with cases('it runs to its end, and nothing is left'):
        assert process.returncode == 0, out
        gone(process)
        assert '2 received' in out, out
    with cases('flows are balanced over three back ends, and stay'):
        told = answers(out)
        assert len(told) == 6 and all(sum(count.values()) == FLOWS for count, _ in told), out
        assert sorted(told[0][0]) == ['b1', 'b2', 'b3'] and told[1] == told[2] == told[0], out
    with cases('TCP to the same address reaches the kernel'):
        assert 'you said one,you said two,you said three' in out, out
        assert float(re.search(r'TCP: ([0-9.]+) Mbits/sec', out).group(1)) > 0, out
        wan = re.search(r'^wan +wan0 +on +(\d+) +0 +0 +\d+ +(\d+) ', out, re.M)
        assert wan and all(int(n) > 100 for n in wan.groups()), out
    with cases('one that is killed loses its flows to the others; nobody else moves, every datagram is answered'):
        assert sorted(told[3][0]) == ['b2', 'b3'] and told[3][1] == told[0][0]['b1'], out
    with cases('one that is drained keeps its flows, and gets no new one'):
        assert told[4] == (told[3][0], 0) and sorted(told[5][0]) == ['b1', 'b3'], out
        assert re.search(r'^web +b2 .* draining +drained ', out, re.M), out
    with cases('everything is accounted for'):
        assert 'everything that entered has an outcome or is held' in out, out
        assert f'forwarded:{6 * FLOWS} forward_returned:{6 * FLOWS}' in out, out


def case_ends(cases):
    with cases('Ctrl-C while it runs: nothing is left'):
        process = start()
        for line in process.stdout:
            if 'iperf3 sends' in line:
                break
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 130, out
        gone(process)


if __name__ == '__main__':
    sys.exit(apps.run_parts(case_shows, case_ends))
