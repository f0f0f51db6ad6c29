#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
#
# run_pages.sh N PROGRAM [ARGUMENTS]: runs a program with at least N free pages of 2 MB, which are given
# back at its end. Without them it says itself what it cannot do.
set -uo pipefail
pages=/sys/kernel/mm/hugepages/hugepages-2048kB
wanted=$1
shift
before=$(cat $pages/nr_hugepages) free=$(cat $pages/free_hugepages)
if [ "$free" -lt "$wanted" ] && [ -w $pages/nr_hugepages ]; then
	trap 'echo "$before" >$pages/nr_hugepages' EXIT
	trap 'kill %1 2>/dev/null; wait; exit 130' INT TERM
	echo $((before + wanted - free)) >$pages/nr_hugepages
fi
"$@" &
wait $!
