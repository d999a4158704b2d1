"""`mcp-abridge report`: print savings and warnings from the ledger, as tables or as JSON."""

import argparse
import os
import shlex
import sys
import time
from collections.abc import Callable

import msgspec

from proxy.cli.terminal import add_column, console, printable, refuse, table
from proxy.storage.ledger import (
    BY,
    Counted,
    Figures,
    LedgerError,
    default_path,
    definitions,
    home_path,
    rows,
    warnings,
)
from proxy.storage.meter import Definitions

_UNITS = {
    "m": (60, "minutes"),
    "h": (3_600, "hours"),
    "d": (86_400, "days"),
    "w": (604_800, "weeks"),
}
_OFF = "off"
_MAX_WARNINGS = 20


class Span(msgspec.Struct, frozen=True):
    """A period of the report: the last `seconds` (None: everything), and its name in `words`."""

    seconds: int | None
    words: str


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument(
        "--since", type=span, default="7d", metavar="SPAN", help="30m, 12h, 7d (default), 2w or all"
    )
    parser.add_argument("--by", choices=BY, default="tool", help="what to sum by (default: tool)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--ledger",
        metavar="PATH",
        help="the ledger to read (default: the one that `run` and `serve` write)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the report. Returns 2 if the ledger cannot be read."""
    path = arguments.ledger or os.environ.get("MCP_ABRIDGE_LEDGER") or default_path()
    if path == _OFF:
        return refuse("report", "the ledger is off; say which one to read: --ledger PATH")
    period: Span = arguments.since
    since = None if period.seconds is None else time.time() - period.seconds
    # The first recorded call creates the default file; a file named by --ledger must exist.
    absent = arguments.ledger is None and not os.path.exists(path)
    try:
        figures = [] if absent else rows(path, since, arguments.by)
        counts = [] if absent else warnings(path, since)
        lists = [] if absent else definitions(path, since)
        earlier = not (figures or absent) and bool(rows(path))
    except LedgerError as error:
        return refuse("report", str(error))
    if arguments.json:
        _print_json(figures, counts, lists, path, since, arguments.by)
    elif figures:
        _print_table(figures, period, arguments.by)
        _print_definitions(lists)
        _print_warnings(counts)
    if not figures:
        print(f"mcp-abridge report: {_advice(path, period, earlier)}", file=sys.stderr)
    if path == default_path() != home_path() and os.path.exists(home_path()):
        print(f"mcp-abridge report: {_two_ledgers(path, home_path())}", file=sys.stderr)
    return 0


def span(text: str) -> Span:
    """Read a span of time.

    >>> span("12h")
    Span(seconds=43200, words='the last 12 hours')
    >>> span("all").words
    'all that is recorded'

    Raises argparse.ArgumentTypeError.
    """
    if text == "all":
        return Span(None, "all that is recorded")
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not (number.isascii() and number.isdigit()) or len(number) > 6:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a span of time; write it like 30m, 12h, 7d or 2w, or all"
        )
    seconds, words = _UNITS[unit]
    count = int(number)
    return Span(
        count * seconds, f"the last {words[:-1]}" if count == 1 else f"the last {count} {words}"
    )


def _advice(path: str, period: Span, earlier: bool) -> str:
    if earlier:
        return f"nothing was recorded in {period.words}; try --since all"
    return (
        f"nothing is recorded yet in {path}; write `mcp-abridge --` before a server's command, "
        "call one of its tools and come back"
    )


def _two_ledgers(path: str, other: str) -> str:
    return (
        f"this was {path}; clients that do not pass XDG_STATE_HOME on, such as Codex, have another "
        f"one: mcp-abridge report --ledger {shlex.quote(other)}"
    )


def _print_json(
    figures: list[Figures],
    counts: list[Counted],
    lists: list[Definitions],
    path: str,
    since: float | None,
    by: str,
) -> None:
    document = {
        "ledger": path,
        "since": None if since is None else int(since),
        "by": by,
        "total": _numbers(_total(figures)),
        "rows": [{"name": each.name, **_numbers(each)} for each in figures],
        "warnings": [msgspec.structs.asdict(each) for each in counts],
        "definitions": [msgspec.structs.asdict(each) for each in lists],
    }
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")


def _numbers(figures: Figures) -> dict[str, int]:
    return {key: value for key, value in msgspec.structs.asdict(figures).items() if key != "name"}


