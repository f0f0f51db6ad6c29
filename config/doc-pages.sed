# SPDX-License-Identifier: BSD-3-Clause
# Pages name each other as paths in the tree: make links of them.
s,`doc/([a-z-]+)\.md`,[doc/\1.md](doc/\1.md),g
# No link to a thing called ffff.
s,`(::ffff[^`]*)`,<code>\\\1</code>,g
# A heading shows the tags that code in it becomes. It is the title of entries in lists, too.
/^#+ /s,`,,g
