"""Reads the steps and the guard of a rule: a built-in name or one of the file, with options."""

from collections.abc import Iterator
from functools import partial
from typing import Any, get_origin

from msgspec import Struct
from msgspec.structs import replace

from mcp_abridge.errors import nearest
from mcp_abridge.ruleset.loading.convert import (
    INVALID,
    MAPS,
    NodeConverter,
    Reader,
    fields,
    fits,
    value_text,
)
from mcp_abridge.ruleset.loading.plugins import KINDS, PluginLoader, PythonError, check_parameters
from mcp_abridge.ruleset.loading.rule_model import GuardSpec, PluginClasses, RuleSpec, Steps
from mcp_abridge.ruleset.loading.yaml_nodes import Node
from mcp_abridge.transforms import TRANSFORMS
from mcp_abridge.transforms.shapes import SOURCES, Part


def read_part(converter: NodeConverter, node: Node, label: str) -> Any:
    """Read a part of a shape; see Recast."""
    if isinstance(node.value, list):
        elements = [converter.convert(each, Part, label) for each in node.value]
        return INVALID if any(each is INVALID for each in elements) else tuple(elements)
    if not isinstance(node.value, dict):
        return node.value
    source = _source(node)
    if source is not None:
        return converter.convert(node, source, label)
    members = {key: converter.convert(each, Part, key) for key, each in node.value.items()}
    return INVALID if any(each is INVALID for each in members.values()) else members


def _source(node: Node) -> type[Struct] | None:
    """Return the source that a mapping denotes, None if it is a part of the shape itself."""
    for kind in SOURCES:
        options = fields(kind)
        value = node.value.get(next(iter(options)))
        # A mapping or a list is no name, path or expression; a key like no option is no typo.
        is_source = value is not None and not isinstance(value.value, dict | list)
        if is_source and all(key in options or nearest(key, options) for key in node.value):
            return kind
    return None


class Names:
    """The names of steps and guards in one file; the file's own names must be read first."""

    def __init__(self, plugins: PluginLoader) -> None:
        self._plugins = plugins
        # INVALID marks an unusable class, which was reported at its name.
        self._own: dict[str, dict[str, Any]] = {key: {} for key in KINDS}
        self.readers: dict[Any, Reader] = {
            PluginClasses: self._classes,
            Steps: self._steps,
            GuardSpec: self._guard,
        }

    def _classes(self, converter: NodeConverter, node: Node, label: str) -> Any:
        if not isinstance(node.value, dict):
            return converter.convert(node, dict[str, str], label)
        own = self._own[label]
        for name, reference in node.value.items():
            own[name] = INVALID
            if name in TRANSFORMS:
                message = f"{name!r} is a transform of the proxy's own; take another name"
                converter.report(node.keys[name], f"{label}: {message}")
            elif converter.convert(reference, str, label) is not INVALID:
                load = partial(self._plugins.load, key=label)
                own[name] = converter.read_text(reference, load, label)
        return INVALID if INVALID in own.values() else own

    def _steps(self, converter: NodeConverter, node: Node, label: str) -> Any:
        # Invalid steps are reported; the others are still checked against each other.
        pairs = self._pairs(converter, node, label)
        return Steps(tuple(pair for pair in pairs if pair[1] is not INVALID))

    def _pairs(
        self, converter: NodeConverter, node: Node, label: str
    ) -> Iterator[tuple[Node, Any]]:
        if isinstance(node.value, list):
            for each in node.value:
                yield from self._pairs(converter, each, label)
        else:
            yield node, self._step(converter, node, label)

    def _guard(self, converter: NodeConverter, node: Node, label: str) -> Any:
        return None if node.value is None else self._step(converter, node, label, "guards")

    def _step(
        self, converter: NodeConverter, node: Node, label: str, key: str = "transforms"
    ) -> Any:
        """Read `{name: options}`, or only the name if no options are needed; `key` is of KINDS."""
        noun = key[:-1]
        if isinstance(node.value, str):
            name, options = node, replace(node, value={})
        elif isinstance(node.value, dict) and len(node.value) == 1:
            [name], [options] = node.keys.values(), node.value.values()
        else:
            text = value_text(node)
            if node.value and isinstance(node.value, dict):
                text = f"{' and '.join(map(repr, list(node.value)[:3]))} in one mapping"
                first, second, *_ = [*node.value, ""]
                text += f"; indent {second!r} below {first!r}, or begin its line with '- '"
            message = f"{label}: expected one {noun}, {{name: options}}, found {text}"
            return converter.report(node, message)
        own = self._own[key]
        built_in = TRANSFORMS if key == "transforms" else {}
        if name.value in built_in:
            return _build(converter, options, TRANSFORMS[name.value], name.value)
        if name.value in own:
            return _build_own(converter, options, own[name.value], name.value)
        if name.value in self._own["guards"]:
            message = f"{name.value!r} is a guard: a rule names it by its key 'guard'"
            return converter.report(name, message)
        if name.value in (*TRANSFORMS, *self._own["transforms"]):
            message = f"{name.value!r} is a transform: a step of 'response' or of 'errors'"
            return converter.report(name, f"{label}: {message}")
        if name.value in fields(RuleSpec):
            message = f"is a key of the rule, not a step; move it out of {label!r}"
            return converter.report(name, f"{name.value!r} {message}")
        if not own and not built_in:
            example = f"name its class at the top: guards: {{{name.value}: 'module:Class'}}"
            return converter.report(name, f"unknown guard {value_text(name)}; {example}")
        return converter.report_unknown(name, noun, (*built_in, *own))


def _build_own(converter: NodeConverter, options: Node, kind: Any, name: str) -> Any:
    if kind is INVALID:
        return INVALID
    try:
        step = _build(converter, options, kind, name)
        if step is not INVALID:
            check_parameters(step)
        return step
    except PythonError as error:
        return converter.report(options, f"{name}: {error}")
    except Exception as error:  # it may do anything with its options
        return converter.report(options, f"{name}: {type(error).__name__}: {error}")


def _build(converter: NodeConverter, options: Node, kind: Any, name: str) -> Any:
    if options.value is None:
        options = replace(options, value={})
    shorthand = _shorthand(kind, options)
    if shorthand is not None:
        value = converter.convert(options, fields(kind)[shorthand].type, name)
        return converter.build(options, kind, {shorthand: value}, name)
    if isinstance(options.value, dict):
        values = converter.members(options, kind, name)
        return converter.build(options, kind, values, name)
    names = ", ".join(fields(kind))
    expected = f"options ({names})" if names else "no options"
    return converter.report(options, f"{name}: expected {expected}, found {value_text(options)}")


def _shorthand(kind: Any, options: Node) -> str | None:
    """Return the shorthand option if `options` is its value, None if it is a mapping of options."""
    name: str | None = kind.shorthand
    if name is None or not isinstance(options.value, dict):
        return name
    # If the value is a mapping too, its keys are free, and one may be an option's name.
    value_kind = fields(kind)[name].type
    has_option = name in options.value and fits(options.value[name], value_kind)
    return name if get_origin(value_kind) in MAPS and not has_option else None
