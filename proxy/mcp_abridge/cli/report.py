"""`mcp-abridge report`: print savings and warnings from the ledger, as tables or as JSON."""

import argparse
import os
import time

from msgspec import Struct
from msgspec.structs import asdict

from mcp_abridge.cli.figures import (
    BYTES_PER_TOKEN,
    NAMELESS,
    TableColumn,
    counts,
    size_text,
    sizes,
    telling,
    times_text,
    tokens_text,
    total_of,
)
from mcp_abridge.cli.terminal import console, count_text, json_text, put, refuse, say, table
from mcp_abridge.document.printable import printable
from mcp_abridge.session.looks import MANY
from mcp_abridge.storage import ledger_totals
from mcp_abridge.storage.ledger import default_path, home_path
from mcp_abridge.storage.ledger_totals import BY, Figures, asked_on
from mcp_abridge.storage.meter import Definitions, Warnings
from mcp_abridge.system import platform

_UNITS = {
    "m": (60, "minutes"),
    "h": (3_600, "hours"),
    "d": (86_400, "days"),
    "w": (604_800, "weeks"),
}
_FOOT = f"""<footer>
<p>These are sizes and names; the ledger holds no content. Sizes are bytes of what the model reads.
A token is taken as {BYTES_PER_TOKEN} bytes, the median of recorded answers;
<code>mcp-abridge weigh</code> estimates tokens from the texts.</p>
</footer>
"""
_FEW_SECONDS = 2 * 86_400  # a longer period is shown by days
_MAX_WARNINGS = 20
_MAX_TOOLS = 3  # of which the looks are called bad
_FEWEST, _SHARE = 3, 0.25  # of looks after which more was asked for, that one says so


