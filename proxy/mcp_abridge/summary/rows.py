"""The rows of a text that repeats one form: without it, each reader would write JSON itself."""

from typing import NamedTuple

from msgspec import Raw

from mcp_abridge.document.garbage import uncollected
from mcp_abridge.document.tree import encode
from mcp_abridge.summary.notations import JSON_NUMBER

LONGEST = 4 << 20
"""The most characters of a text that is read line by line."""


class Rows(NamedTuple):
    """Rows that were read from a text, with the text before and after them.

    `loses`: the text says more than the rows. `sample`: only those of its beginning were read.
    """

    rows: list[dict[str, str]]
    form: str
    before: str = ""
    after: str = ""
    loses: bool = False
    sample: bool = False

    def as_json(self) -> bytes:
        """Return the rows as JSON; a column of numbers alone becomes numbers."""
        texts = set[str]()
        for row in self.rows:
            for name, cell in row.items():
                if name not in texts and JSON_NUMBER.fullmatch(cell) is None:
                    texts.add(name)
        with uncollected():
            numbers = set[str]().union(*self.rows) - texts
            if not numbers:
                return encode(self.rows)
            return encode(
                [row | {n: Raw(row[n].encode()) for n in numbers & row.keys()} for row in self.rows]
            )
