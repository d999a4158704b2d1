"""The calls of a recorded session under rules: without it, two verbs choose rules differently."""

from collections.abc import Callable, Iterator

from msgspec import Raw
from msgspec.structs import replace

from mcp_abridge.document.message import members
from mcp_abridge.errors import AbridgeError
from mcp_abridge.replay.differences import to_json
from mcp_abridge.replay.exchanges import RecordedExchange
from mcp_abridge.replay.play import Replay
from mcp_abridge.replay.recordings import RecordedSession
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.ruleset.selection import Selection
from mcp_abridge.session.tools.definitions import facts_of


class SessionRules:
    """The rules for a session, all active, as they are for its client or another one.

    `client` is the name of another client, None for the recorded one. `query_result` is what the
    server answers to queries of guards.
    """

    def __init__(
        self,
        selection: Selection,
        session: RecordedSession,
        client: str | None,
        query_result: Raw | None = None,
    ) -> None:
        self._session, self._query_result = session, query_result
        self.client = client or session.client
        rules = selection(session.server, self.client)
        rules = rules.fitting(session.tools) if session.tools else rules
        self.rules = rules.with_rules(lambda rule: replace(rule, mode="active"))
        # A client that shows the widget of a tool has no budget for it.
        tools = session.tools if session.shows_widgets and client is None else {}
        self._apps = {name for name in tools if facts_of(members(to_json(tools[name]))).app}

    def replays(
        self, report: Callable[[AbridgeError], object]
    ) -> Iterator[tuple[str, Replay | None]]:
        """Yield the file of each call of the session, and the call replayed.

        None stands for a call that cannot be; `report` gets its error.
        """
        for file, exchange in self._session.exchanges:
            try:
                yield file, self.replay(exchange)
            except AbridgeError as error:
                report(AbridgeError(f"{file}: {error}"))
                yield file, None

    def replay(self, exchange: RecordedExchange) -> Replay:
        without_budget = exchange.tool in self._apps
        rules = RuleSet(self.rules.files) if without_budget else self.rules
        return Replay(rules, exchange, query_result=self._query_result, client=self.client)
