"""`mcp-abridge schema`: the JSON Schemas of rule files and configurations; or a reference page.

The schemas are made from the Structs of the loaders, so that an editor and `check` agree. They
describe the form of a file; only the loaders check its parts against each other.
"""

import argparse
import ast
import inspect
import json
import pathlib
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from msgspec import Meta, Struct

from proxy.document.paths import Path
from proxy.document.patterns import Expression, Pattern
from proxy.document.sizes import Size
from proxy.ruleset.loading import config_model as configkeys
from proxy.ruleset.loading.convert import LISTS, MAPS, TEXTS, UNIONS, fields
from proxy.ruleset.loading.rule_model import (
    NO_DEFAULTS,
    Defaults,
    GuardSpec,
    PluginClasses,
    RuleFileSpec,
    RuleNodes,
    RuleSpec,
    Steps,
)
from proxy.transforms import TRANSFORMS
from proxy.transforms.shapes import SOURCES, Part

Schema = dict[str, Any]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    instead = parser.add_mutually_exclusive_group()
    for flag, help in (
        ("--reference", "print the reference of the rule language instead, as Markdown"),
        ("--config", "print the schema of a configuration of serve instead"),
        ("--sidecar", "print the reference of serve instead, as Markdown"),
    ):
        instead.add_argument(flag, action="store_true", help=help)


def run(arguments: argparse.Namespace) -> int:
    """Print a schema, or a reference."""
    if arguments.reference:
        print(_shipped("rules/REFERENCE.md"), end="")
    elif arguments.sidecar:
        print(_shipped("examples/sidecar/REFERENCE.md"), end="")
    else:
        made = configuration() if arguments.config else schema()
        print(json.dumps(made, indent=2, ensure_ascii=False))
    return 0


def _shipped(name: str) -> str:
    """Return the text of a page that lies beside the package: in a wheel inside, else above it."""
    package = pathlib.Path(__file__).parents[1]
    files = (folder / name for folder in (package, package.parent))
    return next(file for file in files if file.is_file()).read_text(encoding="utf-8")


def schema() -> Schema:
    """Return the JSON Schema of a rule file.

    A step may be a transform that the file names under `transforms`, with any options. Only in a
    file without `transforms` can an editor report an unknown step.
    """
    made = _Definitions()
    head = made.options(RuleFileSpec)
    strict = {"if": {"not": {"required": ["transforms"]}}, "then": made.ours()}
    return _file("mcp-abridge rules", head | strict, made)


def configuration() -> Schema:
    """Return the JSON Schema of a configuration of `serve`."""
    made = _Definitions()
    head = made.options(configkeys.ConfigSpec)
    words = head["properties"]
    words |= made.options(configkeys.RouteSpec, configkeys.NO_DEFAULTS)["properties"]
    words["routes"] |= made.of(tuple[configkeys.RouteSpec, ...])
    return _file("mcp-abridge serve", head, made)


