# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Traces of a running sluiced."""
import json
import socket
import subprocess
import time

PATIENCE_S = 30


def wait(runtime, what='trace'):
    """Until the daemon says that a trace or a capture is on."""
    end = time.monotonic() + PATIENCE_S
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(PATIENCE_S)
        s.connect(f'{runtime}/dpdk_telemetry.v2')
        s.recv(1024)
        while True:
            s.send(f'/sluice/{what}'.encode())
            answer = json.loads(s.recv(1024))
            if answer[f'/sluice/{what}']['running'] == 'yes':
                return
            if time.monotonic() > end:
                raise RuntimeError(f'no {what}: {answer}')
            time.sleep(0.005)


def traced(sluicectl, name, runtime, *options, send, packets, as_json=True):
    """Lines of a trace of so many packets, that is on before send() is called."""
    words = [sluicectl, '--name', name, *(['--json'] if as_json else []), 'trace', '-c', str(packets), *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait(runtime)
        send()
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise RuntimeError(f'{options}: no end, so far: {process.communicate()}') from None
    assert process.returncode == 0, (out, err)
    if not as_json:
        return out
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines[-1] == {'step': 'end', 'followed': packets, 'lost': 0}, lines
    return lines[:-1]
