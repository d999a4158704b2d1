"""The JSON Schemas of rule files and of configurations, made from the Structs of the loaders.

So an editor and `check` agree. The schemas describe the form of a file; only the loaders check its
parts against each other.
"""

import ast
import inspect
import sys
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from itertools import pairwise
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from mcp_abridge.document.sizes import Size
from mcp_abridge.ruleset.loading import config_model, rule_model
from mcp_abridge.ruleset.loading.convert import LISTS, MAPS, TEXTS, UNIONS, fields
from mcp_abridge.transforms import TRANSFORMS
from mcp_abridge.transforms.shapes import SOURCES, Part
from msgspec import Struct

Schema = dict[str, Any]


def rules() -> Schema:
    """Return the JSON Schema of a rule file.

    Only in a file without `transforms` of its own can an editor report an unknown step.
    """
    types = _Types()
    head = types.options(rule_model.RuleFileSpec)
    names = {"enum": list(TRANSFORMS)}
    nested = {"type": "array", "items": {"$ref": "#/definitions/built_in"}}
    steps_of_file = [names, {"type": "object", "propertyNames": names}, nested]
    steps = types.reference("built_in", lambda: {"anyOf": steps_of_file})
    options = fields(rule_model.RuleSpec)
    keys = {key: steps for key, field in options.items() if field.type is rule_model.Steps}
    rule = {"properties": keys}
    one_or_several = {"items": rule, **rule}
    strict = {"properties": {"rules": one_or_several, "defaults": rule}}
    head |= {"if": {"not": {"required": ["transforms"]}}, "then": strict}
    return types.file("mcp-abridge rules", head)


def configuration() -> Schema:
    """Return the JSON Schema of a configuration of `serve`."""
    types = _Types()
    head = types.options(config_model.ConfigSpec)
    keys = head["properties"]
    keys |= types.options(config_model.RouteSpec, config_model.NO_DEFAULTS)["properties"]
    keys["routes"] |= types.schema(tuple[config_model.RouteSpec, ...])
    return types.file("mcp-abridge serve", head)


class _Types:
    def __init__(self) -> None:
        self._definitions: dict[str, Schema] = {}

    def file(self, title: str, head: Schema) -> Schema:
        return {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": title,
            **head,
            "patternProperties": {"^x-": {}},
            "definitions": dict(sorted(self._definitions.items())),
        }

    def schema(self, kind: Any) -> Schema:
        if kind in _NOTATIONS:
            return _NOTATIONS[kind](self)
        if kind in _PLAIN:
            return msgspec.json.schema(kind)
        shape, inside = get_origin(kind), get_args(kind)
        if shape is Literal:
            return {"enum": list(inside)}
        if shape in UNIONS:
            return _any(map(self.schema, inside))
        if shape in LISTS:
            item = self.schema(inside[0])
            return _any([item, {"type": "array", "items": item}])
        if shape in MAPS:
            mapping = {"type": "object", "additionalProperties": self.schema(inside[1])}
            limited = get_origin(inside[0]) is Literal
            return mapping | ({"propertyNames": self.schema(inside[0])} if limited else {})
        if shape is not None:
            return {**self.schema(inside[0]), **_limits(inside)}
        if issubclass(kind, Struct) and kind not in TEXTS:
            return self.reference(_name(kind), lambda: self.options(kind))
        text = {"type": "string", "description": _summary(kind)}
        return self.reference(_name(kind), lambda: text)

    def reference(self, name: str, make: Callable[[], Schema]) -> Schema:
        """Return a reference to a definition, which `make` makes for the first reference."""
        if name not in self._definitions:
            self._definitions[name] = {}  # the schema may refer to itself
            self._definitions[name] = make()
        return {"$ref": f"#/definitions/{name}"}

    def options(self, kind: type[Struct], without: Collection[str] = ()) -> Schema:
        members = {key: field for key, field in fields(kind).items() if key not in without}
        texts = descriptions(kind)
        schema: Schema = {"type": "object", "description": _summary(kind), "properties": {}}
        for key, field in members.items():
            member = {"description": texts[key], **self.schema(field.type)}
            if isinstance(field.default, str | int):
                member["default"] = field.default
            schema["properties"][key] = member
        schema["additionalProperties"] = False
        if kind is rule_model.RuleSpec and not without:
            schema["oneOf"] = [{"required": ["tools"]}, {"required": ["resources"]}]
        required = [key for key, field in members.items() if field.required]
        return schema | ({"required": required} if required else {})

    def part(self) -> Schema:
        part = {"$ref": "#/definitions/part"}
        parts = [
            *map(self.schema, SOURCES),
            {"type": "object", "additionalProperties": part},
            {"type": "array", "items": part},
            {"type": ["string", "number", "boolean", "null"]},
        ]
        return self.reference("part", lambda: _any(parts))

    def steps(self) -> Schema:
        step = self.reference("step", self.step)
        steps = {"type": "array", "items": {"$ref": "#/definitions/response"}}
        return self.reference("response", lambda: _any([step, steps]))

    def step(self) -> Schema:
        """Return the schema of `{transform: options}`, or of a transform that needs no options."""
        options = {name: self.transform(kind) for name, kind in TRANSFORMS.items()}
        needy = [name for name, kind in TRANSFORMS.items() if _required(kind)]
        bare = [name for name in TRANSFORMS if name not in needy]
        step = {**_ONE_MEMBER, "properties": options}
        return _any([step, {"enum": bare}, {"type": "string", "not": {"enum": needy}}])

    def transform(self, kind: Any) -> Schema:
        values = [self.schema(kind)]
        if kind.shorthand is not None:
            values.insert(0, self.schema(fields(kind)[kind.shorthand].type))
        if not _required(kind):
            values.append({"type": "null"})
        return {"description": _summary(kind), **_any(values)}


