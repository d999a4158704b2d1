"""Roles of columns, by their names and values; those first for which one reads a list.

A column names the row, keys it (what a next call takes), tells its state, its value or its time;
the rest is appendix: hashes, links, what is equal or null everywhere. The words are those of many
services; without one of them, the values decide.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from operator import attrgetter

from msgspec import Struct

from mcp_abridge.summary.columns import EACH, Column, Pair, names_of

NAME, KEY, STATE, VALUE, TIME = "name", "key", "state", "value", "time"
LONG_KEY, REST, APPENDIX = "long_key", "rest", "appendix"


def _worth(**words: str) -> dict[str, float]:
    return {word: float(rank[1:]) for rank, listed in words.items() for word in listed.split()}


_NAMES = _worth(
    _5="title subject summary headline alertname filename",
    _4="name path file filepath address displayname function symbol username",
    _3="message text label rule display login entity caption question msg email key plain_text"
    " ruleid identifier",
    _2="description content snippet excerpt",
    _1="url uri body",
)
_STATES = _worth(
    _5="status state phase severity level conclusion health action actions",
    _3="priority type kind category reason result outcome code relation",
)
_VALUES = _worth(
    _4="value total amount count price score cost balance",
    _3="size duration sum avg restarts usage comments line lineno startline line_number",
)
_KEYS = _worth(_5="number key iid identifier", _4="id", _3="code sha hash uid uuid slug ref entity")
_TIMES = _worth(
    _1="time timestamp date at ts created updated modified day start started starts end"
)
_NO_QUANTITIES = {*_TIMES, "id", "column", "col", "index", "page", "pid", "port", "row", "year"}
_PLACES = frozenset(("line", "lineno", "startline", "line_number", "number", "code", "offset"))
_AMOUNTS = _worth(_1="total amount count price cost balance size duration sum usage bytes hours")
_OTHERS = _worth(  # things that have names of their own
    _1="user author owner creator reporter assignee committer actor customer project repo"
    " repository parent team milestone organization links avatar icon context agent host tool"
    " subject"
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_NUMBER = re.compile(rb'"?-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"?')
_CLOCK = re.compile(rb'\[*"\d{4}-\d\d-\d\d(?:[T ][\d:.,+Z-]*)?"')
_LINK = re.compile(rb'\[*"(?:https?|wss?):')
_OPAQUE = re.compile(
    rb'\[*"(?=[^"]*\d)(?:[0-9a-f-]{12,}|[0-9A-F-]{12,}|(?=[^"]*[A-Z])(?=[^"]*[a-z])[A-Za-z0-9+/=_]{20,})"'
)
_STATE = 30  # bytes of a value that tells a state
_KEY = 42  # bytes of a key
_SHORT = 80  # bytes of a second name
_LONG = 300  # bytes of a text that is rather read than looked at
_LESS = 0.05  # a name that ends with a word is worth less than the word
_APART = 2  # columns that are chosen only to tell rows apart


def in_order(
    columns: Sequence[Column], sought: Collection[str] = (), *, ordered: bool = False
) -> list[Column]:
    """Return the columns in the order in which they are chosen, each with its role and rank.

    `sought` are words that the call looks for. `ordered`: a rule has put the members in order.
    """
    earlier: set[tuple[bytes | None, ...]] = set()
    useful, useless = list[_Facts](), list[Column]()
    for column in sorted(columns, key=lambda each: len(each.path)):
        cells = tuple(column.cells)
        if cells in earlier or len({*cells}) == 1 or 5 * len(column.values) < len(cells):
            column.role = APPENDIX
            useless.append(column)
        else:
            useful.append(_Facts(column, sought))
        earlier.add(cells)
    useful.sort(key=lambda each: each.column.position)
    useless.sort(key=lambda each: each.position)
    order = [*_order(useful), *useless]
    if ordered:
        head = sorted(columns, key=lambda column: column.position)
        order = [*head[:1], *order[:1], *head]
        for each in useful:  # a hash that a rule keeps is wanted
            each.column.role = each.column.role.replace(APPENDIX, REST)
    order = list({column.path: column for column in order}.values())
    for rank, column in enumerate(order):
        column.rank = rank
    return order


class _Facts(Struct, dict=True, eq=False):
    column: Column
    sought: Collection[str] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        names = names_of(self.column.path) or ("",)
        keys = [step.key for step in self.column.path if isinstance(step, Pair)]
        return (*names[:-1], *keys) if keys else names  # a value is called by its key

    @cached_property
    def words(self) -> tuple[str, ...]:
        return _words(self.names[-1])

    @cached_property
    def values(self) -> list[bytes]:
        return self.column.values

    @cached_property
    def kinds(self) -> int:
        """The number of different values."""
        return len({*self.values})

    @cached_property
    def distinct(self) -> float:
        """The share of different values among those that are there."""
        return self.kinds / max(len(self.values), 1)

    @cached_property
    def filled(self) -> float:
        return len(self.values) / len(self.column.cells)

    def _mostly(self, pattern: re.Pattern[bytes]) -> bool:
        return 2 * sum(map(bool, map(pattern.match, self.values))) > len(self.values)

    @cached_property
    def numeric(self) -> bool:
        return all(map(_NUMBER.fullmatch, self.values))

    @cached_property
    def clock(self) -> bool:
        timely = not _TIMES.keys().isdisjoint(self.words[-1:]) and self.numeric
        return timely or self._mostly(_CLOCK)

    @cached_property
    def link(self) -> bool:
        return self._mostly(_LINK)

    @cached_property
    def opaque(self) -> bool:
        return self._mostly(_OPAQUE)

    @cached_property
    def matches(self) -> bool:
        """A word that the call looks for stands in a text of the column."""
        if not self.sought:
            return False
        texts = b"\n".join(self.values).decode("utf-8", "replace").lower()
        return any(word in texts for word in self.sought)

    @cached_property
    def lowered(self) -> list[str]:
        return [name.lower() for name in self.names]

    def word(self, worth: dict[str, float]) -> float:
        """The worth of the last name or its last word, and a little for the names before."""
        *above, last = self.lowered
        best = max(worth.get(last.lstrip("@_$"), 0), worth.get("".join(self.words[-1:]), 0) - _LESS)
        return max([best, *(0.8 * worth.get(name, 0) for name in above if name not in _OTHERS)])

    @cached_property
    def _away(self) -> float:
        """The cost of a path that leads through arrays and things with names of their own."""
        others = sum(name in _OTHERS for name in self.lowered[:-1])
        return 0.3 * len(self.names) + 3 * others + self.column.path.count(EACH)

    @cached_property
    def name(self) -> float:
        textual = self.column.textual or EACH in self.column.path
        if not textual or self.clock or self.numeric:
            return -9
        size = self.column.size
        score = 3 * self.distinct + 2 * self.filled + self.word(_NAMES) - self._away
        score += (1 if b" " in b"".join(self.values[:3]) else 0) - (size > _LONG)
        score -= 3 * self.link + 5 * self.opaque + 2 * (self.distinct < 0.3)
        return score + (6 if self.matches else 0)

    @cached_property
    def key(self) -> float:
        plain = self.distinct == 1 and self.filled == 1 and self.column.size <= _KEY
        word = self.word(_KEYS)
        if not plain or not word or self.clock or self.link or EACH in self.column.path:
            return -9
        return word - self._away - len(self.names) - self.column.size / 10 - 4 * self.opaque

    @cached_property
    def long_key(self) -> float:
        """Of a link, if it is the row's own: a list of pages has no other key."""
        own = self.link and self.distinct == 1 and self.filled == 1 and len(self.column.path) == 1
        return 1 - self.column.size / 1000 if own else self.key

    @cached_property
    def state(self) -> float:
        several = 0 < self.distinct <= 0.6 and self.kinds <= 20
        if not several or self.clock or self.link or self.opaque or self.column.size > _STATE:
            return -9
        word = self.word(_STATES)
        if self.numeric and not word:
            return -9
        plain = self.column.textual or word
        return word + (1 if plain else 0.5) + self.filled - 0.7 * self._away

    @cached_property
    def value(self) -> float:
        no_quantity = not _NO_QUANTITIES.isdisjoint(self.words[-1:])
        word = self.word(_VALUES)
        if not self.numeric or self.clock or no_quantity:
            return -9
        if self.column.textual and not word:
            return -9  # digits of an id
        return word + 1 + self.filled - 0.7 * self._away

    @cached_property
    def time(self) -> float:
        return 1 + self.filled - self._away if self.clock else -9

    @property
    def appendix(self) -> bool:
        """True of hashes, links, and the ids of other things: they say nothing by themselves."""
        return self.opaque or self.link or self.words[-1:] == ("id",)

    @cached_property
    def rest(self) -> tuple[float, ...]:
        worth = max(self.name, self.state, self.value, self.time, 0)
        return (self.appendix, self.column.size > _LONG, -worth, self.column.size)


