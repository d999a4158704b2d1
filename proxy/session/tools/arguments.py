"""Arguments that rules add to a tool or bound: advertised, checked, completed, removed.

One table per rule and tool, `ArgumentPlan`, is the source of all four.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from proxy.document.fuel import LITTLE, Fuel
from proxy.document.paths import ROOT
from proxy.document.patterns import Pattern
from proxy.document.tree import Number
from proxy.errors import OutOfFuel, Refusal
from proxy.ruleset.rule import Bounds, Messages, Rule
from proxy.schema.walk import types
from proxy.transforms.base import Parameter, Schema, Transform

VIEW = "view"
_PAGE, _ABRIDGED = "page_", "abridged_"  # prefixes for names that the tool itself uses

_VIEW = Parameter(
    {
        "type": "string",
        "description": (
            "Look into the part of an earlier long answer that was left out, without running the "
            "tool again: a JMESPath such as items[20:40] or items[*].id, or a slice of a text such "
            "as text[10000:20000]. Send the same other arguments as before."
        ),
    }
)


class Entry(Struct, frozen=True, kw_only=True):
    """One argument of a plan.

    `name` is the rule's dotted name, `shown` the clients' name. `ours`: it never reaches the
    server. `steers`: it only moves a window or a view over the same document.
    """

    name: str
    shown: str
    schema: Schema = {}
    ours: bool = False
    steers: bool = False
    clamp: bool = False
    alias_of: str | None = None
    message: str | Messages | None = None
    pattern: Pattern | None = None


class ArgumentPlan(Struct, frozen=True):
    """The changes of one rule to the arguments of a tool; `windows` are the steps that use them."""

    entries: tuple[Entry, ...] = ()
    names: dict[str, str] = {}
    windows: tuple[Transform, ...] = ()


class Completed(Struct, frozen=True):
    """A call's arguments after a plan was applied.

    `arguments` are complete, under the rule's names. `upstream` goes to the server; `changed` is
    true if it differs from the client's arguments. `own` are the proxy's arguments that affect the
    answer. `steering` holds the start of each window (0 for the beginning), and the view if one is
    requested.
    """

    arguments: dict[str, Any]
    upstream: dict[str, Any]
    changed: bool
    own: dict[str, Any]
    steering: dict[str, Any]

    @property
    def resumes(self) -> bool:
        """True if a window begins anywhere but at the start."""
        return any(name != VIEW and value for name, value in self.steering.items())


def plan(rule: Rule, taken: Collection[str], *, objects: bool = False) -> ArgumentPlan:
    """Return the plan of `rule` for a tool whose own arguments are `taken`.

    `objects`: all results of the tool are objects, so a whole array cannot be paged.

    A name that the rule file spells out belongs to the rule, even if the tool has it. A name that
    is only a transform's default yields to the tool's (`page_limit`, `abridged_view`).
    """
    entries: dict[str, Entry] = {}
    idle = tuple(_idle(rule)) if objects else ()
    for step in rule.pipeline:
        if step in idle:
            continue
        chosen = set((getattr(step, "arguments", None) or {}).values())
        for name, parameter in step.parameters.items():
            yields = name in taken and name not in chosen and name not in rule.arguments
            shown = f"{_PAGE}{name}" if yields else name
            entries[name] = _added(name, shown, parameter, steers=step.window)
    for name, parameter in rule.guard.parameters.items() if rule.guard is not None else ():
        entries[name] = _added(name, name, parameter)
    if rule.snapshot_step.viewable:
        yields = VIEW in taken and VIEW not in rule.arguments
        shown = f"{_ABRIDGED}{VIEW}" if yields else VIEW
        entries[VIEW] = Entry(name=VIEW, shown=shown, schema=_VIEW.schema, ours=True, steers=True)
    for name, bounds in rule.arguments.items():
        entries[name] = _bounded(name, bounds, entries.get(name))
    names = {entry.name: entry.shown for entry in entries.values() if entry.name != entry.shown}
    windows = tuple(step for step in rule.snapshot_step.windows if step not in idle)
    return ArgumentPlan(tuple(entries.values()), names, windows)


def _idle(rule: Rule) -> Iterator[Transform]:
    """Yield the steps that page a whole array but get an object whenever the rule gets one."""
    schema: Schema | None = {"type": "object"}
    for step in () if rule.foreign or rule.document in ("text", "blocks") else rule.pipeline:
        if schema is None or types(schema) != {"object"}:
            return
        if step.name == "paginate" and getattr(step, "at", None) == ROOT:
            yield step
        schema = step.reshape(schema)


def _added(name: str, shown: str, parameter: Parameter, *, steers: bool = False) -> Entry:
    pattern = parameter.schema.get("pattern")
    return Entry(
        name=name,
        shown=shown,
        schema=parameter.schema,
        ours=True,
        steers=steers,
        message=parameter.message,
        pattern=None if pattern is None else Pattern(pattern),
    )


def implied(sent: Iterable[str]) -> frozenset[str]:
    """Return the names that the tool itself must use, since their prefixed forms were sent.

    A client may know the tools from an earlier session.

    >>> sorted(implied(["page_limit", "abridged_view", "path"]))
    ['limit', 'view']
    """
    return frozenset(
        name.removeprefix(prefix)
        for prefix in (_PAGE, _ABRIDGED)
        for name in sent
        if name.startswith(prefix)
    )


def complete(
    chosen: ArgumentPlan, others: Iterable[ArgumentPlan], sent: dict[str, Any]
) -> Completed:
    """Check and complete a call's arguments by the plan of the rule that applies.

    `others` are the plans of further rules for the same tool, whose own arguments are removed too.
    `sent` is not changed. Raises Refusal if the plan does not admit a value.
    """
    arguments = upstream = sent
    own: dict[str, Any] = {}
    steering: dict[str, Any] = {}
    for entry in chosen.entries:
        if entry.alias_of is not None:
            arguments = _renamed(arguments, entry.name, entry.alias_of)
            upstream = _renamed(upstream, entry.name, entry.alias_of)
    for entry in chosen.entries:
        if entry.alias_of is not None:
            continue
        value = get(arguments, entry.shown)
        arguments = without(arguments, entry.shown)
        given = value is not UNSET and not (value is None and entry.ours)
        if not given:
            arguments = without(arguments, entry.name)
            value = entry.schema.get("default", UNSET)
            if value is UNSET:
                continue
        checked = _checked(entry, value) if given else value
        arguments = put(arguments, entry.name, checked)
        if not entry.ours and (not given or checked is not value):
            upstream = put(upstream, entry.shown, checked)
        if entry.ours and not entry.steers:
            own[entry.name] = checked
        if entry.name == VIEW or (entry.steers and entry.schema.get("default") == 0):
            steering[entry.name] = checked
    for each in (chosen, *others):
        upstream = without_ours(each, upstream)
    return Completed(arguments, upstream, upstream is not sent, own, steering)


def without_ours(plan: ArgumentPlan, held: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without those that the plan adds."""
    for entry in plan.entries:
        if entry.ours:
            held = without(held, entry.shown)
    return held


