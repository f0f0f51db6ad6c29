#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Check what the compilers do not: one case a rule, last line "N passed, N failed, N skipped"."""
import glob
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE_LINES = 600
TEST_LINES = 800  # tables
FUNCTION_LINES = 70
LINE_COLUMNS = 110  # 100 is the aim

FORBIDDEN = {
    'printf': r'\b(?:v|f|d)?printf\s*\(',
    'exit': r'\b(?:_?exit|abort|rte_exit)\s*\(',
    'panic': r'\b\w*panic\s*\(',
    'volatile': r'(?<!__asm__ )\bvolatile\b',
    'a __sync builtin': r'\b__sync_\w+',
    'an old DPDK barrier': r'\brte_(?:smp_)?[rw]?mb\s*\(|\brte_smp_\w+',
    'an old DPDK atomic': r'\brte_atomic\d+_\w+',
}
# Words of the language, the compiler and DPDK that start with an underscore.
UNDERSCORE_ALLOWED = re.compile(
    r'__(?:attribute|asm|FILE|LINE|func|cplusplus|typeof|extension)(?:__)?$'
    r'|__(?:builtin|rte|tsan|ATOMIC|STDC|SSE|AVX|SANITIZE|has)_?\w*$'
    r'|_(?:Pragma|Static_assert|Generic|Alignof|GNU_SOURCE)$|_mm\w*$|_SC_\w+$|__m\d+i?$|__int128$|__\w+__$')
ORDERED = re.compile(r'\bsl_(?:load_acquire|store_release|exchange_acq_rel|fence_seq_cst|fence_acquire'
                     r'|fetch_\w+_(?:release|acq_rel)|cas_weak_acq_rel)\s*\(')
LABEL = re.compile(r'\b[A-Z]{2}[1-9][0-9]?\b')
# Where the project's own words are defined, errno is read, and assertions end the process.
EXEMPT = {'lib/base/include/sl_shared.h': {'__atomic'}, 'lib/base/errno.c': {'errno', 'printf', 'exit'},
          'lib/base/sys.c': {'errno'}}

problems = []


def tracked(*patterns):
    # Also what is not yet committed, so that the check can run before a commit.
    out = subprocess.run(['git', '-C', TOP, 'ls-files', '-z', '--cached', '--others',
                          '--exclude-standard', '--', *patterns],
                         check=True, capture_output=True, text=True).stdout
    return sorted(p for p in out.split('\0') if p and os.path.isfile(os.path.join(TOP, p)))


def read(path):
    with open(os.path.join(TOP, path), encoding='utf-8') as f:
        return f.read()


def code_only(text):
    """The text with comments and literals blanked, line for line."""
    def blank(m):
        return re.sub(r'[^\n]', ' ', m.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.S)


def report(path, line, what):
    problems.append(f'{path}:{line}: {what}')


def c_files(*folders):
    return tracked(*[f'{d}/{p}' for d in folders for p in ('*.c', '*.h', '*.cc', '*.hh')])


def rule_header():
    for path in tracked('*.c', '*.h', '*.cc', '*.hh', '*.sh', '*.py', '*meson.build', '.ci/run'):
        if re.fullmatch(r'(?:lib|tests)/\w+/meson.build', path):
            continue  # three lines of lists
        if 'SPDX-License-Identifier: BSD-3-Clause' not in '\n'.join(read(path).split('\n')[:3]):
            report(path, 1, 'no licence line')


def rule_forbidden_words():
    for path in c_files('lib', 'drivers'):
        for n, line in enumerate(code_only(read(path)).split('\n'), 1):
            for what, pattern in FORBIDDEN.items():
                if re.search(pattern, line) and what not in EXEMPT.get(path, ()):
                    report(path, n, f'{what} is not for libraries and drivers')
            for word in re.findall(r'\b_\w+', line):
                if '__atomic' in word and '__atomic' not in EXEMPT.get(path, ()):
                    report(path, n, 'shared words go through sl_shared.h')
                elif '__atomic' not in word and not UNDERSCORE_ALLOWED.match(word):
                    report(path, n, f'{word} starts with an underscore')


def rule_errno_only_in_base():
    for path in c_files('lib', 'drivers'):
        for n, line in enumerate(code_only(read(path)).split('\n'), 1):
            if 'errno' in EXEMPT.get(path, ()) or line.lstrip().startswith('#'):
                continue
            if re.search(r'\b(?:rte_)?errno\b', line):
                report(path, n, 'errno is read in lib/base alone')


def rule_no_version_tests_outside_base():
    for path in c_files('lib', 'drivers', 'apps'):
        if path == 'lib/base/include/sl_dpdk.h':
            continue
        for n, line in enumerate(code_only(read(path)).split('\n'), 1):
            if 'RTE_VERSION' in line:
                report(path, n, 'DPDK versions differ in lib/base alone')


def rule_no_open_ends():
    words = re.compile(r'\b(?:TO' + r'DO|FIX' + r'ME|XX' + r'X)\b')
    for path in tracked('*.c', '*.h', '*.sh', '*.py', '*.md', '*meson.build'):
        for n, line in enumerate(read(path).split('\n'), 1):
            if words.search(line):
                report(path, n, 'an open end without an issue')


