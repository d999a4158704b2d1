"""`weigh`: without it, nobody knows what a proxy would save before one is installed."""

import argparse
import os
import time
from collections.abc import Iterable
from functools import partial

from msgspec import Struct
from msgspec.structs import asdict, astuple

from mcp_abridge.cli import transcripts
from mcp_abridge.cli.report import Span, span
from mcp_abridge.cli.terminal import (
    console,
    count_text,
    print_lines,
    refuse_error,
    say,
    show,
    table,
)
from mcp_abridge.cli.transcripts import ToolAnswer
from mcp_abridge.document.tokens import tokens
from mcp_abridge.errors import AbridgeError
from mcp_abridge.replay.exchanges import make, text_result
from mcp_abridge.replay.play import Replay
from mcp_abridge.replay.recordings import SESSION
from mcp_abridge.ruleset.clients import client_for
from mcp_abridge.ruleset.selection import Selection

_SHOWN = 10  # tools


class Weight(Struct):
    """The answers of a tool: bytes and tokens that models read, and what the budget would leave.

    `cut` answers were cut by the client; `whole` are the bytes of the server, as far as known. The
    answers `to_scripts` go there whole, with or without a budget; what the scripts print is read.
    """

    tool: str
    calls: int = 0
    read: int = 0
    tokens: int = 0
    largest: int = 0
    cut: int = 0
    whole: int = 0
    in_budget: int = 0
    to_scripts: int = 0


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="transcripts, recordings or folders of them (default: of Claude Code and Codex)",
    )
    parser.add_argument(
        "--since", type=span, default="30d", metavar="SPAN", help="12h, 30d (default), 2w or all"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the tools whose answers were largest. Returns 1 if there are none; raises OSError."""
    paths = arguments.paths or transcripts.folders(os.environ)
    endings = (transcripts.ENDING, SESSION)
    for path in paths:
        os.stat(path)  # if there is no such folder, it should not be taken for an empty one
        if not os.path.isdir(path) and not path.endswith(endings):
            wrong = f"{path}: expected a transcript ({transcripts.ENDING}), a folder of them"
            raise AbridgeError(f"{wrong}, or {SESSION} of a recording")
    period: Span = arguments.since
    since = period.since(time.time()) or 0.0
    report = partial(refuse_error, "weigh")
    sessions = [path for each in endings for path in transcripts.files(paths, since, each, report)]
    every = (answer for path in sessions for answer in transcripts.answers(path, report))
    weights = sorted(weigh(every), key=lambda weight: -max(weight.read, weight.whole))
    if weights or arguments.json:
        rows = [asdict(weight) for weight in weights]
        show(arguments, rows, lambda _: _print(weights, len(sessions), period))
    if not weights:
        looked = ", ".join(paths) or "~/.claude/projects and ~/.codex/sessions"
        say(
            "weigh",
            f"no answer of an MCP tool in {count_text(len(sessions), 'session')} of {period.words}"
            f" in {looked}; try --since all, or name another folder",
        )
    return 0 if weights else 1


def weigh(answers: Iterable[ToolAnswer]) -> list[Weight]:
    """Sum up answers by tool."""
    weights: dict[str, Weight] = {}
    for answer in answers:
        weight = weights.setdefault(answer.tool, Weight(answer.tool))
        weight.calls += 1
        weight.read += len(answer.text.encode())
        weight.tokens += tokens(answer.text)
        weight.cut += answer.cut
        if answer.to_script is not None:
            weight.to_scripts += 1
            weight.whole += answer.to_script
            weight.largest = max(weight.largest, answer.to_script)
            weight.in_budget += len(answer.text.encode())
        elif answer.whole is not None:
            size = len(answer.whole.encode())
            weight.whole += size
            weight.largest = max(weight.largest, size)
            weight.in_budget += min(size, _in_budget(answer, answer.whole))
    return list(weights.values())


def _in_budget(answer: ToolAnswer, text: str) -> int:
    if len(text) * 4 <= client_for(answer.client).budget_bytes:
        return len(text.encode())
    rules = Selection((), None, lambda _: None)(None, answer.client)
    exchange = answer.exchange or make(answer.tool, {}, text_result(text))
    return Replay(rules, exchange, client=answer.client).sizes[1]


def _print(weights: list[Weight], sessions: int, period: Span) -> None:
    names = ("tokens", "read", "calls", "cut")
    total, read, calls, cut = (sum(getattr(each, name) for each in weights) for name in names)
    print_lines(
        f"{count_text(calls, 'answer')} of {count_text(len(weights), 'MCP tool')} in"
        f" {count_text(sessions, 'session')} of {period.words}: {read:,} bytes, about {total:,}"
        f" tokens; {cut:,} were cut or saved to a file by the client."
    )
    if to_scripts := sum(each.to_scripts for each in weights):
        print_lines(
            f"{to_scripts:,} of them went to scripts (code mode), which get them whole; what a"
            " script printed is read, and counted at the largest of its answers."
        )
    columns = ("tool", ">calls", ">bytes read", ">about tokens", ">largest", ">cut by client")
    rows = table(*columns, ">server sent", ">budget leaves")
    for each in weights[:_SHOWN]:
        tool, *sizes, _ = astuple(each)
        rows.add_row(tool, *(f"{size:,}" for size in sizes))
    console().print(rows)
    print_lines("Next: `mcp-abridge wrap` lists your clients' servers; `wrap --all` wraps them")
