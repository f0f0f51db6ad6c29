#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Build in every way that we test, run the tests, and sum up their cases.

Every test program ends with the line "N passed, N failed, N skipped". A program that crashes, runs
out of time, exits with an error or does not print that line is a failed case of its own; so is a
build that fails. The last line sums up all. FUZZ_SECONDS (30) is shared out to the fuzz targets, in whole seconds.
While tests of one build run, the next ones are built with what they leave of the processors.
"""
import argparse
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SUMMARY = re.compile(r'^(\d+) passed, (\d+) failed, (\d+) skipped$')
CHECK = re.compile(r'^\S+\.[ch]c?:\d+: |^\w*Error\b|^SUMMARY: ')  # of tests in C and Python, of sanitizers
# Lines of the source are all that reports need, and what is optimised less is built sooner.
SANITIZE = ['-Doptimization=1', '-Ddebug=false', '-Db_lundef=false']
ARGS = '-Dc_args=-DSL_DEBUG -gline-tables-only'

# name: (folder, compiler, meson options)
BUILDS = {
    'gcc release': ('build', 'gcc', []),
    # Clang's warnings and lock annotations, assertions, and the fuzz targets: the libraries must be
    # instrumented for them, or the fuzzer sees no coverage.
    'asan ubsan': ('build-asan', 'clang', SANITIZE + ['-Db_sanitize=address,undefined', '-Dfuzz=true',
                                                      ARGS + ' -fsanitize=fuzzer-no-link']),
    'tsan': ('build-tsan', 'clang', SANITIZE + ['-Db_sanitize=thread', ARGS]),
}

# build: [(suites, processes, time limit's factor)]; a suite with "!" before it is left out
TESTS = {
    'gcc release': [(['style', 'fast', 'fuzz', 'install'], 2, 1), (['stress'], 1, 1),
                    (['waits'], 2, 1), (['net', '!waits'], 1, 1)],
    'asan ubsan': [(['fast', 'fuzz'], 2, 3), (['stress'], 1, 3),
                   (['waits', '!once'], 2, 3), (['net', '!waits', '!once'], 1, 3)],
    'tsan': [(['stress'], 1, 5)],
}

# Commands that run now, to be ended when we are; and those of them that build for later.
running, building = set(), set()


class Total:
    def __init__(self):
        self.counts = [0, 0, 0]
        self.failures = []

    def add(self, counts, what=None):
        self.counts = [a + b for a, b in zip(self.counts, counts)]
        if counts[1]:
            self.failures.append(what)

    def line(self):
        return '%d passed, %d failed, %d skipped' % tuple(self.counts)


def run(command, env=None):
    """(exit status, output). If we are stopped, so is the command: meson then ends its tests, which
    remove what they made."""
    with subprocess.Popen(command, cwd=TOP, env=env, text=True, errors='replace',
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True) as child:
        running.add(child)
        if isinstance(threading.current_thread(), Builder):
            building.add(child)
        try:
            output, _ = child.communicate()
        except BaseException:
            child.terminate()
            try:
                child.wait(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
            raise
        finally:
            running.discard(child)
            building.discard(child)
    return child.returncode, output


def run_quietly(command, env=None):
    """True if it succeeds; shows its last lines if not."""
    status, output = run(command, env)
    if status:
        print('\n'.join(output.splitlines()[-40:]))
        print(f'FAIL {" ".join(command)}: exit status {status}')
    return status == 0


def configure(folder, compiler, options):
    """Set a build folder up, again when compiler or options are not what they were. A `build` that
    somebody configured by hand is used as it is."""
    stamp = os.path.join(TOP, folder, 'test-options')
    wanted = ' '.join([compiler] + options)
    there = os.path.exists(os.path.join(TOP, folder, 'build.ninja'))
    if there and folder == 'build':
        return True
    if there and os.path.exists(stamp):
        with open(stamp, encoding='utf-8') as f:
            if f.read() == wanted:
                return True
    shutil.rmtree(os.path.join(TOP, folder), ignore_errors=True)
    env = dict(os.environ, CC=compiler, CXX='g++' if compiler == 'gcc' else 'clang++')
    if not run_quietly(['meson', 'setup', folder] + options, env):
        return False
    with open(stamp, 'w', encoding='utf-8') as f:
        f.write(wanted)
    return True


def cases(test):
    """[passed, failed, skipped] of one program in meson's log."""
    lines = [line for line in test.get('stdout', '').splitlines() if line.strip()]
    match = SUMMARY.match(lines[-1]) if lines else None
    counts = [int(n) for n in match.groups()] if match else [0, 0, 0]
    good = test['result'] == 'OK' and test.get('returncode') == 0
    if not good or match is None or sum(counts) == 0:
        counts[1] = max(counts[1], 1)  # a program without a case proves nothing
    return counts, match is not None


def show(test, counts, has_summary):
    for line in test.get('stdout', '').splitlines():
        if line.startswith(('FAIL ', 'SKIP ')):
            print(f"  {test['name']}: {line}")
    if not counts[1]:
        return
    print(f"FAILED {test['name']}: {test['result']}, exit status {test.get('returncode')}"
          + ('' if has_summary else ', no summary line'))
    lines = (test.get('stdout', '') + test.get('stderr', '')).splitlines()
    # What failed, first: whoever shortens this keeps its beginning, and libraries may write much.
    print('\n'.join('    ' + line for line in [line for line in lines if CHECK.match(line)][:20] + lines[-60:]))


