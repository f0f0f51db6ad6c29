#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""sluice-udp-sink fed by an unmodified testpmd over virtio-user and vhost-user."""
import apps


def run(cases, bed):
    cases.skip('testpmd', 'x')


if __name__ == '__main__':
    apps.main(run)
