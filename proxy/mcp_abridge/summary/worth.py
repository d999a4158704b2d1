"""The worth of a column in each role, by its names and values.

Without it every column is as good as another, and those that stand first are shown.
"""

import re
from collections.abc import Collection, Sequence

from mcp_abridge.summary import forms, words
from mcp_abridge.summary.all_rows import Names
from mcp_abridge.summary.columns import EACH, Column, ColumnPath, Pair

_EMPTY = b'""'
_STATE = 30  # bytes of a value that tells a state
_STATE_ID = 80  # bytes of an id in words that tells one: of the rule that a finding breaks
_KEY = 42  # bytes of a key
_BEGINNING = 40  # bytes of a name that are shown in a list, about
_READ = 300  # bytes of a text that is rather read than looked at
_LONG = 60  # bytes that a name has more, for which it is worth 1 less
_LESS = 0.05  # a name that ends with a word is worth less than the word
_SHORTEST_HASH = 16  # bytes of a value with a hash in it
_NUMERAL = 14  # bytes of a number that is written as a text, at most
_LENGTHS = 2  # different lengths that such numbers have
_PARTS = 4  # by which the names of the parts of a row are worth less than a second name
REPEATED = 0.5  # of the values that are different, of a name that does not tell rows apart
_INSIDE = 6  # worth that a state of an object in an array of the row has less than its own


