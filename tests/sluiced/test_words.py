#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""What sluicectl says of its words: help, man page and completion have the same commands, and bash
offers what may follow.

usage: test_words.py SLUICECTL SOURCE
"""
import os
import re
import subprocess
import sys
import tempfile

SLUICECTL, SOURCE = sys.argv[1:3]
GLOBAL = {'--name', '--socket', '--json', '--help', '--version'}
# Stands in for a program that speaks to a daemon: says what it was asked, and has tables.
PLAYED = """#!/bin/bash
echo "$@" >>"$0.asked"
case ${!#} in
backend) printf '%s\\n' 'SERVICE  BACKEND' 'web      b1' 'web      b2' 'dns      b1' ;;
bridge) printf '%s\\n' 'BRIDGE  PORTS' 'office  m1:1 m2:1' ;;
ports) printf '%s\\n' 'PORT  DEVICE' 'wan   net_null0' 'lan   net_null1' ;;
esac
"""
SCRIPT = """. "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_sluicectl
printf '%s\\n' "${COMPREPLY[@]}"
"""
passed = failed = 0


def case(name, ok, why=''):
    global passed, failed
    ok = bool(ok)
    passed += ok
    failed += not ok
    print(f'{"ok  " if ok else "FAIL"} {name}{"" if ok else ": " + str(why)}', flush=True)


def run(*words):
    return subprocess.run([SLUICECTL, *words], capture_output=True, text=True, check=False)


def help_commands():
    text = run('--help').stdout
    return [m[1] for m in re.finditer(r'^  ([a-z]+)', text, re.M)]


def man_commands():
    with open(f'{SOURCE}/doc/sluicectl.1', encoding='utf-8') as f:
        text = f.read().split('.SH COMMANDS')[1].split('.SH OPTIONS')[0]
    return re.findall(r'^\.TP\n\.B ([a-z]+)$', text, re.M)


def offered(folder, *words):
    """What the Tab key finds for the last word."""
    program = os.path.join(folder, 'sluicectl')
    out = subprocess.run(['bash', '--norc', '-c', SCRIPT, 'bash', f'{SOURCE}/config/sluicectl.bash', program, *words],
                         capture_output=True, text=True, check=True, cwd=folder)
    return {word for word in out.stdout.split('\n') if word}


def check_completion(folder, commands):
    case('all commands are offered', offered(folder, '') == set(commands) | GLOBAL, offered(folder, ''))
    for words, want in (
            (['ba'], {'backend'}),
            (['--'], GLOBAL),
            (['--json', '--'], GLOBAL - {'--json'}),
            (['--name', 'edge', 'rou'], {'routes'}),
            (['ports', ''], set()),
            (['--json', 'ports', ''], set()),
            (['bridge', ''], {'office'}),
            (['bridge', 'office', ''], set()),
            (['backend', ''], {'drain', 'undrain'}),
            (['backend', 'drain', ''], {'b1', 'b2'}),
            (['backend', 'undrain', 'b'], {'b1', 'b2'}),
            (['backend', 'undrain', 'b1', ''], set()),
            (['backend', 'drain', 'b1', '--'], {'--for', '--wait'}),
            (['backend', 'drain', 'b1', '--for', ''], {'30s', '60s', '5m'}),
            (['backend', 'drain', 'b1', '--for', '60s', ''], {'--wait'}),
            (['explain', ''], {'udp'}),
            (['explain', 'udp', ''], set()),
            (['diff', 'a'], {'a file', 'another'}),
            (['top', ''], {'--once', '--interval'}),
            (['top', '--interval', ''], set()),
            (['trace', ''], {'-c'}),
            (['trace', '-c', ''], set()),
            (['capture', '-'], {'-w', '-c', '--port'}),
            (['capture', '-c', '5', '-'], {'-w', '--port'}),
            (['capture', '-w', 'ano'], {'another'}),
            (['capture', '--port', ''], {'wan', 'lan'}),
            (['capture', '--port', 'w'], {'wan'}),
            (['--socket', 'an'], {'another'})):
        got = offered(folder, *words)
        case(f'sluicectl {" ".join(words)}', got == want, got)
    offered(folder, '--name', 'edge', 'capture', '--port', '')
    with open(f'{folder}/sluicectl.asked', encoding='utf-8') as f:
        asked = f.read().splitlines()[-1]
    case('the daemon that was named is asked', asked == '--name edge ports', asked)


def check_help(commands):
    for command in commands:
        ret = run(command, '--help')
        case(f'{command} --help', ret.returncode == 0 and ret.stdout.lstrip().startswith(command) and not ret.stderr,
             ret)
    ret = run('--version')
    case('--version', ret.returncode == 0 and re.fullmatch(r'sluicectl [0-9.]+\n', ret.stdout), ret)
    # A word that is no UTF-8 is told in JSON all the same.
    ret = subprocess.run([SLUICECTL, '--json', b'b\xff'], capture_output=True, check=False)
    case('a mistake that is no UTF-8', ret.returncode == 2 and b'"error":"usage"' in ret.stdout, ret)


def check_full_disk():
    for words in (['--help'], ['audit', '--help'], ['--version']):
        with open('/dev/full', 'w', encoding='utf-8') as full:
            ret = subprocess.run([SLUICECTL, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        case(f'{words[0]} to a full disk', ret.returncode == 2 and 'No space left' in ret.stderr, ret)


def main():
    commands = help_commands()
    case('the man page has the commands of --help', sorted(man_commands()) == sorted(commands) and len(commands) > 15,
         (man_commands(), commands))
    check_help(commands)
    check_full_disk()
    with tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/sluicectl', 'w', encoding='utf-8') as f:
            f.write(PLAYED)
        os.chmod(f'{folder}/sluicectl', 0o755)
        for name in ('a file', 'another'):
            with open(f'{folder}/{name}', 'w', encoding='utf-8'):
                pass
        check_completion(folder, commands)
    print(f'{passed} passed, {failed} failed, 0 skipped')
    return failed != 0


sys.exit(main())