def _file(title: str, head: Schema, made: "_Definitions") -> Schema:
    """Return a whole schema of draft 7, which the YAML support of every editor can read."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
        **head,
        "patternProperties": {"^x-": {}},
        "definitions": dict(sorted(made.held.items())),
    }


class _Definitions:
    """The schemas of types; a schema of a Struct is stored by name and referred to."""

    def __init__(self) -> None:
        self.held: dict[str, Schema] = {}
        self.notations = {
            Steps: self.response,
            GuardSpec: self.guard,
            PluginClasses: self.own,
            Part: self.part,
            RuleNodes: self.rules,
            Defaults: self.defaults,
        }

    def of(self, kind: Any) -> Schema:
        """Return the schema of a value of the type `kind`."""
        if kind in self.notations:
            return self.notations[kind]()
        if kind is Any:
            return {}
        if kind in TEXTS:
            return {"type": "string"} if kind is str else self.named(kind, _TEXTS[kind])
        if kind in _READ:
            return self.named(kind, lambda: {"type": "string", "description": _summary(kind)})
        if kind in _PLAIN:
            return {"type": _PLAIN[kind]}
        shape, inside = get_origin(kind), get_args(kind)
        if shape is Literal:
            return {"enum": list(inside)}
        if shape in UNIONS:
            return _any([self.of(each) for each in inside])
        if shape in LISTS:
            item = self.of(inside[0])
            return _any([item, {"type": "array", "items": item}])
        if shape in MAPS:
            names = self.of(inside[0]) if get_origin(inside[0]) is Literal else None
            made = {"type": "object", "additionalProperties": self.of(inside[1])}
            return made | ({"propertyNames": names} if names else {})
        if shape is not None:
            return {**self.of(inside[0]), **_limits(inside)}
        return self.named(kind, lambda: self.options(kind))

    def named(self, kind: Any, make: Callable[[], Schema]) -> Schema:
        """Return a reference to the schema of `kind`, which is made at the first reference."""
        name = kind if isinstance(kind, str) else _name(kind)
        if name not in self.held:
            # Stored before it is made: the schema may refer to itself.
            self.held[name] = {}
            self.held[name].update(make())
        return {"$ref": f"#/definitions/{name}"}

    def options(self, kind: type[Struct], without: Collection[str] = ()) -> Schema:
        """Return the schema of a mapping whose members are the fields of a Struct."""
        known = {word: field for word, field in fields(kind).items() if word not in without}
        texts = descriptions(kind)
        made: Schema = {
            "type": "object",
            "description": _summary(kind),
            "properties": {
                word: {"description": texts[word], **self.of(field.type), **_default(field.default)}
                for word, field in known.items()
            },
            "additionalProperties": False,
        }
        required = [word for word, field in known.items() if field.required]
        return made | ({"required": required} if required else {})

    def part(self) -> Schema:
        """Return the schema of a part of a shape: any value; only the sources are described."""
        inside = {"$ref": "#/definitions/part"}
        return self.named(
            "part",
            lambda: _any(
                [
                    *map(self.of, SOURCES),
                    {"type": "object", "additionalProperties": inside},
                    {"type": "array", "items": inside},
                    {"type": ["string", "number", "boolean", "null"]},
                ]
            ),
        )

    def rules(self) -> Schema:
        """Return the schema of the rules of a file."""
        return self.of(tuple[RuleSpec, ...])

    def defaults(self) -> Schema:
        """Return the schema of the defaults of all rules."""
        return self.options(RuleSpec, NO_DEFAULTS)

    def response(self) -> Schema:
        """Return the schema of a step, or a list of steps that may hold such lists."""
        whole = {"$ref": "#/definitions/response"}
        step = self.named("step", self.step)
        return self.named("response", lambda: _any([step, {"type": "array", "items": whole}]))

    def step(self) -> Schema:
        """Return the schema of `{transform: options}`, or of a transform that needs no options.

        Names that are not built in, see `ours`, may have any options.
        """
        steps = {name: self.transform(kind) for name, kind in TRANSFORMS.items()}
        needy = [name for name, kind in TRANSFORMS.items() if _required(kind)]
        alone = [name for name in TRANSFORMS if name not in needy]
        step = {**_ONE_MEMBER, "properties": steps}
        return _any([step, {"enum": alone}, {"type": "string", "not": {"enum": needy}}])

    def ours(self) -> Schema:
        """Return the schema of a file whose steps are all built-in transforms."""
        whole = {"$ref": "#/definitions/ours"}
        names = {"enum": list(TRANSFORMS)}
        known: list[Schema] = [names, {"type": "object", "propertyNames": names}]
        steps = self.named("ours", lambda: _any([*known, {"type": "array", "items": whole}]))
        rule = {"properties": {word: steps for word, kind in _kinds(RuleSpec) if kind is Steps}}
        rules = {"items": rule, **rule}  # a list of rules, or one
        return {"properties": {"rules": rules, "defaults": rule}}

    def guard(self) -> Schema:
        """Return the schema of `{guard: options}`, or of a guard that needs no options."""
        return _any([_ONE_MEMBER, {"type": ["string", "null"]}])

    def own(self) -> Schema:
        """Return the schema of the mapping of names to Python classes."""
        return self.named(
            PluginClasses, lambda: {**_OF_CLASSES, "description": _summary(PluginClasses)}
        )

    def transform(self, kind: Any) -> Schema:
        """Return the schema of the value after the name of a transform."""
        written = [self.of(kind)]
        if kind.shorthand is not None:
            written.insert(0, self.of(fields(kind)[kind.shorthand].type))
        if not _required(kind):
            written.append({"type": "null"})
        return {"description": _summary(kind), **_any(written)}


_ONE_MEMBER = {"type": "object", "minProperties": 1, "maxProperties": 1}
_OF_CLASSES = {
    "type": "object",
    "propertyNames": {"not": {"enum": list(TRANSFORMS)}},
    "additionalProperties": {"type": "string", "pattern": "^[^:/]+:[^:/]+$"},
}
_PLAIN: dict[Any, str | list[str]] = {
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
    Size: ["integer", "string"],
}
# Types of texts in a configuration; each is described by its docstring.
_READ = frozenset(
    (
        configkeys.ListenAddress,
        configkeys.Host,
        configkeys.Origin,
        configkeys.RoutePath,
        configkeys.RuleFileName,
        configkeys.StoreUrl,
        configkeys.TokenFromEnv,
        configkeys.TokenFile,
        configkeys.Url,
        configkeys.HeaderValue,
    )
)
_TEXTS: dict[Any, Callable[[], Schema]] = {
    Path: lambda: {
        "type": "string",
        "description": "Names joined by dots; a name after an array steps into every element.",
    },
    Pattern: lambda: {
        "type": "string",
        "description": "A regular expression of the linear-time engine RE2.",
    },
    Expression: lambda: {
        "type": "string",
        "description": "A JMESPath expression; argument('name') is the call's argument.",
    },
}
_LIMITS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
}
_LENGTHS = {"min_length": "min", "max_length": "max"}


_NAMES: dict[type, str] = {RuleSpec: "rule", configkeys.RouteSpec: "route"}


def _kinds(kind: type[Struct]) -> Iterator[tuple[str, Any]]:
    return ((word, field.type) for word, field in fields(kind).items())


def descriptions(kind: type[Struct]) -> dict[str, str]:
    """Return the descriptions of the fields of a Struct, by their names in YAML.

    >>> descriptions(configkeys.Command)
    {'command': 'The program and its arguments, each a separate text.'}
    """
    texts = _texts(kind.__module__)
    return {key: texts[kind.__name__, field.name] for key, field in fields(kind).items()}


@lru_cache
def _texts(module: str) -> dict[tuple[str, str], str]:
    """Return the text below each field of a module's classes; only the source has them."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        (of.name, field.target.id): " ".join(text.value.value.split())
        for of in tree.body
        if isinstance(of, ast.ClassDef)
        for field, text in pairwise(of.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        if isinstance(text.value.value, str)
    }


