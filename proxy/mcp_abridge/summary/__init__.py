"""The first answer: what a model reads of a document that is larger than its budget.

transforms/abridge.py is the step that calls this; a session loads it for its first long answer.
What is shown is chosen here:

abridgement        reserves room for the notices, has the value cut, says what was left out
structure_in_text  finds the structure that is written in a text, and which of the two is shown
notations          YAML, Python literals and others, as JSON
delimited          CSV and TSV, with or without a head, as JSON
markup             XML, as JSON
repeated           git log, logfmt, tables and JUnit, as rows
blocks             blocks of fields, each of which begins with the same one, as rows
access_log         requests in the log of a web server, as rows
components         events and contacts of iCalendar and vCard, as rows
line_heads         hits of a search, findings, chats, lines with a tag and joint logs, as rows
metrics            samples of metrics, as Prometheus reads them, as rows
log_lines          the lines of a log, or of a system's log, as rows
boxes              tables drawn with lines, as rows
printed            tables that stand to the right below their names, as of pandas, as rows
bibliography       entries of BibTeX, as rows
sections           sections of Markdown that have the same fields, as rows
rows               such rows as JSON
tables             a tree, or arrays side by side, as rows
cutter             divides the room among the parts of a value; notes each omission
shares             how much of the room each part gets
members            the members of one object that stay if not all fit
cuts               the places at which a long text is cut, and the calls for the rest
omissions          how much of what is shown, and the notes that say so
ways               the calls that show what is left out
paging             how many elements the server has of an array, and that it has more than came
brief              an array of objects: all its rows in a few columns each, or fewer rows
lookout            what is known of the call beside its result
layout             the columns that fit, and how much of each
columns            the columns of such rows, opened to the first scalar or text
roles              what each is for, and the order in which they are chosen
worth              what a column is worth in each role, by its names and values
forms              patterns of their cells
words              the words by which their names are told
cells              the cells of the chosen columns, and what the rows have beside them
sought             the words that a call looks for
objects            such rows as objects with fewer members
examples           the views of all rows that a notice offers
all_rows           single members of all rows, of which something is stated
origin             the notes on structure that was read from a text
excerpt            a text by its beginning, its end or headings, and the lines that stand out
highlights         the lines of a text that stand out: rare ones, and those of failure
rare               the lines that are unlike the others, in any language
failures           the lines that speak of failure, by words
levels             the level that a log gives each line
prose              prose, as of a manual, is told from the lines of a log
media              a note in place of base64
place              the place of a value, in notes and in views

Rare lines: of 40 kinds of logs with one failure in a thousand lines (tests/summary/logs.yaml), a
list of English words found 10; rarity and better words find all, of 20 kinds that were written
after it too. Forms are counted by `bytes.translate`; `re` takes fifteen times as long, and words
compared at their places four times, which only texts of few forms get.

Of 60 texts of a Debian machine that nothing was written for, 13 had lines with a failure in prose
or source code: there, words count that only messages have. The cost of a text, beside the engine
before: at most twice, if line numbers are counted once and few lines tell that it is no table.

Of a tree, all objects are rows, level by level, at `nodes(children, &children)`; of an object of
nothing but arrays of one length, these are columns, at `hourly.rows`; arrays whose columns are
named beside them, or in the first of them, are rows at `records` of what has both; arrays of like
objects by day or by file are rows with their name, at `unnest(entries(days), &value)`, and of many
rows without a name those inside are, with what is around them, at `unnest(threads, &messages)`;
what is around is counted at `threads`, once for each. `_abridged` has the rows by that name. All
are opened whole, so that they have a bound.

The form of rows in brief, as a member or as the whole:

same      members that have this one value in all rows of the array, shown or not
counts    of all rows: how many have each value; of rare values also where (`1 at [900]`)
columns   expressions over a row; `[]` takes each element, `[0]` the first, and
          `tags[?Key=='Env'].Value | [0]` the value beside a name, `values[-1][1]` the last
          value of a time series
rows      the first rows, and the last one of a time series; `…` stands where a text was cut, and
          alone for a value that is no text, or for a row that has none of the columns

Rich text is {"plain_text": …}, by the function of views that gives it.
If the result has structuredContent, rows stay objects with fewer members, and `same` and `counts`
stand in `_abridged`, each name with its array before it (`items[].locked`, `jobs[0].steps[].ok`).
Of a row, what is null and what is absent count as one. `_abridged` says how many rows and columns
there are of how many (`3+`: rows that were not read may have more), which columns are left out, and
what the server has in all, if a page says so (`42 of 90; the server has 317`);
a member that would be cut to nothing is left out, too.

What was tried: a sample says which columns there are (one pass over all distinct values of all
columns takes 240 ms for 10 MB), and what is stated of all rows is read in all (15 to 40 ms).
Columns chosen by the width and the worth of their names left out that for which a list is read in
13 of the 17 lists of tests/summary/lists.py.

The judge of a change is `make answers`: the calls and bytes until questions are answered, by a
reader that only follows the notices. A change that helps the result at hand is tried on others
first, which were not looked at while it was written.

What is read as structure was tried on 1,512 texts that nothing was written for (outputs of
commands, /etc, changelogs, licences, sources, recordings, CSV of numpy): none was read wrongly.
Of 34,000 later ones (manuals, sources), the readers of `printed`, `metrics`, tags, counts and
times read none wrongly.
"""
