"""Roles of columns, by their names and values; those first for which one reads a list.

A column names the row, keys it (what a next call takes), tells its state, its value or its time;
the rest is appendix: hashes, links, what is equal or null everywhere. The words are those of many
services; without one of them, the values decide: what differs in its words, whatever its digits,
is short, filled and near the row. The best by its values is a second name, and stands beside the
first if that has but a word for itself: with half of the words, 7 of 112 lists come without their
name, 17 without these rules. Rows that no name tells apart have the beginning of their hash.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from math import inf
from operator import attrgetter

from msgspec import Raw

from mcp_abridge.document.tree import text
from mcp_abridge.query.numerals import is_missing
from mcp_abridge.summary import forms, words
from mcp_abridge.summary.all_rows import Names
from mcp_abridge.summary.columns import EACH, Column, elements_of
from mcp_abridge.summary.worth import REPEATED, Worth

NAME, KEY, STATE, VALUE, TIME, PERSON = "name", "key", "state", "value", "time", "person"
HASH, OWN_ID, LONG_KEY, BARE, SECOND = "hash", "own_id", "long_key", "bare", "second"
TITLE, SCHEDULE, EVENT = "title", "schedule", "event"
REST, APPENDIX = "rest", "appendix"
_SHOWN_AS = {BARE: NAME, SECOND: NAME, TITLE: NAME, OWN_ID: KEY, SCHEDULE: TIME, EVENT: TIME}


_ENTRY = ("key", "value")  # of a map: the key names it
_SHORT = 80  # bytes of a second name
_NAMED = 2  # worth of what is probably a name, at least
_BETTER = 1  # worth by its values that a second name has more: then the first one is in doubt
_NEAR = 0.5  # worth by its values that a second name has less, at most
_OF_CODES = (("code",), ("name",), ("symbol",))  # the end of `currencyCode`
_PARTIES = 2  # things of one kind that name a row together
_TITLE = 6  # worth of a second name by its words, with which the values are not asked


def in_order(
    columns: Sequence[Column],
    sought: Collection[str] = (),
    *,
    ordered: bool = False,
    array: str = "",
) -> list[Column]:
    """Return the columns in the order in which they are chosen, each with its role and rank.

    `sought` are words that the call looks for. `ordered`: a rule has put the members in order.
    `array` is the name of the rows, whose ids are called by it: `VulnerabilityID`.
    """
    if not columns:  # of an array of numbers or texts
        return []
    things = _things(columns)
    equal: dict[tuple[bytes | None, ...], list[Column]] = {}
    useless = list[Column]()
    alike = Counter(each.path[1:] for each in columns if len(each.path) > 1)
    for column in sorted(columns, key=lambda each: len(each.path)):
        cells, few = tuple(column.cells), 5 * len(column.values) < len(column.cells)
        few = few and alike[column.path[1:]] < 2  # of each type of row its own: `to_do.text`
        bare = len({*cells}) == 1 or few or _is_of_each(column, columns)
        if cells in equal or bare:
            column.role = APPENDIX
            useless.append(column)
        equal.setdefault(cells, []).append(column)
    firsts = [each for each in equal.values() if each[0] not in useless]
    heads = Counter(column.path[:1] for column in columns)
    around = {head for head, count in heads.items() if 2 * count > len(columns)}
    parties = _parties(columns)
    useful = [
        Worth(each, things, array, around, party=each in parties).in_all(sought, others)
        for each, *others in firsts
    ]
    useful.sort(key=lambda each: each.column.position)
    useless.sort(key=lambda each: each.position)
    order = [*_order(useful), *useless]
    keys = [each for each in columns if each.names == _ENTRY[:1]]
    if keys and {each.names[:1] for each in columns if each not in keys} == {_ENTRY[1:]}:
        keys[0].role = NAME
        order = [*keys, *order]
    if ordered:
        head = sorted(columns, key=lambda column: column.position)
        order = [*head[:1], *order[:1], *head]
        for each in useful:  # a hash that a rule keeps is wanted
            each.column.role = each.column.role.replace(APPENDIX, REST)
    order = list({column.path: column for column in order}.values())
    for rank, column in enumerate(order):
        column.rank = rank
    return order


def _is_of_each(column: Column, columns: Sequence[Column]) -> bool:
    """Return True of what is the same in each thing: `assignee.type`, beside names that differ.

    It says only whether a row has such a thing, or how many.
    """
    if len(column.path) < 2 or len(_kinds(column)) > 1:
        return False
    absent = [cell is None for cell in column.cells]
    beside = (each for each in columns if each.path[:-1] == column.path[:-1])
    several = (each for each in beside if len(_kinds(each)) > 1)
    return any([cell is None for cell in each.cells] == absent for each in several)


def _kinds(column: Column) -> set[bytes]:
    if EACH not in column.path:
        return {*column.values}
    return {part for cell in column.values for part in map(bytes, elements_of(Raw(cell)))}


def _parties(columns: Sequence[Column]) -> list[Column]:
    """Return the columns of two things of one kind, as of `homeTeam` and `awayTeam`."""
    inside = [each for each in columns if each.plain and len(each.path) > 1]
    of_one = [e for e in inside if not words.PARTIES.isdisjoint(words.split(e.names[0]))]
    ends = Counter(each.path[1:] for each in of_one)
    return [each for each in of_one if ends[each.path[1:]] == _PARTIES]


def _things(columns: Sequence[Column]) -> set[Names]:
    """Return the places of objects with an id of their own in a row that has one: other things."""
    paths = [column.names for column in columns]
    owners = {path[:-1] for path in paths if path and path[-1].lower() in words.IDS}
    return {each for each in owners if any(each[:end] in owners for end in range(len(each)))}


def _order(facts: list[Worth]) -> Iterator[Column]:
    """Yield columns: a name, a state or value, a key, a time, the rest."""
    waiting, has_id = list(facts), any(each.column.path == ("id",) for each in facts)

    def take(role: str, least: float = -8, longest: float = inf) -> Iterator[Worth]:
        fit = (each for each in waiting if getattr(each, role) > least)
        free = (each for each in fit if each.column.size <= longest)
        if _SHOWN_AS.get(role, role) == NAME and choice:  # a second name: no id of another thing
            free = (each for each in free if each.word(words.NAMES) or not each.appendix)
            free = (each for each in free if not choice[0].says(each))
            free = (each for each in free if not (each.party and choice[0].party))
        if role == KEY and has_id:  # an id of another thing is none of a row with its own
            free = (each for each in free if not each.of_another)
        best = max(free, key=attrgetter(role), default=None)
        if best is not None:
            waiting.remove(best)
            best.column.role = _SHOWN_AS.get(role, role)
            yield best

    choice: list[Worth] = []
    choice += take(NAME, 0)
    others = [each for each in waiting if any(map(each.stands_for, choice))]
    bare = choice[0].bare if choice else -9
    choice += take(BARE, max(bare + _BETTER, _NAMED), _SHORT)
    doubt = len(choice) > 1
    if all(each.name < _NAMED or each.distinct * each.filled < REPEATED for each in choice):
        for each in choice:
            each.column.role = STATE if each.state > each.name else NAME
        choice += [*take(OWN_ID)] or take(HASH)
    for each in others:  # the rows of other types have their names there
        if each in waiting and each.name > 0:
            waiting.remove(each)
            each.column.role = NAME
            choice.append(each)
    for role in (KEY, TIME):
        choice += () if choice else take(role)
    state = max((each.state for each in waiting), default=-9)
    value = max((each.value for each in waiting), default=-9)
    first, second = (STATE, VALUE) if state >= value else (VALUE, STATE)
    if first == VALUE and value < _NAMED:  # who and when say more than a number of no known kind
        choice += take(PERSON, 0, _SHORT)
        choice += take(EVENT, 0)
    choice += take(first, -1)
    choice += take(SCHEDULE, 0)
    if not doubt:
        choice += [*take(TITLE, _TITLE, _SHORT)] or take(BARE, max(bare - _NEAR, _NAMED), _SHORT)
    choice += take(KEY, 0)  # a short one
    choice += take(SECOND, 5, _SHORT)
    choice += take(EVENT, 0)
    choice += take(second)
    choice += take(PERSON, 0, _SHORT)
    choice += take(TIME)
    if not any(each.column.role in (KEY, HASH) for each in choice):
        choice += take(LONG_KEY)
    choice += take(NAME, 3, _SHORT)
    choice += take(STATE, 1)
    choice += take(VALUE, 2)
    for each in sorted(waiting, key=lambda each: each.rest):
        roles = (NAME, STATE, VALUE, TIME)
        each.column.role = max(roles, key=lambda role: getattr(each, role))
        if each.state > 0 and each.distinct < REPEATED:
            each.column.role = STATE
        if getattr(each, each.column.role) <= 0 or each.appendix:
            each.column.role = APPENDIX if each.appendix else REST
        choice.append(each)
    return (each.column for each in choice)


def names_rows(column: Column) -> bool:
    """Return True of a name of the row itself, or a key that a person reads: an order's number."""
    printed = not words.PRINTED.isdisjoint(words.split(column.names[-1])[-1:])
    return column.plain and (column.role == NAME or (column.role == KEY and printed))