def run_suites(total, build, suites, processes, factor):
    folder = BUILDS[build][0]
    logs = os.path.join(TOP, folder, 'meson-logs', 'testlog*.json')  # a wrapper changes the name
    for log in glob.glob(logs):
        os.remove(log)
    command = ['meson', 'test', '-C', folder, '-t', str(factor), '--num-processes', str(processes)]
    for suite in suites:
        command += ['--no-suite', suite[1:]] if suite.startswith('!') else ['--suite', suite]
    # clang 14's sanitizers cannot map their shadow on kernels with much address randomisation.
    if 'b_sanitize' in ' '.join(BUILDS[build][2]) and can_fix_addresses():
        command += ['--wrapper', 'setarch -R']
    status, output = run(command)
    tests = []
    for log in glob.glob(logs):
        with open(log, encoding='utf-8') as f:
            tests += [json.loads(line) for line in f if line.strip()]
    subtotal = Total()
    for test in tests:
        counts, has_summary = cases(test)
        show(test, counts, has_summary)
        subtotal.add(counts, f"{build}: {test['name']}")
    if not tests or (status and not subtotal.failures):
        print('\n'.join(output.splitlines()[-40:]))
        subtotal.add([0, 1, 0], f'{build}: {" ".join(suites)} did not run')
    print(f'{len(tests)} programs: {subtotal.line()}')
    total.add(subtotal.counts, ', '.join(subtotal.failures))


def can_fix_addresses():
    return subprocess.run(['setarch', '-R', 'true'], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def fuzz_programs():
    """{name: (program, corpus)}: drivers keep their corpus beside the target."""
    found = {}
    for path in sorted(glob.glob(os.path.join(TOP, 'build-asan', 'tests', '**', 'fuzz_*'), recursive=True)):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            name = os.path.basename(path)[5:]
            folder = os.path.join(TOP, os.path.relpath(os.path.dirname(path), os.path.join(TOP, 'build-asan')))
            corpus = os.path.join(folder, 'corpus')
            found[name] = path, os.path.join(corpus, name) if folder.endswith('fuzz') else corpus
    return found


def fuzz(total):
    programs = fuzz_programs()
    if not programs:
        total.add([0, 1, 0], 'no fuzz target was built')
    seconds = max(1, int(os.environ.get('FUZZ_SECONDS', '30')) // max(1, len(programs)))
    fixed = ['setarch', '-R'] if can_fix_addresses() else []
    for name, (program, corpus) in programs.items():
        with tempfile.TemporaryDirectory() as fresh:
            status, output = run(fixed + [program, f'-max_total_time={seconds}',
                                          f'-artifact_prefix={TOP}/build-asan/', fresh, corpus])
        done = re.search(r'Done (\d+) runs', output)
        if status == 0 and done and int(done.group(1)) > 0:
            print(f'ok   fuzz {name}: {done.group(0)}')
            total.add([1, 0, 0])
        else:
            print('\n'.join(output.splitlines()[-40:]))
            print(f'FAIL fuzz {name}')
            total.add([0, 1, 0], f'fuzz {name}')


def section(name, action):
    start = time.monotonic()
    print(f'== {name}', flush=True)
    action()
    print(f'== {name}: {time.monotonic() - start:.0f} s', flush=True)


def targets(build):
    """What ninja is asked for: of one build a part is enough."""
    folder = os.path.join(TOP, BUILDS[build][0])
    if build != 'tsan':
        return []
    listed = json.loads(run(['meson', 'introspect', folder, '--tests'])[1])
    paths = [test['cmd'][0] for test in listed if any(s.endswith('stress') for s in test['suite'])]
    return sorted({os.path.relpath(path, folder) for path in paths})


class Builder(threading.Thread):
    """Builds one after the other, always only with processor time that nobody else wants."""

    def __init__(self, builds):
        super().__init__(daemon=True)
        self.done = {build: threading.Event() for build in builds}
        self.good = set()

    def run(self):
        for build, done in self.done.items():
            folder, compiler, options = BUILDS[build]
            try:
                if configure(folder, compiler, options) and run_quietly(
                        ['chrt', '--idle', '0', 'ninja', '-C', folder, *targets(build)]):
                    self.good.add(build)
            finally:
                done.set()


@contextlib.contextmanager
def no_building():
    """Threads that spin and yield would let a build in, however low its class."""
    held = list(building)
    for child in held:
        child.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for child in held:
            child.send_signal(signal.SIGCONT)


def build_and_test(total, builder, build):
    section(f'build {build}', builder.done[build].wait)
    if build not in builder.good:
        total.add([0, 1, 0], f'build {build}')
        return
    total.add([1, 0, 0])
    for suites, processes, factor in TESTS.get(build, []):
        with no_building() if 'stress' in suites else contextlib.nullcontext():
            section(f'{build}: {" ".join(suites)}',
                    lambda: run_suites(total, build, suites, processes, factor))
    if build == 'asan ubsan':
        section('fuzzing', lambda: fuzz(total))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--only', choices=list(BUILDS), action='append',
                        help='build and test in this way alone (may be repeated)')
    parser.add_argument('--list', action='store_true', help='name the ways')
    args = parser.parse_args()
    if args.list:
        print('\n'.join(BUILDS))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    total = Total()
    builder = Builder(args.only or list(BUILDS))
    builder.start()
    try:
        for build in builder.done:
            build_and_test(total, builder, build)
    finally:
        for child in list(running):
            child.terminate()
    for failure in total.failures:
        print(f'failed: {failure}')
    print(total.line())
    return total.counts[1] != 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
