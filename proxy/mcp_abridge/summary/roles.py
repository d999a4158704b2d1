"""Roles of columns, by their names and values; those first for which one reads a list.

A column names the row, keys it (what a next call takes), tells its state, its value or its time;
the rest is appendix: hashes, links, what is equal or null everywhere. The words are those of many
services; without one of them, the values decide: what differs in its words, whatever its digits,
is short, filled and near the row. The best by its values is a second name, and stands beside the
first if that has but a word for itself: with half of the words, 7 of 112 lists come without their
name, 17 without these rules. Rows that no name tells apart have the beginning of their hash.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import inf
from operator import attrgetter
from types import MappingProxyType

from mcp_abridge.summary import forms, words
from mcp_abridge.summary.all_rows import Names
from mcp_abridge.summary.columns import EACH, Column, Pair

NAME, KEY, STATE, VALUE, TIME, PERSON = "name", "key", "state", "value", "time", "person"
HASH, OWN_ID, LONG_KEY, BARE = "hash", "own_id", "long_key", "bare"
REST, APPENDIX = "rest", "appendix"


_EMPTY = b'""'
_ENTRY = ("key", "value")  # of a map: the key names it
_STATE = 30  # bytes of a value that tells a state
_KEY = 42  # bytes of a key
_SHORT = 80  # bytes of a second name
_BEGINNING = 40  # bytes of a name that are shown in a list, about
_READ = 300  # bytes of a text that is rather read than looked at
_LONG = 60  # bytes that a name has more, for which it is worth 1 less
_LESS = 0.05  # a name that ends with a word is worth less than the word
_NUMERAL = 14  # bytes of a number that is written as a text, at most
_LENGTHS = 2  # different lengths that such numbers have
_NAMED = 2  # worth of what is probably a name, at least
_REPEATED = 0.5  # of the values that are different, of a name that does not tell rows apart
_BETTER = 1  # worth by its values that a second name has more: then the first one is in doubt
_NEAR = 0.5  # worth by its values that a second name has less, at most
_APART = 2  # columns that are chosen only to tell rows apart


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
    things = _things(columns)
    equal: dict[tuple[bytes | None, ...], list[Column]] = {}
    useless = list[Column]()
    for column in sorted(columns, key=lambda each: len(each.path)):
        cells = tuple(column.cells)
        if cells in equal or len({*cells}) == 1 or 5 * len(column.values) < len(cells):
            column.role = APPENDIX
            useless.append(column)
        equal.setdefault(cells, []).append(column)
    firsts = [each for each in equal.values() if each[0] not in useless]
    compounds = words.compounds({column.names[-1] for column in columns if column.names})
    useful = [_Facts(each, sought, things, others, compounds, array) for each, *others in firsts]
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


def _things(columns: Sequence[Column]) -> set[Names]:
    """Return the places of objects with an id of their own in a row that has one: other things."""
    paths = [column.names for column in columns]
    owners = {path[:-1] for path in paths if path and path[-1].lower() in words.IDS}
    return {each for each in owners if any(each[:end] in owners for end in range(len(each)))}


class _Facts:
    """The meaning of the names and values of a column, and its worth in each role (-9: in none).

    All of it is read at once, since nearly all of it is compared.
    """

    def __init__(
        self,
        column: Column,
        sought: Collection[str] = (),
        things: Collection[Names] = (),
        equal: Sequence[Column] = (),
        compounds: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
        array: str = "",
    ) -> None:
        self.column, self.values = column, column.values
        names = column.names or ("",)
        keys = [step.key for step in column.path if isinstance(step, Pair)]
        self.names = (*names[:-1], *keys) if keys else names  # a value is called by its key
        self.words = compounds.get(self.names[-1]) or words.split(self.names[-1])
        self.own = len(column.path) == 1 and words.is_id_of(self.words, array)
        self._lowered = [name.lower() for name in self.names]
        self._last = self._lowered[-1].lstrip("@_$")
        self._each = column.path.count(EACH)
        self.kinds = len({*self.values})
        self.distinct = self.kinds / max(len(self.values), 1)
        self.filled = len(self.values) / len(column.cells)
        self.numeric = all(map(forms.NUMBER.fullmatch, self.values))
        timely = self.numeric and not words.TIMES.keys().isdisjoint(self.words[-1:])
        self.clock = timely or (not self.numeric and self._mostly(forms.CLOCK))
        self.link = not self.numeric and self._mostly(forms.LINK)
        self.opaque = not self.link and self._mostly(forms.OPAQUE)
        # A path that leads through arrays and things with names of their own costs.
        others = sum(
            not words.OTHERS.keys().isdisjoint(words.split(name)[-1:]) for name in names[:-1]
        )
        indexes = sum(isinstance(step, int) for step in column.path)
        self._away = 0.3 * (len(self.names) + indexes) + 3 * others + self._each
        inner = (names[:end] for end in range(1, len(names)))
        self._inside = sum(
            each in things and each[-1].lower() not in words.OTHERS for each in inner
        )
        self._prose = not words.PROSE.keys().isdisjoint(self._lowered[0 if indexes else -1 :])
        # The text of a field may lie in an array: of rich text, and then it has no name.
        self._of_element = indexes > 0 and self._lowered[-1] not in words.TEXTS
        self.bare = -9.0  # worth as a name, but for the words of its own name
        self.in_words = 0  # values that differ in their words, numbers aside
        self.name = self._worth_as_name(sought)
        if equal:  # which stand for it: an id that is the name, too
            same = (_Facts(each, sought, things).name for each in equal)
            self.name = max(self.name, *same)
        self.key = self._worth_as_key()
        self.state = self._worth_as_state()
        self.value = self._worth_as_value()
        self.time = 1 + self.filled - self._away if self.clock else -9
        self.person = self._worth_as_person()

    def _mostly(self, pattern: re.Pattern[bytes]) -> bool:
        half = len(self.values) // 2
        if not any(map(pattern.match, self.values[: half + 1])):  # which often says it of all
            return False
        return 2 * len([*filter(None, map(pattern.match, self.values))]) > len(self.values)

    def word(self, worth: dict[str, float]) -> float:
        """The worth of the last name or its last word, and a little for the names before."""
        best = worth.get(self._last, 0)
        own = self.words
        if self._last in words.HOLDERS and len(self._lowered) > 1:
            best = max(best, worth.get(self._lowered[-2], 0))
            own = words.split(self.names[-2])
        if own:
            part = 1.5 * (not words.PARTS.isdisjoint(own[-2:-1]))
            best = max(best, worth.get(own[-1], 0) - _LESS - part)
        for name in self._lowered[:-1]:
            if name in worth and name not in words.OTHERS:
                best = max(best, 0.8 * worth[name])
        return best

    def says(self, other: "_Facts") -> bool:
        """Return True if a name says in words what another one does, such as an id made of it."""
        pairs = [*zip(self.column.cells, other.column.cells, strict=True)]
        alike = sum(a is not None and b is not None and a[1:-1] in b for a, b in pairs)
        return 2 * alike > len(pairs) and other.in_words <= self.in_words

    def _matches(self, sought: Collection[str]) -> bool:
        """Return True if a word that the call looks for stands in a text of the column."""
        if not sought:
            return False
        texts = b"\n".join(self.values).decode("utf-8", "replace").lower()
        return any(word in texts for word in sought)

    def _worth_as_name(self, sought: Collection[str]) -> float:
        textual = self._each or self.column.textual
        if not textual or self.clock or self.numeric:
            return -9
        telling = [value[:_BEGINNING] for value in self.values if value != _EMPTY]
        text, count = b"\n".join(telling), max(len(self.values), 1)
        self.in_words = len({*forms.DIGITS.sub(b"", text).split(b"\n")})
        word = self.word(words.NAMES)
        score = len({*telling}) / count + 2 * self.in_words / count + (b" " in text)
        score += 2 * len(telling) / len(self.column.cells) + word - self._away
        score -= 2 * (self._each > 0 and not word)  # of its parts, which have names of their own
        score -= min(max(self.column.size - _BEGINNING, 0) / _LONG, 2)
        one = self.column.size <= _READ and b" " not in self.values[0]  # word
        hashes = self.opaque or (one and self._mostly(forms.WITH_HASH))
        score -= 3 * self.link + 2 * hashes + 3 * self.opaque + (self.distinct < 0.3)
        score -= 2 * self._prose
        score -= (3 + 2 * self._of_element) * self._inside + self._mostly(forms.NO_LETTERS)
        self.bare = score - word
        return score + (6 if self._matches(sought) else 0)

    def _worth_as_key(self) -> float:
        distinct = self.distinct == 1 or (self.own and self.distinct >= _REPEATED)
        plain = distinct and self.filled == 1 and self.column.size <= _KEY
        if not plain or self.clock or self.link or self._each:
            return -9
        word = self.word(words.KEYS)
        if not word:
            return -9
        word -= self._away + len(self.names) + self.column.size / 10
        return word + 2 * self.own - 4 * self.opaque

    @property
    def own_id(self) -> float:
        """Of an id that says of what it is: by its name, or at its beginning; long ones below 0."""
        kind = self.column.size <= _KEY and all(map(forms.WITH_KIND.match, self.values))
        return max(self.key if self.own else -9, self.hash / 10 - 1 if kind else -9)

    @property
    def hash(self) -> float:
        """Of the row's own: it tells rows apart that have no name, by its beginning."""
        alone = self.distinct == self.filled == 1 == len(self.column.path)
        own = alone and self.opaque and self.column.textual
        return self.word(words.KEYS) + 1 / (1 + self.column.position) if own else -9

    @property
    def long_key(self) -> float:
        """Of a link, if it is the row's own: a list of pages has no other key."""
        own = self.link and self.distinct == 1 and self.filled == 1 and len(self.column.path) == 1
        return 1 - self.column.size / 1000 if own else self.key

    def _worth_as_state(self) -> float:
        several = 0 < self.distinct <= 0.6 and self.kinds <= 20
        if not several or self.clock or self.link or self.opaque or self.column.size > _STATE:
            return -9
        word = self.word(words.STATES)
        if not word and (self.numeric or self._mostly(forms.NO_LETTERS)):
            return -9
        word -= 2 * (self.words[-1:] == ("id",))  # which the name beside it tells
        plain = self.column.textual or word
        return word + (1 if plain else 0.5) + self.filled - 0.7 * self._away

    def _worth_as_value(self) -> float:
        if not self.numeric or self.clock or not words.NO_QUANTITIES.isdisjoint(self.words[-1:]):
            return -9
        word = self.word(words.VALUES)
        if self.column.textual and not word and not self._measured():
            return -9  # digits of an id
        return word + 1 + self.filled - 0.7 * self._away

    def _measured(self) -> bool:
        """Return True of numbers as texts that are no ids: of several lengths, or with parts."""
        lengths = {*map(len, self.values)}
        padded = any(value[1:2] == b"0" and value[2:3] not in b'".' for value in self.values)
        parts = any(b"." in value for value in self.values)
        return (
            not padded
            and max(lengths, default=0) <= _NUMERAL
            and (parts or len(lengths) >= _LENGTHS)
        )

    def _worth_as_person(self) -> float:
        *above, last = self._lowered
        worth = max(words.PEOPLE.get(name, 0) for name in (above or [last]))
        textual = self._each or self.column.textual
        if not worth or not textual or self.link or self.opaque or self.clock:
            return -9
        own = self.word(words.NAMES) if above else 3
        if own < 3:
            return -9
        return worth + own / 2 + self.filled - 0.3 * len(above)

    @property
    def appendix(self) -> bool:
        """True of hashes, links, ids of other things, flags of parts: they say nothing alone."""
        flags = self._each > 0 and self._mostly(forms.FLAG)
        return self.opaque or self.link or flags or (self.words[-1:] == ("id",) and not self.own)

    @property
    def rest(self) -> tuple[float, ...]:
        worth = max(self.name, self.state, self.value, self.time, 0)
        return (self.appendix, self.column.size > _READ, -worth, self.column.size)


