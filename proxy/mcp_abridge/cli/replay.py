"""`replay`: without it, nobody knows if a rule still fits its server, or hides what is needed."""

import argparse
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from mcp_abridge.cli import options
from mcp_abridge.cli.terminal import (
    console,
    json_text,
    print_lines,
    progress,
    refuse,
    refuse_error,
    say,
    show,
    table,
)
from mcp_abridge.cli.transcripts import sessions_in
from mcp_abridge.document.sizes import size
from mcp_abridge.document.tokens import tokens
from mcp_abridge.errors import AbridgeError
from mcp_abridge.replay.fit import RuleFit
from mcp_abridge.replay.of_session import SessionRules
from mcp_abridge.replay.play import Replay
from mcp_abridge.replay.proof import used_values
from mcp_abridge.replay.recordings import NO_CALL, RecordedSession
from mcp_abridge.ruleset.selection import NO_RULES, Selection
from mcp_abridge.storage.redaction import Redaction

if TYPE_CHECKING:
    from mcp_abridge.cli.page.calls import RecordedCalls

FINDINGS = ("loss", "rot", "drift")
_SHOWN = 10  # of a kind of finding


class ToolSizes(Struct):
    """The answers of a tool under a rule: bytes and tokens that models saw, before and after."""

    tool: str
    rule: str | None
    calls: int = 0
    before: int = 0
    after: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    largest: int = 0


class Account:
    """Adds up what rules do to recordings, session by session."""

    def __init__(self, selection: Selection, client: str | None, limit: int | None) -> None:
        self._selection, self._client, self._limit = selection, client, limit
        self._sizes: dict[tuple[str, str | None], ToolSizes] = {}
        self.fits: dict[tuple[str, str], RuleFit] = {}
        self.sessions = 0
        self.used: list[dict[str, Any]] = []
        self.over: list[dict[str, Any]] = []

    def add(self, session: RecordedSession, report: Callable[[AbridgeError], object]) -> None:
        """Replay the calls of a session; `report` gets the error of each that cannot be."""
        of_session = SessionRules(self._selection, session, self._client)
        for rule_file in of_session.rules.files:
            for rule in rule_file.rules:
                self.fits.setdefault((rule.place, rule.name), RuleFit(rule, rule_file))
        answered = [(file, each) for file, each in of_session.replays(report) if each is not None]
        for file, replay in answered:
            self._count(file, replay)
            applied = replay.applied
            if applied and (fit := self.fits.get((applied.place, applied.name))) is not None:
                fit.add(file, replay)
        for each in used_values([replay for _, replay in answered], json_text(session.tools)):
            file, replay = answered[each.call]
            self.used.append({"file": file, "tool": replay.exchange.tool, **asdict(each)})
        self.sessions += bool(answered)

    def _count(self, file: str, replay: Replay) -> None:
        tool, rule = replay.exchange.tool, replay.applied
        key = tool, None if rule is None else rule.name
        sizes = self._sizes.setdefault(key, ToolSizes(*key))
        (before, after), texts = replay.sizes, replay.texts
        sizes.calls += 1
        sizes.before += before
        sizes.after += after
        sizes.tokens_before += sum(map(tokens, texts[0]))
        sizes.tokens_after += sum(map(tokens, texts[1]))
        sizes.largest = max(sizes.largest, after)
        if self._limit is not None and after > self._limit:
            self.over.append({"file": file, "tool": tool, "bytes": after})

    def report(self) -> dict[str, Any]:
        """Return the sizes by tool and rule, the largest first, and each kind of findings."""
        places = [each["place"] for each in self.used]
        sizes = sorted(self._sizes.values(), key=lambda each: -each.before)
        return {
            "sessions": self.sessions,
            "tools": [asdict(each) for each in sizes],
            "used": {place: places.count(place) for place in ("shown", "view", "lost")},
            "loss": [each for each in self.used if each["place"] == "lost"],
            "rot": [each for fit in self.fits.values() for each in fit.rot()],
            "drift": [each for fit in self.fits.values() for each in fit.drift()],
            "over": self.over,
        }


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument(
        "paths", nargs="+", metavar="DIR", help="recordings or transcripts: folders, files"
    )
    options.add(parser, options.by_name("rules", "allow_python", "budget"))
    parser.add_argument("--client", metavar="NAME", help="the client, in place of the recorded one")
    parser.add_argument(
        "--fail-over", type=size, metavar="SIZE", help="fail if an answer is still larger, as 8kB"
    )
    parser.add_argument(
        "--fail-on",
        type=_kinds,
        default=["loss", "rot"],
        metavar="KINDS",
        help="fail on these of loss, rot, drift, or none (default: loss,rot)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--html", metavar="FILE", help="write a page of all calls and what is shown; - prints it"
    )
    parser.add_argument(
        "--watch", action="store_true", help="serve that page here; it follows rules and recordings"
    )
    parser.add_argument("--open", action="store_true", help="open that page in a browser")
    options.add(parser, options.by_name("redact"))


