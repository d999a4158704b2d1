"""The kinds of values that an expression met: numbers for texts, objects for arrays.

Without it, `[?id=='3']` over numbers finds nothing and reads as "none", as does `[0]` of an object.
Each evaluation is counted at its place in the expression; what to say is decided at the end, from
all that was met there.
"""

import re
from collections.abc import Iterator
from typing import Any

from mcp_abridge.document.names import label, spelled
from mcp_abridge.document.tree import raw
from mcp_abridge.query.kind_words import (
    ENTRY,
    EQUALITIES,
    HOLDS,
    VALUES,
    NodeKinds,
    as_numbers,
    bracket_fault,
    comparison_faults,
    function_faults,
    subject_at,
    subject_of,
    words_for_tie,
)
from mcp_abridge.query.near_misses import other_spelling, unmatched
from mcp_abridge.query.notation import Node, brackets, notation
from mcp_abridge.query.numerals import (
    has_decimal_comma,
    kind_of_type,
    number,
    odd_order,
    stands_for_none,
)
from mcp_abridge.query.patterns import FIRST_ALONE, nodes
from mcp_abridge.query.shapes import tree_member

_EXAMINED = 100  # texts of which the order is looked at
_SOUGHT = 10_000  # texts in which another case of a part is looked for
_ROWS = 200  # elements in which a tree is looked for
_SIZED = frozenset((str, list, dict))
_DAY, _DAY_OR_MONTH = re.compile(r"\d{4}-\d\d-\d\d"), re.compile(r"\d{4}-\d\d(?:-\d\d)?")
_BEYOND = {"gt": ">", "lte": "<="}  # signs for which a longer text is beyond its beginning
_ADD = frozenset(("avg", "max", "min", "sum"))
_VALUE = {"type": "current", "children": []}


