"""Reads the steps and the guard of a rule: a built-in name or one of the file, with options."""

from collections.abc import Iterator
from typing import Any, get_origin

from msgspec import Struct
from msgspec.structs import replace

from proxy.errors import did_you_mean, nearest
from proxy.ruleset.loading.convert import BAD, MAPS, NodeConverter, Reader, fields, fits, found
from proxy.ruleset.loading.plugins import ROLES, Python, PythonError, check_parameters
from proxy.ruleset.loading.rule_model import GuardSpec, PluginClasses, RuleSpec, Steps
from proxy.ruleset.loading.yaml_nodes import Node
from proxy.transforms import TRANSFORMS
from proxy.transforms.shapes import SOURCES, Part


def part(notes: NodeConverter, node: Node, label: str) -> Any:
    """Read a part of a shape; see Recast."""
    if isinstance(node.value, list):
        elements = [notes.value(each, Part, label) for each in node.value]
        return BAD if any(each is BAD for each in elements) else tuple(elements)
    if not isinstance(node.value, dict):
        return node.value
    source = _meant(node)
    if source is not None:
        return notes.value(node, source, label)
    members = {word: notes.value(each, Part, word) for word, each in node.value.items()}
    return BAD if any(each is BAD for each in members.values()) else members


def _meant(node: Node) -> type[Struct] | None:
    """Return the source that a mapping denotes, None if it is a part of the shape itself."""
    for kind in SOURCES:
        known = fields(kind)
        mark = next(iter(known))
        # A mapping or a list is no name, path or expression; a word like no known one is no typo.
        named = mark in node.value and not isinstance(node.value[mark].value, dict | list)
        if named and all(word in known or nearest(word, known) for word in node.value):
            return kind
    return None


class Names:
    """The names of steps and guards in one file; the file's own names must be read first."""

    def __init__(self, python: Python) -> None:
        self._python = python
        # BAD marks an unusable class, which was reported at its name.
        self._own: dict[str, dict[str, Any]] = {key: {} for key in ROLES}
        self.readers: dict[Any, Reader] = {
            PluginClasses: self._named,
            Steps: self._steps,
            GuardSpec: self._guarding,
        }

    def foreign(self, made: object) -> bool:
        """Return True if a step or a guard is of a class that the file names."""
        return any(type(made) is kind for own in self._own.values() for kind in own.values())

    def _named(self, notes: NodeConverter, node: Node, label: str) -> Any:
        """Read `{name: module:Class}`, the value of a key of ROLES."""
        if not isinstance(node.value, dict):
            return notes.value(node, dict[str, str], label)
        own = self._own[label]
        for name, reference in node.value.items():
            own[name] = self._class(notes, node.keys[name], reference, label)
        return BAD if BAD in own.values() else PluginClasses(own)

    def _class(self, notes: NodeConverter, name: Node, reference: Node, key: str) -> Any:
        if name.value in TRANSFORMS:
            said = f"{key}: {name.value!r} is a transform of the proxy's own; take another name"
            return notes.report(name, said)
        written = notes.value(reference, str, key)
        if written is BAD:
            return BAD
        try:
            return self._python.load(written, key)
        except PythonError as wrong:
            return notes.report(reference, f"{key}: {wrong}")

    def _steps(self, notes: NodeConverter, node: Node, label: str) -> Any:
        # Wrong steps are reported; the others are still checked against each other.
        return Steps(tuple(pair for pair in self._placed(notes, node, label) if pair[1] is not BAD))

    def _placed(self, notes: NodeConverter, node: Node, label: str) -> Iterator[tuple[Node, Any]]:
        if isinstance(node.value, list):
            for each in node.value:
                yield from self._placed(notes, each, label)
        else:
            yield node, self._step(notes, node, label)

    def _step(self, notes: NodeConverter, node: Node, label: str) -> Any:
        """Read `{transform: options}`, or only the name of a transform that needs no options."""
        if node.invalid:
            return BAD
        parts = _parts(node)
        if parts is None:
            several = _many(node, "; begin each with '- '")
            return notes.report(node, f"expected one step, {{transform: options}}, found {several}")
        word, options = parts
        if word.value in TRANSFORMS:
            return _made(notes, options, TRANSFORMS[word.value], word.value)
        own = self._own["transforms"]
        if word.value in own:
            return _own_made(notes, options, own[word.value], word.value)
        if word.value in self._own["guards"]:
            said = f"{word.value!r} is a guard: a rule names it by its key 'guard'"
            return notes.report(word, said)
        if word.value in fields(RuleSpec):
            other = ", or write abridge: {max_bytes: N}" * (word.value == "max_bytes")
            said = f"is a key of the rule, not a step; move it out of {label!r}{other}"
            return notes.report(word, f"{word.value!r} {said}")
        return notes.unknown(word, "transform", dict.fromkeys((*TRANSFORMS, *own)))

    def _guarding(self, notes: NodeConverter, node: Node, label: str) -> Any:
        """Read `{guard: options}`, or a guard that needs no options."""
        if node.invalid:
            return BAD
        if node.value is None:
            return GuardSpec()
        parts = _parts(node)
        if parts is None:
            said = f"{label}: expected one guard, {{name: options}}, found {_many(node)}"
            return notes.report(node, said)
        word, options = parts
        own = self._own["guards"]
        if word.value in own:
            made = _own_made(notes, options, own[word.value], word.value)
            return BAD if made is BAD else GuardSpec((node, made))
        if word.value in (*TRANSFORMS, *self._own["transforms"]):
            said = f"{label}: {word.value!r} is a transform: a step of 'response' or of 'errors'"
            return notes.report(word, said)
        named = f"name its class at the top: guards: {{{word.value}: 'module:Class'}}"
        advice = did_you_mean(word.value, own) or f"; {named}"
        return notes.report(word, f"unknown guard {found(word)}{advice}")


