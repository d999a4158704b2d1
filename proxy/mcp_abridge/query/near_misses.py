"""Sentences on what a test leaves out that is there in another spelling, or as null.

Without it, `[?state=='Open']` reads as "none" if the state is `open`, or as all there are.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from mcp_abridge.errors import nearest
from mcp_abridge.query.kind_words import (
    EQUALITIES,
    HOLDS,
    NodeKinds,
    subject_at,
    subject_of,
)
from mcp_abridge.query.letters import differ_in_spelling, forms_of, without_forms
from mcp_abridge.query.notation import constant, notation, share
from mcp_abridge.query.numerals import number
from mcp_abridge.query.patterns import Pattern

_NULLS = ("", "null", "None", "nil", "undefined", "NULL")  # texts that are meant as null
_STATES = 50  # different values, if they are words for states
_LISTED = 8  # of these, if all are told
_EACH = 4  # elements with each of them, on average
_SEARCHED = 200  # characters of a text that is searched for a pattern in another case
_NO_WORD = re.compile(r"\d|^.{0,5}\Z")  # of which a similar one is another
_FEWEST = 3  # letters of a text that is no part of another one by chance
_EMPTY = {"''": ("text", "''"), "[]": ("array", "`[]`"), "{}": ("object", "`{}`")}
_AT_ENDS = ("ends_with", "starts_with")


def unmatched(records: Sequence[NodeKinds]) -> Iterator[str]:
    """Yield sentences on what tests leave out that is there in another spelling, or as null."""
    sought = {(subject_of(each.node), repr(_literal(each))) for each in records}
    for record in records:
        name, (first, second) = record.node["value"], record.node["children"]
        what = subject_of(record.node)
        if name == "contains" and first["type"] == "multi_select_list":
            literals = [each.get("value") for each in first["children"]]
            for literal in {*literals}.difference(record.values):
                others = [*{*record.values}.difference(literals)]
                yield from _near(notation(second), literal, others, 0)
        elif second["type"] == "literal" and subject_at(record.node) == 0:
            there = record.spelling and (what, repr(record.spelling[0]))
            if not (record.matched and there in sought):
                yield from _otherwise(record)
        if name in EQUALITIES:
            nulls = None if (what, "None") in sought else meant_as_null(record)
            yield from filter(None, (nulls, meant_as_empty(record, sought)))


def _literal(record: NodeKinds) -> Any:
    return record.node["children"][1 - subject_at(record.node)].get("value", ...)


def _otherwise(record: NodeKinds) -> Iterator[str]:
    """Yield how a text is there that a test seeks: in another spelling, inside, or not at all."""
    name, parts = record.node["value"], record.node["children"]
    what, literal = notation(parts[0]), parts[1]["value"]
    if record.spelling is not None:
        yield from filter(None, (other_spelling(record),))
    elif record.matched:
        return
    elif name == "matches":
        yield from _in_another_case(what, literal, record.values)
    elif name in _AT_ENDS:
        yield from _inside(what, literal, record.values)
    elif name in EQUALITIES:
        texts = sum(count for pair, count in record.kinds().items() if pair[0] == pair[1])
        near = [*_near(what, literal, [*record.values], texts)]
        if isinstance(literal, str) and len(literal) >= _FEWEST:
            near = near or [*_inside(what, literal, record.values)]
        yield from near


def other_spelling(record: NodeKinds) -> str | None:
    """Return how a value is there that no element equals: in another spelling, or as null."""
    node, of = record.node, subject_at(record.node)
    other = node["children"][1 - of]
    if other["type"] != "literal":
        return None
    if record.part is not None:
        what, part = subject_of(node), constant(other["value"])
        way = f"{what}[?contains(@, {part})]"
        return f"contains() looks for a whole element of {what}; for a part of one write {way}"
    if empty := meant_as_empty(record):
        return empty
    if record.spelling is not None:
        there, literal = record.spelling[of], record.spelling[1 - of]
        what, sought = subject_of(node), constant(literal)
        holds = HOLDS.get(node["value"], str.__eq__)
        texts = [each for each in there if type(each) is str] if type(there) is list else [there]
        if not any(holds(each.lower(), literal.lower()) for each in texts):
            exact = next(
                (f for f in forms_of(literal, texts) if any(holds(t, f) for t in texts)), ""
            )
            advice = f": write `{json.dumps(exact)}`" if exact and "`" not in exact else ""
            sought_form = without_forms(literal)
            forms = any(holds(without_forms(each), sought_form) for each in texts)
            differing = "forms of its letters or blanks" if forms else "accents"
            return f"{what}: {sought} is there with other {differing}{advice}"
        if node["value"] in HOLDS:
            return f"{what}: {sought} is there in another case{', too' * record.matched}"
        return f"{what}: {constant(there)} differs from {sought} by case alone"
    return None if node["value"] in HOLDS else meant_as_null(record)


def meant_as_null(record: NodeKinds) -> str | None:
    """Return that values are null which are compared with a text such as '' or 'None'."""
    pairs, of = record.kinds(), subject_at(record.node)
    other = record.node["children"][1 - of]
    nulls = sum(count for pair, count in pairs.items() if pair[of] == "null")
    if nulls and other["type"] == "literal" and other["value"] in _NULLS:
        return f"{subject_of(record.node)} is null{share(nulls, pairs.total())}: write `null`"
    return None


def meant_as_empty(
    record: NodeKinds, sought: Collection[tuple[str, str]] = frozenset()
) -> str | None:
    """Return that values are empty which are compared with null; `sought` are other tests."""
    other, what = record.node["children"][1 - subject_at(record.node)], subject_of(record.node)
    value, count = next(iter(record.empty.most_common(1)), ("", 0))
    null = other["type"] == "literal" and other["value"] is None
    if not (null and count) or (what, value) in sought:
        return None
    word, literal = _EMPTY[value]
    places = share(count, record.counts.total())
    return f"{what} is an empty {word}{places}: write {literal}"


def _near(what: str, literal: Any, values: list[Any], count: int) -> Iterator[str]:
    """Yield that a text is there in a similar spelling, or what is, if the values are states."""
    texts = [each for each in values if isinstance(each, str)]
    if not isinstance(literal, str):
        return
    near = next((each for each in texts if differ_in_spelling(each, literal)), None)
    if near is None and any(map(str.isdigit, literal)):
        sought = _without_zeros(literal)
        near = next((each for each in texts if _without_zeros(each) == sought), None)
    if near is None and len(values) > _STATES:
        return
    reason = f"{what}: {constant(literal)} has no match here"
    if near or (not _NO_WORD.search(literal) and (near := nearest(literal, texts))):
        yield f"{reason}; did you mean {constant(near)}?"
    elif 0 < len(values) <= _LISTED and len(values) * _EACH <= count:
        yield f"{reason}, only {', '.join(map(constant, values))}"


def _without_zeros(text: str) -> Any:
    """Return the number that a text is, else the text without the zeros that begin a number."""
    value = number(text)
    return re.sub(r"(?<!\d)0+(?=\d)", "", text) if value is None else value


def _inside(what: str, literal: Any, values: Iterable[Any]) -> Iterator[str]:
    """Yield that a text is inside of one that is there, and neither all of it nor at its end."""
    texts = (each for each in values if isinstance(each, str) and isinstance(literal, str))
    whole = next((each for each in texts if literal in each), None)
    if whole is not None:
        part = constant(literal)
        yield f"{what}: {part} is inside, as in {constant(whole)}: write contains({what}, {part})"


def _in_another_case(what: str, pattern: Any, values: Iterable[Any]) -> Iterator[str]:
    texts = [each for each in values if isinstance(each, str) and len(each) <= _SEARCHED]
    if not isinstance(pattern, str) or pattern.startswith("(?"):
        return
    matched = {*filter(Pattern(pattern).search, texts)}
    if any(map(Pattern(f"(?i){pattern}").search, {*texts} - matched)):
        way = f"{', too' * bool(matched)}: write {constant(f'(?i){pattern}')}"
        yield f"{what}: {constant(pattern)} is there in another case{way}"