def _renamed(held: dict[str, Any], alias: str, name: str) -> dict[str, Any]:
    value = get(held, alias)
    held = without(held, alias)
    return held if value is UNSET or get(held, name) is not UNSET else put(held, name, value)


def _bounded(name: str, bounds: Bounds, window: Entry | None) -> Entry:
    """Return the entry for a rule's bounds, joined with any window argument of that name."""
    words = {
        "type": bounds.type,
        "minimum": bounds.minimum,
        "maximum": bounds.maximum,
        "enum": None if bounds.enum is None else list(bounds.enum),
        "maxLength": bounds.max_length,
        "pattern": None if bounds.pattern is None else bounds.pattern.text,
        "description": bounds.description,
    }
    schema = dict(window.schema) if window is not None else {}
    schema.update({word: value for word, value in words.items() if value is not None})
    if not isinstance(bounds.default, UnsetType):
        schema["default"] = bounds.default
    return Entry(
        name=name,
        shown=name,
        schema=schema,
        ours=not bounds.upstream or (window is not None and window.ours),
        steers=window is not None,
        clamp=bounds.clamp,
        alias_of=bounds.alias_of,
        message=bounds.message or (window.message if window is not None else None),
        pattern=bounds.pattern,
    )


def _checked(entry: Entry, value: Any) -> Any:
    """Return the value, clamped if the rule says so; raises Refusal if the schema rejects it."""
    schema = entry.schema
    kind = schema.get("type")
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if kind is not None and not _is(value, kind):
        raise _refusal(entry, "type", f"{_json(value)} is not {_KINDS.get(kind, kind)}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is not None and value < low:
            if entry.clamp:
                return low
            found = f"{_json(value)} is less than the minimum of {_json(low)}"
            raise _refusal(entry, "minimum", found)
        if high is not None and value > high:
            if entry.clamp:
                return high
            found = f"{_json(value)} is greater than the maximum of {_json(high)}"
            raise _refusal(entry, "maximum", found)
    if "enum" in schema and value not in schema["enum"]:
        known = ", ".join(map(_json, schema["enum"]))
        raise _refusal(entry, "enum", f"{_json(value)} is not one of {known}")
    if isinstance(value, str):
        longest = schema.get("maxLength")
        if longest is not None and len(value) > longest:
            if entry.clamp:
                return value[:longest]
            found = f"{len(value)} characters are more than the maximum of {longest}"
            raise _refusal(entry, "max_length", found)
        if entry.pattern is not None and not _matches(entry, entry.pattern, value):
            found = f"{_json(value)} does not match {entry.pattern.text!r}"
            raise _refusal(entry, "pattern", found)
    return value


def _matches(entry: Entry, pattern: Pattern, value: str) -> bool:
    try:
        return pattern.search(value, fuel=Fuel(LITTLE)) is not None
    except OutOfFuel as spent:
        found = f"{_json(value)} takes too much work to match with {pattern.text!r}"
        raise _refusal(entry, "pattern", found) from spent


_KINDS = {
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "string": str,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return kind not in _TYPES or isinstance(value, _TYPES[kind])


def _refusal(entry: Entry, bound: str, found: str) -> Refusal:
    own = entry.message
    said = getattr(own, bound) if isinstance(own, Messages) else own
    return Refusal(said or f"{entry.shown}: {found}")


def _json(value: Any) -> str:
    if isinstance(value, Number):
        return value.spelling
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."


def get(held: dict[str, Any], name: str) -> Any:
    """Return the value at a dotted name, UNSET if there is none."""
    value: Any = held
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            return UNSET
        value = value[part]
    return value


def put(held: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Return nested arguments with the value at a dotted name set; missing objects are created.

    >>> put({"params": {"path": "a"}}, "params.limit", 1)
    {'params': {'path': 'a', 'limit': 1}}
    """
    first, _, rest = name.partition(".")
    if rest:
        inner = held.get(first)
        value = put(inner if isinstance(inner, dict) else {}, rest, value)
    return {**held, first: value}


def without(held: dict[str, Any], name: str) -> dict[str, Any]:
    """Return nested arguments without the dotted `name`; the same object if it is absent.

    >>> without({"params": {"limit": 1, "path": "a"}}, "params.limit")
    {'params': {'path': 'a'}}
    """
    if get(held, name) is UNSET:
        return held
    first, _, rest = name.partition(".")
    if rest:
        return {**held, first: without(held[first], rest)}
    return {key: value for key, value in held.items() if key != first}
