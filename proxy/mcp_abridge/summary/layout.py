"""The layout of rows in brief: which columns fit, how much of each text, and how many rows.

Without it, the columns that name a row would be crowded out by those that stand first.
"""

from mcp_abridge.summary import roles
from mcp_abridge.summary.cells import Opened
from mcp_abridge.summary.columns import EACH, Column, ColumnPath, array_of

CLIPS = (24, 40, 60, 120, 250, 500, 1000)  # characters shown of a long text
_FAIR = 40  # characters of each text, until it is known how many columns fit
_BESIDE_KEY = 32  # those of a name beside a key
_SECOND = (_FAIR, CLIPS[0], 16)  # those of a second name, the first that fits
_TIME = 16  # those of a time with its zone: to the minute
_SECONDS = 19  # if minutes do not tell times apart
_HASH = 12  # those of a hash
_KEY = 60  # those of a key, which a next call takes whole
LARGE = 100  # bytes of an average value that is no text, and of one that is said to be the same
_CORE = 2  # columns that all rows must show
_NEEDS = 4  # columns for which fewer of many rows are shown
MANY = 32  # rows that are shown at least, if there is room for their names
_BESIDE = 1.5  # times the bytes of the core has a row if not all rows fit, at least
_WIDE = 160  # bytes of a row if not all rows fit
_TELLING = 4  # clips of which one may be needed to tell names apart
_APART = 0.9  # of the names that have to be told apart
_SURE = 0.97  # of the rows that should fit by their average, so many are tried first