@lru_cache(maxsize=1024)
def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(name))


def _order(facts: list[_Facts]) -> Iterator[Column]:
    """Yield columns: a name, a state or value, a key, what tells rows apart, a time, the rest."""
    waiting = list(facts)

    def take(role: str, least: float = -8, some: list[_Facts] = waiting) -> Iterator[_Facts]:
        free = [each for each in some if each in waiting]
        best = max(free, key=attrgetter(role), default=None)
        if best is not None and getattr(best, role) > least:
            waiting.remove(best)
            best.column.role = role
            yield best

    choice = [*take(NAME, 0)]
    for role in (KEY, TIME):
        choice += () if choice else take(role)
    state = max((each.state for each in waiting), default=-9)
    value = max((each.value for each in waiting), default=-9)
    first, second = (STATE, VALUE) if state >= value else (VALUE, STATE)
    choice += take(first)
    choice += take(KEY, 0)  # a short one
    for _ in range(_APART):
        choice += _telling_apart(choice, waiting)
    short = [each for each in waiting if each.column.size <= _SHORT]
    choice += take(NAME, 5, short)
    choice += take(second)
    choice += take(TIME)
    choice += take(NAME, 3, short)
    if not any(each.column.role == KEY for each in choice):
        choice += take(LONG_KEY)
    choice += take(STATE, 1)
    choice += take(VALUE, 2)
    for each in sorted(waiting, key=lambda each: each.rest):
        roles = (NAME, STATE, VALUE, TIME)
        each.column.role = max(roles, key=lambda role: getattr(each, role))
        if getattr(each, each.column.role) <= 0 or each.appendix:
            each.column.role = APPENDIX if each.appendix else REST
        choice.append(each)
    return (each.column for each in choice)


