"""Sums and sizes in words, as the text report and the page show them."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from mcp_abridge.storage.ledger_totals import BY, Figures

NAMELESS = {by: "no rule" if by == "rule" else "unknown" for by in BY}
"""The name of a sum without a name, by the key of the sums."""
BYTES_PER_TOKEN = 3.2
"""The median of the answers recorded for the bundled rules: a ledger has no texts to estimate."""


def total_of(figures: list[Figures]) -> Figures:
    """Return the sums of all figures, and the largest response."""
    names = Figures.__struct_fields__[1:]
    sums = {name: sum(getattr(each, name) for each in figures) for name in names}
    sums["largest"] = max((each.largest for each in figures), default=0)
    return Figures(None, **sums)


def tokens_text(size: int) -> str:
    """Return about how many tokens so many bytes are, in two digits.

    >>> tokens_text(204_199), tokens_text(100)
    ('about 64,000 tokens', 'about 31 tokens')
    """
    tokens = round(size / BYTES_PER_TOKEN)
    return f"about {round(tokens, 2 - len(str(tokens))):,} tokens"


def times_text(before: int, after: int) -> str:
    """Return how many times smaller something became, if there was something before and after.

    >>> times_text(780, 160), times_text(0, 130)
    ('4.9', '–')
    """
    return f"{before / after:,.1f}" if before and after else "–"


def size_text(count: int) -> str:
    """Return a number of bytes in three digits and decimal units, as the options take them.

    >>> size_text(999), size_text(8_250), size_text(41_000_000), size_text(999_950)
    ('999 B', '8.25 kB', '41.0 MB', '1.00 MB')
    """
    if abs(count) < 1_000:
        return f"{count} B"
    size, unit = count / 1_000, "kB"
    for larger in ("MB", "GB", "TB"):
        if abs(size) >= 999.5:
            size, unit = size / 1_000, larger
    digits = 2 if abs(size) < 9.995 else 1 if abs(size) < 99.95 else 0
    return f"{size:.{digits}f} {unit}"


class TableColumn(Struct, frozen=True):
    """A column of a table: `value` is what it sorts by, `text` what it shows of that."""

    title: str
    value: Callable[[Any], float | str]
    text: Callable[[Any], str]

    def cell(self, row: Any) -> str:
        return self.text(self.value(row))


def counts(title: str, field: str) -> TableColumn:
    """Return a column of numbers."""
    return TableColumn(title, lambda each: getattr(each, field), lambda value: f"{value:,}")


def sizes(title: str, field: str) -> TableColumn:
    """Return a column of bytes."""
    return TableColumn(title, lambda each: getattr(each, field), size_text)


def telling(columns: Iterable[TableColumn], rows: list[Any]) -> list[TableColumn]:
    """Return the columns without those of noughts alone."""
    return [column for column in columns if any(map(column.value, rows))]
