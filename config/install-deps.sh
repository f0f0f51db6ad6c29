#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
#
# Install what building and testing need on Debian 12: the packages of config/packages.txt, and into
# .driver-sdk/ the driver headers of the installed DPDK, which the distribution does not package.
# Does nothing, and asks no server, when all is there. With --no-driver-sdk, packages only.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
sdk=$top/.driver-sdk
# Found in the source package by name; their own includes are in libdpdk-dev or in this list.
headers='ethdev_driver.h ethdev_vdev.h bus_vdev_driver.h bus_driver.h dev_driver.h vdpa_driver.h'
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

say() { echo "install-deps: $*" >&2; }

missing_packages() {
	local installed
	# A pattern without a match is no error here: it is what we look for.
	installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
	sed 's/#.*//; /^ *$/d' "$top/config/packages.txt" |
		grep -vxF -f <(echo "$installed") || true
}

install_packages() {
	local missing
	missing=$(missing_packages)
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" != 0 ]; then
		say "needs root to install:" $missing
		exit 2
	fi
	say "installing" $missing
	# Package lists that are there may do; a fresh system has none, an old one has outdated ones.
	if ! apt-get install -y -q --no-install-recommends $missing >/dev/null 2>&1; then
		apt-get update -q >/dev/null || say 'apt-get update failed; trying with the lists at hand'
		apt-get install -y -q --no-install-recommends $missing >/dev/null
	fi
}

# The system's package sources as deb-src entries, in a folder of our own.
source_entries() {
	local out=$1 f
	mkdir -p "$out/parts" "$out/lists/partial"
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -f "$f" ] && sed -n 's/^deb[[:space:]]/deb-src /p' "$f" >"$out/parts/$(basename "$f" .list).list"
	done
	for f in /etc/apt/sources.list.d/*.sources; do
		[ -f "$f" ] && sed 's/^Types:.*/Types: deb-src/' "$f" >"$out/parts/$(basename "$f")"
	done
	return 0
}

# 22.11.11-0+deb12u1 -> 22.11
release() { echo "$1" | sed 's/^\([0-9]*\.[0-9]*\).*/\1/'; }

# Download the source package whose version is $1 or, when the archive has moved on, the newest one
# of the same DPDK release: the driver interface does not change within a release.
download_source() {
	local version=$1 dir=$2 newest
	local opts=(-q -o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$dir/parts"
		-o "Dir::State::lists=$dir/lists" -o "Dir::Cache::srcpkgcache=" -o "Dir::Cache::pkgcache="
		-o "APT::Sandbox::User=root")

	source_entries "$dir"
	# One foreign entry without sources makes this fail although ours came.
	apt-get "${opts[@]}" update >"$dir/log" 2>&1 || true
	(cd "$dir" && apt-get "${opts[@]}" source --download-only "dpdk=$version" >>"$dir/log" 2>&1) && return 0
	newest=$(apt-cache "${opts[@]}" showsrc dpdk 2>>"$dir/log" | sed -n 's/^Version: //p' | sort -V | tail -1)
	[ -n "$newest" ] && [ "$(release "$newest")" = "$(release "$version")" ] || return 1
	say "the source of dpdk $version is not to be had; taking the headers of $newest"
	(cd "$dir" && apt-get "${opts[@]}" source --download-only "dpdk=$newest" >>"$dir/log" 2>&1)
}

fetch_driver_sdk() {
	local version wanted=() h
	version=$(dpkg-query -W -f '${source:Version}' libdpdk-dev)
	[ "$(cat "$sdk/VERSION" 2>/dev/null)" = "$version" ] && return 0
	say "fetching the driver headers of dpdk $version"
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT # so `dir` is not local
	if ! download_source "$version" "$dir"; then
		tail -5 "$dir/log" >&2
		say "no source package of dpdk $version; put $headers into .driver-sdk/ or name their folder with meson's -Ddriver_sdk="
		exit 1
	fi
	for h in $headers; do
		wanted+=("*/$h")
	done
	rm -rf "$sdk" && mkdir "$sdk"
	tar -xf "$dir"/dpdk_*.orig.tar.* -C "$sdk" --wildcards --no-anchored --transform 's,.*/,,' "${wanted[@]}"
	for h in $headers; do
		[ -s "$sdk/$h" ] || { say "no $h in the source of dpdk $version"; exit 1; }
	done
	echo "$version" >"$sdk/VERSION"
}

install_packages
[ "${1:-}" = --no-driver-sdk ] || fetch_driver_sdk