def _worth(column: Column) -> Worth:
    """Return the worth of a column by itself, which those around it do not change."""
    return column.worth or Worth(column)


def is_link(column: Column) -> bool:
    """Return True if a column holds addresses of the web."""
    return _worth(column).link


def is_known(column: Column) -> bool:
    """Return True if the name of a column says what it is for."""
    facts = _worth(column)
    telling = (
        *map(facts.word, (words.NAMES, words.STATES, words.VALUES, words.KEYS)),
        not words.TIMES.isdisjoint(facts.words),
    )
    return any(telling)


def is_quantity(column: Column) -> bool:
    """Return True if the greatest value of a column means something: no id, no clock, no null."""
    if not column.values or forms.NUMBER.fullmatch(column.values[0]) is None:  # as all have to be
        return False
    if len({*column.values}) < 2 or words.is_place(_number_name(column)):
        return False
    return _worth(column).worth_as_value() > -9


def is_unit(column: Column) -> bool:
    """Return True if a column tells what an amount in its row is counted in: a currency."""
    own = words.split(column.names[-1]) if column.names else ()
    own = own[:-1] if own[-1:] in _OF_CODES else own
    return column.textual and not words.MEASURES.isdisjoint(own[-1:])


def is_amount(column: Column) -> bool:
    """Return True if the values of a column can be added up: sizes, durations, but no prices."""
    own = _words_of_amount(column)
    amounts = own[-1:] and (own[-1] in words.AMOUNTS or words.counts_things(own))
    return bool(amounts) and column.plain and words.RATES.isdisjoint(own) and is_quantity(column)


