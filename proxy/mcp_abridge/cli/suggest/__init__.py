"""`suggest`: without it, somebody has to read answers of 500 kB to write the first rule."""

import argparse
import os
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from mcp_abridge.cli import PROGRAM, server, transcripts
from mcp_abridge.cli.suggest import calls
from mcp_abridge.cli.suggest.draft import SMALL, Answered, drafted
from mcp_abridge.cli.suggest.rules import DraftedRule, Suggestion, page, rules_of
from mcp_abridge.cli.suggest.types import learned
from mcp_abridge.cli.terminal import check_output, put, refuse_error, say, short_list, show
from mcp_abridge.cli.transcripts import Words
from mcp_abridge.document.message import READ
from mcp_abridge.document.tree import plain
from mcp_abridge.errors import AbridgeError, did_you_mean
from mcp_abridge.replay import answers
from mcp_abridge.replay.recordings import NO_CALL, RecordedSession
from mcp_abridge.replay.usage import Usage
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.session.looks import MANY
from mcp_abridge.storage import ledger_totals
from mcp_abridge.storage.ledger import LedgerError, default_path
from mcp_abridge.storage.meter import Looks
from mcp_abridge.system import platform


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.usage = f"{PROGRAM} suggest [OPTION]... (PATH... | URL | -- COMMAND [ARG]...)"
    parser.add_argument(
        "paths",
        nargs="*",
        default=[],
        metavar="PATH",
        help="recordings: folders of --record, saved calls, or transcripts (.jsonl)",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="a new file for the rules (of a server: NAME.yaml)"
    )
    parser.add_argument("--server", metavar="NAME", help="the server, if there are several")
    parser.add_argument("--force", action="store_true", help="replace FILE if it is there")
    parser.add_argument("--json", action="store_true", help="print the evidence as JSON")
    parser.add_argument(
        "--types", action="store_true", help="only the types of answers (output_schema)"
    )
    parser.add_argument(
        "--strict", action="store_true", help="with --types: refuse answers of another type"
    )
    calls.add(parser)
    server.add(parser, "record", "redact")


