# SPDX-License-Identifier: BSD-3-Clause
# What follows these words is a paragraph of its own, with a heading.
s/(^ \*| )(Caller|Ordering|Counts|Caller, Counts|Stability): /\n * @par \2\n * /g
# No link to a thing called ffff.
s/::ffff/\\::ffff/g