def _parts(node: Node) -> tuple[Node, Node] | None:
    """Return the nodes of a name and its options, None unless there is one of each."""
    if isinstance(node.value, str):
        return node, replace(node, value={})
    if isinstance(node.value, dict) and len(node.value) == 1:
        ((name, options),) = node.value.items()
        return node.keys[name], options
    return None


def _own_made(notes: NodeConverter, options: Node, kind: Any, name: str) -> Any:
    """Return `_made` of a class of the file; reports any exception that it raises."""
    if kind is BAD:
        return BAD
    try:
        made = _made(notes, options, kind, name)
        if made is not BAD:
            check_parameters(made)
        return made
    except PythonError as wrong:
        return notes.report(options, f"{name}: {wrong}")
    except Exception as error:  # it may do anything with its options
        return notes.report(options, f"{name}: {type(error).__name__}: {error}")


def _made(notes: NodeConverter, options: Node, kind: Any, name: str) -> Any:
    """Return the step or guard with these options."""
    if options.invalid:
        return BAD
    if options.value is None:
        options = replace(options, value={})
    short = _short(kind, options)
    if short is not None:
        values = {short: notes.value(options, fields(kind)[short].type, name)}
    elif isinstance(options.value, dict):
        values = notes.members(options, kind, name)
    else:
        known = ", ".join(fields(kind))
        wanted = f"options ({known})" if known else "no options"
        return notes.report(options, f"{name}: expected {wanted}, found {found(options)}")
    return notes.made(options, kind, values, name)


def _short(kind: Any, options: Node) -> str | None:
    """Return the shorthand option if `options` is its value, None if it is a mapping of options."""
    short: str | None = kind.shorthand
    if short is None or not isinstance(options.value, dict):
        return short
    # If the value is a mapping too, its keys are free, and one may be an option's name.
    own = fields(kind)[short].type
    named = short in options.value and fits(options.value[short], own)
    return short if get_origin(own) in MAPS and not named else None


def _many(node: Node, advice: str = "") -> str:
    if isinstance(node.value, dict) and node.value:
        names = " and ".join(map(repr, list(node.value)[:3]))
        return f"{names} in one{advice}"
    return found(node)
