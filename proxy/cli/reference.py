"""The reference page of the rule language, as Markdown: made from what the loader reads by.

Options, defaults and arguments are those of the Structs; what a transform does is its docstring,
and its example is what its doctest does when it is run.
"""

import doctest
import inspect
import re
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from proxy.cli.descriptions import DESCRIPTIONS
from proxy.document import Slot
from proxy.fields import LISTS, MAPS, TEXTS, UNIONS, fields
from proxy.paths import ROOT, Path
from proxy.patterns import Expression, Pattern
from proxy.rule import Bounds
from proxy.rulekeys import Case, Defaults, Head, Rules, Steps, Written
from proxy.transforms import TRANSFORMS
from proxy.transforms.base import Call, Transform

_WIDTH = 120
_LARGEST = 400  # bytes of a document that is shown

OPENING = """
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

The first rule that matches a call applies: in the order of the file, files in the order in which they are given. A
call that no rule matches, and its response, pass byte for byte, unless `--budget` bounds them. Keys at the top that
begin with `x-` are yours, for YAML anchors. YAML is read as version 1.2 means it: `on`, `no` and `12:30` are texts.
`mcp-abridge check` reports every mistake in a file with its line and column, `mcp-abridge test` runs the tests in it,
and `mcp-abridge explain` shows what each step of a rule does to a recorded response.

## The document

A tool answers with `content` (a list of blocks) and perhaps `structuredContent`; often both hold the same. Transforms
work on the one value in it, the document. It is the first of these that the result has:

1. `structuredContent` that a text block repeats as JSON. Both copies are rewritten.
2. `structuredContent` with one member that the text blocks repeat, as in `{result: "..."}`. A string is the document
itself, as the JSON object or array in it if that is what it holds; of any other value, `structuredContent` as a whole
is the document. Both copies are rewritten.
3. Any other `structuredContent`; the blocks stay.
4. The only text block that holds a JSON object or array; other blocks stay.
5. Several text blocks that all hold JSON objects or arrays: an array with one element for each.
6. The only text block, as a text. One that is a JSON string counts as the text in it, and is written back as one.

Embedded text resources count as text blocks. Where none of this fits, no transform runs, unless `document` says which
part is meant: `structured`, `text` (never read as JSON), or `blocks` (an array with one element for each text block).
With `max_bytes`, such a result is bounded as `blocks`. Images, audio, links, annotations and `_meta` stay; `blocks`
drops them by type.

What a rule keeps is spelled as the server spelled it: `1.0` stays `1.0`, and 23 digits stay 23 digits. Error results
and results that are not final (a task, a request for input) are never touched.

## Paths

A path is names joined by dots. A name after an array steps into each of its elements, so `items.title` is the title of
every item, and in a document that is an array `title` is that of every element.

| path | what it names |
| --- | --- |
| `user.login` | a member of a member |
| `labels.name` | the name of each label, where `labels` is an array |
| `*Ids`, `items.*` | members whose names fit; `*` is any characters |
| `**.body` | every `body`, at any depth |
| `items[0]`, `items[-1]`, `items[]` | one element, counted from the start or the end; every element |
| `'"app.kubernetes.io/name"'` | a name with dots or signs in it, in double quotes |

In YAML's own `[ ]` and `{ }`, quote a path that has brackets. `at` is where a transform works: what is outside stays,
and its other paths begin there. Without it, that is the whole document. Windows (`paginate`, `truncate`) need a path
to one place: names only, through no array.

## Conditions and computed values

Conditions (`when`, `where`, `error_if`) and computed values are JMESPath; `argument('name')` in one is the call's
argument. Paths are not JMESPath, and have no conditions or slices. Regular expressions are those of RE2, which take
linear time on any text. Where a constant may come from the call, `{argument: name}` stands for it.

## Where notices go

What a model must know, how much was left out and how to get it, is never put where the client does not show it. In a
document that is an object, a notice is a member of it: `pagination` or `truncation` beside the array or text, `_elided`
beside the array, `_abridged` and `_dropped` at the top. A server's own member of that name stays: the notice then takes
the name with `_` behind it (`pagination_`). An array that is the whole document is wrapped by `paginate`
(`{items: [...], pagination: ...}`), and by `elide` and `abridge` where it is in `structuredContent`. Beside a text, or an
array that is not wrapped, the notice is a text block of its own, and stands in `structuredContent` too where that holds
the text. A notice has numbers, paths and names of arguments, and nothing else. The advertised `outputSchema` admits it.

## Pages, windows and views

`paginate` and `truncate` answer one window and add the arguments that ask for the others. A name that the rule spells
out (`arguments: {limit: rows}`) is the rule's, even over an argument of the server's own. A default one gives way:
where the server has a `limit` itself, the rule's becomes `page_limit`. Added arguments are never sent to the server.
Two windows of one rule need different names, but for a `truncate` of the whole document beside one of a member. After
a window only `clip`, `replace` and `table` may follow, which then work on the page, and `abridge` at the end.

A rule with `abridge` or `max_bytes` adds the argument `view` (`abridged_view` where the server has one; `view: false`
adds none). It is a JMESPath, in which strings can be sliced too:

- `view: "items[20:40]"`, `view: "items[*].{id: id, title: title}"`
- `view: "text[10000:20000]"`, where the document is a text; `view: "body[2000:4000]"` for a text in it

The answer is `{view: ...}`, or a text as a text, and abridged in turn if need be.

Pages, windows and views of a call are cut from one snapshot: the document before the first step that leaves something
out which can be asked for (`paginate`, `truncate`, `elide`, `clip`, `abridge`). What the steps before it removed
(`keep`, `drop`, `project`, `filter`) no view brings back. The snapshot is taken with the first answer and found again by
tool, rule and all other arguments. It stays in memory, in this session only, for 30 minutes after its last use; at most
64 of them, and 256 MiB in all. So windows rejoin exactly, and a tool with side effects runs once. Where no snapshot is
left, a tool that says `readOnlyHint: true`, or a rule that says `refetch: true`, calls the server again; any other call
is refused, and says to start at the beginning. `drop_on` names the tools whose calls make snapshots untrue.

## When a rule does not fit, or fails

A path that names nothing is no error; `explain` shows it. Where nothing that a `keep` or `project` names exists, or a
text cannot be read as `parse` says, the document has another shape than the rule expects, a mismatch: the response
passes as it came, bounded by the rule's `max_bytes` alone, and a line on stderr says so. The pages below call that
Mismatch. Where a step fails, the response passes as it came too, or is withheld with `on_failure: refuse`.
"""