class Kinds:
    """The kinds of values that one evaluation of an expression met, by the node that did.

    `converts`: numbers that are held as texts are compared as numbers, as in views.
    """

    def __init__(self, tree: Node, *, converts: bool) -> None:
        self.converts = converts
        _mark(tree)
        names = {node["value"] for node in nodes(tree) if node["type"] == "field"}
        self._as_entries = not names.isdisjoint(ENTRY)
        self._pairs: dict[int, NodeKinds] = {}
        self._bases: dict[int, NodeKinds] = {}
        self._sentences: dict[str, None] = {}
        self.beside_hits: dict[str, None] = {}  # sentences for a view that shows no hits
        self._as_texts: dict[int, Node] = {}
        self._decimal_commas: set[int] = set()  # comparisons of texts such as 1,5
        self._texts: dict[int, tuple[Node, dict[str, None]]] = {}  # some that were compared so
        self._unread: dict[int, tuple[Node, int, str]] = {}
        self._ties: dict[int, tuple[Node, int, int, Any]] = {}
        # The rows of a function with a key, if it is called once.
        self._groups: dict[int, tuple[Node, list[Any]] | None] = {}
        self._undecided = False

    def pair(self, node: Node, one: Any, other: Any) -> None:
        """Note the operands of a comparison, or the first two arguments of a test."""
        record = self._pair(node)
        types = type(one), type(other)
        record.counts[types] += 1
        if record.differ(one, other):
            record.spelling = one, other
        for each in one, other:
            if not each and type(each) in _SIZED:
                record.empty[repr(each)] += 1
        if types[0] is not types[1] and record.alike is None and node["value"] in EQUALITIES:
            record.compare(one, other)
        if not record.matched and types == (str, str):
            record.see([one], [other])
        if types[0] is list and node["value"] == "contains":
            if types[1] is str:
                record.matched |= other in one
                if len(record.values) <= VALUES:
                    record.values[other] = None
            record.inside.update(map(type, one))
            if record.part is None and types[1] is str:
                texts = (each for each in one if type(each) is str)
                record.part = next((each for each in texts if other in each != other), None)
        for each in types:
            if (each is list or each is dict) and not record.samples.get(kind_of_type(each)):
                record.samples[kind_of_type(each)] = one if type(one) is each else other

    def pairs(self, node: Node, ones: list[Any], others: list[Any]) -> None:
        """Note many operands at once, of which none is an array or an object."""
        record = self._pair(node)
        record.counts.update(zip(map(type, ones), map(type, others), strict=True))
        record.empty["''"] += ones.count("") + others.count("")
        if not record.matched and (str, str) in record.counts:
            record.see(ones, others)
        types = [{*map(type, each)} - {type(None)} for each in (ones, others)]
        mixed = types[0] != types[1] or any(str in each != {str} for each in types)
        if mixed and record.alike is None and node["value"] in EQUALITIES:
            for pair in dict.fromkeys(zip(ones, others, strict=True)):
                record.compare(*pair)
        sought = node["value"] not in HOLDS or record.counts.total() < _SOUGHT
        if sought and (str, str) in record.counts:
            last_first = dict.fromkeys(zip(reversed(ones), reversed(others), strict=True))
            spelling = (pair for pair in last_first if record.differ(*pair))
            record.spelling = next(spelling, record.spelling)

    def _pair(self, node: Node) -> "NodeKinds":
        record = self._pairs.get(id(node))
        if record is None:
            record = self._pairs[id(node)] = NodeKinds(node)
        return record

    def base(self, node: Node, value: Any, index: Node | None = None) -> None:
        """Note what stands before the brackets of a node, or before one index of several."""
        key = id(index or node)
        record = self._bases.get(key)
        if record is None:
            record = self._bases[key] = NodeKinds(node if index is None else _up_to(node, index))
        record.counts[type(value)] += 1
        if type(value) is list:
            record.array = value
        if type(value) is dict and not record.samples.get("object"):
            record.samples["object"] = value
        elif index is not None and type(value) is list:
            record.longest = max(record.longest, len(value))

    def rows(self, call: Node, array: list[Any]) -> None:
        """Note the rows that a function orders, groups or compares by a key."""
        self._groups[id(call)] = None if id(call) in self._groups else (call["children"][0], array)

    def say(self, remark: str) -> None:
        self._sentences[remark] = None

    def unread(self, call: Node, text: str) -> None:
        """Note a text of which to_number() makes null."""
        _, count, first = self._unread.get(id(call), (call, 0, text))
        self._unread[id(call)] = call, count + 1, first

    def tie(self, call: Node, others: int, value: Any) -> None:
        """Note how many other elements have the greatest or the least value as well."""
        if others:
            _, calls, *_ = self._ties.get(id(call), (call, 0))
            self._ties[id(call)] = call, calls + 1, others, value

    def ordered(self, node: Node, one: Any, other: Any) -> tuple[Any, Any] | None:
        """Return the operands of an order comparison as they are compared; None if they are not.

        In views, a text that spells a number is a number beside a number, and beside such a text if
        all texts there are: as soon as one is none, all have to be compared `again`, as texts.
        """
        texts = isinstance(one, str) + isinstance(other, str)
        none = texts == 2 and (stands_for_none(one, other) or stands_for_none(other, one))
        if none and self.converts:
            reason = "is no number or time in some elements, which do not match"
            self.say(f"{subject_of(node)} {reason}")
            return None
        if texts == 2 and node["value"] in _BEYOND and one.startswith(other) and self.converts:
            self._note_day(node, one, other)
        if not texts or self.compares_texts(node):
            return (one, other) if texts != 1 else None
        numbers = self._number(node, one), self._number(node, other)
        if None not in numbers:
            self.say(as_numbers(node, (one, other)))
            return numbers
        if texts == 1:
            if len(values := self._pair(node).values) <= _EXAMINED:
                values[one if isinstance(one, str) else other] = None
            return None
        if numbers == (None, None):
            _, some = self._texts.setdefault(id(node), (node, {}))
            if len(some) < _EXAMINED:
                some |= {one: None, other: None}
        else:
            self._as_texts[id(node)] = node
            self._undecided = True
        return one, other

    def _note_day(self, node: Node, one: str, other: str) -> None:
        """Note that times of a day, or a month, are taken to be after it."""
        what, literal = map(notation, node["children"])
        spans = _DAY if node["value"] == "gt" else _DAY_OR_MONTH  # at > '2026-05' means May, too
        if spans.fullmatch(other) and one != other and "…" not in what:
            unit = "days" if _DAY.fullmatch(other) else "months"
            way = (
                f"write {what}[:{len(other)}] {_BEYOND[node['value']]} {literal} to compare {unit}"
            )
            self.say(f"{what}: times of {other} itself are after {literal}; {way}")

    def _number(self, node: Node, value: Any) -> Any:
        """Return the number that a value spells; of `2,250`, none if `1,5` is compared as well."""
        if not isinstance(value, str) or "," not in value:
            return number(value)
        if has_decimal_comma(value) and id(node) not in self._decimal_commas:
            self._decimal_commas.add(id(node))
            self._undecided = True
        return None if id(node) in self._decimal_commas else number(value)

    def compares_texts(self, node: Node) -> bool:
        """Return True if an order comparison takes texts as they are."""
        return not self.converts or id(node) in self._as_texts

    def again(self) -> bool:
        """Return True if the evaluation has to be done again; then nothing is noted any more."""
        undecided, self._undecided = self._undecided, False
        if undecided:
            self.restart()
        return undecided

    def restart(self) -> None:
        """Forget what was noted: another evaluation begins."""
        self._pairs, self._bases, self._sentences = {}, {}, {}
        self._texts, self._unread, self.beside_hits = {}, {}, {}
        self._ties, self._groups = {}, {}

    @property
    def slips(self) -> Iterator[str]:
        """Sentences on what cannot have been meant: no value was of the kind that it needs."""
        yield from (message for sure, message in self._mismatches() if sure)
        for record in self._bases.values():
            message = bracket_fault(record, as_entries=self._as_entries)
            if message and "optional" not in record.node:
                yield message

    @property
    def absences(self) -> Iterator[str]:
        """Sentences on elements that no array has, and texts that are there in other spellings."""
        for record in self._pairs.values():
            if record.node["value"] in (*EQUALITIES, *HOLDS):
                yield from filter(None, (other_spelling(record),))
        for record in self._bases.values():
            what, bracket = brackets(record.node)
            place, length = bracket[1:-1].lstrip("-"), record.longest
            if list not in record.counts or not place.isdecimal():
                continue
            if int(place) + (bracket[1] != "-") > length:
                where = "" if what == "@" else f" in {what}"
                count = f"{'at most ' * (record.counts.total() > 1)}{length} element"
                yield f"there is no {bracket}{where}: the array has {count}{'s' * (length != 1)}"
                yield from _top_of_tree(record)

    @property
    def remarks(self) -> Iterator[str]:
        """Sentences on values that were left aside, or compared as another kind."""
        yield from self._sentences
        yield from (message for sure, message in self._mismatches() if not sure)
        yield from unmatched([*self._pairs.values()])
        for record in self._bases.values() if self.converts else ():
            if record.node["type"] == "filter_projection" or "adds" in record.node:
                yield from _top_of_tree(record)
        for rows, array in filter(None, self._groups.values()):
            yield from _with_those_below(notation(rows), rows, array)
        for node in self._as_texts.values():
            other = node["children"][1 - subject_at(node)]
            alone = other["type"] == "literal" and number(other["value"]) is None
            reason = f"{notation(other)} is no number" if alone else "not all are numbers"
            yield f"{subject_of(node)}: compared as texts, since {reason}"
        for node, some in self._texts.values():
            if as_ := odd_order([*some]):
                yield f"{subject_of(node)}: compared as texts, not as {as_}"
        for call, count, first in self._unread.values():
            texts = f"{count} texts that are no numbers, as {label(first)} is"
            yield f"{notation(call)} is null for {texts}"
        yield from filter(None, (words_for_tie(*each) for each in self._ties.values()))

    def _mismatches(self) -> Iterator[tuple[bool, str]]:
        for record in self._pairs.values():
            tests = record.node["type"] == "function_expression"
            for sure, message in function_faults(record) if tests else comparison_faults(record):
                yield sure and "optional" not in record.node, message


