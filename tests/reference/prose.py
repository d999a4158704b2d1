"""The texts of the reference page beside keys and transforms; the filling of Markdown."""

import inspect
import re
import textwrap

from proxy.schema.keywords import FORMATS

WIDTH = 120

_OPENING = """
# The rule language

This page is printed by `mcp-abridge schema --reference`, from the code that reads rule files.

```yaml
version: 1
rules:
  - tools: list_issues                       # a name, a glob, or a list of them
    when: "state == 'open'"                  # optional: a condition over the call's arguments
    response:                                # transforms, in the order in which they run
      - keep: [number, title, user.login]
      - paginate: {as: issues, limit: 30}
    max_bytes: 8000                          # whatever is left over is abridged
```

The first rule that matches a call applies: in the order of the file, files in the order in which
they are given. A call that no rule matches passes byte for byte, and so does its response if it
fits the budget (`--budget`: what suits the client, a size, or `off`). The budget is not for what a
program reads: calls that Codex's models make from scripts, and tools with a widget (MCP Apps:
`_meta.ui.resourceUri`) once they were listed. Keys at the top that begin with `x-` are yours, for
YAML anchors. YAML is read as version 1.2 means it: `on`, `no` and `12:30` are texts. A size is a
number of bytes, or a text with a unit, such as `8kB`, `256MB` or `1GiB`. `mcp-abridge check`
reports every mistake in a file (the first 200) with its line and column, `mcp-abridge test` runs
the tests in it, and `mcp-abridge explain` shows what each step of a rule does to a recorded
response.

## The document

A tool answers with `content` (a list of blocks) and perhaps `structuredContent`; often both hold
the same. Transforms work on the one value in it, the document. It is the first of these that the
result has:

1. `structuredContent` that a text block repeats as JSON. Both copies are rewritten.
2. `structuredContent` with one member that the text blocks repeat, as in `{result: "..."}`. A
string is the document itself, as the JSON object or array in it if that is what it holds; of
any other value, `structuredContent` as a whole is the document. Both copies are rewritten. If
it is a text, `at` may name it by its member, as a view may: `clip: {at: result, max_chars: 500}`.
3. Any other `structuredContent`; the blocks stay.
4. The only text block that holds a JSON object or array; other blocks stay.
5. Several text blocks that all hold JSON objects or arrays: an array with one element for each.
6. The only text block, as a text. One that is a JSON string counts as the text in it, and is
written back as one.

Embedded text resources count as text blocks. Where none of this fits, no transform runs, unless
`document` says which part is meant: `structured`, `text` (never read as JSON), or `blocks` (an
array with one element for each text block). With `max_bytes`, such a result is bounded as
`blocks`. Images, audio, links, annotations and `_meta` stay; `blocks` drops them by type.

What a rule keeps is spelled as the server spelled it: `1.0` stays `1.0`, and 23 digits stay 23
digits. (The exception: a lone surrogate escape, half of a character, becomes U+FFFD.) A
`structuredContent` that came as an object stays one, since clients take nothing else: an array that
steps make of it stands there as `items`, anything else as `text`. With `max_bytes` it is bounded
where it is not the document, too. Results that are not final (a task, a request for input) are
never touched. No step of `response` touches an error, see [Error results](#error-results).

## Paths

A path is names joined by dots. A name after an array steps into each of its elements, so
`items.title` is the title of every item, and in a document that is an array `title` is that of
every element.

| path | what it names |
| --- | --- |
| `user.login` | a member of a member |
| `labels.name` | the name of each label, where `labels` is an array |
| `*Ids`, `items.*` | members whose names fit; `*` is any characters |
| `**.body` | every `body`, at any depth; `**` stands at most twice in a path |
| `items[0]`, `items[-1]`, `items[]` | an element, from the start or the end; every element |
| `'"app.kubernetes.io/name"'` | a name with dots or signs in it, in double quotes |

In YAML's own `[ ]` and `{ }`, quote a path that has brackets. `at` is where a transform works:
what is outside stays, and its other paths begin there. Without it, that is the whole document.
Windows (`paginate`, `truncate`) need a path to one place: names only, through no array.

## Conditions and computed values

Conditions (`when`, `where`, `error_if`) and computed values are JMESPath, in which texts can be
sliced too (`body[0:200]`); `argument('name')` in one is the call's argument. Paths are not
JMESPath, and have no conditions or slices. Regular expressions are those of RE2, which take linear
time on any text; in `replace` and `parse`, which look for one match after another, `a(.*b)?` and
the like take quadratic time, which a rule's budget bounds. Where a constant may come from the call,
`{argument: name}` stands for it. A text stands in single quotes: a name in double quotes is a
member, so `check` refuses one beside a comparison that needs no quotes (`status == "open"`).
`explain` names what a `where` or a `jmespath` asks for and no element has.

What a rule may cost is bounded, whatever the expression, the pattern or the document: all that is
looked at, made or decoded for expressions, searched by patterns, read by `parse` or checked by
`validate` counts as work, a unit for about a microsecond, and what one response takes together ends
at 10,000,000 units, which is some ten seconds. A rule that needs more fails, see below; a `view`,
and a pattern or glob that the call brings, is refused with a message that says so. A `when` and
the `pattern` of an argument have 20,000 units, since other calls wait for them: where they need
more, the `when` does not hold (a rule that protects refuses the call), and the argument is refused.
What the other transforms do takes time by the size of the document.

## Where notices go

Clients that get `structuredContent` may show the model nothing else. So what it must know, how
much was left out and how to get it, goes into the document where that is possible. In a document
that is an object, a notice is a member of it: `pagination` or `truncation` beside the array or
text, `_elided` beside the array, `_abridged` and `_dropped` at the top. Where the server has a
`pagination`, `truncation`, `_elided` or `_abridged` of its own, that stays, and the notice takes
the name with `_` behind it (`pagination_`). An array that is the whole document becomes the
`items` of an object (`{items: [...], _abridged: ...}`; not its pages with `as: null`), and a text
that is a JSON string its `text`. Beside any other text the notice is a text block of its own, and
stands in `structuredContent` too if that holds the text. A notice has numbers, paths and names of
arguments, and nothing else. The advertised `outputSchema` admits it.

## Pages, windows and views

`paginate` and `truncate` answer one window and add the arguments that ask for the others. A name
that the rule spells out (`arguments: {limit: rows}`) is the rule's, even over an argument of the
server's own. A default one gives way: where the server has a `limit` itself, the rule's becomes
`page_limit`. Added arguments are never sent to the server. Two windows of one rule need different
names, but for a `truncate` of the whole document beside one of a member: of two steps of one kind
like these, only the former works on a document that is a text. After a window only
`clip`, `replace` and `table` may follow, which then work on the page, and `abridge` at the end.

Every page has its metadata, the last one too, with `nextOffset: null`. Where several of the
arrays that one `paginate` moves stand in one object, each has its entry: `pagination: {entities:
{total: 90, ...}, relations: {total: 40, ...}}`. A window of `truncate` is as long as it was asked
to be, so that `endIndex` can be told in advance; `boundary: word` gives that up to keep words
whole. With `from: end`, indexes count from the end: `startIndex: 0` is the newest part of a log.

A rule with `abridge` or `max_bytes` adds the argument `view` (`abridged_view` where the server
has one; `view: false` adds none). It is a JMESPath, in which strings can be sliced too:

- `view: "items[20:40]"`, `view: "items[*].{id: id, title: title}"`
- `view: "text[10000:20000]"`, where the document is a text; `view: "body[2000:4000]"` for a text
in it

A name in double quotes is a member in JMESPath; beside a comparison, as in
`items[?state == "open"]`, it is taken for the text if no element has a member of that name. A view
that finds nothing because no element has a member that it asks for is refused, and named the
members that there are.

The answer is `{view: ...}`, or a text as a text, and abridged in turn if need be. `more` beside it
says what else there is to know: that it is null, or that no element has a member that was named.

Pages, windows and views of a call are cut from one snapshot: the document before the first step
that leaves something out which can be asked for (`paginate`, `truncate`, `elide`, `clip`,
`abridge`). What the steps before it removed (`keep`, `drop`, `project`, `filter`) no view brings
back. The snapshot is taken with the first answer and found again by tool, rule and all other
arguments. It stays in memory, in this session only, for 30 minutes after its last use; at most 64
of them, and 256 MiB in all. So windows rejoin exactly, and a tool with side effects runs once.
Where no snapshot is left, a tool that says `readOnlyHint: true`, or a rule that says `refetch:
true`, calls the server again; any other call is refused, and says to start at the beginning.
`drop_on` names the tools whose calls make snapshots untrue.

## When a rule does not fit, or fails

A path that names nothing is no error; `explain` shows it. Where nothing that a `keep` or
`project` names exists, or a text cannot be read as `parse` says, the document has another shape
than the rule expects, a mismatch: the response passes as it came, but for the rule's `validate`
and `max_bytes`, and a line on stderr says so. Below, that is called a Mismatch. So it is where a
`keep`, `drop` or `project` would leave nothing of a document that held something: `{}`, or nothing
but nulls, empty texts and empty objects that the server did not send so itself. An empty array is
an answer, and what a `filter`, a window, a `jmespath` or a `recast` leaves is meant. And so it is,
with `allow_growth: false`, where the model would be shown more than came.

Where a step fails, the response passes as it came too, whatever was raised. A result of more than
four times the bytes that came and a megabyte is a failure. After five failures in a row the rule is
out of service until its file is read again, which a line on stderr says once: responses pass as
they came, pages and views are refused, while its arguments, `hide` and its guard stay in force.

With `on_failure: refuse` the rule fails closed, as one must that keeps something from the model:
where a step fails or does not fit, where the result has no document, or a `drop` or `filter` finds
a text, the response is withheld, and an error names the rule; it is never out of service. With
`validate: refuse`, what a step failed on is withheld, and what does not fit is held to the contract
as it came.

A **warning** is something that whoever runs the proxy should know of, while the answer goes out
all the same: a text that no case of a `recast` knows, an object that a `paginate` without `at`
cannot page, a broken contract, and whatever Python of yours warns of. Its kind is a few words
(`recast: no case fits`). Warnings are counted by kind, for `mcp-abridge report` and as the metric
`mcp_abridge_warnings_total`; the first of each kind is logged in full, for each rule and tool.

## Error results

The steps of `response` never see an error; those of `errors` are for errors alone. These are:

- a result with `isError`
- a result of which `error_if` says that it is an error
- a JSON-RPC error: its message is the document, a text; its code and data stay
- what the proxy itself refuses for the rule: arguments out of bounds, a response that breaks its
contract, a call or a response that is withheld

So all errors of a tool can have one form, whoever they come from:

```yaml
version: 1
rules:
  - tools: get_job
    arguments: {limit: {maximum: 100}}
    errors:
      - recast:
          unless: error.code                   # has the form already
          common: {error: {message: "{text}"}}
          vocabulary: {error.code: [NOT_FOUND, INVALID]}
          cases:
            - {match: '^no job (?P<id>\\S+)', to: {error: {code: NOT_FOUND, job: "{id}"}}}
            - {match: 'is (?:greater|less) than', to: {error: {code: INVALID}}}
    tests:
      - given_error: no job 17
        expect_error: {error: {message: no job 17, code: NOT_FOUND, job: "17"}}
      - arguments: {limit: 101}
        refused: {error: {message: "limit: 101 is greater than the maximum of 100", code: INVALID}}
      - {given_error: disk full, expect_error: disk full, warns: ["recast: no case fits"]}
```

An error stays one of its kind. A result of which only `error_if` says that it is an error is
marked `isError: true`, where the rule has `errors` or an `output_schema`. Where steps make more
than a text of a message or a refusal, it stands there as JSON. No window can stand in `errors`,
and `validate` is not for errors. A step that fails there costs no error: it goes out as it came,
with a line in the log. That no case of a `recast` knows a refusal of the proxy's own is no
warning, and what a guard answers goes out as the guard has it.

`max_bytes`, or the budget, bounds errors too, after the steps of `errors`. A text that is too long
shows its first and last lines, and a second text block says what is between them and which `view`
shows it, without another run of the tool:

```json
{"_abridged": {"text": "first 4357 and last 2901 of 324118 chars; lines 62 to 5012 are left out",
               "more": "call again with view='text[4357:11615]'"}}
```

Several texts become one. An error that is too long is marked `isError: true` and carries no
`structuredContent`, which clients may hold to the schema of something else, unless that is beside
texts which are too long themselves. A JSON-RPC error says at the end of its message what was left
out of it and of its `data`, which may take half of the room; its code stays.

## Output schemas and contracts

A tool with an `outputSchema` has clients that check results by it. So the one that the proxy
advertises is `anyOf` what the rules of the tool make of it, and the server's own, since a rule may
not apply, or fail. What a step makes of a schema stands with each of the
[transforms](#the-transforms). Where one cannot say, the `outputSchema` is no longer advertised.

`output_schema` says what a rule yields where that cannot be derived. With `validate` it is a
contract, and each response of the rule is checked against it, after the steps of `response` and
before `max_bytes` abridges what is left:

```yaml
version: 1
rules:
  - tools: get_job
    output_schema:
      type: object
      properties:
        id: {type: string, format: uuid}
        percent: {type: integer, minimum: 0, maximum: 100}
        ended_at: {type: string, format: date-time, nullable: true}
      required: [id, percent]
      additionalProperties: false
    validate: refuse
    tests:
      - given: {id: 550e8400-e29b-41d4-a716-446655440000, percent: 40, ended_at: null}
        expect: {id: 550e8400-e29b-41d4-a716-446655440000, percent: 40, ended_at: null}
      - given: {id: 550e8400-e29b-41d4-a716-446655440000, percent: 140}
        expect_error: >-
          the response breaks its contract: percent: 140 is greater than the maximum of 100
        warns: ["contract: percent maximum"]
```

With `warn`, what breaks the contract passes, and each kind of it is a warning. With `refuse` it is
a warning too, and the answer is an error that names up to three of the places.

The schema is one of JSON Schema 2020-12, or of draft-07 where its `$schema` says so. All keywords
of that are checked. Of `format`, {formats} are; any other is a note to the reader. A `pattern`
must be one that RE2, and clients in Python and JavaScript, can read. A `$ref` leads to a place in
the schema itself (`#/$defs/...`); nothing is ever fetched. The root is `type: object`, as clients
ask. `nullable: true`, OpenAPI's word, admits null, and is advertised in JSON Schema's own words
(`type: [string, 'null']`). What is no such schema, `check` refuses, with its place.

Every result of a rule with `output_schema` that is no error carries `structuredContent`: the
document where that is an object, else `{text: ...}`. An error carries none, since some clients
would hold it to the schema too. What is advertised:

| the tool | its `outputSchema` becomes |
| --- | --- |
| declares an `outputSchema` | `anyOf` the contract and the server's own |
| declares none, and each of its calls falls under a rule with `output_schema` | the contract |
| declares none, and some calls fall under no such rule | none; a line in the log says why |

`validate: warn` lets results pass that break the contract, as does a rule without `validate`, and a
guard may answer anything. So `anyOf` then has one more branch, which admits any object. Only with
`validate: refuse`, and without a guard, the contract of a tool that declares none stands alone; or
with `{view: ...}` beside it, where the rule has `max_bytes`. A rule with `copies: text` or `mode:
shadow` promises nothing.

## Guards on calls

A guard is Python of yours (`guards`) that decides on each call of a rule (`guard`) that would go to
the server, when its arguments are checked and complete. It lets the call go on, perhaps with other
arguments; or it answers it; or it has the proxy call another tool of the server first, and decides
by what comes of that. The call is held meanwhile, and given up when the client gives it up. Pages
and views that come from a snapshot are not asked about. Arguments of its own are advertised and
never sent. What it tells the steps of the rule they find in the argument `guard`: `{argument:
guard.reason}`, `argument('guard').reason`. Where it fails, the call is refused, unless `on_failure:
pass` lets it go on. A JSON-RPC batch (revision 2025-03-26) with a call that has a guard is refused,
as it is if a rule hides a tool, bounds arguments or withholds results; other batches pass as they
are. [PYTHON.md](PYTHON.md) makes a guard, with its tests.
"""

