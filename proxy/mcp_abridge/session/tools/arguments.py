"""Arguments that rules add to a tool or bound: one `ArgumentPlan` for each rule and tool."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from mcp_abridge.document.fuel import LITTLE, Fuel
from mcp_abridge.document.tree import Number
from mcp_abridge.errors import OutOfFuel, Refusal
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.ruleset.rule import Bounds, Messages, Rule
from mcp_abridge.transforms.base import Parameter, Schema, Transform

VIEW = "view"
_LIMITS = ("type", "minimum", "maximum", "enum", "maxLength", "pattern")
_PAGE, _ABRIDGED = "page_", "abridged_"  # prefixes for names that the tool itself uses

# At most 100 bytes in the definition of each tool, together with the members that its outputSchema
# gains; the notice of a cut says how to use it.
_VIEW, _BRIEF_VIEW = (
    Parameter({"type": "string", "description": description})
    for description in (
        "Ask a cut result: JMESPath, grep('x'), outline(), help",
        "JMESPath, grep(), help",
    )
)


class Entry(Struct, frozen=True, kw_only=True):
    """One argument of a plan.

    `name` is the rule's dotted name, `client_name` the clients'. `ours`: it never reaches the
    server. `steers`: it only moves a window or a view over the same document.
    """

    name: str
    client_name: str
    schema: Schema = {}
    ours: bool = False
    steers: bool = False
    clamp: bool = False
    alias_of: str | None = None
    message: str | Messages | None = None
    pattern: Pattern | None = None


class ArgumentPlan(Struct, frozen=True):
    """The changes of one rule to the arguments of a tool; `windows` are the steps that use them.

    `own` are the arguments that the tool declares.
    """

    entries: tuple[Entry, ...] = ()
    names: dict[str, str] = {}
    windows: tuple[Transform, ...] = ()
    own: frozenset[str] = frozenset()


class Completed(Struct, frozen=True):
    """A call's arguments after a plan was applied.

    `arguments` are complete, under the rule's names. `upstream` goes to the server. `own` are the
    proxy's arguments that affect the answer. `steering` holds the start of each window, and the
    view if one is requested.
    """

    arguments: dict[str, Any]
    upstream: dict[str, Any]
    changed: bool = False
    own: dict[str, Any] = {}
    steering: dict[str, Any] = {}

    @property
    def resumes(self) -> bool:
        """True if a window begins anywhere but at the start."""
        return any(name != VIEW and value for name, value in self.steering.items())


def plan(rule: Rule, own: Collection[str], *, structured: bool = False) -> ArgumentPlan:
    """Return the plan of `rule` for a tool with the arguments `own`.

    A name that the rule file spells out belongs to the rule; one that is only a default yields to
    the tool's (`page_limit`).
    """
    entries: dict[str, Entry] = {}
    for step in rule.pipeline:
        renames = set((getattr(step, "arguments", None) or {}).values())
        for name, parameter in step.parameters.items():
            yields = name in own and name not in renames and name not in rule.arguments
            entries[name] = _added(name, parameter, _PAGE if yields else "", steers=step.window)
    for name, parameter in rule.guard.parameters.items() if rule.guard is not None else ():
        entries[name] = _added(name, parameter)
    if rule.snapshot_step.viewable:
        yields = VIEW in own and VIEW not in rule.arguments
        view = _BRIEF_VIEW if structured else _VIEW
        entries[VIEW] = _added(VIEW, view, _ABRIDGED if yields else "", steers=True)
    for name, bounds in rule.arguments.items():
        entries[name] = _bounded(name, bounds, entries.get(name))
    names = {each.name: each.client_name for each in entries.values()}
    return ArgumentPlan(
        tuple(entries.values()),
        {name: client_name for name, client_name in names.items() if name != client_name},
        rule.snapshot_step.windows,
        frozenset(own),
    )


def _added(name: str, parameter: Parameter, prefix: str = "", *, steers: bool = False) -> Entry:
    pattern = parameter.schema.get("pattern")
    return Entry(
        name=name,
        client_name=f"{prefix}{name}",
        schema=parameter.schema,
        ours=True,
        steers=steers,
        message=parameter.message,
        pattern=None if pattern is None else Pattern(pattern),
    )


def _bounded(name: str, bounds: Bounds, window: Entry | None) -> Entry:
    keywords = {
        "type": bounds.type,
        "minimum": bounds.minimum,
        "maximum": bounds.maximum,
        "enum": None if bounds.enum is None else list(bounds.enum),
        "maxLength": bounds.max_length,
        "pattern": None if bounds.pattern is None else bounds.pattern.text,
        "description": bounds.description,
    }
    schema = dict(window.schema) if window is not None else {}
    schema.update({keyword: value for keyword, value in keywords.items() if value is not None})
    if not isinstance(bounds.default, UnsetType):
        schema["default"] = bounds.default
    return Entry(
        name=name,
        client_name=name,
        schema=schema,
        ours=not bounds.upstream or (window is not None and window.ours),
        steers=window is not None,
        clamp=bounds.clamp,
        alias_of=bounds.alias_of,
        message=bounds.message or (window.message if window is not None else None),
        pattern=bounds.pattern,
    )


def implied(arguments: Iterable[str]) -> frozenset[str]:
    """Return the names that the tool itself must use, since their prefixed forms were sent.

    A client may know the tools from an earlier session.

    >>> sorted(implied(["page_limit", "abridged_view", "path"]))
    ['limit', 'view']
    """
    return frozenset(
        name.removeprefix(prefix)
        for prefix in (_PAGE, _ABRIDGED)
        for name in arguments
        if name.startswith(prefix)
    )


def complete(
    plan: ArgumentPlan, others: Iterable[ArgumentPlan], original: dict[str, Any]
) -> Completed:
    """Check and complete a call's arguments by the plan that applies; raises Refusal.

    `others` are the plans of further rules for the same tool, whose own arguments are removed too.
    """
    arguments = upstream = original
    own: dict[str, Any] = {}
    steering: dict[str, Any] = {}
    for entry in plan.entries:
        if entry.alias_of is not None:
            arguments = _renamed(arguments, entry.name, entry.alias_of)
            upstream = _renamed(upstream, entry.name, entry.alias_of)
    for entry in plan.entries:
        if entry.alias_of is not None:
            continue
        if not entry.ours and not entry.schema.keys().isdisjoint(_LIMITS):
            twin = _twin(upstream, entry.client_name, plan.own)
            if twin is not None:
                raise Refusal(f"{twin}: the argument is called {entry.client_name!r}")
        value = value_at(arguments, entry.client_name)
        arguments = without(arguments, entry.client_name)
        supplied = value is not UNSET and not (value is None and entry.ours)
        if not supplied:
            arguments = without(arguments, entry.name)
            value = entry.schema.get("default", UNSET)
            if value is UNSET:
                continue
        checked = _checked(entry, value) if supplied else value
        arguments = with_value(arguments, entry.name, checked)
        if not entry.ours and (not supplied or checked is not value):
            upstream = with_value(upstream, entry.client_name, checked)
        if entry.ours and not entry.steers:
            own[entry.name] = checked
        if entry.name == VIEW or (entry.steers and entry.schema.get("default") == 0):
            steering[entry.name] = checked
    for each in (plan, *others):
        upstream = without_ours(each, upstream)
    return Completed(arguments, upstream, upstream is not original, own, steering)


def _twin(arguments: dict[str, Any], name: str, own: Collection[str]) -> str | None:
    """Return a name that some servers take for `name`, as they ignore case; None without one."""
    first, _, rest = name.partition(".")
    for each in arguments:
        if each != first and each not in own and each.casefold() == first.casefold():
            return each
    inner = arguments.get(first)
    return _twin(inner, rest, ()) if rest and isinstance(inner, dict) else None


def _renamed(arguments: dict[str, Any], alias: str, name: str) -> dict[str, Any]:
    value = value_at(arguments, alias)
    arguments = without(arguments, alias)
    if value is UNSET or value_at(arguments, name) is not UNSET:
        return arguments
    return with_value(arguments, name, value)


_KINDS: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "integer": ("an integer", int),
    "number": ("a number", (int, float)),
    "string": ("a string", str),
    "boolean": ("true or false", bool),
    "array": ("an array", list),
    "object": ("an object", dict),
}


def _checked(entry: Entry, value: Any) -> Any:
    schema = entry.schema
    kind = schema.get("type")
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    words, types = _KINDS.get(kind or "", ("", object))
    if not isinstance(value, types) or (kind != "boolean" and kind and isinstance(value, bool)):
        raise _refusal(entry, "type", f"{_json(value)} is not {words}")
    if (number := _number(value)) is not None:
        low, high = schema.get("minimum"), schema.get("maximum")
        for bound, limit, beyond in (("minimum", low, "less"), ("maximum", high, "greater")):
            if limit is None or (number >= limit if bound == "minimum" else number <= limit):
                continue
            if entry.clamp:
                return limit
            reason = f"{_json(value)} is {beyond} than the {bound} of {_json(limit)}"
            raise _refusal(entry, bound, reason)
    if "enum" in schema and value not in schema["enum"]:
        choices = ", ".join(map(_json, schema["enum"]))
        raise _refusal(entry, "enum", f"{_json(value)} is not one of {choices}")
    return _checked_text(entry, value) if isinstance(value, str) else value


def _number(value: Any) -> float | None:
    """Return the number that a value is, or that many servers read in such a text; else None."""
    if not isinstance(value, str):
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None
    with suppress(ValueError):
        return float(value)
    with suppress(ValueError):
        return int(value, 0)
    return None


def _checked_text(entry: Entry, value: str) -> str:
    limit = entry.schema.get("maxLength")
    if limit is not None and len(value) > limit:
        if entry.clamp:
            return value[:limit]
        reason = f"{len(value)} characters are more than the maximum of {limit}"
        raise _refusal(entry, "max_length", reason)
    if entry.pattern is None:
        return value
    try:
        matches = entry.pattern.search(value, fuel=Fuel(LITTLE)) is not None
        reason = f"{_json(value)} does not match {entry.pattern.text!r}"
    except OutOfFuel:
        matches = False
        reason = f"{_json(value)} takes too much work to match with {entry.pattern.text!r}"
    if not matches:
        raise _refusal(entry, "pattern", reason)
    return value


def _refusal(entry: Entry, bound: str, reason: str) -> Refusal:
    own = entry.message
    text = getattr(own, bound) if isinstance(own, Messages) else own
    return Refusal(text or f"{entry.client_name}: {reason}")


def _json(value: Any) -> str:
    if isinstance(value, Number):
        return value.spelling
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."


def without_ours(plan: ArgumentPlan, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without those that the plan adds."""
    for entry in plan.entries:
        if entry.ours:
            arguments = without(arguments, entry.client_name)
    return arguments


def value_at(arguments: dict[str, Any], name: str) -> Any:
    """Return the value at a dotted name, UNSET if there is none."""
    value: Any = arguments
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            return UNSET
        value = value[part]
    return value


def with_value(arguments: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Return the arguments with the value at a dotted name set; missing objects are created.

    >>> with_value({"params": {"path": "a"}}, "params.limit", 1)
    {'params': {'path': 'a', 'limit': 1}}
    """
    first, _, rest = name.partition(".")
    if rest:
        inner = arguments.get(first)
        value = with_value(inner if isinstance(inner, dict) else {}, rest, value)
    return {**arguments, first: value}


def without(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the arguments without the dotted `name`; the same object if it is absent.

    >>> without({"params": {"limit": 1, "path": "a"}}, "params.limit")
    {'params': {'path': 'a'}}
    """
    if value_at(arguments, name) is UNSET:
        return arguments
    first, _, rest = name.partition(".")
    if rest:
        return {**arguments, first: without(arguments[first], rest)}
    return {key: value for key, value in arguments.items() if key != first}