def _kinds(text: str) -> list[str]:
    kinds = [] if text == "none" else text.split(",")
    if unknown := [kind for kind in kinds if kind not in FINDINGS]:
        choice = ", ".join(FINDINGS)
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {choice}; or write none")
    return kinds


def run(arguments: argparse.Namespace) -> int:
    """Print what the rules do, or write or serve a page of it.

    Returns 1 if they fail, 2 if a recording cannot be replayed. Raises AbridgeError or OSError.
    """
    for path in arguments.paths:
        if not os.path.lexists(path):  # what is not there should not be taken for empty
            return refuse("replay", NO_CALL.format(f"{path}, which is not there"))
    if arguments.html is not None or arguments.watch:
        return _show_page(arguments)
    if arguments.open:
        return refuse("replay", "--open is for a page: --html FILE, or --watch")
    selection = options.selection(arguments)
    account = Account(selection, arguments.client, arguments.fail_over)
    unusable: list[AbridgeError | OSError] = []
    for session, _ in sessions_in(arguments.paths, unusable.append):
        account.add(session, unusable.append)
        progress(f"{account.sessions} sessions")
    for error in unusable:
        refuse_error("replay", error)
    if not account.sessions and unusable:
        return 2
    if not account.sessions:
        return refuse("replay", NO_CALL.format(", ".join(arguments.paths)))
    report = account.report()
    show(arguments, report, _print)
    applied = any(each["rule"] not in (None, "budget") for each in report["tools"])
    if not applied and arguments.rules not in (None, [NO_RULES]):
        say("replay", "no rule applied: the rule files are for other servers or other tools")
    if unusable:
        return 2
    return int(bool(report["over"] or any(report[kind] for kind in arguments.fail_on)))


def _show_page(arguments: argparse.Namespace) -> int:
    from mcp_abridge.cli.page import calls, write

    if arguments.json:
        return refuse(
            "replay", "--json prints the figures without a page; leave one of the two out"
        )
    if arguments.watch:
        from mcp_abridge.cli.page.watch import serve

        return serve(arguments, partial(_recorded_calls, arguments))
    selection = options.selection(arguments)
    recorded = _recorded_calls(arguments)
    if not recorded.calls:
        return refuse("replay", NO_CALL.format(", ".join(arguments.paths)))
    note = " with the recorded answers; you alone can read the file"
    write("replay", arguments.html, calls.page(recorded, selection, progress), note)
    if arguments.open and arguments.html != "-":
        import webbrowser

        webbrowser.open(Path(arguments.html).absolute().as_uri())
    return 0


def _recorded_calls(arguments: argparse.Namespace) -> "RecordedCalls":
    """Return the calls in the recordings and transcripts, masked; errors are printed."""
    from mcp_abridge.cli.page.calls import RecordedCalls

    messages = set[str]()

    def report(error: AbridgeError | OSError) -> None:
        if str(error) not in messages:  # a call is replayed for each client
            messages.add(str(error))
            refuse_error("replay", error)

    masks = Redaction(arguments.redact or ())
    sessions = [session for session, _ in sessions_in(arguments.paths, report)]
    for session in sessions:
        session.exchanges = [
            (file, each.masked(masks.request(each.request), masks.response(each.response)))
            for file, each in session.exchanges
        ]
    return RecordedCalls(sessions, arguments.client, report)


def _print(report: dict[str, Any]) -> None:
    rows = table("tool", "rule", ">calls", ">bytes", ">after", ">about tokens", ">after", ">saved")
    for each in report["tools"]:
        sizes = ("calls", "before", "after", "tokens_before", "tokens_after")
        saved = f"{1 - each['after'] / max(1, each['before']):.0%}"
        counts = (f"{each[name]:,}" for name in sizes)
        rows.add_row(each["tool"], each["rule"] or "", *counts, saved)
    console().print(rows)
    used = report["used"]
    lines = [
        f"Values of answers that later calls used: {sum(used.values())}; still shown:"
        f" {used['shown']}, a view or page away: {used['view']}, lost: {used['lost']}."
    ]
    for kind, line in (
        ("loss", "lost: {file}: {path}: {value:.60}: {user}"),
        ("rot", "rot: {place}: {rule}: {reason}; answers: {answers}"),
        ("drift", "new: {place}: {rule}: {member}, as in {file}"),
        ("over", "over: {file}: {tool}: {bytes:,} bytes"),
    ):
        findings = report[kind]
        lines += [line.format(**each) for each in findings[:_SHOWN]]
        if len(findings) > _SHOWN:
            lines.append(f"  and {len(findings) - _SHOWN} more (--json has all)")
    print_lines(*lines)