def _order(facts: list[_Facts]) -> Iterator[Column]:
    """Yield columns: a name, a state or value, a key, what tells rows apart, a time, the rest."""
    waiting = list(facts)

    def take(role: str, least: float = -8, longest: float = inf) -> Iterator[_Facts]:
        fit = (each for each in waiting if getattr(each, role) > least)
        free = (each for each in fit if each.column.size <= longest)
        if role in (NAME, BARE) and choice:  # a second name is no id of another thing
            free = (each for each in free if each.word(words.NAMES) or not each.appendix)
            free = (each for each in free if not choice[0].says(each))
        best = max(free, key=attrgetter(role), default=None)
        if best is not None:
            waiting.remove(best)
            best.column.role = {BARE: NAME, OWN_ID: KEY}.get(role, role)
            yield best

    choice: list[_Facts] = []
    choice += take(NAME, 0)
    bare = choice[0].bare if choice else -9
    choice += take(BARE, max(bare + _BETTER, _NAMED), _SHORT)
    doubt = len(choice) > 1
    if all(each.name < _NAMED or each.distinct < _REPEATED for each in choice):
        for each in choice:
            each.column.role = STATE if each.state > each.name else NAME
        choice += [*take(OWN_ID)] or take(HASH)
    elif choice and choice[0].distinct < 1:
        choice += take(OWN_ID, 0)
    for role in (KEY, TIME):
        choice += () if choice else take(role)
    state = max((each.state for each in waiting), default=-9)
    value = max((each.value for each in waiting), default=-9)
    first, second = (STATE, VALUE) if state >= value else (VALUE, STATE)
    choice += take(first)
    choice += () if doubt else take(BARE, max(bare - _NEAR, _NAMED), _SHORT)
    choice += take(KEY, 0)  # a short one
    for _ in range(_APART):
        choice += _telling_apart(choice, waiting)
    choice += take(NAME, 5, _SHORT)
    choice += take(second)
    choice += take(PERSON, 0, _SHORT)
    choice += take(TIME)
    choice += take(NAME, 3, _SHORT)
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
    telling = (
        *map(facts.word, (words.NAMES, words.STATES, words.VALUES, words.KEYS)),
        not words.TIMES.keys().isdisjoint(facts.words),
    )
    return any(telling)


def is_quantity(column: Column) -> bool:
    """Return True if the greatest value of a column means something: no id, no clock, no null."""
    numeric = column.values and forms.NUMBER.fullmatch(column.values[0])  # as all have to be
    return bool(numeric) and not words.is_place(_number_name(column)) and _Facts(column).value > -9


def is_amount(column: Column) -> bool:
    """Return True if the values of a column can be added up: sizes, durations, but no prices."""
    own = words.split(_number_name(column))
    own = own[:-1] if len(own) > 1 and own[-1] in words.UNITS else own
    amounts = column.plain and own[-1:] and own[-1] in words.AMOUNTS
    return bool(amounts) and words.RATES.isdisjoint(own) and is_quantity(column)


def _number_name(column: Column) -> str:
    """Return the name of a number, which may be that of an object around it, without its unit."""
    *above, last = column.names
    return (above[-1] if above and last in words.TYPED else last).partition("(")[0]


def in_order_of_time(column: Column) -> bool:
    """Return True if the column holds times in their order, as in a log or a time series."""
    if not _Facts(column).clock:
        return False
    values = [(len(value), value) if value[:1] != b'"' else (0, value) for value in column.values]
    return len(set(values)) > 1 and values in (sorted(values), sorted(values, reverse=True))
