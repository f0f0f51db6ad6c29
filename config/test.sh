#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
#
# Install, build and test everything, from a fresh clone, as root on Debian 12. The last line is
# "N passed, N failed, N skipped"; exit status 1 on any failure. config/run-tests.py says what runs;
# arguments go there (--only SECTION, --list).
set -eu
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then
	echo 'config/test.sh needs root: it installs packages and makes network namespaces' >&2
	exit 2
fi
config/install-deps.sh
exec /usr/bin/python3 -B config/run-tests.py "$@"