KEYS: tuple[tuple[str, type[Struct], str], ...] = (
    ("Keys of a file", Head, "What stands at the top of a rule file."),
    ("Keys of a rule", Written, "All but `tools` may be left out."),
    (
        "Bounds of an argument",
        Bounds,
        """What `arguments` says of one argument: `arguments: {limit: {default: 50, maximum: 100}}`. The name is the
        client's, or a dotted path into an object. Bounds are advertised in `inputSchema` and checked before anything is
        sent; a refusal is an error result, such as `limit: 101 is greater than the maximum of 100`.""",
    ),
    (
        "Keys of a test",
        Case,
        """A test has one of `given`, `given_text`, `given_file` and `given_result` (or only `refused` or `upstream`),
        and at least one expectation. A test for a later page is preceded by the call for the first one.""",
    ),
)
TRANSFORM = """
A step is `name: options`. Where a transform has a short form, the value of that one option may stand in place of the
options; where it needs none, its name may stand alone. The examples are written as tests of a rule.
"""


def page() -> str:
    """Return the whole page."""
    sections = [_section(*keys) for keys in KEYS]
    sections.insert(2, "\n\n".join(_transforms()))
    head, *rest = re.split(r"\n\n(?=## )", filled(OPENING))
    body = [*rest, *sections]
    titles = [title for part in body for title in re.findall(r"^## (.+)$", part, re.MULTILINE)]
    contents = "\n".join(f"- [{title}](#{_anchor(title)})" for title in titles)
    return "\n\n".join([head, contents, *body]) + "\n"


def _section(title: str, kind: type[Struct], about: str) -> str:
    parts = [f"## {title}", filled(about)]
    for word, field in fields(kind).items():
        said = f"{_capital(words(field.type))}. {_default(word, field)}"
        parts += [f"### {word}", filled(f"{_marked(DESCRIPTIONS[kind][word])} *{said}*")]
        parts += _inner(field.type)
    return "\n\n".join(parts)


def _transforms() -> Iterator[str]:
    yield "## Transforms"
    yield filled(TRANSFORM)
    yield " · ".join(f"[{name}](#{name})" for name in TRANSFORMS)
    for name, kind in TRANSFORMS.items():
        yield f"### {name}"
        yield filled((inspect.getdoc(kind) or "").partition(">>>")[0])
        yield _table(kind)
        yield from _inner(kind)
        if kind.shorthand is not None:
            yield f"Short form: the value of `{kind.shorthand}`."
        yield from _arguments(kind)
        yield "Example:"
        yield example(kind)


def _table(kind: Any) -> str:
    rows = [
        f"| `{word}` | {words(field.type)} | {_default(word, field, '')} "
        f"| {_marked(DESCRIPTIONS[kind][word])} |"
        for word, field in fields(kind).items()
    ]
    return "\n".join(["| option | value | default | |", "| --- | --- | --- | --- |", *rows])