def counts_things(column: Column) -> bool:
    """Return True if an amount is a number of things: of stars, of messages."""
    own = _words_of_amount(column)
    return own[-1:] == ("count",) or words.counts_things(own)


def _words_of_amount(column: Column) -> tuple[str, ...]:
    own = words.split(_number_name(column))
    return own[:-1] if len(own) > 1 and own[-1] in words.UNITS else own


def _number_name(column: Column) -> str:
    """Return the name of a number, which may be that of an object around it, without its unit."""
    *above, last = column.names
    name = (above[-1] if above and last in words.TYPED else last).partition("(")[0]
    return name.rpartition(".")[2]  # "System.Priority" is called by its last part


def in_order_of_time(column: Column) -> bool:
    """Return True if the column holds times in their order, as in a log or a time series."""
    if any(map(forms.BY_DAY.match, column.values)) or not _worth(column).clock:
        return False
    values = [(len(value), value) if value[:1] != b'"' else (0, value) for value in column.values]
    pairs = [*pairwise(values)] if len({*values}) > 1 else []
    return bool(pairs) and (all(a <= b for a, b in pairs) or all(a >= b for a, b in pairs))


def is_out_of_order(times: Column) -> bool:
    """Return True if times that sort as numbers or as texts do not stand in their order."""
    clock = forms.CLOCK.match
    values = {e for e in times.values if clock(e) or not is_missing(text(Raw(e)))}
    numbers = all(value[:1].isdigit() for value in values)
    alike = numbers or all(map(clock, values))
    by_day = any(map(forms.BY_DAY.match, values))
    return alike and not by_day and len(values) > 1 and not in_order_of_time(times)