def _name(kind: type) -> str:
    """Return a unique name for a type: `rule`, `bounds`, `filter.filter`."""
    folder, _, module = kind.__module__.rpartition(".")
    name = _NAMES.get(kind) or kind.__name__.lower()
    return f"{module}.{name}" if folder.endswith("transforms") and module != "base" else name


def _limits(annotated: tuple[Any, ...]) -> Schema:
    kind, *marks = annotated
    counted = "Items" if get_origin(kind) in LISTS else "Length"
    words = _LIMITS | {name: word + counted for name, word in _LENGTHS.items()}
    return {
        word: getattr(mark, name)
        for mark in marks
        if isinstance(mark, Meta)
        for name, word in words.items()
        if getattr(mark, name) is not None
    }


def _any(schemas: Iterable[Schema]) -> Schema:
    """Return the schema of a value that matches one of `schemas`, without duplicates."""
    flat: list[Schema] = []
    for each in schemas:
        flat += [part for part in each.get("anyOf", [each]) if part not in flat]
    return {} if {} in flat else flat[0] if len(flat) == 1 else {"anyOf": flat}


def _required(kind: Any) -> bool:
    return any(field.required for field in fields(kind).values())


def _default(value: Any) -> Schema:
    return {"default": value} if isinstance(value, str | int) else {}


def _summary(kind: type) -> str:
    """Return the first paragraph of a docstring as one line."""
    return " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