def _inner(kind: Any) -> Iterator[str]:
    """Yield a table for each mapping of options that values of a type may hold, all told once."""
    found: dict[Any, None] = {}
    waiting = [field.type for field in fields(kind).values()] if kind in _KINDS else [kind]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, type) and issubclass(each, Struct) and each not in _ELSEWHERE:
            if each not in found:
                found[each] = None
                waiting += [field.type for field in fields(each).values()]
        waiting += get_args(each)
    for each in found:
        yield f"{_capital(words(each))}:"
        yield _table(each)


def _arguments(kind: Any) -> Iterator[str]:
    """Yield what a window adds to the tool when it has no options."""
    if kind.window:
        step = kind()
        yield filled(
            "Added arguments, with the options at their defaults; the tool's description gains "
            f"“{step.sentence(lambda name: name)}”"
        )
        rows = [
            f"| `{name}` | {_bounds(parameter.schema)} | {parameter.schema['description']} |"
            for name, parameter in step.parameters.items()
        ]
        yield "\n".join(["| argument | value | |", "| --- | --- | --- |", *rows])


def _bounds(schema: Mapping[str, Any]) -> str:
    """Return in words what an added argument admits, and what it is where a call has none.

    >>> _bounds({"type": "integer", "minimum": 1, "maximum": 9, "default": 3})
    'a whole number from 1 to 9; 3 by default'
    """
    least, most = schema["minimum"], schema.get("maximum")
    range = f"from {least} to {most}" if most is not None else f"of {least} or more"
    return f"a whole number {range}; {schema['default']} by default"


# Types


_KINDS = frozenset(TRANSFORMS.values())
_NAMED: dict[Any, str] = {
    Any: "any value",
    bool: "`true` or `false`",
    int: "a whole number",
    float: "a number",
    Steps: "a transform, or a list of them",
    Rules: "a list of rules",
    Defaults: "a mapping of keys of a rule",
    Bounds: "a mapping of [bounds](#bounds-of-an-argument)",
    Case: "a [test](#keys-of-a-test)",
}
# What has a section of its own, or is no mapping of options.
_ELSEWHERE = frozenset((*_KINDS, *TEXTS, Head, Written, Bounds, Case, Steps, Rules, Defaults))


def words(kind: Any) -> str:
    """Say in words what a value of the type `kind` is in YAML.

    >>> words(tuple[Path, ...]), words(Literal["start", "end"])
    ('a path, or a list of them', '`start` or `end`')
    >>> words(Annotated[int, Meta(ge=1)] | None)
    'a whole number of 1 or more'
    """
    if kind in _NAMED:
        return _NAMED[kind]
    if kind in TEXTS:
        return TEXTS[kind][0]
    shape, inside = get_origin(kind), get_args(kind)
    if shape is Annotated:
        return words(inside[0]) + _limit(inside[1:])
    if shape is Literal:
        *most, last = [f"`{each}`" for each in inside]
        return f"{', '.join(most)} or {last}" if most else last
    if shape in UNIONS:
        unsaid = {NoneType, UnsetType} | ({int} if float in inside else set())
        said = [words(each) for each in inside if each not in unsaid]
        # A list of something may be written as that something.
        shown = [each for each in said if f"{each}, or a list of them" not in said]
        return ", or ".join(dict.fromkeys(shown))
    if shape in LISTS:
        return f"{words(inside[0])}, or a list of them"
    if shape in MAPS:
        name, value = inside
        keys = f" with the keys {words(name)}" if get_origin(name) is Literal else ""
        keys = " from paths" if name is Path else keys
        return f"a mapping{keys}" if value is Any else f"a mapping{keys}, each to {words(value)}"
    if isinstance(kind, type) and issubclass(kind, Struct):
        return f"`{{{', '.join(fields(kind))}}}`"
    raise TypeError(f"no words for {kind!r}")


def _limit(marks: tuple[Any, ...]) -> str:
    said = ""
    for mark in marks:
        if isinstance(mark, Meta) and mark.ge is not None:
            said += f" of {mark.ge} or more"
        if isinstance(mark, Meta) and mark.min_length is not None:
            said += f" ({mark.min_length} at least)"
    return said


def _default(word: str, field: msgspec.structs.FieldInfo, before: str = "Default: ") -> str:
    """Say what an option is that is not given; nothing where it then has no part in anything."""
    value = field.default
    if field.required:
        return "Required." if before else "required"
    if value == ROOT and isinstance(value, Path):
        said = "the whole document" if word == "at" else "the element itself"
    elif isinstance(value, bool):
        said = f"`{str(value).lower()}`"
    elif isinstance(value, str | int):
        said = f"`{value}`"
    elif value is None and field.type is Any:
        said = "`null`"
    else:
        return ""
    return f"{before}{said}." if before else said


