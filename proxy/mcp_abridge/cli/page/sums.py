"""The sums of a ledger as HTML: what is still large, and what was saved.

Without it, the largest tool of a busy week is found by reading tables in a terminal.
"""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from msgspec import Struct

from mcp_abridge.cli.figures import (
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
from mcp_abridge.cli.terminal import count_text
from mcp_abridge.document.printable import printable
from mcp_abridge.storage import ledger_totals
from mcp_abridge.storage.ledger_totals import Figures, asked_on
from mcp_abridge.storage.meter import Definitions, Warnings

_KEYS = ("tool", "client", "rule", "server")


class Sums(Struct, frozen=True):
    """The sums of a period: by tool and so on, by day or hour in order, and what is beside them."""

    figures: Mapping[str, list[Figures]]
    times: list[Figures]
    warnings: list[Warnings]
    definitions: list[Definitions]

    @property
    def total(self) -> Figures:
        return total_of(self.figures["tool"])


def read(path: str, since: float | None, *, by_hour: bool) -> Sums:
    """Read the ledger at `path`, since a time in unix seconds. Raises LedgerError."""
    return Sums(
        {by: ledger_totals.rows(path, since, by) for by in _KEYS},
        ledger_totals.rows(path, since, "hour" if by_hour else "day"),
        ledger_totals.warnings(path, since),
        ledger_totals.definitions(path, since),
    )


def html(sums: Sums) -> str:
    """Return the sums as HTML: totals, what is still large, over time, what was saved, the rest."""
    parts = (
        _totals(sums.total, sums.definitions),
        _large(sums),
        _over_time(sums.times),
        _saved(sums),
        _others(sums),
    )
    return "\n".join(parts)


def _totals(total: Figures, definitions: list[Definitions]) -> str:
    before, after = total.visible_before, total.visible_after
    listed = sum(each.before for each in definitions), sum(each.after for each in definitions)
    read = f"{tokens_text(after)} in {count_text(total.calls, 'call')}"
    rows = [
        ("Model read at most", size_text(after), read),
        ("Largest answer", size_text(total.largest), "as the client got it"),
        ("Cut by clients", f"{total.cuts_after:,}", f"{total.cuts_before:,} without the proxy"),
        ("Servers sent", size_text(before), f"{times_text(before, after)} times as much"),
        ("Saved", size_text(before - after), f"{_share(before - after, before):.0%}"),
        ("Definitions of tools", size_text(listed[1]), f"instead of {size_text(listed[0])}"),
    ]
    tiles = (
        f"<div><dt>{title}</dt><dd><strong>{text}</strong> {note}</dd></div>\n"
        for title, text, note in rows
        if text != size_text(0)  # such as of a client that has listed no tools
    )
    return f'<dl class="totals">\n{"".join(tiles)}</dl>'


def _large(sums: Sums) -> str:
    read = sums.total.visible_after
    columns = (
        _CALLS,
        _READ,
        TableColumn("Share", lambda each: _share(each.visible_after, read), _bar),
        TableColumn(
            "Average", lambda each: round(_share(each.visible_after, each.calls)), size_text
        ),
        sizes("Largest", "largest"),
        counts("Still cut", "cuts_after"),
        counts("Cut without the proxy", "cuts_before"),
        counts("Shortened, the rest kept", "looks"),
        TableColumn("Asked for all or several parts of", asked_on, "{:,}".format),
        counts("Called again", "called_again"),
    )
    return _section(
        "Still large",
        "What the model read, unless its client cut it. A client cuts an answer that is longer "
        "than its limit: an error, a file’s name or a gap stands in place of the rest. "
        "An answer that passed unparsed counts with its envelope and every copy. "
        "Of a tool whose shortened answers are often asked for all or several parts, a rule may "
        "show the right part at once.",
        *(
            _figures(by, columns, sums.figures[by], total=by == "tool", first=_READ)
            for by in ("tool", "client")
        ),
    )


def _over_time(times: list[Figures]) -> str:
    rows = _table("By time", (_name("time"), _CALLS, _BEFORE, _READ), times)
    return _section(
        "Over time",
        "What the servers sent, and what of that the model read.",
        '<div id="chart" role="img" aria-label="Bytes that the servers sent, and that the model '
        'read, over time. A table of them follows."></div>',
        f'<details id="times"><summary>As a table</summary>\n{rows}</details>',
    )


def _saved(sums: Sums) -> str:
    columns = (
        _CALLS,
        counts("Shaped", "shaped"),
        counts("Failed", "failed"),
        _BEFORE,
        _READ,
        _SAVED,
        TableColumn("Saved share", lambda each: _share(_saved_by(each), each.visible_before), _bar),
        sizes("In shadow mode", "shadow_saves"),
    )
    return _section(
        "Saved",
        "What rules and budgets took off. A rule in shadow mode only measures what it would.",
        *(
            _figures(by, columns, sums.figures[by], first=_SAVED)
            for by in ("rule", "tool", "server")
        ),
    )


def _others(sums: Sums) -> str:
    html = ""
    if sums.definitions:
        columns = [
            TableColumn("Server", lambda each: each.server or NAMELESS["server"], _escape),
            counts("Sessions", "sessions"),
            sizes("Server sent", "before"),
            sizes("Client got", "after"),
        ]
        note = "The list of tools, which a client reads once in each session."
        rows = _table("By server", columns, sums.definitions)
        html += _section("Definitions of tools", note, rows)
    if sums.warnings:
        columns = [
            TableColumn("Rule", lambda each: each.rule, _escape),
            TableColumn("Warned of", lambda each: each.kind, _escape),
            counts("Times", "count"),
        ]
        rows = _table("By rule and kind", columns, sums.warnings)
        html += _section("Warnings", "What rules warned of.", rows)
    return html


def _section(title: str, note: str, *parts: str) -> str:
    name = title.lower().replace(" ", "-")
    return (
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{title}</h2>\n<p>{note}</p>\n'
        f"{''.join(parts)}</section>\n"
    )


def _figures(
    by: str,
    columns: Iterable[TableColumn],
    figures: list[Figures],
    *,
    first: TableColumn,
    total: bool = False,
) -> str:
    rows = sorted(figures, key=first.value, reverse=True)
    total_row = total_of(figures) if total and len(figures) > 1 else None
    return _table(f"By {by}", (_name(by), *telling(columns, rows)), rows, first, total_row)


def _table(
    caption: str,
    columns: Iterable[TableColumn],
    rows: Iterable[Any],
    first: TableColumn | None = None,
    total: Figures | None = None,
) -> str:
    columns = list(columns)
    body = [_row(columns, row) for row in rows]
    foot = "" if total is None else f"<tfoot>\n{_row(columns, total, 'Total')}</tfoot>\n"
    heads = "".join(
        f'<th scope="col"{" aria-sort=descending" * (column is first)}>{column.title}</th>'
        for column in columns
    )
    return (
        f'<div class="scroll">\n<table>\n'
        f"<caption>{caption}</caption>\n<thead>\n<tr>{heads}</tr>\n</thead>\n"
        f"<tbody>\n{''.join(body)}</tbody>\n{foot}</table>\n</div>\n"
    )


def _row(columns: list[TableColumn], row: Any, title: str | None = None) -> str:
    head, *rest = columns
    html = f'<th scope="row">{title or head.cell(row)}</th>'
    for column in rest:
        value = column.value(row)
        number = "" if isinstance(value, str) else f' data-value="{value}"'
        html += f"<td{number}>{column.text(value)}</td>"
    return f"<tr>{html}</tr>\n"


def _name(by: str) -> TableColumn:
    return TableColumn(by.title(), lambda each: each.name or NAMELESS.get(by, "unknown"), _escape)


def _saved_by(figures: Figures) -> int:
    return figures.visible_before - figures.visible_after


def _bar(share: float) -> str:
    return (
        f'{share:.0%} <svg aria-hidden="true"><rect width="100%" height="100%"/>'
        f'<rect class="part" width="{max(share, 0):.1%}" height="100%"/></svg>'
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _escape(text: str) -> str:
    return escape(printable(text))


_CALLS = counts("Calls", "calls")
_BEFORE = sizes("Servers sent", "visible_before")
_READ = sizes("Model read", "visible_after")
_SAVED = TableColumn("Saved", _saved_by, size_text)
