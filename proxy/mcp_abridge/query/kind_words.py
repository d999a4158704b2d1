"""Words for the kinds of values, and sentences on those that a node of an expression met.

Without it, a model would learn that nothing was found, and not that it compared texts with numbers.
"""

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from mcp_abridge.document.names import spelled
from mcp_abridge.document.own_names import listed
from mcp_abridge.document.tree import encode
from mcp_abridge.query.letters import differ_in_spelling, holds_otherwise
from mcp_abridge.query.notation import Node, brackets, constant, notation, share
from mcp_abridge.query.numerals import kind, kind_of_type, number, with_article
from mcp_abridge.query.shapes import is_array
from mcp_abridge.query.trees import members_named

_ANSWERS = ("0", "false", "no", "true", "yes")  # texts that are meant as a truth value
_NAMES = 8  # member names in a message

VALUES = 1000
"""Different values of which other spellings are looked for."""
EQUALITIES = ("eq", "ne")
"""The signs of tests for equality."""

ENTRY = frozenset(("key", "value"))
"""The members of a row that entries() makes."""

TESTS = frozenset(("contains", "ends_with", "matches", "starts_with"))
"""Functions that are false for a value of another kind than theirs."""
HOLDS: dict[str, Callable[[str, str], bool]] = {
    "contains": str.__contains__,
    "ends_with": str.endswith,
    "starts_with": str.startswith,
}


class NodeKinds:
    """How often a node met each type or pair of types, with a sample of some."""

    def __init__(self, node: Node) -> None:
        self.node = node
        holds = HOLDS.get(node.get("value", ""))
        self.differ = partial(holds_otherwise, holds) if holds else differ_in_spelling
        self.counts: Counter[Any] = Counter()
        self.samples: dict[str, Any] = {}
        self.inside: set[type] = set()  # the types in arrays that `contains` searched
        self.spelling: tuple[Any, str] | None = None  # texts that differ in their spelling alone
        self.alike: tuple[str, str] | None = None  # kinds of operands that are spelled alike
        self.as_text = ""  # how the text among these is spelled
        self.matched = False  # True if two texts were equal, or one held the other
        self.values: dict[Any, None] = {}  # some of the values until then
        self.part: str | None = None  # a text in an array that has what `contains` looks for
        self.array: list[Any] = []  # the last one before brackets
        self.empty: Counter[str] = Counter()  # texts, arrays and objects with nothing in them
        self.longest = 0  # elements of an array of which one is taken

    def compare(self, one: Any, other: Any) -> None:
        """Note operands of an equality that are spelled alike: 9 and '9', true and 'true'."""
        if (type(one) is str) is not (type(other) is str):
            value, text = (other, one) if type(one) is str else (one, other)
            word = str(value).lower() if type(value) is bool else None
            if text.lower() == word or (kind(value) == "number" and number(text) == value):
                self.alike, self.as_text = (kind(one), kind(other)), text

    def see(self, ones: list[Any], others: list[Any]) -> None:
        """Note texts that are compared, some of them numbers or null, until two of them match."""
        name = self.node["value"]
        if len(self.values) <= VALUES:
            self.values.update(dict.fromkeys((ones, others)[subject_at(self.node)]))
        if name in HOLDS:
            ones = [each if type(each) is str else "" for each in ones]
        if name in HOLDS or name in EQUALITIES:
            self.matched = True in map(HOLDS.get(name, operator.eq), ones, others)

    def kinds(self) -> Counter[Any]:
        kinds: Counter[Any] = Counter()
        for types, count in self.counts.items():
            each = (
                tuple(map(kind_of_type, types)) if isinstance(types, tuple) else kind_of_type(types)
            )
            kinds[each] += count
        return kinds


def as_numbers(node: Node, operands: tuple[Any, Any]) -> str:
    """Return the remark on the operand that is a text: on the subject, if both are."""
    of = subject_at(node)
    text = node["children"][of if isinstance(operands[of], str) else 1 - of]
    if text["type"] == "literal":
        return f"{notation(text)} is compared as a number"
    return f"{notation(text)}: texts that are numbers are compared as numbers"


def bracket_fault(record: NodeKinds, *, as_entries: bool) -> str | None:
    """Return the fault of brackets. `as_entries`: the expression reads a key or a value."""
    kinds = record.kinds()
    what, sign = brackets(record.node)
    kinds_there = [each for each, _ in kinds.most_common() if each != "null"]
    takes = "object" if sign == ".*" else "array"
    if not kinds_there or takes in kinds_there or ("text" in kinds_there and ":" in sign):
        return None
    message = f"{what} is {with_article(kinds_there[0])}, and {sign} takes {with_article(takes)}"
    if takes == "object":
        return f"{message}: write {what}[*]" if kinds_there[0] == "array" else message
    of_all = what == "@" or sign[1:-1].lstrip("-").isdecimal() or _is_of_object(record)
    if kinds.total() > 1 and of_all:
        return f"{message}; for all the results together write | {sign}"
    if kinds_there[0] == "object":
        members = record.samples["object"]
        first = next(iter(members.values()), None)
        own = isinstance(first, dict) and not ENTRY.isdisjoint(first)
        function = "entries" if as_entries and not own else "values"
        arrays = [each for each, member in members.items() if is_array(member)]
        way = f"{function}({what}){sign}"
        if len(arrays) == 1 and not as_entries:
            way = f"{f'{what}.{spelled(arrays[0])}'.removeprefix('@.')}{sign}"
        advice = "" if "…" in what else f": write {way}"
        return f"{message}{advice}; members: {_names(members)}"
    return message


