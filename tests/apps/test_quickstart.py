#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""config/quickstart.sh: its tables, its exit status, and that nothing is left whatever ends it. The
argument is the build folder that it is to use."""
import os
import re
import signal
import subprocess
import sys

import apps

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'config',
                      'quickstart.sh')


def start(count, prefix=()):
    # A session of its own, as a terminal's; Ctrl-C reaches the group in front.
    return subprocess.Popen(
        [*prefix, SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True, env=dict(os.environ, COUNT=str(count), BUILD=sys.argv[1]))


def gone(process):
    """No namespace of that run, no process of its session, no file of the programs."""
    names = apps.wire.sh('ip', 'netns')
    assert not re.search(rf'sluice[AB]{process.pid}\b', names), names
    left = apps.session(process.pid)
    assert left == [], left
    assert apps.leftovers() == [], apps.leftovers()


def case_runs(cases):
    for name, prefix in (('as it is', ()), ('on one core', ('taskset', '-c', '0'))):
        with cases(f'it runs {name}: ping is answered, five rows of the count asked for'):
            process = start(2000, prefix)
            out, _ = process.communicate(timeout=150)
            assert process.returncode == 0, out
            for call in ('recvmmsg/32', 'recvmsg', 'recvfrom', 'read', 'burst/32'):
                assert re.search(rf'^{call} +1 +2000 ', out, re.M), out
            assert re.search(r'8 flows, 10000 received, 0 lost, 0 reordered', out), out
            assert len(re.findall(r'ping .* 2 received', out)) == 2, out
            gone(process)


def case_ends(cases):
    for sig in (signal.SIGINT, signal.SIGTERM):
        with cases(f'{sig.name} while it receives: nothing is left'):
            process = start(1000000000)
            for line in process.stdout:
                if 'a row for each' in line:
                    break
            if sig == signal.SIGINT:
                os.killpg(process.pid, sig)
            else:
                process.send_signal(sig)
            out, _ = process.communicate(timeout=60)
            assert process.returncode != 0, out
            gone(process)
    with cases('a run that fails says so, and leaves nothing'):
        process = start(0)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 1 and '--count 0 is out of range' in out, out
        gone(process)


if __name__ == '__main__':
    sys.exit(apps.run_parts(case_runs, case_ends))