def rule_no_conditionals_in_functions():
    for path in c_files('lib', 'drivers'):
        inside = False
        for n, line in enumerate(code_only(read(path)).split('\n'), 1):
            if line == '{':
                inside = True
            elif line.startswith('}'):
                inside = False
            elif inside and re.match(r'\s*#\s*(?:if|ifdef|ifndef|else|elif)\b', line):
                report(path, n, 'a preprocessor conditional in a function')


def rule_size():
    for path in c_files('lib', 'drivers', 'apps', 'tests'):
        lines = code_only(read(path)).split('\n')
        limit = TEST_LINES if path.startswith('tests/') else FILE_LINES
        if len(lines) > limit:
            report(path, len(lines), f'longer than {limit} lines')
        start = None
        for n, line in enumerate(lines, 1):
            if line == '{':
                start = n
            elif line == '}' and start is not None:
                if n - start - 1 > FUNCTION_LINES:
                    report(path, start, f'a function of more than {FUNCTION_LINES} lines')
                start = None


def rule_lines():
    for path in tracked('*.c', '*.h', '*.cc', '*.hh', '*.sh', '*.py', '*meson.build', '*.md'):
        for n, line in enumerate(read(path).split('\n'), 1):
            if line != line.rstrip():
                report(path, n, 'white space at the end of the line')
            if path.endswith(('.c', '.h', '.cc', '.hh')) and len(line.expandtabs(8)) > LINE_COLUMNS:
                report(path, n, f'wider than {LINE_COLUMNS} columns')


def rule_no_machine_paths():
    pattern = re.compile(r'(?<![\w.$}])/(?:wo' + r'rk|ro' + r'ot|ho' + r'me)/\w|deb\.deb' + r'ian\.org')
    for path in tracked():
        try:
            text = read(path)
        except UnicodeDecodeError:
            continue  # a corpus file
        for n, line in enumerate(text.split('\n'), 1):
            if pattern.search(line):
                report(path, n, 'a path or host of one machine')


def labels_in_code():
    found = {}
    for path in c_files('lib', 'drivers'):
        text = read(path)
        comments = re.findall(r'/\*.*?\*/|//[^\n]*', text, flags=re.S)
        for comment in comments:
            for label in LABEL.findall(comment):
                found.setdefault(label, path)
    return found


def rule_orderings_have_labels():
    for path in c_files('lib', 'drivers'):
        if path == 'lib/base/include/sl_shared.h':
            continue
        lines, text = code_only(read(path)).split('\n'), read(path).split('\n')
        for n, line in enumerate(lines):
            if not ORDERED.search(line) or 'ASSERT' in line or line.startswith('#'):
                continue
            if not LABEL.search('\n'.join(text[max(0, n - 5):n + 2])):
                report(path, n + 1, 'an ordered access without a label')


def rule_labels_have_rows():
    code = labels_in_code()
    path = 'doc/concurrency.md'
    rows = {}
    for n, line in enumerate(read(path).split('\n'), 1):
        match = re.match(r'\|\s*\**(' + LABEL.pattern + r')\**\s*\|', line)
        if match:
            rows[match.group(1)] = n
            cells = [c.strip() for c in line.strip().strip('|').split('|')]
            if len(cells) != 6 or not all(cells):
                report(path, n, 'a row needs label, writer, reader, published, breaks, test')
    for label in sorted(set(code) - set(rows)):
        report(code[label], 1, f'{label} has no row in {path}')
    for label in sorted(set(rows) - set(code)):
        report(path, rows[label], f'{label} is not in the code')
    if not rows:
        report(path, 1, 'no rows')


def rule_outcomes_have_rows():
    path = 'doc/outcomes.md'
    text = read(path)
    source = read('lib/inet/outcome.c')
    names = re.findall(r'\bSL_[RT]X_\w+\][^"]*"(\w+)"', source)
    if not names:
        report('lib/inet/outcome.c', 1, 'no outcome names found')
    for name in names:
        if f'`{name}`' not in text:
            report(path, 1, f'no row for {name}')


def rule_documents_name_what_is_there():
    word = re.compile(r'`((?:lib|apps|drivers|tests|config|doc)/[\w./*-]+)`')
    for path in tracked('*.md'):
        for n, line in enumerate(read(path).split('\n'), 1):
            for name in word.findall(line):
                if not glob.glob(os.path.join(TOP, name)):
                    report(path, n, f'{name} is not there')


def rule_scripts_parse():
    for path in tracked('*.sh', '.ci/run'):
        ret = subprocess.run(['bash', '-n', os.path.join(TOP, path)], capture_output=True, text=True)
        if ret.returncode:
            report(path, 1, ret.stderr.strip())
    for path in tracked('*.py'):
        try:
            compile(read(path), path, 'exec')
        except SyntaxError as e:
            report(path, e.lineno, str(e))


def main():
    failed = 0
    rules = [(name[5:].replace('_', ' '), rule) for name, rule in globals().items()
             if name.startswith('rule_')]
    for name, rule in rules:
        problems.clear()
        try:
            rule()
        except OSError as e:
            problems.append(str(e))
        failed += bool(problems)
        print('\n'.join(problems + [('FAIL ' if problems else 'ok   ') + name]))
    print(f'{len(rules) - failed} passed, {failed} failed, 0 skipped')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main())
