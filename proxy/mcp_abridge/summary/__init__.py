"""The first answer: what a model reads of a document that is larger than its budget.

transforms/abridge.py is the step that calls this: it reserves room for the notices, has the value
cut, and writes what was left out and how to see it. What is shown is chosen here:

structure_in_text  finds the structure that is written in a text, and which of the two is shown
notations          YAML, Python literals and others, as JSON
delimited          CSV and TSV, with or without a head, as JSON
repeated           git log, blocks of fields, logfmt, tables and JUnit, as JSON
cutter             divides the room among the parts of a value; notes each omission
brief              an array of objects: all its rows in a few columns each
all_rows           single members of all rows, of which something is stated
columns            the columns of such rows, and what each is worth
excerpt            a text by its beginning, its end or headings, and the lines that stand out
highlights         the lines of a text that stand out: rare ones, and those of failure
rare               the lines that are unlike the others, in any language
failures           the lines that speak of failure, by words
media              a note in place of base64

Rare lines: of 40 kinds of logs with one failure in a thousand lines (tests/summary/logs.yaml), a
list of English words found 10; rarity and better words find all, of 20 kinds that were written
after it too. Forms are counted by `bytes.translate`; `re` takes fifteen times as long, and words
compared at their places four times, which only texts of few forms get.

The judge of a change is `make answers`: the calls and bytes until questions are answered, by a
reader that only follows the notices. A change that helps the result at hand is tried on others
first, which were not looked at while it was written.

What is read as structure was tried on 1,512 texts that nothing was written for (outputs of
commands, /etc, changelogs, licences, sources, recordings, CSV of numpy): none was read wrongly.
"""
