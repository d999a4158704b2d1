"""The reference pages of the rule language, as Markdown, made from the code of the loader.

Options, defaults and arguments come from the Structs. The description of a transform is its
docstring, its example is its doctest as it runs, and its effect on a schema is the docstring of its
`reshape`.
"""

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from mcp_abridge.document.paths import ROOT, Path
from mcp_abridge.document.sizes import Size
from mcp_abridge.ruleset.clients import CLIENTS, UNKNOWN, Shows
from mcp_abridge.ruleset.loading import config_model
from mcp_abridge.ruleset.loading.convert import LISTS, MAPS, TEXTS, UNIONS, fields
from mcp_abridge.ruleset.loading.rule_model import (
    CaseSpec,
    Defaults,
    GuardSpec,
    PluginClasses,
    RuleFileSpec,
    RuleNodes,
    RuleSpec,
    Steps,
)
from mcp_abridge.ruleset.rule import Bounds
from mcp_abridge.transforms import TRANSFORMS
from mcp_abridge.transforms.base import Transform
from mcp_abridge.transforms.project import Field
from mcp_abridge.transforms.shapes import Part
from msgspec import Meta, Struct, UnsetType

from tests.reference import examples
from tests.reference.markdown import filled, table
from tests.reference.schemas import descriptions

# The blocks of keys, and the Struct of each.
KEYS: dict[str, type[Struct]] = {
    "file": RuleFileSpec,
    "rule": RuleSpec,
    "bounds": Bounds,
    "test": CaseSpec,
}

_GUARDS = "[guards](#guards-on-calls)"
_ERRORS = "[error results](errors.md#error-results)"
_CONTRACTS = "[contracts](contracts.md)"
# The page or section with more details of a key.
_MORE = {
    (RuleFileSpec, "transforms"): "[steps](steps.md)",
    (RuleFileSpec, "guards"): _GUARDS,
    (RuleSpec, "resources"): "[resources](resources.md)",
    (RuleSpec, "guard"): _GUARDS,
    (RuleSpec, "errors"): _ERRORS,
    (RuleSpec, "error_if"): _ERRORS,
    (RuleSpec, "output_schema"): _CONTRACTS,
    (RuleSpec, "validate"): _CONTRACTS,
}


_RETYPES = (
    "Values may get another type, so none is advertised, unless the rule has an `output_schema`."
)


@cache
def blocks() -> dict[str, str]:
    keys = {name: "\n\n".join(_keys(kind)) for name, kind in KEYS.items()}
    return {**keys, "transforms": "\n\n".join(_transforms()), "clients": _clients()}


_COPIES: dict[Shows, str] = {
    "structured": "`structuredContent`",
    "text": "the text",
    "blocks": "JSON of the blocks",
    "both": "both copies",
    "once": "both, one if equal",
    "once_in_javascript": "both, one if equal as JavaScript writes them",
    "result": "JSON of the result",
    "either": "one, not known which",
}


def _clients() -> str:
    rows = [
        (
            f"`{client.name}`",
            _COPIES[client.shows],
            f"{client.budget_bytes:,}",
            "" if client.limit_bytes is None else f"{client.limit_bytes:,}",
            client.beyond or "",
            client.measured or "unproven",
        )
        for client in (*CLIENTS, UNKNOWN)
    ]
    titles = ("client", "the model reads", "budget", "limit", "what is longer", "measured with")
    return table(titles, rows)


def _keys(kind: type[Struct]) -> Iterator[str]:
    for key, field in fields(kind).items():
        value = f"*{_capital(words(field.type))}. {_default(key, field)}".rstrip() + "*"
        more = _MORE.get((kind, key))
        link = f" See {more}." if more is not None else ""
        yield f"### {key}"
        yield filled(f"{descriptions(kind)[key]} {value}{link}")
        yield from _inner(field.type)


def _transforms() -> Iterator[str]:
    yield filled(" · ".join(f"[{name}](#{name})" for name in TRANSFORMS))
    for name, kind in TRANSFORMS.items():
        yield f"### {name}"
        yield filled((inspect.getdoc(kind) or "").partition(">>>")[0])
        yield _table(kind)
        yield from _inner(kind)
        if kind.shorthand is not None:
            yield f"Short form: the value of `{kind.shorthand}`."
        yield from _arguments(kind)
        yield from examples.example(kind)
        if kind.retypes or kind.reshape is not Transform.reshape:
            words = _RETYPES if kind.retypes else inspect.getdoc(kind.reshape)
            yield filled(f"Effect on an `outputSchema`: {words}")


def _table(kind: Any) -> str:
    rows = [
        (f"`{word}`", words(field.type), _default(word, field, ""), descriptions(kind)[word])
        for word, field in fields(kind).items()
    ]
    return table(("option", "value", "default", ""), rows)


def _inner(kind: Any) -> Iterator[str]:
    """Yield a table for each distinct mapping of options that values of a type may hold."""
    structs: dict[Any, None] = {}
    queue = [field.type for field in fields(kind).values()] if kind in _KINDS else [kind]
    while queue:
        each = queue.pop(0)
        if each in structs or each in _ELSEWHERE:
            continue
        queue += get_args(each)
        if isinstance(each, type) and issubclass(each, Struct):
            structs[each] = None
            queue += [field.type for field in fields(each).values()]
    for each in structs:
        yield f"{_capital(words(each))}:"
        yield _table(each)