OPENING = _OPENING.replace("{formats}", ", ".join(f"`{name}`" for name in sorted(FORMATS)))

TRANSFORM = """
A step is `name: options`. Where a transform has a short form, the value of that one option may
stand in place of the options; where it needs none, its name may stand alone. The examples are
written as tests of a rule. What becomes of an `outputSchema` is shown by a strict schema of the
example's document, before and after. Where none of these transforms does it, a file can name some
in Python (`transforms`): [PYTHON.md](PYTHON.md).
"""


def filled(text: str) -> str:
    """Return Markdown with paragraphs and list items filled; code, tables and titles unchanged.

    >>> print(filled("a\\nb\\n\\n- c\\nd\\n- e"))
    a b
    <BLANKLINE>
    - c d
    - e
    """
    return "\n\n".join(map(_block, inspect.cleandoc(text).strip().split("\n\n")))


def _block(block: str) -> str:
    if block.startswith(("```", "|", "#")):
        return block
    items = re.split(r"\n(?=(?:- |\d+\. ))", block)
    marks = [re.match(r"- |\d+\. |", item) for item in items]
    return "\n".join(
        "\n".join(wrapped(" ".join(item.split()), len(mark[0]) if mark else 0))
        for item, mark in zip(items, marks, strict=True)
    )


def wrapped(line: str, indent: int) -> list[str]:
    """Return a long line wrapped into lines, all but the first indented."""
    return textwrap.wrap(
        line,
        WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
