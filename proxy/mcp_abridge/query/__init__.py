"""The language in which rules and models ask: expressions, and views of stored documents.

A view is an expression over the whole document of a call, which the model writes as the argument
`view`: JMESPath, the functions of `questions` (`grep`, `count_by` ...), slices of texts. An
expression of a rule is the same language over one value, without what views alone allow.

How a view is evaluated: `view.look` takes what is no JMESPath to be the spelling of another
language (`spellings`), parses it (`patterns.Expression`), corrects slips that would read as "none"
with the names that are there, or records them (`lookups`), and lets the LazyInterpreter (`lazy`)
open just what the expression reads. `windows` says what follows a part that was shown.
All work burns fuel (document/fuel.py), beforehand if it is done in one go.
Many rows are decoded in batches, by the members that an expression reads, and each part of it is
evaluated over a batch (`rows`): of 158,789 rows of 7 columns (16 MB of CSV) a condition takes a
sixth of the time that it takes row by row.

A view must not be silently wrong. `kinds` counts what comparisons and brackets met, for 1.1 to 1.4
times the work; beforehand, from samples, it would not have known what a condition leaves out. In
views alone a condition after a condition asks each inner element, `[0]` after one is the first
match, and numbers held as texts are compared as numbers: rules stay JMESPath.

CONTRIBUTING.md says how to add a function.

call        the facts of a call that steps and notices may use, and the notices themselves
patterns    regular expressions in linear time; JMESPath expressions, checked on creation
parser      the grammar of JMESPath
mistakes    words for what is wrong with an expression
jmespath    evaluation under fuel
lazy        the same in views, without opening what nothing reads
ends        what an expression ends with
rows        many rows at once: decoded, and an expression over all of them
functions   the table of all functions, and what a call burns
questions   the functions that JMESPath lacks
search      what `grep` finds in structure
lines       the same in a text
hits        what it found, as a view shows it
places      the places of hits, and the members of a name
headings    the headings of a text: markup, files of a diff, functions of source code
nearby      other spellings of a pattern that finds nothing
amounts     the functions that order and add values
conversions the functions that make rows and texts of values
shapes      rows of a tree, and of arrays side by side
rich_text   the text of a tree of rich text
lookups     names that an expression takes wrongly
keys        texts in place of names, in keys and conditions
trees       the names that an expression reads and compares, and over which value
letters     texts without their accents, and the forms of their letters
notation    parts of an expression, for the sentences that speak of them
kinds       kinds of values that it takes wrongly, counted
kind_words  sentences on those
near_misses sentences on what a test leaves out that is there in another spelling
numerals    the numbers, versions and times that texts spell, and their order
spellings   other languages' words for the same
jq          its streams, as arrays
shell       its commands, and their pipes
literals    what stands in quotes, set aside meanwhile
view        one view of one document
fragment    a view in the URI of a resource
windows     the view after the one that was shown
"""