def _arguments(kind: Any) -> Iterator[str]:
    """Yield the arguments that a window without options adds to the tool."""
    if kind.window:
        step = kind()
        yield filled(
            "Added arguments, with the options at their defaults; the tool's description gains "
            f"“{step.sentence(lambda name: name)}”"
        )
        rows = [
            (f"`{name}`", _bounds(parameter.schema), parameter.schema["description"])
            for name, parameter in step.parameters.items()
        ]
        yield table(("argument", "value", ""), rows)


def _bounds(schema: Mapping[str, Any]) -> str:
    minimum, maximum = schema["minimum"], schema.get("maximum")
    range = f"from {minimum} to {maximum}" if maximum is not None else f"of {minimum} or more"
    return f"a whole number {range}; {schema['default']} by default"


_KINDS = frozenset(TRANSFORMS.values())
_TYPE_NAMES: dict[Any, str] = {
    Any: "any value",
    bool: "`true` or `false`",
    int: "a whole number",
    float: "a number",
    Steps: "a transform, or a list of them",
    GuardSpec: "a guard",
    PluginClasses: "a mapping of each name to `module:Class`",
    RuleNodes: "a list of rules",
    Defaults: "a mapping of keys of a rule",
    Field: "a field",
    Part: "a part of the shape",
    Bounds: "its [bounds](#bounds-of-an-argument)",
    CaseSpec: "a [test](tests.md)",
    config_model.ListenAddress: "`HOST:PORT`",
    config_model.Command: "`{command: [WORD, ...]}`",
    config_model.LimitsSpec: "a mapping of [limits](#limits)",
    Size: "a size",
    config_model.TokenFromEnv: "the name of a variable",
    config_model.TokenFile: "the path of a file",
}
# Types that have a section of their own, or are no mapping of options.
_ELSEWHERE = frozenset(
    (
        *_KINDS,
        *TEXTS,
        RuleFileSpec,
        RuleSpec,
        Bounds,
        CaseSpec,
        Steps,
        GuardSpec,
        PluginClasses,
        RuleNodes,
        Defaults,
    )
)


def words(kind: Any) -> str:
    """Return in words the YAML form of a value of the type `kind`.

    >>> words(tuple[Path, ...]), words(Literal["start", "end"])
    ('a path, or a list of them', '`start` or `end`')
    >>> words(Annotated[int, Meta(ge=1)] | None)
    'a whole number of 1 or more'
    """
    if kind in _TYPE_NAMES:
        return _TYPE_NAMES[kind]
    if kind in TEXTS:
        return TEXTS[kind][0]
    shape, inside = get_origin(kind), get_args(kind)
    if shape is Annotated:
        title = next((mark.title for mark in inside[1:] if isinstance(mark, Meta)), None)
        return title or words(inside[0]) + _limit(inside[1:])
    if shape is Literal:
        *most, last = [f"`{each}`" for each in inside]
        return f"{', '.join(most)} or {last}" if most else last
    if shape in UNIONS:
        silent = {NoneType, UnsetType} | ({int} if float in inside else set())
        parts = [words(each) for each in inside if each not in silent]
        # A list of one element may be written as the element alone.
        parts = [each for each in parts if f"{each}, or a list of them" not in parts]
        return ", or ".join(dict.fromkeys(parts))
    if shape in LISTS:
        return f"{words(inside[0])}, or a list of them"
    if shape in MAPS:
        name, value = inside
        if value is Any:
            return "a mapping"
        key = words(name) if get_origin(name) is Literal else "path" if name is Path else "name"
        return f"a mapping of each {key} to {words(value)}"
    if isinstance(kind, type) and issubclass(kind, Struct):
        return f"`{{{', '.join(fields(kind))}}}`"
    raise TypeError(f"no words for {kind!r}")


def _limit(marks: tuple[Any, ...]) -> str:
    text = ""
    for mark in marks:
        if isinstance(mark, Meta) and mark.ge is not None:
            text += f" of {mark.ge} or more"
        if isinstance(mark, Meta) and mark.gt is not None:
            text += f" of more than {mark.gt}"
        if isinstance(mark, Meta) and mark.min_length is not None:
            text += f" ({mark.min_length} at least)"
    return text


def _default(word: str, field: msgspec.structs.FieldInfo, before: str = "Default: ") -> str:
    """Return the default of an option in words; the empty text if absence has no effect."""
    value = field.default
    if field.required:
        return "Required." if before else "required"
    if value == ROOT and isinstance(value, Path):
        text = "the whole document" if word == "at" else "the element itself"
    elif isinstance(value, bool):
        text = f"`{str(value).lower()}`"
    elif isinstance(value, str | int):
        text = f"`{value}`"
    elif value is None and field.type is Any:
        text = "`null`"
    else:
        return ""
    return f"{before}{text}." if before else text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