def _total(figures: list[Figures]) -> Figures:
    columns = zip(*(msgspec.structs.astuple(each)[1:] for each in figures), strict=True)
    return Figures(None, *map(sum, columns)) if figures else Figures(None, *[0] * 9)


def _print_table(figures: list[Figures], period: Span, by: str) -> None:
    from rich.text import Text

    total = _total(figures)
    stdout = console()
    stdout.print(
        f"In {period.words} the model read {_size(total.visible_after)} instead of "
        f"{_size(total.visible_before)}{_smaller_in_words(total)}.\n{_shown_in_words(total)}"
        f"On the wire: {_size(total.wire_after)} instead of {_size(total.wire_before)}, "
        f"in {total.calls:,} call{'s' * (total.calls != 1)}."
    )
    columns = [
        column
        for column in _COLUMNS
        # Leave out the failures if there are none; a narrow terminal needs the room for names.
        if (total.failed or column is not _FAILED)
        and (total.client_cut or column is not _ALONE)
        and (stdout.width >= _WIDE or column not in _WIRE)
    ]
    lines = table(footer=len(figures) > 1)
    add_column(lines, by, "total")
    for title, figure in columns:
        add_column(lines, f">{title}", figure(total))
    for each in figures:
        # Text, not markup: brackets in a name are printed unchanged.
        name = Text(_NAMELESS[by], "dim") if each.name is None else Text(printable(each.name))
        lines.add_row(name, *(figure(each) for _, figure in columns))
    stdout.print(lines)
    if total.shadow_saves > 0:
        stdout.print(f"Rules in shadow mode would have saved {_size(total.shadow_saves)} more.")


def _print_definitions(lists: list[Definitions]) -> None:
    if not lists:
        return
    sessions = sum(each.sessions for each in lists)
    before, after = sum(each.before for each in lists), sum(each.after for each in lists)
    console().print(
        f"Definitions of tools, once for each of {sessions:,} session{'s' * (sessions != 1)}: "
        f"{_size(after)} instead of {_size(before)}."
    )


def _print_warnings(counts: list[Counted]) -> None:
    from rich.text import Text

    if not counts:
        return
    lines = table("rule", "warned of", ">times")
    for each in counts[:_MAX_WARNINGS]:
        texts = (Text(printable(text)) for text in (each.rule, each.kind))
        lines.add_row(*texts, f"{each.count:,}")
    stdout = console()
    stdout.print(lines)
    more = len(counts) - _MAX_WARNINGS
    if more > 0:
        stdout.print(f"{more:,} more kinds of warnings are in --json.")


_NAMELESS = {by: "no rule" if by == "rule" else "unknown" for by in BY}


def _smaller_in_words(total: Figures) -> str:
    before, after = total.visible_before, total.visible_after
    return f": {_times(before, after)} times smaller" if after and before / after >= 1.05 else ""


def _shown_in_words(total: Figures) -> str:
    """Return a sentence on clients that cut long answers themselves; empty if none would have."""
    if not total.client_cut:
        return ""
    return (
        f"Of the {_size(total.visible_before)} the clients alone would have shown {_alone(total)};"
        " in place of the rest, an error, a file's name or a gap.\n"
    )


def _alone(each: Figures) -> str:
    return _size(each.visible_before - each.client_cut)


def _times(before: int, after: int) -> str:
    return f"{before / after:,.1f}" if after else "–"


def _size(count: int) -> str:
    """Return a number of bytes in three digits and decimal units, as the options take them.

    >>> _size(999), _size(8_250), _size(41_000_000), _size(999_950)
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


Column = tuple[str, Callable[[Figures], str]]
_FAILED: Column = ("failed", lambda each: f"{each.failed:,}")
_ALONE: Column = ("client\nalone", _alone)
_WIRE: tuple[Column, ...] = (
    ("on the\nwire", lambda each: _size(each.wire_after)),
    ("instead\nof", lambda each: _size(each.wire_before)),
)
_COLUMNS: tuple[Column, ...] = (
    ("model\nreads", lambda each: _size(each.visible_after)),
    ("instead\nof", lambda each: _size(each.visible_before)),
    _ALONE,
    ("times\nsmaller", lambda each: _times(each.visible_before, each.visible_after)),
    ("calls", lambda each: f"{each.calls:,}"),
    ("shaped", lambda each: f"{each.shaped:,}"),
    _FAILED,
    *_WIRE,
)
_WIDE = 100
