"""Recorded calls for the page: without them, it is not seen which answers a rule should be for.

The page carries figures of all calls, and the answers of those that the model reads most of, as far
as they have room.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Raw, Struct

from mcp_abridge.cli.page import data, own_file, render
from mcp_abridge.cli.page.answer import detail
from mcp_abridge.cli.terminal import count_text, json_text
from mcp_abridge.document.printable import printable
from mcp_abridge.document.tokens import tokens
from mcp_abridge.errors import AbridgeError
from mcp_abridge.replay.exchanges import RecordedExchange
from mcp_abridge.replay.of_session import SessionRules
from mcp_abridge.replay.play import Replay
from mcp_abridge.replay.proof import UsedValue, used_values
from mcp_abridge.replay.recordings import RecordedSession
from mcp_abridge.ruleset.clients import client_for
from mcp_abridge.ruleset.selection import Selection

CLIENTS = {
    "Claude Code": "claude-code",
    "Codex": "codex-mcp-client",
    "VS Code": "Visual Studio Code",
    "Copilot CLI": "copilot-cli",
    "opencode": "opencode",
    "any other client": "unknown client",
}
"""The clients that the page can choose beside the first one."""
_ROOM = 20_000_000  # bytes of answers in a page
_SHORT = 200  # characters of the arguments of a call in the list


class CallFigures(Struct):
    """Bytes and tokens of one answer for a client, before and after, and the values used later."""

    before: int
    after: int
    tokens_before: int
    tokens_after: int
    rule: str | None
    outcome: str
    used: list[UsedValue] = []

    @property
    def row(self) -> list[Any]:
        places = [each.place for each in self.used]
        used = [places.count(place) for place in ("shown", "view", "lost")]
        sizes = (self.after, self.before, self.tokens_after, self.tokens_before)
        return [*sizes, self.rule, self.outcome, used if any(used) else None]


class RecordedCalls:
    """The calls of recorded sessions, for each client that the page can choose.

    `client` is the name of the only one; without it the recorded one comes first. `report` gets the
    error of each call that cannot be replayed. `query_result` is for guards: see SessionRules.
    """

    def __init__(
        self,
        sessions: Iterable[RecordedSession],
        client: str | None,
        report: Callable[[AbridgeError], object],
        query_result: Raw | None = None,
    ) -> None:
        self._query_result = query_result
        self.sessions = list(sessions)
        others = CLIENTS if client is None else {}
        self.clients: dict[str, str | None] = {client or "as recorded": client, **others}
        self._report = report
        self._tokens: dict[int, int] = {}  # by the hash of a text, which all clients share
        self.calls: list[tuple[RecordedSession, str, RecordedExchange]] = [
            (session, file, exchange)
            for session in self.sessions
            for file, exchange in session.exchanges
        ]

    def figures(self, selection: Selection, client: str | None) -> Iterator[CallFigures | None]:
        """Yield the figures of all calls, in order; None for one that cannot be replayed."""
        for session in self.sessions:
            rules = SessionRules(selection, session, client, self._query_result)
            replays = [replay for _, replay in rules.replays(self._report)]
            every = [None if replay is None else self._of(replay) for replay in replays]
            figures = [each for each in every if each is not None]
            for used in used_values([*filter(None, replays)], json_text(session.tools)):
                figures[used.call].used.append(used)
            yield from every

    def _of(self, replay: Replay) -> CallFigures:
        rule, (before, after) = replay.applied, replay.sizes
        tokens_before, tokens_after = (sum(map(self._count, each)) for each in replay.texts)
        name = None if rule is None else rule.name
        return CallFigures(before, after, tokens_before, tokens_after, name, replay.kind)

    def _count(self, text: str) -> int:
        key = hash(text)
        if key not in self._tokens:
            self._tokens[key] = tokens(text)
        return self._tokens[key]

    def head(self) -> dict[str, Any]:
        first, clients = next(iter(self.clients.values())), []
        recorded = {first or session.client for session in self.sessions}
        for label, name in self.clients.items():
            row = client_for(next(iter(recorded)) if name is None and len(recorded) == 1 else name)
            clients.append({"label": label, "limit": row.limit_bytes, "beyond": row.beyond})
        return {"clients": clients, "calls": [self._call(*each) for each in self.calls]}

    def _call(self, session: RecordedSession, file: str, exchange: RecordedExchange) -> list[Any]:
        arguments = printable(json_text(exchange.arguments))
        short = arguments if len(arguments) <= _SHORT else f"{arguments[:_SHORT]}…"
        server = printable(session.server or "")
        return [printable(exchange.tool), server, printable(file), short]

    def answer(self, selection: Selection, number: int, client: str | None) -> dict[str, Any]:
        """Return one answer as a client shows it: see `detail`. Raises AbridgeError."""
        session, _, exchange = self.calls[number]
        rules = SessionRules(selection, session, client, self._query_result)
        return detail(rules.replay(exchange))


Rows = list[CallFigures | None]


def page(calls: RecordedCalls, selection: Selection, progress: Callable[[str], object]) -> str:
    """Return the page of recorded calls: the figures of all, and the answers that have room."""
    every: dict[str, Rows] = {}
    for label, name in calls.clients.items():
        progress(f"{len(calls.calls):,} calls as {label} reads them ")
        every[label] = list(calls.figures(selection, name))
    answers = _answers(calls, selection, every, progress)
    rows = [[each and each.row for each in figures] for figures in every.values()]
    head = data("calls-data", {**calls.head(), "figures": rows})
    return render_calls("\n".join([head, *answers]), calls)


def render_calls(elements: str, calls: RecordedCalls, *, live: bool = False) -> str:
    """Return the page with the `elements` that its script draws the calls from."""
    many = count_text(len(calls.calls), "recorded call")
    return render("mcp-abridge", many, f"{own_file('calls.html')}\n{elements}", live=live)


def _answers(
    calls: RecordedCalls,
    selection: Selection,
    every: dict[str, Rows],
    progress: Callable[[str], object],
) -> Iterator[str]:
    """Yield the answers that clients' models read most of, until there is no more room."""
    columns = zip(*every.values(), strict=True)
    most = [max(each.after if each else -1 for each in of_call) for of_call in columns]
    room = _ROOM
    for count, number in enumerate(sorted(range(len(most)), key=lambda each: -most[each])):
        if most[number] < 0 or room < _ROOM // 1000:
            break
        progress(f"answer {count + 1:,} of {len(most):,} ")
        views = [
            with_uses(calls.answer(selection, number, name), every[label][number])
            for label, name in calls.clients.items()
        ]
        element = data(f"call-{number}", _without_copies(views))
        if len(element) <= room:
            room -= len(element)
            yield element


def with_uses(answer: dict[str, Any], figures: CallFigures | None) -> dict[str, Any]:
    """Return an answer with the values of it that later calls used, if they are known."""
    keys = ("value", "path", "user", "place")
    every = figures.used if figures else ()
    used = [{key: printable(getattr(each, key)) for key in keys} for each in every]
    return {**answer, "used": used}


def _without_copies(views: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the views of an answer for all clients, each tree and each equal view once."""
    trees: list[Any] = []
    for view in views:
        tree = view["tree"]
        if tree not in trees:
            trees.append(tree)
        view["tree"] = trees.index(tree)
    distinct: list[Any] = []
    for view in views:
        if view not in distinct:
            distinct.append(view)
    return {"trees": trees, "views": distinct, "of": [distinct.index(view) for view in views]}
