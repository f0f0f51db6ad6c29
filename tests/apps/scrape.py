# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Metrics of a running sluiced, read by a strict parser of the OpenMetrics format."""
import contextlib
import http.client
import os
import socket
import tempfile

from prometheus_client.openmetrics.parser import text_string_to_metric_families

TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'
PATIENCE_S = 30
PATH = f'{tempfile.gettempdir()}/sluiced-metrics-{os.getpid()}'
SECTION = f'[metrics]\nlisten = unix:{PATH}\n'


class UnixHTTP(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('localhost', timeout=PATIENCE_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def samples(text):
    """{(name, label values...): value} of a text that a strict parser takes."""
    assert text.endswith('# EOF\n'), text[-100:]
    found = {}
    for family in text_string_to_metric_families(text):
        for s in family.samples:
            key = (s.name, *sorted(s.labels.values()))
            assert key not in found, key
            found[key] = s.value
    return found


def scrape():
    """Samples of the daemon that has SECTION in its file."""
    with contextlib.closing(UnixHTTP(PATH)) as c:
        c.request('GET', '/metrics')
        r = c.getresponse()
        text = r.read().decode()
        assert (r.status, r.headers['Content-Type']) == (200, TYPE), (r.status, text)
        return samples(text)
