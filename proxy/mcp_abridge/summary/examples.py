"""The views of all rows that a notice offers: a filter, a count, the greatest row, a sum.

Without them a model pages through rows, and counts them itself. They are in the names and values of
the rows at hand, so that a model only has to exchange these.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain, islice, zip_longest

from msgspec import Raw

from mcp_abridge.document.names import nameable, spelled
from mcp_abridge.document.tree import level, text
from mcp_abridge.errors import DocumentError
from mcp_abridge.query.numerals import are_odd_times, is_missing
from mcp_abridge.summary import forms, roles
from mcp_abridge.summary.all_rows import Facts, Unnested, columns_in
from mcp_abridge.summary.cells import values_of
from mcp_abridge.summary.columns import EACH, LAST, STATE, Column, Pair, elements_of, expression

_SELECTED = 2  # columns that a filter selects
_LATEST = 3  # rows that are the last by their time
_SUMS = 2
_CONDITIONS = 8  # states that are read in all rows, since a sample has the same
_SEVERAL = 3  # rows of a name, by which amounts are added up, on average
_READ = 600  # rows that are read for that, at most
_OPENED = 200  # those of which an array is opened
_SAMPLE = 20  # texts that are read as JSON
_OF_JSON = 2  # views of what they hold
_TRIES = 3  # at columns whose greatest value is to be found
_TREE = "nodes("  # the view of the objects of a tree
_PLAIN = re.compile(r"\[|true\Z|false\Z")  # an array or a flag
_LITERAL = re.compile(r"null|true|false|-?[0-9].*")

_FAILURE = re.compile("(?i)err|fail|fatal|crit|blocked|denied")  # what one looks for first

FILTERS = "filters"
COUNTS = "counts"
GREATEST = "finds the greatest"
_ELEMENT = re.compile(r"\[\d+\]")
SUM = "adds up"
LATEST = "shows the last"
READS = "reads the JSON in each"

Example = tuple[str, str]
"""A view, and what it does."""


def examples(
    rows: Sequence[Raw],
    columns: Sequence[Column],
    visible: Sequence[Column],
    place: str,
    facts: Facts,
    *,
    small: bool,
    lone: Collection[str] = (),
) -> Iterator[Example]:
    """Yield views of `rows`, which are at `place`, the most telling first.

    `columns` are in the order of `roles`, `visible` are those that the rows of the look have. Of
    `small` rows, those of a rare value are shown whole. What is around rows inside of others is
    neither counted nor added up: it stands beside each of them. A place in an element that is not
    one of the `lone` ones of an array is said to be in that one alone.
    """
    outer = [each for each in visible if repeats(rows, each) and _selectable(each)]
    few = len(rows) <= _READ // 2  # in which each state is read by itself
    same = [*islice(filter(_is_same_state, columns), _CONDITIONS * few)]
    own_columns = (each for each in columns if not repeats(rows, each))
    columns = [_of_all(rows, each) if each in same else each for each in own_columns]
    if not columns:
        return
    inside, first = place or "@", 0  # rows inside of others are added up without what is around
    if isinstance(rows, Unnested):
        inside, first = f"{rows.place}[].{spelled(rows.name)}[]", 1

    def name_of(column: Column) -> str:
        return expression(column.path[first:])

    recurs = cache(partial(_recurs, rows))
    names = [each for each in visible if _selectable(each)]
    rare = [each for each in columns if facts.tells_places(each.names) and each.plain]
    pairs = [*filter(_beside_a_name, columns)]
    states = [e for e in columns if e.role == roles.STATE and (_single(e) or e in pairs)]
    own = [each for each in names if _single(each) and not repeats(rows, each)]
    some = (each for each in (*rare, *states, *own) if _selectable(each) or each in pairs)
    categories = [(e, v) for e in dict.fromkeys((*some, *pairs)) if (v := _values(e, facts))]
    if not categories:  # of what is left out of the rows at hand, the first
        rest = (each for each in columns if each.role != roles.APPENDIX and _single(each))
        valued = ((each, _values(each, facts)) for each in filter(_selectable, rest))
        categories = [*islice((pair for pair in valued if pair[1]), 1)]
    category, values = categories[0] if categories else (None, [])
    # Amounts are asked for by a state, and by what is shown of each row: a project, a person.
    several = [each for each, _ in categories if each not in rare]
    by_name = [each for each in several[1:] if each in own] or several[1:]
    groups = [*several[:1], *by_name[:1]]
    pipe = " | " * place.endswith("[]")  # else the test applies to each row

    def selection(filtered: Column) -> str:
        more = [each for each in columns if each.role != roles.APPENDIX and _selectable(each)]
        others = [each for each in dict.fromkeys((*names, *more)) if each is not filtered]
        others.sort(key=lambda each: each.role == roles.TIME)
        keys = [each for each in others if each.role == roles.KEY][:1]
        names_first = [each for each in others if each.role == roles.NAME and each in names][:1]
        picks = [*dict.fromkeys((*keys, *outer[:1], *names_first, *others))][:_SELECTED]
        return ", ".join(each.name for each in picks) or filtered.name

    if category is not None:
        whole = small and category in rare
        part = "" if whole else f".[{selection(category)}]"
        name = f"({category.name})" if _beside_a_name(category) else category.name
        value = next(filter(_FAILURE.search, values), values[-1])
        yield f"{place}{pipe}[?{name}=={value}]{part}", FILTERS
        uncounted = (each for each, _ in categories if each.names not in facts.complete)
        counted = next(uncounted, category)
        yield f"count_by({inside}, &{name_of(counted)})", COUNTS
        # A reason, an error, a time at which something was deleted: what few rows have.
        reasons = (each for each in rare if each is not category and _mostly_null(each, facts))
        for reason in islice(reasons, 1):
            part = "" if small else f".[{selection(reason)}, {reason.name}]"
            yield f"{place}{pipe}[?{reason.name}!=`null`]{part}", FILTERS
    else:
        several = [each for each in columns if each.role != roles.APPENDIX and _single(each)]
        recurring = (each for each in several if each.names in facts.counts or recurs(each))
        for counted in islice(recurring, 1):
            content = text(Raw(min(counted.values, key=len)))
            if content and _selectable(counted) and nameable(content):
                part = f"[?{counted.name}=='{content}'].[{selection(counted)}]"
                yield f"{place}{pipe}{part}", FILTERS
            if len({*Counter(values_of(rows[:_READ], counted.path)).values()}) > 1:
                yield f"count_by({inside}, &{name_of(counted)})", COUNTS
    clock = clock_of(columns)
    latest = list[Example]()
    if clock is not None and _sorts(rows, clock, facts):
        heads = [each.name for each in names if each is not clock][:_SELECTED]
        part = "" if small else f".[{', '.join([*heads, clock.name])}]"
        view = f"sort_by({place or '@'}, &{clock.name})[-{_LATEST}:]{part}"
        latest.append((view, LATEST))
    units = filter(roles.is_unit, filter(_single, columns))
    measures = [*islice((each for each in units if _differs(rows, each)), 1)]
    quantities = islice(filter(_single, filter(roles.is_quantity, columns)), _TRIES)
    quantity = next((each for each in quantities if _numbers(_odd(rows, each))), None)
    if quantity is not None:
        view, effect = _greatest(place or "@", quantity, lone)
        several = measures[: 1 - roles.counts_things(quantity)]
        yield view, ", in any ".join([effect, *(each.name for each in several)])
    for series in islice(filter(_of_numbers, filter(_single, columns)), int(quantity is None)):
        first_names = sorted(names, key=lambda each: each.role != roles.NAME)[:1]
        cells, most = [each.name for each in first_names], f"max({series.name})"
        view = f"max_by({place or '@'}, &{most}).[{', '.join([*cells, most])}]"
        yield view, f"{GREATEST} of all"
    useful = [each for each in columns if each.role != roles.APPENDIX and _single(each)]
    useful.sort(key=roles.counts_things)  # what is measured comes first
    amounts = [*islice(filter(roles.is_amount, useful), _SUMS)]
    if place.startswith(_TREE):
        amounts = [each for each in amounts if not _has_those_below(rows, each, place)]
    recur = not groups  # names in each day or page are added up by these first
    if amounts and not groups:
        groups = [*islice(filter(recurs, own), 1)]
    groups = measures or groups  # dollars and euros have no sum
    for amount in amounts:
        if amount is not quantity and not _numbers(_odd(rows, amount)):
            continue
        each = "" if inside.endswith("[]") else "[*]"
        total = [(f"sum({inside}{each}.{name_of(amount)})", SUM)] * (not measures)
        yield from total[recur:]
        yield from latest
        latest = []
        for group in groups:
            view = f"sum_by({inside}, &{name_of(group)}, &{name_of(amount)})"
            yield view, "adds up by group"
        yield from total[:recur]
    yield from latest


def repeats(rows: Sequence[Raw], column: Column) -> bool:
    """Return True of what is around rows inside of others: each value may stand in several."""
    return isinstance(rows, Unnested) and column.names[:1] != (rows.name,)


def in_turn(first: Iterable[Example], second: Iterable[Example]) -> tuple[Example, ...]:
    """Return views of two kinds, one of each in turn, so that a short notice has both.

    >>> in_turn([("a", ""), ("b", "")], [("c", "")])
    (('a', ''), ('c', ''), ('b', ''))
    """
    return tuple(filter(None, chain(*zip_longest(first, second))))


def clock_of(columns: Sequence[Column]) -> Column | None:
    """Return the times of rows that are out of their order: the last of them is asked for."""
    single = (each for each in columns if each.role == roles.TIME and _single(each))
    times = (each for each in single if each.values and each.values[0][:1] != b"[")
    return next(filter(roles.is_out_of_order, filter(_selectable, times)), None)


def of_json(texts: Sequence[Raw], place: str) -> tuple[Example, ...]:
    r"""Return views of texts at `place` that are JSON objects; none if the first ones are not.

    >>> of_json([Raw(b'"{\\"n\\":1}"')] * 3, "items")[0]
    ('items[*].from_json(@)', 'reads the JSON in each')
    """
    contents = [text(each) or "" for each in texts[:_SAMPLE]]
    if not all(each.startswith("{") and each.endswith("}") for each in contents):
        return ()
    try:
        rows = [Raw(each.encode()) for each in contents if level(Raw(each.encode()))]
    except (DocumentError, UnicodeEncodeError):
        return ()
    columns, read = roles.in_order(columns_in(rows)), f"{place}[*].from_json(@)"
    views = islice(examples(rows, columns, columns, "", Facts(), small=False), _OF_JSON)
    return (read, READS), *((f"{read} | {view}", effect) for view, effect in views)


def greatest_point(points: list[Raw], place: str, lone: Collection[str]) -> tuple[Example, ...]:
    """Return the view of the greatest of points of a time series; none of any other array."""
    point = level(points[0]) if points and memoryview(points[0])[0] == 0x5B else []
    if len(point) != 2 or not bytes(point[1]).lstrip(b"-")[:1].isdigit():
        return ()
    return ((f"max_by({place or '@'}, &[1])", f"{GREATEST}{_alone(place, lone)}"),)


def _single(column: Column) -> bool:
    """Return True if a column has one value in each row, and views can name it."""
    return all(isinstance(step, str | int) for step in column.path) and column.nameable


def _of_numbers(column: Column) -> bool:
    """Return True if each cell of a column is an array of numbers, as of a time series."""
    arrays = [*map(elements_of, map(Raw, column.values))]
    return bool(arrays) and all(each and forms.NUMBER.fullmatch(each[0]) for each in arrays)


def _beside_a_name(column: Column) -> bool:
    """Return True if a column has one value in each row, which stands beside a name."""
    pair = any(isinstance(step, Pair) for step in column.path)
    return pair and EACH not in column.path and column.nameable and '"' not in column.name


def _mostly_null(column: Column, facts: Facts) -> bool:
    return _selectable(column) and next(iter(facts.counts[column.names])) == "null"


def _is_same_state(column: Column) -> bool:
    """Return True of a state beside a name that is the same in a sample of the rows."""
    state = column.path[-1] == STATE and _beside_a_name(column)
    return state and len({*column.values}) == 1


def _of_all(rows: Sequence[Raw], column: Column) -> Column:
    """Return a state as all rows have it: one of them may not be ready."""
    cells = [None if cell == b"null" else cell for cell in values_of(rows, column.path)]
    whole = Column(column.path, cells, column.position)
    whole.role = roles.STATE
    return whole


def _selectable(column: Column) -> bool:
    """Return True if a view that has texts can name a column: one with both quotes is misread."""
    return column.nameable and '"' not in column.name and "|" not in column.name


def _greatest(place: str, quantity: Column, lone: Collection[str]) -> Example:
    """Return the view of the row with the greatest number; of time series, with any point of it."""
    if LAST not in quantity.path:
        return f"max_by({place}, &{quantity.name})", f"{GREATEST}{_alone(place, lone)}"
    end = quantity.path.index(LAST)
    series, point = expression(quantity.path[:end]), quantity.path[end + 1 :]
    value = expression((*quantity.path[:end], *point))
    return f"max_by(unnest({place}, &{series}), &{value})", "shows the highest of all points"


def _alone(place: str, lone: Collection[str]) -> str:
    """Return the words that a place is in one element of several, as one series of all."""
    some = [each for each in _ELEMENT.finditer(place) if place[: each.end()] not in lone]
    return f" of {some[-1][0]} alone" if some else ""


def _numbers(odd: Collection[str]) -> bool:
    """Return True if texts that are no numbers say that there is none: others are compared."""
    return all(map(is_missing, odd)) and all(map(nameable, odd))


def _odd(rows: Sequence[Raw], column: Column) -> dict[str, None]:
    """Return the texts of a column of numbers that are none."""
    if not column.textual:
        return {}
    odd = (
        cell
        for cell in values_of(rows, column.path)
        if cell != b"null" and not forms.NUMBER.fullmatch(cell)
    )
    return dict.fromkeys(text(Raw(cell)) or "" for cell in odd)


def _differs(rows: Sequence[Raw], column: Column) -> bool:
    """Return True if a column has several values in all rows, which a sample of them may hide."""
    return len({*column.values}) > 1 or len({*values_of(rows, column.path)} - {b"null"}) > 1


def _has_those_below(rows: Sequence[Raw], amount: Column, place: str) -> bool:
    """Return True of an amount in a tree which has those below in it, as the size of a folder."""
    cells = values_of(rows, amount.path)
    numbers = (float(e.strip(b'"')) if forms.NUMBER.fullmatch(e) else 0.0 for e in cells)
    places = (text(Raw(each)) or "" for each in values_of(rows, ("at",)))
    own = dict(zip(places, numbers, strict=True))
    inner, below = (
        f".{place.rpartition(', &')[2].removesuffix(')')}[",
        defaultdict[str, float](float),
    )
    for at, number in own.items():
        below[at.rpartition(inner)[0]] += number
    most = [own[at] >= total for at, total in below.items() if at in own]
    return 2 * sum(most) > len(most)


def _recurs(rows: Sequence[Raw], column: Column) -> bool:
    """Return True of names that stand in several rows each, as in each day or page."""
    if not column.textual or column.role not in (roles.NAME, roles.PERSON):
        return False
    most = min(len(rows), _READ if column.plain else _OPENED)
    counts = (most // _SEVERAL + 1, most)  # a few often say that they do not
    return all(_SEVERAL * len({*values_of(rows[:n], column.path)}) <= most for n in counts)


def _sorts(rows: Sequence[Raw], clock: Column, facts: Facts) -> bool:
    """Return True if times sort as they are written: not those of several zones."""
    if facts.endings and facts.endings <= {b'Z"', b"ll"}:  # in most lists: UTC, or null
        return True
    cells = {*values_of(rows, clock.path)}
    return not are_odd_times([*filter(None, (text(Raw(cell)) for cell in cells))])


def _values(column: Column, facts: Facts) -> list[str]:
    """Return the values of a column by which rows can be filtered, as views spell them."""
    values, counted = {*column.values}, facts.counts.get(column.names)
    several = 2 <= len(values) <= len(column.values) // 2
    if not (several or counted):
        return []
    plain = [name for name in counted or () if _PLAIN.match(name) and "`" not in name]
    if plain and all(value[:1] in (b"[", b"t", b"f") for value in values):
        return [f"`{name}`" for name in plain]
    if column.role == roles.STATE and all(map(bytes.isdigit, values)):
        return [f"`{value.decode()}`" for value in sorted(values)]
    times = Counter(column.values)
    texts = [text(Raw(value)) for value in sorted(values, key=lambda each: (-times[each], each))]
    if counted and texts:
        texts = [name for name in counted if not _LITERAL.fullmatch(name)]
    elif not several:
        return []
    return [f"'{content}'" for content in texts if content and nameable(content)]