# Examples


class Shown(Struct, frozen=True):
    """One call of a step in a doctest: the document before it and after it, as JSON."""

    step: Transform
    arguments: dict[str, Any]
    given: bytes
    gives: bytes | None


class _Watched(Struct):
    """A step that notes what it does."""

    step: Transform
    shown: list[Shown]

    def __call__(self, root: Slot, call: Call) -> None:
        document, arguments = root.document, dict(call.arguments)
        given = document.encode()
        self.step(root, call)
        # What was read from a text is only whole again when it is closed.
        gives = None if document.closers else document.encode()
        self.shown.append(Shown(self.step, arguments, given, gives))


def runs(kind: Any) -> list[Shown]:
    """Run the doctest of a transform, and return what its steps did."""
    shown: list[Shown] = []
    names = dict(vars(sys.modules[kind.__module__]))
    names[kind.__name__] = lambda *given, **options: _Watched(kind(*given, **options), shown)
    for line in doctest.DocTestParser().get_examples(inspect.getdoc(kind) or ""):
        exec(compile(line.source, kind.__module__, "exec"), names)
    return shown


def example(kind: Any) -> str:
    """Return the doctest of a transform as tests of a rule; as it is where that cannot be done."""
    shown = runs(kind)
    if all(each.gives is not None and len(each.given) <= _LARGEST for each in shown):
        return "```yaml\n{}\n```".format("\n\n".join(map(_rule, shown)))
    _, mark, code = (inspect.getdoc(kind) or "").partition(">>>")
    return f"```python\n{mark}{code}\n```"


def _rule(shown: Shown) -> str:
    assert shown.gives is not None
    case = [
        ("arguments", msgspec.json.encode(shown.arguments)) if shown.arguments else None,
        ("given", shown.given),
        ("expect", shown.gives),
    ]
    first, *rest = [f"{pair[0]}: {_spaced(pair[1])}" for pair in case if pair is not None]
    lines = ["response:", f"  - {_flow({shown.step.name: _options(shown.step)})}", "tests:"]
    lines += _wrapped(f"  - {first}", 6)
    for line in rest:
        lines += _wrapped(f"    {line}", 6)
    return "\n".join(lines)


def _options(step: Any) -> Any:
    """Return the options of a step as they would be written: the short form where it does."""
    options = _written(step)
    if list(options) == [step.shorthand]:
        return options[step.shorthand]
    return options


def _written(value: Any) -> Any:
    if isinstance(value, Path | Pattern | Expression):
        return value.text
    if isinstance(value, Struct):
        said = {word: (field, getattr(value, field.name)) for word, field in _fields(value)}
        given = {word: each for word, (field, each) in said.items() if each != field.default}
        return {word: _written(each) for word, each in given.items() if each is not UNSET}
    if isinstance(value, tuple):
        return [_written(each) for each in value]
    if isinstance(value, Mapping):
        return {_written(name): _written(each) for name, each in value.items()}
    return value


def _fields(value: Struct) -> Collection[tuple[str, msgspec.structs.FieldInfo]]:
    return fields(type(value)).items()


def _flow(value: dict[str, Any]) -> str:
    """Return a mapping of one key as one line of YAML."""
    import yaml

    ((name, inner),) = value.items()
    said: str = yaml.safe_dump(
        inner, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True
    )
    return f"{name}: {said.removesuffix('...' + chr(10)).strip()}"


def _spaced(raw: bytes) -> str:
    """Return JSON on one line with spaces, which is YAML as well; numbers as they are spelled."""
    return msgspec.json.format(bytes(Raw(raw)), indent=0).decode()


# Text


def filled(text: str) -> str:
    """Return Markdown with its paragraphs and list items filled; code, tables, titles as they are.

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
        "\n".join(_wrapped(" ".join(item.split()), len(mark[0]) if mark else 0))
        for item, mark in zip(items, marks, strict=True)
    )


def _wrapped(line: str, indent: int) -> list[str]:
    return textwrap.wrap(
        line,
        _WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _marked(said: str) -> str:
    """Return a description as Markdown: what is written as code in YAML is so here too."""
    return re.sub(r"(?<!`)(\{[^}]*\}|\\1|/?\*\*?(?=[ ,;.]))(?!`)", r"`\1`", said)


def _capital(said: str) -> str:
    return said[:1].upper() + said[1:]


def _anchor(title: str) -> str:
    """Return what a link to a title has behind its #.

    >>> _anchor("When a rule does not fit, or fails")
    'when-a-rule-does-not-fit-or-fails'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