_ONE_MEMBER = {"type": "object", "minProperties": 1, "maxProperties": 1}
_PLUGINS: Schema = {
    "type": "object",
    "description": "Python classes by the names that the file gives them, each as `module:Class`.",
    "propertyNames": {"not": {"enum": list(TRANSFORMS)}},
    "additionalProperties": {"type": "string", "pattern": "^[^:/]+:[^:/]+$"},
}
# Types with a notation of their own.
_NOTATIONS: dict[Any, Callable[[_Types], Schema]] = {
    rule_model.Steps: _Types.steps,
    Part: _Types.part,
    Size: lambda _: {"type": ["integer", "string"]},
    rule_model.GuardSpec: lambda _: _any([_ONE_MEMBER, {"type": ["string", "null"]}]),
    rule_model.PluginClasses: lambda types: types.reference("pluginclasses", lambda: _PLUGINS),
    rule_model.RuleNodes: lambda types: types.schema(tuple[rule_model.RuleSpec, ...]),
    rule_model.Defaults: lambda types: types.options(rule_model.RuleSpec, rule_model.NO_DEFAULTS),
}
_PLAIN = (str, int, float, bool, NoneType, Any)
_NAMES: dict[type, str] = {rule_model.RuleSpec: "rule", config_model.RouteSpec: "route"}


def descriptions(kind: type[Struct]) -> dict[str, str]:
    """Return the descriptions of the fields of a Struct, by their names in YAML.

    >>> descriptions(config_model.Command)
    {'command': 'The program and its arguments, each a separate text.'}
    """
    bases = [each for each in kind.__mro__ if each.__module__.startswith("mcp_abridge.")]
    texts = ChainMap(*map(_texts, bases))
    return {key: texts[field.name] for key, field in fields(kind).items()}


@lru_cache
def _texts(kind: type) -> dict[str, str]:
    """Return the text below each field of a class itself; only the source has them."""
    texts: dict[str, str] = {}
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    for of in tree.body:
        if isinstance(of, ast.ClassDef) and of.name == kind.__name__:
            for pair in pairwise(of.body):
                match pair:
                    case ast.AnnAssign(ast.Name(field)), ast.Expr(ast.Constant(str(text))):
                        texts[field] = " ".join(text.split())
    return texts


def _name(kind: type) -> str:
    """Return a unique name for a type: `rule`, `bounds`, `filter.filter`."""
    folder, _, module = kind.__module__.rpartition(".")
    name = _NAMES.get(kind) or kind.__name__.lower()
    return f"{module}.{name}" if folder.endswith("transforms") and module != "base" else name


def _limits(annotated: tuple[Any, ...]) -> Schema:
    kind, *marks = annotated
    base = list if get_origin(kind) in LISTS else int
    schema = msgspec.json.schema(Annotated[(base, *marks)])
    return {word: limit for word, limit in schema.items() if word not in ("type", "title")}


def _any(schemas: Iterable[Schema]) -> Schema:
    flat: list[Schema] = []
    for each in schemas:
        flat += [part for part in each.get("anyOf", [each]) if part not in flat]
    return {} if {} in flat else flat[0] if len(flat) == 1 else {"anyOf": flat}


def _required(kind: Any) -> bool:
    return any(field.required for field in fields(kind).values())


def _summary(kind: type) -> str:
    return " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
