#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Build the documentation into an empty folder, without a warning, and follow what it says.

usage: test_docs.py DOXYGEN DOXYFILE SOURCE
"""
import glob
import html.parser
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse
import xml.etree.ElementTree


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


class Page(html.parser.HTMLParser):
    """What a page refers to, what can be referred to in it, and its words."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.words = [], set(), []
        self.feed(read(path))

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.anchors |= {named[key] for key in ('id', 'name') if key in named}
        self.links += [named[key] for key in ('href', 'src', 'data') if named.get(key)]

    def handle_data(self, data):
        self.words.append(data)


class Docs:
    def __init__(self, doxygen, doxyfile, source, folder):
        self.source, self.html = source, folder + '/html'
        self.run = subprocess.run([doxygen, '-'], text=True, capture_output=True, check=False,
                                  input=read(doxyfile) + f'\nOUTPUT_DIRECTORY = {folder}\n')
        self.pages = {os.path.basename(path): Page(path) for path in glob.glob(self.html + '/*.html')}
        self.texts = {name: ' '.join(page.words) for name, page in self.pages.items()}


def test_no_warning(d):
    assert d.run.returncode == 0 and not d.run.stderr.strip(), d.run.stderr


def test_every_page_is_there(d):
    titles = {re.match(r'# (.*)', read(path)).group(1) for path in glob.glob(d.source + '/doc/*.md')}
    text = '\n'.join(d.texts.values())
    missing = [t for t in titles if re.sub(r'[`*]', '', t) not in text]
    assert len(titles) > 20 and not missing, missing


def test_no_tag_is_shown(d):
    """What was meant for the browser and is read as words, as code in a heading was."""
    shown = {(name, m[0]) for name, text in d.texts.items() if name.startswith('md_doc_')
             for m in re.finditer(r'</?(?:tt|code|em|b|strong|a|p)\b[^>]*>', text)}
    assert not shown, shown


def test_no_bar_has_a_backslash(d):
    shown = {name for name, text in d.texts.items() if name.startswith('md_doc_') and re.search(r'\w\\\|', text)}
    assert not shown, shown


def test_index_leads_to_every_page(d):
    linked = set(re.findall(r'\]\(([a-z-]+)\.md\)', read(d.source + '/doc/index.md')))
    pages = {os.path.basename(path)[:-3] for path in glob.glob(d.source + '/doc/*.md')} - {'index'}
    assert linked == pages, linked ^ pages


def test_every_header_is_there(d):
    headers = glob.glob(d.source + '/lib/*/include/*.h')
    missing = [h for h in map(os.path.basename, headers)
               if h.replace('_', '__').replace('.', '_8') + '.html' not in d.pages]
    assert headers and not missing, missing


def test_every_call_has_words(d):
    """Each symbol of the maps is on its header's page, and something is said there of each header."""
    names = [name for path in ('lib/sluice.map', 'lib/client/client.map')
             for name in re.findall(r'^\t(\w+);', read(f'{d.source}/{path}'), re.M)]
    text = '\n'.join(text for name, text in d.texts.items() if name.endswith('_8h.html'))
    missing = [name for name in names if name not in text]
    assert len(names) > 100 and not missing, missing


def test_links_lead_somewhere(d):
    broken = []
    for name, page in d.pages.items():
        for link in page.links:
            url = urllib.parse.urlparse(link)
            if url.scheme or link.startswith(('#', 'javascript:')):
                continue
            target = urllib.parse.unquote(url.path)
            if not os.path.exists(os.path.join(d.html, target)):
                broken.append(f'{name}: {link}')
            elif url.fragment and target in d.pages and url.fragment not in d.pages[target].anchors:
                broken.append(f'{name}: {link}')
    assert not broken, '\n'.join(broken)


def test_drawings_are_well_formed_and_used(d):
    drawings = glob.glob(d.source + '/doc/drawings/*.svg')
    pages = ' '.join(read(path) for path in glob.glob(d.source + '/doc/*.md'))
    for path in drawings:
        root = xml.etree.ElementTree.parse(path).getroot()
        assert root.tag == '{http://www.w3.org/2000/svg}svg' and root.find('{*}title') is not None, path
        name = os.path.basename(path)
        assert f'(drawings/{name})' in pages, f'{name} is on no page'
        assert os.path.exists(f'{d.html}/{name}'), f'{name} is not copied'
    assert drawings


def main(doxygen, doxyfile, source):
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        docs = Docs(doxygen, doxyfile, source, folder)
        for name, test in sorted(globals().items()):
            if not name.startswith('test_'):
                continue
            try:
                test(docs)
                passed += 1
                print('ok  ', name)
            except AssertionError as e:
                failed += 1
                print('FAIL', f'{name}: {e}')
    print(f'{passed} passed, {failed} failed, 0 skipped')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:4]))
