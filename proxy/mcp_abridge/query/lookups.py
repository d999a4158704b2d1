"""Detection of slips in expressions: members that no element has, and texts in double quotes.

Without it, an expression with a slip finds nothing and reads as "none": a misspelled member, or a
text in double quotes, which JMESPath takes for the name of a member.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, repeat
from typing import Any

from msgspec import Raw

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.names import nameable, spelled
from mcp_abridge.document.own_names import listed, server_name
from mcp_abridge.document.rows import each_object
from mcp_abridge.errors import nearest
from mcp_abridge.query.kinds import Kinds
from mcp_abridge.query.notation import Node
from mcp_abridge.query.numerals import a_kind
from mcp_abridge.query.patterns import Expression
from mcp_abridge.query.shapes import OF_ANY_ARRAY, elsewhere, inner_place, made_rows
from mcp_abridge.query.trees import ORDERS, Names, Need, alongside, compared, with_replacements

_SCANNED = 2  # units for a search for members in one element
_BATCH = 64  # elements that are opened together
_SMALL = 1000  # bytes of an element that costs nothing to open
_NAMES = 200  # member names that are kept of the elements without a wanted member
_SHOWN = 300  # characters of member names in a message
_LONGEST = 60  # characters of a name that a view has, in a message
_MESSAGES = 3  # messages per evaluation: the search for a similar name is slow


class Lookups:
    """The members that one evaluation of an expression looks for, and those that it did not find.

    A member exists if one element of the array has it, even as null: an optional member is no slip.
    """

    def __init__(self, expression: Expression, *, guess: bool = True) -> None:
        """Take the expression. Without `guess`, a quoted name that no element has is reported."""
        self.kinds = Kinds(expression.tree, converts=guess)
        self._quoted = expression.quoted
        self._guess = guess
        self._places: dict[int, _Place] = {}
        self._root: Any = None  # the whole value

    def corrected(
        self,
        node: Node,
        base: Sequence[Any],
        open: Callable[[Any], Any],
        fuel: Fuel,
        *,
        single: bool = False,
        required: bool = False,
    ) -> Node:
        """Return `node` with slips corrected, before it is evaluated over each element of `base`.

        A quoted name in a comparison is a text if no element has that member. `single`: `base` is
        one value, and no array. `required`: a member that is named by itself is required; else it
        may be a test for presence.
        """
        place = self._places.get(id(node))
        if not self._places and base:
            self._root = base[0]
        if place is None:
            place = _Place(node, single, required, self._quoted, self._guess)
            self._places[id(node)] = place
        if place.missing:
            place.scan(base, open, fuel)
        return place.corrected if base else node

    @property
    def slips(self) -> list[str]:
        """A sentence for each required member that no element has, and for each wrong kind."""
        return [*self._messages(required=True), *islice(self.kinds.slips, _MESSAGES)]

    @property
    def missing(self) -> list[str]:
        """A sentence for each member that is nowhere."""
        return [each for need in (True, False, None) for each in self._messages(required=need)]

    @property
    def remarks(self) -> list[str]:
        """A sentence for each kind of values that the evaluation left aside, or converted."""
        return [*islice(self.kinds.remarks, _MESSAGES)]

    @property
    def absences(self) -> list[str]:
        """A sentence for each optional member, or element of an array, that is nowhere."""
        return [*self._messages(required=False), *islice(self.kinds.absences, _MESSAGES)]

    @property
    def presumptions(self) -> list[str]:
        """A sentence for each member that is nowhere, which makes a condition true."""
        return self._messages(required=None)

    def _messages(self, *, required: Need) -> list[str]:
        messages = (
            message
            for each in self._places.values()
            for message in each.messages(required, self._root)
        )
        return list(dict.fromkeys(islice(messages, _MESSAGES)))


class _Place:
    """A part of an expression that is evaluated over each element of arrays."""

    def __init__(
        self, node: Node, single: bool, required: bool, quoted: set[str], guess: bool
    ) -> None:
        self._node, self._single, self._quoted, self._guess = node, single, quoted, guess
        self._corrected: tuple[list[int], Node] = ([], node)
        self.missing: dict[Names, Need] = {}  # the members that no element has so far
        self._pairs: list[tuple[Node, Node]] = []
        self._orders: set[int] = set()  # the names among them that are compared by order
        for each, at, required_here in alongside(node, required):
            if each["type"] == "field":
                path = (*at, each["value"])
                self.missing[path] = required_here or self.missing.get(path, required_here)
            elif not at:
                pairs = compared(each)
                self._pairs += pairs
                if each["type"] == "comparator" and each["value"] in ORDERS:
                    self._orders.update(id(name) for name, _ in pairs)
        # The members of the objects that lack a wanted one; none if there is no object.
        self._lacking: dict[Names, dict[str, None]] = {}
        self._instead: dict[Names, Any] = {}  # a value without names that stands there
        self._first: dict[Names, dict[str, Any]] = {}  # an object that lacks the member
        self._names_of = "members"

    def scan(self, base: Sequence[Any], open: Callable[[Any], Any], fuel: Fuel) -> None:
        whole = open(base[0]) if self._single else None
        if isinstance(whole, list):
            self.missing = {p: need for p, need in self.missing.items() if p[0] not in OF_ANY_ARRAY}
            if any(isinstance(open(each), dict) for each in whole[:_BATCH]):
                base, self._names_of = whole, "members of its elements"
        outer = {path[0] for path in self.missing if len(path) > 1}
        for element, count in _kinds(base, outer):
            fuel.burn(_SCANNED * count)
            value = open(element)
            if isinstance(value, dict):
                fuel.burn(count * len(self.missing) * (1 + (len(value) >> 4)))
            for path in [*self.missing]:
                if self._has(value, path, 0, open, fuel):
                    del self.missing[path]
            if not self.missing:
                return

    def _has(
        self, value: Any, path: Names, at: int, open: Callable[[Any], Any], fuel: Fuel
    ) -> bool:
        """Return True if a value has the names of a path from `at` on; else note what is there."""
        name, is_last = path[at], at + 1 == len(path)
        if isinstance(value, list) and value and at:  # the members of its elements are meant
            fuel.burn(_SCANNED * len(value))
            each_kind = _kinds(value, set() if is_last else {name})
            if any(self._has(open(each), path, at, open, fuel) for each, _ in each_kind):
                return True
            return name in OF_ANY_ARRAY and (is_last or self._has(value, path, at + 1, open, fuel))
        if isinstance(value, dict):
            if name in value or _member(value, name) is not None:
                inner = open(_member(value, name))
                return is_last or self._has(inner, path, at + 1, open, fuel)
            if is_last:
                names = self._lacking.setdefault(path, {})
                self._first.setdefault(path, value)
                if len(names) < _NAMES:
                    names.update(dict.fromkeys(islice(value, _NAMES)))
        elif value is not None and (at or is_last):
            self._lacking.setdefault(path, {})
            self._instead.setdefault(path, value)
        return False

    @property
    def corrected(self) -> Node:
        """The node with texts in place of names; the same as before as long as those are."""
        literals = self.literals
        if [*literals] != self._corrected[0]:
            self._corrected = [*literals], with_replacements(self._node, literals)
        return self._corrected[1]

    @property
    def literals(self) -> dict[int, Node]:
        literals: dict[int, Node] = {}
        for node, other in self._pairs if self._guess else ():
            name = node["value"]
            # A name beside a text is a member. Of two such names, the right one is the text.
            if name in self._quoted and (name,) in self.missing and _open(other, literals):
                literals[id(node)] = {"type": "literal", "value": name, "children": []}
        return literals

    def messages(self, required: Need, root: Any) -> Iterator[str]:
        literals = self.literals
        corrected = {(node["value"],) for node, _ in self._pairs if id(node) in literals}
        others = [
            (node["value"],)
            for node, other in self._pairs
            if _open(other, literals)
            and (id(node) not in self._orders or node["value"] in self._quoted)
        ]
        for path, required_here in self.missing.items():
            need = required_here if required is None else bool(required_here)
            if need is required and path not in corrected and path in self._lacking:
                of_rows = not self._single and path[:1] in self.missing
                there = elsewhere(root, path[0]) if of_rows else ""
                yield self._message(path, compared=path in others) + there

    def _message(self, path: Names, *, compared: bool) -> str:
        *parents, name = path
        word, names = repr(_shortened(name)), [*filter(str.isprintable, self._lacking[path])]
        inside = f" in {_shortened('.'.join(parents))!r}" if parents else ""
        message = f"{'there is no' if self._single else 'no element has'} {word}{inside}; "
        if not names and path in self._instead:
            part = () if path[:-1] in self._instead else path
            return f"{message}{_without_names(self._instead[path], part, self._single)}"
        message += f"{self._names_of}: {_listed(names) or 'none'}"
        suggests = name not in names and not (compared and name in self._quoted)
        inner = inner_place(self._first.get(path), name) if suggests else None
        if inner is not None:
            return f"{message}; did you mean {server_name('.'.join((*parents, inner)))}?"
        nearby = map(server_name, filter(nameable, names))
        match = nearest(name, nearby) if suggests else None
        like = f"; did you mean {_as_written(match)}?" if match else ""
        text = f"; did you mean the text {word}, in single quotes?" if compared else ""
        call = _CALLS.get(name) if self._single else None
        call = f"; did you mean | {call} for all of the value before it?" if call else ""
        return message + (like or text or call)


def _open(node: Node, literals: dict[int, Any]) -> bool:
    """Return True if a node reads the element, so that the other operand may be a text."""
    return node["type"] != "literal" and id(node) not in literals


def _without_names(value: Any, path: Names, single: bool) -> str:
    """Return the kind of a value in place of an object, and how its parts are asked for.

    `path` is that of a part which is wanted, in the one value that is asked or in each.
    """
    way = ": write [0] for its first element" if isinstance(value, list) else ""
    if isinstance(value, str) and value.startswith("{") and path:
        *outer, name = map(spelled, path)
        start = "| " if single and not outer else ""
        way = f": write {start}from_json({'.'.join(outer) or '@'}).{name}"
    return f"found {a_kind(value)} in place of an object{way}"


def _as_written(name: str) -> str:
    """Return a name in quotes, in double ones if a view by it needs them."""
    return repr(name) if spelled(name) == name else spelled(name)


def _member(value: dict[str, Any], name: str) -> Any:
    """Return a member of an object, or the rows that it has by a name."""
    return value[name] if name in value else made_rows(value, name)


def _kinds(base: Sequence[Any], outer: set[str]) -> Iterator[tuple[Any, int]]:
    """Yield elements, each with a number: one in place of so many objects of the same members.

    If one has a member `outer`, in which something is looked for, they stand for themselves.
    """
    for first in range(0, len(base), _BATCH):
        batch, rows = base[first : first + _BATCH], None
        # A member that the first ones lack is often in none.
        unopened = first and {*map(type, batch)} == {Raw}
        if unopened and max(len(memoryview(each)) for each in batch) < _SMALL:
            rows = each_object(batch)
        if rows is None:
            yield from zip(batch, repeat(1))
            continue
        heads = [None if row is None else tuple(row) for row in rows]
        counts = Counter(heads)
        if not all(outer.isdisjoint(head or ()) for head in counts):
            yield from zip(base[first:], repeat(1))
            return
        examples = dict(zip(heads, batch, strict=True))
        yield from ((examples[head], count) for head, count in counts.items())


def slip_of(name: str) -> str:
    """Return the sentence on a bare word that is compared, and is no member there."""
    reason = f"{name} is a name, and no member there; did you mean {name!r} in single quotes?"
    return f"{reason} As a name that may be missing, write @.{name}"


def _listed(names: list[str]) -> str:
    sentence = ""
    for name in map(listed, names):
        if len(sentence) + len(name) > _SHOWN:
            return f"{sentence}, …"
        sentence = f"{sentence}, {name}" if sentence else name
    return sentence


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


# What other languages call without parentheses, or as a member.
_CALLS = {each: f"{each}(@)" for each in ("keys", "max", "min", "reverse", "sort", "sum", "values")}
_CALLS |= {"first": "[0]", "last": "[-1]", "add": "sum(@)"}
_CALLS |= dict.fromkeys(("count", "size"), "length(@)")