class Span(Struct, frozen=True):
    """A period of the report: the last `seconds` (None: everything), and its name in `words`."""

    seconds: int | None
    words: str

    def since(self, now: float) -> float | None:
        return None if self.seconds is None else now - self.seconds


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument(
        "--since", type=span, default="7d", metavar="SPAN", help="30m, 12h, 7d (default), 2w or all"
    )
    parser.add_argument("--by", choices=BY, default="tool", help="what to sum by (default: tool)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument(
        "--html", metavar="FILE", help="write a page with charts, by all keys; - prints it"
    )
    parser.add_argument(
        "--ledger",
        metavar="PATH",
        help="the ledger to read (default: the one that `run`, `serve` and `hook` write)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the report, or write its page.

    Returns 1 if the page would be empty. Raises LedgerError, or OSError if it cannot be written.
    """
    path = arguments.ledger or os.environ.get("MCP_ABRIDGE_LEDGER") or default_path()
    if path == "off":
        return refuse("report", "the ledger is off; say which one to read: --ledger PATH")
    period: Span = arguments.since
    now = time.time()
    since = period.since(now)
    # The first recorded call creates the default file; a file named by --ledger must exist.
    absent = arguments.ledger is None and not os.path.exists(path)
    figures = [] if absent else ledger_totals.rows(path, since, arguments.by)
    warned = [] if absent else ledger_totals.warnings(path, since)
    lists = [] if absent else ledger_totals.definitions(path, since)
    earlier = not (figures or absent) and bool(ledger_totals.rows(path))
    if arguments.html and figures:
        _write_page(arguments.html, path, period, now)
    if arguments.json:
        document = {
            "ledger": path,
            "since": None if since is None else int(since),
            "by": arguments.by,
            "total": {key: n for key, n in asdict(total_of(figures)).items() if key != "name"},
            "rows": [asdict(each) for each in figures],
            "warnings": [asdict(each) for each in warned],
            "definitions": [asdict(each) for each in lists],
        }
        put(f"{json_text(document, indent=2)}\n")
    elif figures and not arguments.html:
        _print_table(figures, period, arguments.by)
        if arguments.by == "tool":
            _print_bad_looks(figures)
        _print_rest(lists, warned)
    if earlier:
        say("report", f"nothing was recorded in {period.words}; try --since all")
    elif not figures:
        say(
            "report",
            f"nothing is recorded yet in {path}; wrap a server (`mcp-abridge wrap`), let a model"
            " call one of its tools and come back",
        )
    if path == default_path() != home_path() and os.path.exists(home_path()):
        say(
            "report",
            f"this was {path}; clients that do not pass XDG_STATE_HOME on, such as Codex, have"
            f" another one: mcp-abridge report --ledger {platform.join([home_path()])}",
        )
    return 1 if arguments.html and not figures else 0


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
    (seconds, noun), count = _UNITS[unit], int(number)
    return Span(count * seconds, f"the last {noun[:-1] if count == 1 else f'{count} {noun}'}")


def _write_page(file: str, path: str, period: Span, now: float) -> None:
    from mcp_abridge.cli.page import render, sums, write

    until = time.strftime("%Y-%m-%d %H:%M", time.localtime(now))
    few = period.seconds is not None and period.seconds <= _FEW_SECONDS
    html = sums.html(sums.read(path, period.since(now), by_hour=few))
    page = render("mcp-abridge report", f"In {period.words}, until {until}", html + _FOOT)
    write("report", file, page)


def _print_table(figures: list[Figures], period: Span, by: str) -> None:
    total = total_of(figures)
    stdout = console()
    before, after = total.visible_before, total.visible_after
    calls, wire = count_text(total.calls, "call"), size_text(total.wire_before)
    largest = f", {size_text(total.largest)} in the largest" if total.largest else ""
    if total.cuts_after:
        largest += f"; clients still cut {count_text(total.cuts_after, 'answer')}"
    smaller = after and before / after >= 1.05
    times = f", {times_text(before, after)} times as much" if smaller else ""
    stdout.print(
        f"In {period.words} the model read at most {size_text(after)} ({tokens_text(after)}) in "
        f"{calls}{largest}.\nThe servers sent {size_text(before)}{times}; on the wire, {wire} "
        f"became {size_text(total.wire_after)}."
    )
    if total.client_cut:
        cut = f" of {count_text(total.cuts_before, 'answer')}" if total.cuts_before else ""
        stdout.print(
            f"Of that, the clients alone would have shown {size_text(before - total.client_cut)}; "
            f"in place of the rest{cut}, an error, a file's name or a gap."
        )
    # A narrow terminal needs the room for names.
    columns = telling(_COLUMNS if stdout.width >= _WIDE else _COLUMNS[:_NARROW], figures)
    footers = ["total", *(column.cell(total) for column in columns)] if len(figures) > 1 else []
    lines = table(by, *(f">{column.title}" for column in columns), footers=footers)
    for each in figures:
        name = NAMELESS[by] if each.name is None else each.name
        lines.add_row(name, *(column.cell(each) for column in columns))
    stdout.print(lines)
    if total.shadow_saves > 0:
        stdout.print(f"Rules in shadow mode would have saved {size_text(total.shadow_saves)} more.")


def _print_bad_looks(figures: list[Figures]) -> None:
    bad = [each for each in figures if asked_on(each) >= max(_FEWEST, _SHARE * each.looks)]
    for each in sorted(bad, key=lambda each: -asked_on(each))[:_MAX_TOOLS]:
        # Answers from before the period, or that two replicas were asked for, exceed the looks.
        count = asked_on(each)
        of = f" of {each.looks:,}" if each.looks >= count else ""
        console().print(
            f"After {count:,}{of} shortened answers of "
            f"{printable(each.name or '')} the model asked for all of it, or for {MANY} parts and"
            " more: a rule fits it better (mcp-abridge suggest -- COMMAND)."
        )


def _print_rest(lists: list[Definitions], counts: list[Warnings]) -> None:
    stdout = console()
    if lists:
        sessions = sum(each.sessions for each in lists)
        before, after = sum(each.before for each in lists), sum(each.after for each in lists)
        stdout.print(
            f"Definitions of tools, once for each of {count_text(sessions, 'session')}: "
            f"{size_text(after)} instead of {size_text(before)}."
        )
    if not counts:
        return
    lines = table("rule", "warned of", ">times")
    for each in counts[:_MAX_WARNINGS]:
        lines.add_row(each.rule, each.kind, f"{each.count:,}")
    stdout.print(lines)
    more = len(counts) - _MAX_WARNINGS
    if more > 0:
        stdout.print(f"{more:,} more kinds of warnings are in --json.")


_COLUMNS = (
    counts("calls", "calls"),
    sizes("model\nreads", "visible_after"),
    sizes("largest", "largest"),
    counts("still\ncut", "cuts_after"),
    sizes("instead\nof", "visible_before"),
    TableColumn(
        "times\nsmaller", lambda each: times_text(each.visible_before, each.visible_after), str
    ),
    counts("failed", "failed"),
    counts("short\nanswers", "looks"),
    TableColumn("more\nasked", asked_on, "{:,}".format),
    counts("called\nagain", "called_again"),
    counts("alone\ncut", "cuts_before"),
    counts("shaped", "shaped"),
    sizes("on the\nwire", "wire_after"),
    sizes("instead\nof", "wire_before"),
)
_WIDE = 100  # columns of a terminal
_NARROW = 7  # of these columns
