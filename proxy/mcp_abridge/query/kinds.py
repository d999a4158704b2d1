"""The kinds of values that an expression met: numbers for texts, objects for arrays.

Without it, `[?id=='3']` over numbers finds nothing and reads as "none", as does `[0]` of an object.
Each evaluation is counted at its place in the expression; what to say is decided at the end, from
all that was met there.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from mcp_abridge.document.own_names import listed
from mcp_abridge.document.tree import encode
from mcp_abridge.query.notation import Node, brackets, constant, notation
from mcp_abridge.query.patterns import FIRST_ALONE, nodes

Number = int | float

_KINDS = {str: "text", bool: "boolean", list: "array", dict: "object", type(None): "null"}
_NUMBER = re.compile(r"-?\d{1,40}(\.\d{1,40})?([eE][-+]?\d{1,3})?", re.ASCII)
_NULLS = ("", "null", "None", "nil", "undefined", "NULL")  # texts that are meant as null
_ENTRY = frozenset(("key", "value"))  # the members of a row that entries() makes
_NAMES = 8  # member names in a message
TESTS = frozenset(("contains", "ends_with", "matches", "starts_with"))
"""Functions that are false for a value of another kind than theirs."""
_HOLDS: dict[str, Callable[[str, str], bool]] = {
    "contains": str.__contains__,
    "ends_with": str.endswith,
    "starts_with": str.startswith,
}
_SOUGHT = 10_000  # texts in which another case of a part is looked for


def kind(value: Any) -> str:
    """Return the word for the kind of a value: `number`, `text`, `array` ..."""
    return _kind_of(type(value))


def _kind_of(type_: type) -> str:
    return _KINDS.get(type_, "number")


def number(value: Any) -> Number | None:
    """Return the number that a value is, or that a text spells; None if it is none.

    >>> number("010.50"), number("-3"), number(7), number("3 kB"), number(True)
    (10.5, -3, 7, None, None)
    """
    if not isinstance(value, str):
        return value if kind(value) == "number" else None
    match = _NUMBER.fullmatch(value)
    if match is None:
        return None
    return float(value) if match[1] or match[2] else int(value)


def numbers(values: list[Any], *, of_texts: bool) -> list[Number | None]:
    """Return the numbers that values are, null for others; `of_texts`: or that texts spell."""
    types = {*map(type, values)} - {type(None)}
    if all(_kind_of(type_) == "number" for type_ in types):
        return values
    spelled = _NUMBER.fullmatch if of_texts else lambda _: None
    return [
        number(value) if not isinstance(value, str) or spelled(value) else None for value in values
    ]


class Kinds:
    """The kinds of values that one evaluation of an expression met, by the node where it did.

    `converts`: numbers that are held as texts are compared as numbers, as in views.
    """

    def __init__(self, tree: Node, *, converts: bool) -> None:
        self.converts = converts
        _mark(tree)
        names = {node["value"] for node in nodes(tree) if node["type"] == "field"}
        self._as_entries = not names.isdisjoint(_ENTRY)
        self._pairs: dict[int, _Record] = {}
        self._bases: dict[int, _Record] = {}
        self._sentences: dict[str, None] = {}
        self._as_texts: dict[int, Node] = {}
        self._undecided = False

    def pair(self, node: Node, one: Any, other: Any) -> None:
        """Note the operands of a comparison, or the first two arguments of a test."""
        record = self._pair(node)
        types = type(one), type(other)
        record.counts[types] += 1
        if record.differ(one, other):
            record.spelling = one, other
        if types[0] is list and node["value"] == "contains":
            record.inside.update(map(type, one))
        for each in types:
            if (each is list or each is dict) and not record.samples.get(_KINDS[each]):
                record.samples[_KINDS[each]] = one if type(one) is each else other

    def pairs(self, node: Node, ones: list[Any], others: list[Any]) -> None:
        """Note many operands at once, of which none is an array or an object."""
        record = self._pair(node)
        record.counts.update(zip(map(type, ones), map(type, others), strict=True))
        sought = node["value"] not in _HOLDS or record.counts.total() < _SOUGHT
        if sought and (str, str) in record.counts:
            last_first = zip(reversed(ones), reversed(others), strict=True)
            spelling = (pair for pair in last_first if record.differ(*pair))
            record.spelling = next(spelling, record.spelling)

    def _pair(self, node: Node) -> "_Record":
        record = self._pairs.get(id(node))
        if record is None:
            record = self._pairs[id(node)] = _Record(node)
        return record

    def base(self, node: Node, value: Any, index: Node | None = None) -> None:
        """Note what stands before the brackets of a node, or before one index of several."""
        key = id(index or node)
        record = self._bases.get(key)
        if record is None:
            record = self._bases[key] = _Record(node if index is None else _up_to(node, index))
        record.counts[type(value)] += 1
        if type(value) is dict and not record.samples.get("object"):
            record.samples["object"] = value
        elif index is not None and type(value) is list:
            record.longest = max(record.longest, len(value))

    def say(self, remark: str) -> None:
        self._sentences[remark] = None

    def ordered(self, node: Node, one: Any, other: Any) -> tuple[Any, Any] | None:
        """Return the operands of an order comparison as they are compared; None if they are not.

        In views, a text that spells a number is a number beside a number, and beside such a text if
        all texts there are: as soon as one is none, all have to be compared `again`, as texts.
        """
        texts = isinstance(one, str) + isinstance(other, str)
        if not texts or self.compares_texts(node):
            return (one, other) if texts != 1 else None
        numbers = number(one), number(other)
        if None not in numbers:
            self.say(_as_numbers(node, (one, other)))
            return numbers
        if texts == 2 and numbers != (None, None):
            self._as_texts[id(node)] = node
            self._undecided = True
        return (one, other) if texts == 2 else None

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

    @property
    def slips(self) -> Iterator[str]:
        """Sentences on what cannot have been meant: no value was of the kind that it needs."""
        yield from (message for sure, message in self._mismatches() if sure)
        for record in self._bases.values():
            message = _bracket(record, as_entries=self._as_entries)
            if message and "optional" not in record.node:
                yield message

    @property
    def absences(self) -> Iterator[str]:
        """Sentences on elements that no array has, and texts that are there in other spellings."""
        for record in self._pairs.values():
            if record.node["value"] in ("eq", "ne", *_HOLDS) and (message := _otherwise(record)):
                yield message
        for record in self._bases.values():
            what, bracket = brackets(record.node)
            place, length = bracket[1:-1].lstrip("-"), record.longest
            if list not in record.counts or not place.isdecimal():
                continue
            if int(place) + (bracket[1] != "-") > length:
                where = "" if what == "@" else f" in {what}"
                count = f"{'at most ' * (record.counts.total() > 1)}{length} element"
                yield f"there is no {bracket}{where}: the array has {count}{'s' * (length != 1)}"

    @property
    def remarks(self) -> Iterator[str]:
        """Sentences on values that were left aside, or compared as another kind."""
        yield from self._sentences
        yield from (message for sure, message in self._mismatches() if not sure)
        for node in self._as_texts.values():
            other = node["children"][1 - _subject_at(node)]
            alone = other["type"] == "literal" and number(other["value"]) is None
            reason = f"{notation(other)} is no number" if alone else "not all are numbers"
            yield f"{_subject(node)}: compared as texts, since {reason}"

    def _mismatches(self) -> Iterator[tuple[bool, str]]:
        for record in self._pairs.values():
            tests = record.node["type"] == "function_expression"
            for sure, message in _tested(record) if tests else _compared(record):
                yield sure and "optional" not in record.node, message


class _Record:
    """How often a node met each type or pair of types, with a sample of some."""

    def __init__(self, node: Node) -> None:
        self.node = node
        holds = _HOLDS.get(node.get("value", ""))
        self.differ = partial(_holds_in_another_case, holds) if holds else _differ_by_case
        self.counts: Counter[Any] = Counter()
        self.samples: dict[str, Any] = {}
        self.inside: set[type] = set()  # the types in arrays that `contains` searched
        self.spelling: tuple[str, str] | None = None  # texts that differ in their case alone
        self.longest = 0  # elements of an array of which one is taken

    def kinds(self) -> Counter[Any]:
        kinds: Counter[Any] = Counter()
        for types, count in self.counts.items():
            each = tuple(map(_kind_of, types)) if isinstance(types, tuple) else _kind_of(types)
            kinds[each] += count
        return kinds


def _as_numbers(node: Node, operands: tuple[Any, Any]) -> str:
    """Return the remark on the operand that is a text: on the subject, if both are."""
    of = _subject_at(node)
    text = node["children"][of if isinstance(operands[of], str) else 1 - of]
    if text["type"] == "literal":
        return f"{notation(text)} is compared as a number"
    return f"{notation(text)}: texts that are numbers are compared as numbers"


def _up_to(node: Node, index: Node) -> Node:
    children = node["children"]
    place = next(place for place, child in enumerate(children) if child is index)
    return {**node, "children": children[: place + 1]}


def _mark(tree: Node) -> None:
    """Mark nodes for which another one stands, and in `a.b[0]` what stands before `b[0]`."""
    for node in nodes(tree):
        inside = node["type"] == "or_expression" or node.get("value") in ("not_null", "type")
        children = [each for each in node.get("children", ()) if isinstance(each, dict)]
        for place, child in enumerate(children):
            if inside or "optional" in node:
                child["optional"] = True
            while place and node["type"] == "subexpression" and child["type"] in FIRST_ALONE:
                child["within"] = {**node, "children": children[:place]}
                child = child["children"][0]


def _differ_by_case(one: Any, other: Any) -> bool:
    texts = type(one) is str and type(other) is str and len(one) == len(other)
    return texts and one != other and one.casefold() == other.casefold()


def _holds_in_another_case(holds: Callable[[str, str], bool], one: Any, other: Any) -> bool:
    if type(one) is list:
        return any(_differ_by_case(each, other) for each in one)
    texts = type(one) is str and type(other) is str
    return texts and holds(one.casefold(), other.casefold()) and not holds(one, other)


def _bracket(record: _Record, *, as_entries: bool) -> str | None:
    """Return the fault of brackets. `as_entries`: the expression reads a key or a value."""
    kinds = record.kinds()
    what, sign = brackets(record.node)
    kinds_there = [each for each, _ in kinds.most_common() if each != "null"]
    takes = "object" if sign == ".*" else "array"
    if not kinds_there or takes in kinds_there or ("text" in kinds_there and ":" in sign):
        return None
    message = f"{what} is {_a(kinds_there[0])}, and {sign} takes {_a(takes)}"
    if takes == "object":
        return f"{message}: write {what}[*]" if kinds_there[0] == "array" else message
    if kinds.total() > 1 and (what == "@" or sign[1:-1].lstrip("-").isdecimal()):
        return f"{message}; for all the results together write | {sign}"
    if kinds_there[0] == "object":
        members = record.samples["object"]
        first = next(iter(members.values()), None)
        own = isinstance(first, dict) and not _ENTRY.isdisjoint(first)
        function = "entries" if as_entries and not own else "values"
        advice = "" if "…" in what else f": write {function}({what}){sign}"
        return f"{message}{advice}; members: {_names(members)}"
    return message


def _compared(record: _Record) -> Iterator[tuple[bool, str]]:
    """Yield whether it is sure, and a sentence, if operands of a comparison differ in kind."""
    node, of, what = record.node, _subject_at(record.node), _subject(record.node)
    other, sign = node["children"][1 - of], node["value"]
    there = {pair: count for pair, count in record.kinds().items() if "null" not in pair}
    wrong = Counter({pair: count for pair, count in there.items() if pair[0] != pair[1]})
    if not wrong:
        return
    pair, count = wrong.most_common(1)[0]
    sure = len(wrong) == len(there)
    together = "" if other["type"] == "literal" else f" and {notation(other)} {_a(pair[1 - of])}"
    in_order = sign not in ("eq", "ne")
    spells_none = in_order and not sure and pair[of] == "text" and "number" in pair
    word = "no number" if spells_none else _a(pair[of])
    text = f"{what} is {word}{together}{share(count, record.counts.total())}"
    if in_order and not sure:
        yield False, f"{text}, which do{'es' * (count == 1)} not match"
        return
    advice = "" if together else _advice(what, pair[of], other["value"], record.samples, sign)
    if sure or ((advice or together) and not in_order):
        yield sure, text + advice


def _otherwise(record: _Record) -> str | None:
    """Return how a value is there that no element equals: in another case, or as null."""
    node, of = record.node, _subject_at(record.node)
    other = node["children"][1 - of]
    if other["type"] != "literal":
        return None
    if record.spelling is not None:
        there, literal = record.spelling[of], record.spelling[1 - of]
        if node["value"] in _HOLDS:
            return f"{_subject(node)}: {constant(literal)} is there in another case"
        return f"{_subject(node)}: {constant(there)} differs from {constant(literal)} by case alone"
    pairs = record.kinds()
    nulls = sum(count for pair, count in pairs.items() if pair[of] == "null")
    if nulls and other["value"] in _NULLS and node["value"] not in _HOLDS:
        return f"{_subject(node)} is null{share(nulls, pairs.total())}: write `null`"
    return None


def _advice(what: str, real: str, literal: Any, samples: dict[str, Any], sign: str = "eq") -> str:
    """Return how to write a comparison with a literal for values of kind `real`."""
    if real == "object":
        return f"; members: {_names(samples.get('object'))}"
    if real == "array":
        first = next(iter(samples.get("array") or [None]))
        if isinstance(first, dict):
            return f": write {what}[?…]; members of its elements: {_names(first)}"
        test = f"{'!' * (sign == 'ne')}contains({what}, {constant(literal)})"
        return f": write {test}" if sign in ("eq", "ne") else ""
    if real == "text":
        plain = kind(literal) in ("number", "boolean")
        return f": write {constant(encode(literal).decode())}" if plain else ""
    fits = literal in ("true", "false") if real == "boolean" else number(literal) is not None
    if not fits or not isinstance(literal, str):
        return ""
    return f": write `{literal if real == 'boolean' else encode(number(literal)).decode()}`"


def _tested(record: _Record) -> Iterator[tuple[bool, str]]:
    """Yield whether it is sure, and a sentence, if a test such as `contains` cannot hold."""
    name, (first, part) = record.node["value"], record.node["children"][:2]
    subject, literal = notation(first), part.get("value") if part["type"] == "literal" else None
    there = {pair: count for pair, count in record.kinds().items() if pair[0] != "null"}
    fits = ("text", "array") if name == "contains" else ("text",)
    wrong = Counter(
        {
            pair: count
            for pair, count in there.items()
            if pair[0] not in fits or (pair[0] == "text" != pair[1])
        }
    )
    if wrong:
        pair, count = wrong.most_common(1)[0]
        sure = len(wrong) == len(there)
        both = pair[0] == "text" and literal is None
        together = f" and {notation(part)} {_a(pair[1])}" * both
        text = f"{subject} is {_a(pair[0])}{together}{share(count, record.counts.total())}"
        if both:
            yield sure, text
        elif pair[0] == "text":
            yield sure, text + _advice(subject, "text", literal, {})
        elif sure:
            yield True, f"{text}, and {name}() takes {' or '.join(f'{each}s' for each in fits)}"
        else:
            yield False, f"{text}, which do{'es' * (count == 1)} not match"
    elif len(there) == 1 and len(inside := {*map(_kind_of, record.inside)}) == 1:
        [(_, sought)], real = there, inside.pop()
        if real != sought:
            first = next(iter(record.samples.get("array") or [None]))
            advice = _advice(f"{subject}[]", real, literal, {"object": first})
            advice = advice if literal is not None else f", and {notation(part)} is {_a(sought)}"
            yield True, f"the elements of {subject} are {real}s{advice}"


def _subject_at(node: Node) -> int:
    """Return which operand of a comparison is its subject: the first that is no literal."""
    first, second = node["children"]
    return 1 if first["type"] == "literal" and second["type"] != "literal" else 0


def _subject(node: Node) -> str:
    return notation(node["children"][_subject_at(node)])


def share(count: int, total: int) -> str:
    """Return in how many of how many elements something is so."""
    if total == 1:
        return ""
    return f" in all {total} elements" if count == total else f" in {count} of {total} elements"


def _a(word: str) -> str:
    return f"an {word}" if word[0] in "ao" else f"a {word}"


def _names(value: Any) -> str:
    names = [*map(listed, value)] if isinstance(value, dict) else []
    return ", ".join(names[:_NAMES]) + ", …" * (len(names) > _NAMES) or "none"