def _is_of_object(record: NodeKinds) -> bool:
    """Return True if a condition on what is no array names members of the object itself."""
    names = members_named(record.node["children"][-1])
    return record.node["type"] == "filter_projection" and bool(
        names & {*record.samples.get("object", ())}
    )


def comparison_faults(record: NodeKinds) -> Iterator[tuple[bool, str]]:
    """Yield whether it is sure, and a sentence, if operands of a comparison differ in kind."""
    node, of, what = record.node, subject_at(record.node), subject_of(record.node)
    other, sign = node["children"][1 - of], node["value"]
    there = {pair: count for pair, count in record.kinds().items() if "null" not in pair}
    wrong = Counter({pair: count for pair, count in there.items() if pair[0] != pair[1]})
    if not wrong:
        return
    pair, count = wrong.most_common(1)[0]
    if record.alike is not None and record.alike in wrong:
        pair, count = record.alike, wrong[record.alike]
    sure = len(wrong) == len(there)
    together = (
        "" if other["type"] == "literal" else f" and {notation(other)} {with_article(pair[1 - of])}"
    )
    in_order = sign not in ("eq", "ne")
    spells_none = in_order and not sure and pair[of] == "text" and "number" in pair
    word = "no number" if spells_none else with_article(pair[of])
    text = f"{what} is {word}{together}{share(count, record.counts.total())}"
    if in_order and not sure:
        yield False, f"{text}, which do{'es' * (count == 1)} not match"
        return
    # Else the literal fits most of them, and no other is spelled as it is.
    most = pair == record.alike or 2 * count > sum(there.values())
    advice = _advice(what, pair[of], other["value"], record.samples, sign)
    advice = "" if together or not most else advice
    if record.as_text and pair[of] == "text" and advice and not in_order:
        advice = f": write {constant(record.as_text)}"
    if in_order and advice and pair[of] == "text":
        # As texts they are in the order of numbers if all begin with as many digits.
        widths = {len(re.split(r"\D", each, maxsplit=1)[0]) for each in record.values}
        same = widths == {len(encode(other["value"]))}
        advice = advice if same else f", as {constant(next(iter(record.values)))} is"
    if sure or ((advice or together) and not in_order):
        yield sure, text + advice


def tests(condition: Node) -> Iterator[Node]:
    """Yield the names in a condition that are conditions themselves, as in `[?done && !failed]`."""
    kind_of_node = condition["type"]
    if kind_of_node in ("and_expression", "or_expression", "not_expression"):
        for child in condition["children"]:
            yield from tests(child)
    elif kind_of_node in ("field", "subexpression"):
        yield condition


def true_anyhow(test: Node, values: list[Any]) -> str | None:
    """Return the remark on a value that is taken for true, and may be meant as false."""
    what = notation(test)
    for value in values:
        if isinstance(value, str) and value.lower() in _ANSWERS:
            text = constant(value)
            return f"{what} is a text, and any text is true: compare it, as in {what}=={text}"
        if kind(value) == "number" and not encode(value).strip(b"0."):
            return f"{what} is a number, and 0 is true, too: write {what} != `0`"
    return None


def words_for_tie(call: Node, calls: int, others: int, value: Any) -> str | None:
    """Return how many elements have the greatest or the least value beside the one that is given.

    None if that value alone was asked for. `calls`: in how many arrays others have it, too.
    """
    rows, by = (notation(each).removeprefix("@") for each in call["children"])
    by = by.removeprefix("&")
    if call.get("then") == by or by == "@":
        return None
    if calls > 1:
        return f"{call['value']}() gives the first of several with this value, in {calls} arrays"
    view = f"{rows}[?{by}=={constant(value)}]"
    way = f": {view}" if "of_whole" in call and "…" not in view else ""
    return f"{others} more element{'s have' if others > 1 else ' has'} this value{way}"


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
    if real == "boolean" and not fits:
        return f": write {what} or !{what} alone"
    if not fits or not isinstance(literal, str):
        return ""
    return f": write `{literal if real == 'boolean' else encode(number(literal)).decode()}`"


def function_faults(record: NodeKinds) -> Iterator[tuple[bool, str]]:
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
        together = f" and {notation(part)} {with_article(pair[1])}" * both
        text = (
            f"{subject} is {with_article(pair[0])}{together}{share(count, record.counts.total())}"
        )
        if both:
            yield sure, text
        elif pair[0] == "text":
            yield sure, text + _advice(subject, "text", literal, {})
        elif sure:
            yield True, f"{text}, and {name}() takes {' or '.join(f'{each}s' for each in fits)}"
        else:
            yield False, f"{text}, which do{'es' * (count == 1)} not match"
    elif len(there) == 1 and len(inside := {*map(kind_of_type, record.inside)}) == 1:
        [(_, sought)], real = there, inside.pop()
        if real != sought:
            first = next(iter(record.samples.get("array") or [None]))
            advice = _advice(f"{subject}[]", real, literal, {"object": first})
            advice = (
                advice
                if literal is not None
                else f", and {notation(part)} is {with_article(sought)}"
            )
            yield True, f"the elements of {subject} are {real}s{advice}"


def subject_at(node: Node) -> int:
    """Return which operand of a comparison is its subject: the first that is no literal."""
    first, second = node["children"]
    return 1 if first["type"] == "literal" and second["type"] != "literal" else 0


def subject_of(node: Node) -> str:
    """Return the notation of the subject of a comparison."""
    return notation(node["children"][subject_at(node)])


def _names(value: Any) -> str:
    names = [*map(listed, value)] if isinstance(value, dict) else []
    return ", ".join(names[:_NAMES]) + ", …" * (len(names) > _NAMES) or "none"