class Worth:
    """The worth of a column in each role; -9: in none. `array` is the name of the rows.

    `things` are the places of objects with an id of their own; `around` is the array with most
    columns, which may hold the one thing of each row. A `party` is one of two things of a row.
    """

    def __init__(
        self,
        column: Column,
        things: Collection[Names] = (),
        array: str = "",
        around: Collection[ColumnPath] = (),
        *,
        party: bool = False,
    ) -> None:
        self.column, self.values, self._things = column, column.values, things
        self.party = party
        column.worth = self
        names = column.names or ("",)
        keys = [step.key for step in column.path if isinstance(step, Pair)]
        self.names = (*names[:-1], *keys) if keys else names  # a value is called by its key
        self.words = words.split(self.names[-1])
        alone = len(column.path) == 3 and column.path[1] == 0 and column.path[:1] in around
        self._alone = alone  # of the one thing in each row
        array = str(column.path[0]) if alone else array
        self.own = (alone or len(column.path) == 1) and words.is_id_of(self.words, array)
        self._is_id = self.words[-1:] == ("id",)
        self._lowered = [name.lower() for name in self.names]
        self._last = self._lowered[-1].lstrip("@_$")
        self._each = column.path.count(EACH)
        kinds = {*self.values}
        self.kinds = len(kinds)
        half = self.values[: len(self.values) // 2 + 1]
        self._some = kinds if len(kinds) < len(half) else half
        self.distinct = self.kinds / max(len(self.values), 1)
        self.filled = len(self.values) / len(column.cells)
        self.numeric = all(map(forms.NUMBER.fullmatch, self.values))
        self.clock = self._is_clock()
        self.link = not self.numeric and self._mostly(forms.LINK)
        self.opaque = not self.link and self._mostly(forms.OPAQUE)
        self._worded_id = self._is_id and not (
            self.numeric or self.opaque or self._mostly(forms.WITH_DIGIT)
        )
        # A path that leads through arrays and things with names of their own costs.
        others = self._others = sum(
            not words.OTHERS.keys().isdisjoint(words.split(name)[-1:]) for name in names[party:-1]
        )
        indexes = self._indexes = sum(isinstance(step, int) for step in column.path)
        self._away = 0.3 * (len(self.names) + indexes) + 3 * others + self._each
        inner = (names[:end] for end in range(1 + party, len(names)))
        self._inside = sum(
            each in things and each[-1].lower() not in words.OTHERS for each in inner
        )
        self._prose = not words.PROSE.keys().isdisjoint(self._lowered[0 if indexes else -1 :])
        # The text of a field may lie in an array: of rich text, and then it has no name.
        self._of_element = indexes > 0 and self._lowered[-1] not in words.TEXTS
        self._spoken = {word for name in self.names[-2:] for word in words.split(name)}

    @property
    def of_another(self) -> bool:
        """True of an id that is called by another thing."""
        return self._is_id and not self.own and len(self.words) > 1

    def in_all(self, sought: Collection[str] = (), equal: Sequence[Column] = ()) -> "Worth":
        """Find the worth in all roles at once, since nearly all of it is compared.

        `sought` are words that the call looks for; `equal` columns have the same values.
        """
        self.bare = -9.0  # worth as a name, but for the words of its own name
        self.in_words = 0  # values that differ in their words, numbers aside
        self.name = self._worth_as_name(sought)
        if equal:  # which stand for it: an id that is the name, too
            same = (Worth(each, self._things).in_all(sought).name for each in equal)
            self.name = max(self.name, *same)
        self.second = self.name - _PARTS * (self._each > 0)
        self.title = -9.0 if self._inside else self.second  # of the row itself
        self.key = self._worth_as_key()
        self.state = self._worth_as_state()
        self.value = self.worth_as_value()
        self.time = self._worth_as_time()
        self.schedule = -9.0 if words.SCHEDULES.isdisjoint(self._spoken) else self.time
        self.event = -9.0 if words.HAPPENED.isdisjoint(self._spoken) else self.time
        self.person = self._worth_as_person()
        return self

    def _is_clock(self) -> bool:
        """Return True of times and dates, by their form; of numbers, by their name, too."""
        if not self.numeric:
            return self._mostly(forms.CLOCK)
        if words.TIMES.isdisjoint(self.words[-1:]):
            return False
        # What takes some time is no clock: `resolution_time: 5400`.
        return self.words[-1] != "time" or self._mostly(forms.EPOCH)

    def _mostly(self, pattern: re.Pattern[bytes]) -> bool:
        if not any(map(pattern.match, self._some)):  # which often says it of all
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
            best = max(best, worth.get(own[-1], 0) - _LESS)
        for name in self.names[:-1]:
            for each in (name.lower(), *words.split(name)[-1:]):
                if each in worth and each not in words.OTHERS:
                    best = max(best, 0.8 * worth[each])
        return best

    def stands_for(self, other: "Worth") -> bool:
        """Return True if it has what another column has, of rows that lack that one, or of both.

        So has `to_do.rich_text` for `paragraph.rich_text`, and `away.name` for `home.name`.
        """
        own, others = self.column, other.column
        alike = len(own.path) > 1 and own.path[1:] == others.path[1:]
        both = self.party and other.party
        return alike and (both or not any(map(all, zip(own.cells, others.cells, strict=True))))

    def says(self, other: "Worth") -> bool:
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
        unnamed = self.clock or self.numeric or self._mostly(forms.NO_NAME)
        if not textual or unnamed:
            return -9
        telling = [value[:_BEGINNING] for value in self.values if value != _EMPTY]
        text, count = b"\n".join(telling), max(len(self.column.cells), 1)
        self.in_words = len({*forms.without_numbers(text).split(b"\n")})
        word = self.word(words.NAMES)
        score = len({*telling}) / count + 2 * self.in_words / count + (b" " in text)
        score += 2 * len(telling) / len(self.column.cells) + word - self._away
        score -= 2 * (self._each > 0 and not word)  # of its parts, which have names of their own
        score -= min(max(self.column.size - _BEGINNING, 0) / _LONG, 2)
        one = self.column.size <= _READ and b" " not in self.values[0]  # word
        one = one and self.column.longest >= _SHORTEST_HASH
        hashes = self.opaque or (one and self._mostly(forms.WITH_HASH))
        score -= 3 * self.link + 2 * hashes + 3 * self.opaque + (self.distinct < 0.3)
        score -= 2 * (self._prose + self._others)
        score -= (3 + 2 * self._of_element) * self._inside + self._mostly(forms.NO_LETTERS)
        self.bare = score - word - 2 * (self._each > 0)  # the parts of a row do not name it
        return score + (6 if self._matches(sought) else 0)

    def _worth_as_key(self) -> float:
        distinct = self.distinct == 1 or (self.own and self.distinct >= REPEATED)
        plain = distinct and self.filled == 1 and self.column.size <= _KEY
        if not plain or self.clock or self.link or self._each:
            return -9
        word = self.word(words.KEYS)
        if not word:
            return self._worth_as_number()
        word -= self._away + (1 if self._alone else len(self.names) + self._indexes)
        word -= self.column.size / (20 if 2 * self.in_words > self.kinds or not self._is_id else 10)
        word -= self.of_another
        hashed = self.opaque and words.PRINTED.isdisjoint(self.words[-1:])
        return word + (2 + self._alone) * self.own - 4 * hashed - 3 * self._inside

    def _worth_as_number(self) -> float:
        """Return the worth of an id that only its form tells: `PurchaseOrder`."""
        alike = len({*map(len, self.values)}) == 1 == len(self.column.path)
        numbered = alike and not self.opaque and all(map(forms.NUMBERED.fullmatch, self.values))
        return 1 - self.column.size / 20 if numbered else -9

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
        longest = _STATE_ID if self._worded_id else _STATE
        if not several or self.clock or self.link or self.opaque or self.column.size > longest:
            return -9
        word = self.word(words.STATES)
        if not word and (self.numeric or self._mostly(forms.NO_LETTERS)):
            return -9
        # An id tells a state by the name beside it, unless it is a name: `dag_id: sync_crm`.
        word -= 2 * (self._is_id and not self._worded_id)
        inside = _INSIDE * any(isinstance(step, int) for step in self.column.path[:-1])
        return word + (1 if self.column.textual else 0.5) + self.filled - 0.7 * self._away - inside

    def _worth_as_time(self) -> float:
        """Return the worth of a time: that of the thing itself more than of its record."""
        if not self.clock:
            return -9
        own, record = (not each.isdisjoint(self._spoken) for each in (words.EVENTS, words.RECORDS))
        return 1 + self.filled - self._away + 0.5 * own - record

    def worth_as_value(self) -> float:
        if not self.numeric or self.clock or not words.NO_QUANTITIES.isdisjoint(self.words[-1:]):
            return -9
        word = self.word(words.VALUES)
        if self.column.textual and not (word or self._measured()):
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
        above = above if self.names == self.column.names else []  # a value beside its name
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
        """True of hashes, links, ids of other things: they say nothing alone.

        An id in words does: `check_id: "python.flask.open-redirect"`.
        """
        of_another = self._is_id and not (self.own or self._worded_id)
        return self.opaque or self.link or of_another

    @property
    def rest(self) -> tuple[float, ...]:
        worth = max(self.name, self.state, self.value, self.time, 0)
        return (self.appendix, self.column.size > _READ, -worth, self.column.size)