def run(arguments: argparse.Namespace) -> int:
    """Print a rule file, or write it. Raises AbridgeError or OSError if there is nothing of use.

    Returns 2 if no recording can be read, and 1 if the calls of a server show no rule.
    """
    if arguments.strict and not arguments.types:
        raise AbridgeError("--strict is for --types")
    if arguments.output:
        check_output(arguments.output, force=arguments.force)
    paths = server.without_url(arguments, arguments.paths)
    if paths and (arguments.command or arguments.url):
        raise AbridgeError("recordings, or one server; not both")
    if paths:
        suggestion = _suggestion(arguments, paths, used=True)
        return 2 if suggestion is None else 0
    server.check(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.record or scratch
        arguments.server = calls.record(arguments, folder)
        suggestion = _suggestion(arguments, [folder], used=False)
    return int(suggestion is None or not suggestion.rows)


def _suggestion(
    arguments: argparse.Namespace, paths: list[str], *, used: bool
) -> Suggestion | None:
    """Show what recordings suggest; return it, None if they cannot be read."""
    unusable: list[AbridgeError | OSError] = []
    recordings = list(transcripts.sessions_in(paths, unusable.append))
    for error in unusable:
        refuse_error("suggest", error)
    empty = not any(session.exchanges or session.cut for session, _ in recordings)
    if empty and unusable:
        return None
    if empty:
        nothing = "no call was answered, so that there is nothing to draft from"
        raise AbridgeError(NO_CALL.format(", ".join(paths)) if used else nothing)
    servers = list(dict.fromkeys(each.server for each, _ in recordings if each.server))
    names, name = ", ".join(servers), arguments.server
    if name is None and len(servers) > 1:
        choice = f"choose one by --server: {names}"
        raise AbridgeError(f"these are recordings of several servers; {choice}")
    if name not in (*servers, None):
        advice = did_you_mean(name, servers) or f"; there are: {names}"
        raise AbridgeError(f"no recording of a server {name!r}{advice}")
    name = name or next(iter(servers), None)
    own = (each for each in recordings if each[0].server in (name, None))
    if arguments.types:
        suggestion = learned(*gather(own, used=used), strict=arguments.strict)
    else:
        suggestion = suggest(own, used=used)
    show(arguments, suggestion.rows, lambda _: _write(suggestion, arguments))
    return suggestion


def _write(suggestion: Suggestion, arguments: argparse.Namespace) -> None:
    path = arguments.output
    if suggestion.rows and not path:
        put(suggestion.text)
    elif suggestion.rows:
        with open(path, "w" if arguments.force else "x", encoding="utf-8") as file:
            file.write(suggestion.text)
    what, reasons = "types" if arguments.types else "rule", suggestion.unusable
    for reason in dict.fromkeys(reasons.values()):
        names = ", ".join(tool for tool, each in reasons.items() if each == reason)
        say("suggest", f"no {what} for {names}: {reason}")
    for line in suggestion.lines:
        say("suggest", line)
    if suggestion.rows and path:
        options = f"--rules {platform.join([path])}"
        say("suggest", f"next: read {path}; then: {PROGRAM} wrap NAME {options}")


def gather(
    recordings: Iterable[tuple[RecordedSession, Words]], *, used: bool
) -> tuple[str | None, dict[str, list[Answered]], dict[str, Any], dict[str, str]]:
    """Return the name of the server of recordings, its answers by tool, and the tools it lists.

    Last are the tools without an answer of use, with the reason. See `suggest`.
    """
    tools: dict[str, list[Answered]] = {}
    unusable: dict[str, str] = {}
    listed: dict[str, Any] = {}
    server = None
    for session, words in recordings:
        if not session.path.endswith(transcripts.ENDING):  # it has the client's name of a server
            server = session.server
        calls = [(each.tool, each.arguments) for _, each in session.exchanges]
        usage = Usage(calls, words)
        listed |= session.tools
        unusable |= dict.fromkeys(session.cut, _CUT)
        for number, (_, exchange) in enumerate(session.exchanges):
            if exchange.tool == READ:
                continue
            view = answers.read(exchange.response)
            located = None if view.failed else answers.located(exchange.response, _ANY)
            if located is None:
                several = _SEVERAL if len(view.texts) > 1 else _NO_TEXT
                unusable[exchange.tool] = _ERRORS if view.failed else several
            else:
                value = plain(located.document.root.get())
                size = view.visible_size.most
                later = used and (number + 1 < len(calls) or any(n > number for n, _ in words))
                each = Answered(exchange, value, size, partial(usage.user, number), later)
                tools.setdefault(exchange.tool, []).append(each)
    unusable = {tool: reason for tool, reason in unusable.items() if tool not in tools}
    return server, tools, listed, unusable


def suggest(recordings: Iterable[tuple[RecordedSession, Words]], *, used: bool) -> Suggestion:
    """Draft rules from the recordings of one server; `used`: by a model, which chose the calls.

    The tool whose answers in short were most often too little comes first.
    """
    server, tools, _, unusable = gather(recordings, used=used)
    counts = _looks(server)
    small = sorted(tool for tool, each in tools.items() if max(a.size for a in each) <= SMALL)
    noisy = [drafted(*each) for each in tools.items() if each[0] not in small]
    on = {tool: ledger_totals.asked_on(each) for tool, each in counts.items()}
    noisy.sort(key=lambda draft: (-on.get(draft.tool, 0), -sum(a.size for a in draft.answers)))
    names = ", ".join(small)
    lines = [f"no rule for {names}: no answer above {SMALL:,} bytes"] if small else []
    for draft in noisy:
        if draft.tool in counts and (line := _sentence(counts[draft.tool])):
            lines.append(f"{draft.tool}: {line}")
            draft.evidence.insert(0, line)
    rules = list(rules_of(noisy))
    lines += map(_line, rules)
    return Suggestion(page(server, rules, small), [*map(_row, rules)], lines, unusable)


def _row(rule: DraftedRule) -> dict[str, Any]:
    return {
        "tools": rule.tools,
        "answers": sum(len(each.answers) for each in rule.drafts),
        "before": rule.before,
        "after": rule.after,
        "misfits": rule.misfits,
        "evidence": [line for each in rule.drafts for line in each.evidence],
        "used": [line for each in rule.drafts for line in each.users],
        "steps": rule.steps,
    }


def _line(rule: DraftedRule) -> str:
    off = 1000 * (rule.before - rule.after) // max(rule.before, 1) / 10
    line = f"{rule.before:,} bytes become {rule.after:,}, {off:g} % less"
    line += f"; {rule.misfits} do not fit and stay" if rule.misfits else ""
    if drops := [path for step in rule.steps for path in step.get("drop", ())]:
        line += f"; no view brings back {short_list(drops)}"
    return f"{', '.join(rule.tools)}: {line}"


def _looks(server: str | None) -> dict[str, Looks]:
    """Return the answers in short of a server and what was asked of them, by tool."""
    path = os.environ.get("MCP_ABRIDGE_LEDGER") or default_path()
    if server is None or path == "off" or not os.path.exists(path):
        return {}
    try:
        sums = ledger_totals.looks(path, time.time() - _DAYS * 86_400, server=server)
    except LedgerError as error:
        say("suggest", f"{error}; so rules are in the order of the bytes of answers")
        return {}
    return {tool or "": Looks(tool or "", None, server, None, *each) for tool, each in sums.items()}


def _sentence(looks: Looks) -> str:
    signs = (
        (ledger_totals.asked_on(looks), f"asked for all, or for {MANY} parts and more,"),
        (looks.called_again, "made the same call again"),
    )
    words = " and ".join(f"{did} after {count:,}" for count, did in signs if count)
    of = f"{looks.looks:,} shortened answers of the last {_DAYS} days"
    return f"the model {words} of {of}" if words else ""


_DAYS = 7
_CUT = "the client kept no whole answer; `mcp-abridge --record DIR` does"
_ERRORS = "its answers are errors"
_NO_TEXT = "its answers have no text"
_SEVERAL = (
    "its answers are several text blocks; the budget cuts them, and `document: blocks` in a rule"
    " of your own takes them for a list"
)
_ANY = Rule(name="any", tools=("*",))
