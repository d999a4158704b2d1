"""`python -m tests.answers --looks`: what a first look shows of each list in a set.

Without it, a look could answer questions and still show rows by nothing but their ids. A row is
told apart if its name stands in it, whole or cut, and no other name that is shown is cut alike.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from mcp_abridge.document.tokens import tokens
from msgspec import Struct

from tests.answers import sets
from tests.answers.arm import visible_text
from tests.answers.evidence import documents
from tests.answers.ours import Notices
from tests.answers.session import open_session
from tests.answers.shapes import at_path

HEAD = "| result | list | named | rows | told apart | bytes | tokens |"
_CUT = 8  # characters of a name that is cut, at least


class Look(Struct, frozen=True):
    """A first look at a result, and what it shows of its `lists`: rows, and those told apart."""

    tool: str
    size: int
    tokens: int
    lists: tuple[tuple[str, int, int], ...]


def looks(kind: str, budget: str | None = None) -> list[Look]:
    parts = []
    with open_session(Notices(*(("--budget", budget) if budget else ())), kind) as session:
        for tool, result in sets.described(kind).items():
            text = session.call(tool, {})
            whole = visible_text(sets.whole(kind, tool))
            lists = tuple(
                (path, *told_apart(text, path, names(whole, sets.document(kind, tool), path)))
                for path in result.names
            )
            parts.append(Look(tool, len(text.encode()), tokens(text), lists))
    return parts


def names(text: str, document: Any, path: str) -> list[str]:
    """Return the names of all rows of a list."""
    if path.startswith("/"):
        parts = re.finditer(path.strip("/"), text, re.MULTILINE)
        return [next(filter(None, match.groups()), "") for match in parts]
    if path.endswith(".*"):
        [members] = at_path(document, path.removesuffix(".*"))
        return list(members)
    return [str(each) for each in at_path(document, path) if each is not None]


def told_apart(text: str, path: str, names: Sequence[str]) -> tuple[int, int]:
    """Return how many rows of a list a look shows, and how many of them can be told apart.

    >>> look = '{"a": {"columns": ["id", "title"], "rows": [[1, "Crash on st…"], [2, "Slow"]]}}'
    >>> told_apart(look, "a[].title", ["Crash on start", "Slow", "Other"])
    (2, 2)
    >>> told_apart('[{"id": 1}, {"id": 2}]', "[].title", ["Crash on start", "Slow"])
    (2, 0)
    """
    parts = list(documents(text))
    collections = [pair for each in parts if not isinstance(each, str) for pair in rows(each)]
    lines = [[line] for each in parts if isinstance(each, str) for line in each.split("\n")]
    own = [step for step in re.findall(r"\w+", path.rpartition("[]")[0]) if not step.isdecimal()]
    at_place = [each for place, each in collections if own and own[-1] in place[-2:]]
    all_names = set(names)
    best, most = (0, 0), -1
    apart_in_text = [list(_scalars(each)) for each in parts if isinstance(each, dict)]
    elsewhere = [*(each for _, each in collections), apart_in_text, named_lines(lines, all_names)]
    for each in at_place or elsewhere:
        names_shown = [_name(row, all_names) for row in each]
        cut = Counter(name for name in names_shown if name)
        apart = sum(bool(name) and _one(name, cut, all_names) for name in names_shown)
        if apart > most or (apart == most and len(names_shown) > best[0]):
            best, most = (len(names_shown), apart), apart
    return best


def rows(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield the collections of rows in a look, tables, arrays and maps, each with its place."""
    if isinstance(value, list):
        if any(isinstance(each, dict | list) for each in value):
            yield place, [list(_scalars(each)) for each in value]
        for each in value:
            yield from rows(each, place)
    elif isinstance(value, dict) and {"columns", "rows"} <= value.keys():
        yield place, [list(_scalars(each)) for each in value["rows"]]
    elif isinstance(value, dict):
        if len(value) > 1 and all(isinstance(each, dict | list) for each in value.values()):
            yield place, [[name, *_scalars(each)] for name, each in value.items()]
        for name, each in value.items():
            if name != "_abridged":
                yield from rows(each, (*place, *re.findall(r"\w+", name)))


def named_lines(lines: list[list[str]], all_names: set[str]) -> list[list[str]]:
    """Return the lines of a text that are rows: those with a name, as words of them."""
    parts = [[name for name in all_names if name in line] for [line] in lines]
    return [[max(each, key=len)] for each in parts if each]


def _scalars(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _scalars(each)
    elif value is not None:
        yield str(value)


def _name(row: Sequence[str], all_names: set[str]) -> str:
    """Return the cell of a row that is a name, whole or cut; "" if there is none."""
    whole = next((cell for cell in row if cell in all_names), "")
    return whole or next((cell for cell in row if _begins(cell, all_names)), "")


def _begins(cell: str, all_names: set[str]) -> list[str]:
    start, mark, end = cell.partition("…")
    start = start.rstrip(".")
    if not mark or len(start + end) < _CUT:
        return []
    return [name for name in all_names if name.startswith(start) and name.endswith(end)]


def _one(name: str, cut: Counter[str], all_names: set[str]) -> bool:
    return name in all_names or cut[name] == 1 or len(_begins(name, all_names)) == 1


def table(parts: Sequence[Look]) -> str:
    lines = [HEAD, "| --- | --- | --- | ---: | ---: | ---: | ---: |"]
    shares, missing = [], 0
    for look in parts:
        for path, names_shown, apart in look.lists or (("", 0, 0),):
            share = apart / names_shown if names_shown else 0.0
            if path:
                shares.append(share)
                missing += not apart
            cells = [look.tool, f"`{path}`".replace("|", "\\|"), "yes" if apart else "no"]
            cells += [str(names_shown), f"{share:.2f}", f"{look.size:,}", f"{look.tokens:,}"]
            lines.append(f"| {' | '.join(cells if path else [look.tool, *'----', *cells[-2:]])} |")
    ordered = sorted(shares)
    middle = ordered[len(ordered) // 2]
    return "\n".join(
        [
            *lines,
            "",
            f"{missing} of {len(shares)} lists without their naming column; of the rows shown,"
            f" told apart: mean {fmean(shares):.2f}, median {middle:.2f}, least {ordered[0]:.2f};"
            f" mean look {fmean(look.size for look in parts):,.0f} bytes,"
            f" {fmean(look.tokens for look in parts):,.0f} tokens",
        ]
    )