def _telling_apart(choice: list[_Facts], waiting: list[_Facts]) -> Iterator[_Facts]:
    """Yield the column that tells apart most rows that `choice` does not; none if it does."""

    def count(*others: _Facts) -> int:
        return len(set(zip(*(each.column.cells for each in (*choice, *others)), strict=True)))

    rows = len(choice[0].column.cells) if choice else 0
    now = count() if choice else 0
    short = [each for each in waiting if each.column.size <= _SHORT and not each.opaque]
    if now < rows and short:
        best = max(short, key=lambda each: (count(each), each.name, -each.column.size))
        if count(best) > now:
            waiting.remove(best)
            best.column.role = NAME if best.name > 0 else VALUE if best.numeric else REST
            yield best


def is_link(column: Column) -> bool:
    """Return True if a column holds addresses of the web."""
    return _Facts(column).link


def is_known(column: Column) -> bool:
    """Return True if the name of a column says what it is for."""
    facts = _Facts(column)
    words = (
        *map(facts.word, (_NAMES, _STATES, _VALUES, _KEYS)),
        not _TIMES.keys().isdisjoint(facts.words),
    )
    return any(words)


def is_quantity(column: Column) -> bool:
    """Return True if the greatest value of a column means something: no id, no clock, no null."""
    facts = _Facts(column)
    numbers = column.values and not any(value[0] == 0x22 for value in column.values)
    return bool(numbers) and facts.value > -9 and column.plain and not _is_place(facts)


def is_amount(column: Column) -> bool:
    """Return True if the values of a column can be added up: sizes, prices, durations."""
    facts = _Facts(column)
    return not _AMOUNTS.keys().isdisjoint(facts.words[-1:]) and is_quantity(column)


def _is_place(facts: _Facts) -> bool:
    return facts.names[-1].lower() in _PLACES or not _PLACES.isdisjoint(facts.words[-1:])


def in_order_of_time(column: Column) -> bool:
    """Return True if the column holds times in their order, as in a log or a time series."""
    if not _Facts(column).clock:
        return False
    values = [(len(value), value) if value[:1] != b'"' else (0, value) for value in column.values]
    return len(set(values)) > 1 and values in (sorted(values), sorted(values, reverse=True))


def around(content: str, sought: Iterable[str]) -> int:
    """Return where the first word that the call looks for stands in a text; 0 if nowhere."""
    lowered = content.lower()
    places = [at for word in sought if (at := lowered.find(word)) > 0]
    return min(places, default=0)