def _top_of_tree(record: NodeKinds) -> Iterator[str]:
    """Yield how the objects below are asked for, if brackets take those at the top of a tree."""
    what, _ = brackets(record.node)
    if record.counts.total() == 1 and not what.endswith("[]"):
        yield from _with_those_below(what, record.node["children"][0], record.array)


def _with_those_below(what: str, own: Node, array: list[Any]) -> Iterator[str]:
    while own["type"] == "subexpression":
        own = own["children"][-1]
    if "…" not in what:
        name = tree_member([*map(raw, array[:_ROWS])], str(own.get("value", "")))
        if name is not None:
            way = f"nodes({what}, &{spelled(name)})"
            yield f"{what} is the top of a tree; {way} has what is below it, too"


def _up_to(node: Node, index: Node) -> Node:
    children = node["children"]
    place = next(place for place, child in enumerate(children) if child is index)
    return {**node, "children": children[: place + 1]}


def _mark(tree: Node) -> None:
    """Mark nodes for which another one stands, and in `a.b[0]` what stands before `b[0]`.

    In `a | length(@)`, what stands before the function. Mark the node that a view begins with, and
    the member that it takes of that.
    """
    first = tree
    while first["type"] in (*FIRST_ALONE, "subexpression"):
        first = first["children"][0]
    first["of_whole"] = True
    for node in nodes(tree):
        if node["type"] == "function_expression" and node["value"] in _ADD:
            part = node["children"][0]
            while part["type"] in (*FIRST_ALONE, "subexpression"):
                part["adds"] = True
                part = part["children"][0]
        if node["type"] == "subexpression" and "of_whole" in node["children"][0]:
            node["children"][0]["then"] = notation({**node, "children": node["children"][1:]})
        inside = node["type"] == "or_expression" or node.get("value") in ("not_null", "type")
        children = [each for each in node.get("children", ()) if isinstance(each, dict)]
        if node["type"] == "pipe" and children[1].get("children") == [_VALUE]:
            children[1]["after"] = children[0]
        for place, child in enumerate(children):
            if inside or "optional" in node:
                child["optional"] = True
            while place and node["type"] == "subexpression" and child["type"] in FIRST_ALONE:
                child["within"] = {**node, "children": children[:place]}
                child = child["children"][0]
