#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""Draw the ratios that sluice-bench --json printed, as an SVG on standard output.

One bar a case, from 1 (no difference) to the median over slices; a line shows the smallest and the
largest slice. A dashed line marks each target that design and doc/benchmarks.md name.

usage: plot-benchmarks.py RESULTS.jsonl > PLOT.svg
"""
import json
import math
import sys
from xml.sax.saxutils import escape

LEFT, WIDTH, ROW, TOP, BOTTOM = 330, 560, 19, 62, 40
LOW, HIGH = 0.25, 32.0
COLORS = {'many': '#1f6fb2', 'fewest': '#3a9a5b', 'one': '#b9732b', 'memory': '#7a4fa3'}


def read(path):
    rows = []
    for line in open(path, encoding='utf-8'):
        row = json.loads(line)
        if row['unit'] == 'x':
            rows.append(row)
    return rows


def x_of(ratio):
    """Logarithmic, so that twice as fast and half as fast are equally long."""
    share = math.log(min(max(ratio, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
    return LEFT + share * WIDTH


def text(x, y, words, **attributes):
    extra = ''.join(f' {k.replace("_", "-")}="{v}"' for k, v in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{extra}>{escape(words)}</text>'


def line(x1, y1, x2, y2, color, **attributes):
    extra = ''.join(f' {k.replace("_", "-")}="{v}"' for k, v in attributes.items())
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"{extra}/>'


def axis(height):
    out = []
    ratio = LOW
    while ratio <= HIGH:
        x = x_of(ratio)
        out.append(line(x, TOP - 6, x, height - BOTTOM, '#888' if ratio == 1 else '#ddd'))
        out.append(text(x, height - BOTTOM + 16, f'{ratio:g} x', text_anchor='middle', fill='#555'))
        ratio *= 2
    return out


def target_of(row):
    """The least that is asked for, where something is."""
    if row['ratio'] == 'stack/loop':
        return 0.6
    if row['ratio'] == 'batched/one-at-a-time' and '/other-core/' in row['case']:
        return {'many': 3.0, 'one': 1.0}.get(row['case'].split('/')[0])
    return None


def bar(row, y):
    color = COLORS.get(row['case'].split('/')[0], '#666')
    name = row['case'] if row['ratio'] == 'batched/one-at-a-time' else f'{row["case"]} {row["ratio"]}'
    one, median = x_of(1), x_of(row['value'])
    middle = y + ROW / 2 - 2
    out = [text(LEFT - 8, y + 12, name, text_anchor='end', fill='#222'),
           f'<rect x="{min(one, median):.1f}" y="{y:.1f}" width="{max(abs(median - one), 1):.1f}"'
           f' height="{ROW - 5}" fill="{color}"/>',
           line(x_of(row['min']), middle, x_of(row['max']), middle, '#222', stroke_width=1),
           text(LEFT + WIDTH + 10, y + 12, f'{row["value"]:.2f} x', fill='#222')]
    target = target_of(row)
    if target is not None:
        out.append(line(x_of(target), y - 2, x_of(target), y + ROW - 3, '#c00', stroke_dasharray='3 2',
                        stroke_width=2))
    return out


def draw(rows):
    height = TOP + ROW * len(rows) + BOTTOM
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 80}" height="{height}"'
           ' font-family="sans-serif" font-size="11">',
           '<rect width="100%" height="100%" fill="white"/>',
           text(12, 20, 'sluice-bench udpq: batched receive against one datagram at a time', font_size=15),
           text(12, 38, 'bar: median over neighbouring slices; line: smallest and largest slice;'
                ' dashed red: target', fill='#555')]
    out += axis(height)
    for i, row in enumerate(rows):
        out += bar(row, TOP + i * ROW)
    return '\n'.join(out + ['</svg>', ''])


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip().split('\n')[-1], file=sys.stderr)
        return 2
    rows = read(sys.argv[1])
    if not rows:
        print(f'plot-benchmarks.py: {sys.argv[1]}: no ratios in it', file=sys.stderr)
        return 2
    sys.stdout.write(draw(rows))
    return 0


if __name__ == '__main__':
    sys.exit(main())