class Layout:
    """The columns that are shown, the characters of each, and the number of rows.

    `whole`: all rows are to fit; if even the core does not for all, fewer rows are shown. `opened`
    is what was read of the rows of an earlier choice.
    """

    def __init__(self, columns: list[Column], count: int, room: int, table: bool) -> None:
        self._table, self._room, self._count = table, room, count
        self.opened = Opened()
        usable = [each for each in columns if self._usable(each)]
        useful = [each for each in usable if each.role != roles.APPENDIX]
        usable = useful or usable[:1]
        self._least = {each.path: _telling(each) for each in usable[:1]}
        self._core = usable[:_CORE]
        telling = [each for each in usable if each.role != roles.REST]
        needs = telling[:_NEEDS] if count > MANY else self._core
        self.whole = sum(self._cost(each, CLIPS[0]) for each in needs) <= room / count
        keys = [each for each in usable[_CORE:] if each.role == roles.KEY]
        self._core += [each for each in keys if each.longest <= CLIPS[0]][:1]
        if self.whole and not self._fits(CLIPS[0], room / count):
            self._core = usable[:_CORE]
        self._others = [each for each in usable if each not in self._core]
        self._second = usable[_CORE:][:1]
        self._choose()

    def leave_out(self, columns: list[Column]) -> None:
        """Choose without some columns of arrays, and without others of the same arrays."""
        arrays = {array_of(each.path) for each in columns}
        stay = [each for each in self.columns if each not in columns]
        self._core = [each for each in self._core if each in stay]
        self._others = [
            each
            for each in self._others
            if each in stay or EACH not in each.path or array_of(each.path) not in arrays
        ]
        self._choose()

    def _first(self, role: str) -> Column | None:
        return next((each for each in self._others if each.role == role), None)

    def _fair(self, column: Column) -> int:
        if not self._table or column.role != roles.TIME or column.longest <= CLIPS[0] + 2:
            return _FAIR
        kinds = {*column.values}
        minutes = {each[: _TIME + 1] for each in kinds}  # after the quote
        return _TIME if _APART * len(kinds) <= len(minutes) else _SECONDS

    def _usable(self, column: Column) -> bool:
        return column.textual or EACH in column.path or column.size <= LARGE

    def _cost(self, column: Column, clip: int) -> float:
        clip = self._clip(column, clip)
        names = 1 if self._table else sum(len(str(step)) + 3 for step in column.path[-2:]) + 1
        return column.width(clip) + names

    def _clip(self, column: Column, clip: int) -> int:
        if column.role == roles.HASH:
            return _HASH
        least = _KEY if column.role == roles.KEY else 0  # a part of a key is none
        return max(clip, self._least.get(column.path, least))

    def _choose(self) -> None:
        room = self._room - sum(len(each.name) + 3 for each in self._core) * self._table
        width = room / self._count if self.whole else min(room / MANY, _WIDE)
        clips = (_FAIR, *[_BESIDE_KEY] * (len(self._core) > _CORE), CLIPS[0])
        clip = next(each for each in clips if each == CLIPS[0] or self._fits(each, width))
        picks = {each.path: clip for each in self._core}
        choice = list(self._core)
        used = sum(self._cost(each, clip) for each in choice)
        # Names that are long would leave no place for what stands beside them.
        wide = width if self.whole else min(max(width, _BESIDE * used), _WIDE)
        used = self._fill(choice, picks, used, wide, self._table * wide / max(room, 1))
        long = [c for c in choice if self._cost(c, CLIPS[-1]) > self._cost(c, picks[c.path])]
        for some in (choice[:1], choice[1:], choice):
            parts = [each for each in some if each in long]
            for clip in CLIPS[2 : 3 if some is not choice else None]:
                wider = sum(
                    self._cost(each, clip) - self._cost(each, picks[each.path]) for each in parts
                )
                if used + wider > width:
                    break
                picks |= dict.fromkeys((each.path for each in some), clip)
                used += wider
        self.picks = {each.path: self._clip(each, picks[each.path]) for each in choice}
        self.columns = choice
        names = sum(len(each.name) + 3 for each in choice[_CORE:]) * self._table
        fitting = int((room - names) * _SURE / max(used, 1))
        self.rows = self._count if self.whole else min(fitting, self._count)

    def _fill(
        self,
        choice: list[Column],
        picks: dict[ColumnPath, int],
        used: float,
        wide: float,
        heads: float,
    ) -> float:
        """Add columns while they fit in rows of `wide` bytes, and return the bytes of a row.

        A second name leaves room for a value and a time. `heads`: what a byte of a head costs.
        """

        def cost_of(column: Column, clip: int) -> float:
            return self._cost(column, clip) + (len(column.name) + 3) * heads

        firsts = {role: self._first(role) for role in (roles.VALUE, roles.TIME)}
        for each in (*self._others, *self._others):  # again what has waited for these
            if each in choice:
                continue
            firsts.pop(each.role, None)
            other = each.role == roles.NAME and any(_names(name, each) for name in choice)
            later = sum(cost_of(e, _FAIR) for e in firsts.values() if e) if other else 0
            second = each.role == roles.NAME and each in self._second
            for clip in _SECOND if second or each.role == roles.PERSON else (self._fair(each),):
                cost = cost_of(each, clip)
                if used + cost + later <= wide:
                    choice.append(each)
                    picks[each.path] = clip
                    used += cost
                    break
        return used

    def _fits(self, clip: int, width: float) -> bool:
        return sum(self._cost(each, clip) for each in self._core) <= width

    def shrink(self, excess: int) -> None:
        """Choose again in less room, or show fewer rows."""
        if self.whole and self._room > excess:
            picks = self.picks
            while self.whole and self.picks == picks:  # which would take as much
                self._room -= max(min(excess, self._room), self._room // 20, 1)
                self.whole = self._fits(CLIPS[0], self._room / self._count)
                self._choose()
        else:
            self.whole = False
            self.rows -= max(self.rows * excess // max(self._room + excess, 1), 1)


def _names(column: Column, other: Column) -> bool:
    """Return True of a name that tells most rows apart, those that have another one too."""
    apart = column.role == roles.NAME and 2 * len({*column.values}) > len(column.values)
    return apart and any(map(all, zip(column.cells, other.cells, strict=True)))


def _telling(column: Column) -> int:
    """Return the characters of its texts that tell nearly all of them apart, by either end.

    Fewer rows that differ say more than all rows with the same beginning.
    """
    kinds = {*column.values}
    for clip in CLIPS[:_TELLING]:
        ends = clip * 2 // 3
        apart = max(len({each[:clip] for each in kinds}), len({each[-ends:] for each in kinds}))
        if _APART * len(kinds) <= apart:
            return clip
    return CLIPS[0]
