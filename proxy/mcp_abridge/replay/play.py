"""One call replayed in a Session, in memory: the call, the requests to the server, the response."""

from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_abridge.document import message
from mcp_abridge.document.message import READ, members
from mcp_abridge.document.tree import plain
from mcp_abridge.errors import AbridgeError
from mcp_abridge.query.call import Call, Warned
from mcp_abridge.replay import answers, exchanges, walk
from mcp_abridge.replay.answers import ClientView
from mcp_abridge.replay.choice import choices
from mcp_abridge.replay.exchanges import RecordedExchange
from mcp_abridge.ruleset.clients import Shows, client_for
from mcp_abridge.ruleset.guard import Decision, Guard, QueryResult
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.session import outputs
from mcp_abridge.session.guards import LATE
from mcp_abridge.session.outputs import Output
from mcp_abridge.session.session import Session
from mcp_abridge.session.state import SessionState
from mcp_abridge.session.tools.arguments import implied
from mcp_abridge.session.tools.definitions import ToolFacts
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.shaping.pipeline import shape
from mcp_abridge.shaping.result.read import LocatedDocument
from mcp_abridge.storage.meter import Looks, Meters, OutcomeKind, Row, Warnings
from mcp_abridge.storage.snapshots import Memory


class Decided(Struct, frozen=True):
    """One decision of a guard, None if it raised an exception, on the result of its query."""

    name: str
    result: QueryResult | None
    decision: Decision | None
    warnings: tuple[Warned, ...]


class _RecordedGuard:
    def __init__(self, guard: Guard, decisions: list[Decided]) -> None:
        self.name, self.parameters = guard.name, guard.parameters
        self._guard, self._decisions = guard, decisions

    def __call__(self, call: Call, result: QueryResult | None) -> Decision:
        decision: Decision | None = None
        try:
            decision = self._guard(call, result)
        finally:
            self._decisions.append(Decided(self.name, result, decision, tuple(call.warnings)))
        return decision


class Replay:
    """A call and its answer, in a Session that is driven as a transport drives it.

    `calls` are the arguments of every call that reached the server, `queries` those of guards.
    `answer` is the response that the client got. A call for a later page or a view is preceded by
    the call for the first page, as a model would make it, whose answer is `opening`. `shaped` are
    the responses that a rule was run on, `row` counts the last call. `client` is the name that a
    client sends: it decides which copies of an answer count, as in a live session. Notices name the
    shell command that `reader` returns, if any, in place of a call.
    """

    def __init__(
        self,
        rules: RuleSet,
        exchange: RecordedExchange,
        *,
        first_call: bool = True,
        query_result: Raw | None = None,
        facts: ToolFacts | None = None,
        client: str | None = None,
        reader: Callable[[], str] = str,
    ) -> None:
        """Make the call; without a `first_call`, that one alone. Raises AbridgeError."""
        # A view of a short answer makes the call again, which a replay can always answer.
        own_facts = ToolFacts(implied(exchange.arguments), structured=True, repeatable=first_call)
        facts = facts or own_facts
        self.rules, self.exchange, self.client = rules, exchange, client
        self.log: list[str] = []
        self.shaped: list[tuple[ShapeJob, ShapeResult]] = []
        self.row: Row | None = None
        self.calls: list[dict[str, Any]] = []
        self.queries: list[dict[str, Any]] = []
        self.decisions: list[Decided] = []
        self._first_call, self._query_result, self._facts = first_call, query_result, facts
        self._reader = reader
        self._meters = Meters(lambda row, _: setattr(self, "row", row))
        recording = rules.with_rules(self._recorded)
        state = SessionState(lambda *_: recording, self._meters.of, self.log.append, Memory())
        self._session = Session(state)
        self._session.rules.rename(client=client)
        self._session.rules.learn({exchange.tool: facts})
        arguments, applied = exchange.arguments, self.applied
        first = arguments if applied is None else walk.start(applied, arguments, facts.arguments)
        if first == arguments or not first_call:
            self.opening = self.answer = self._call(exchange.request)
        else:
            id = members(exchange.request)["id"]
            self.opening = self._call(exchanges.request(id, exchange.tool, first))
            self.answer = self.ask(arguments) if self.calls else self.opening

    @property
    def warnings(self) -> list[str]:
        """The kinds of the warnings since the last access, each once."""
        return [each.kind for each in self._meters.drain(Warnings)]

    def ask(self, arguments: dict[str, Any]) -> ClientView:
        return self._call(exchanges.request("a further call", self.exchange.tool, arguments))

    def again(self, rule: Rule) -> "Replay":
        """Replay the same call with `rule` in place of the rule that applied."""
        applied = self.applied
        return Replay(
            self.rules.with_rules(lambda each: rule if each is applied else each),
            self.exchange,
            first_call=self._first_call,
            query_result=self._query_result,
            facts=self._facts,
            client=self.client,
        )

    def _recorded(self, rule: Rule) -> Rule:
        guard: Any = rule.guard and _RecordedGuard(rule.guard, self.decisions)
        return replace(rule, guard=guard)

    @property
    def shows(self) -> Shows:
        return "blocks" if self.exchange.tool == READ else client_for(self.client).shows

    @property
    def outcome(self) -> OutcomeKind:
        return "untouched" if self.row is None else self.row.outcome

    def drain_looks(self) -> list[Looks]:
        return self._meters.drain(Looks)

    @property
    def sizes(self) -> tuple[int, int]:
        """The bytes that the client's model reads: of the server's answer, and of this one."""
        return self.before.visible_size.to(self.shows), self.answer.visible_size.to(self.shows)

    @property
    def texts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.before.texts_for(self.shows), self.answer.texts_for(self.shows)

    @property
    def kind(self) -> OutcomeKind:
        """The outcome; an error result is an error even if it passes unchanged."""
        failed = self.outcome == "untouched" and self.answer.failed
        return "error" if failed else self.outcome

    @property
    def applied(self) -> Rule | None:
        every = choices(self.rules, self.exchange.tool, self.exchange.arguments)
        return next((rule for rule, reason in every if not reason), None)

    @property
    def before(self) -> ClientView:
        return answers.read(self.exchange.response)

    def document(self, rule: Rule) -> LocatedDocument | None:
        """Return the document that `rule` reads in the server's response; a new one each time."""
        return answers.located(self.exchange.response, rule)

    def _call(self, line: bytes) -> ClientView:
        lines: list[bytes] = []
        session = self._session
        queue: deque[Output] = deque(session.from_client(line))
        while queue:
            match queue.popleft():
                case outputs.ToServer(raw):
                    response = self._serve(raw)
                    queue += () if response is None else session.from_server(response)
                case outputs.ToClient(raw):
                    lines.append(raw)
                case outputs.Probe(raw, token):
                    answer = self._serve_query(raw)
                    if answer is None:
                        queue += session.unanswered(token, LATE)
                    else:
                        queue += session.from_server(answer)
                case outputs.Shape(job):
                    job = replace(job, reader=self._reader())
                    result = shape(job)
                    self.shaped.append((job, result))
                    queue += session.shaped(job, result)
                case outputs.Noise():
                    pass
                case outputs.RunInBackground(do, then):
                    queue += then(do())
        if len(lines) != 1:
            raise AbridgeError(f"the client got {len(lines)} lines for one call")
        return answers.read(lines[0])

    def _serve_query(self, line: bytes) -> bytes | None:
        call = members(line)
        params = members(call["params"])
        query = {"tool": plain(params["name"]), "arguments": plain(params["arguments"])}
        self.queries.append(query)
        result = self._query_result
        return None if result is None else message.result(call["id"], result)

    def _serve(self, line: bytes) -> bytes | None:
        call = members(line)
        if "id" not in call:  # a notification
            return None
        params = members(call["params"])
        own = {"uri": plain(params["uri"])} if "uri" in params else {}
        self.calls.append(plain(params["arguments"]) if "arguments" in params else own)
        # A second call is answered again; `calls` shows that there were two.
        line, id = self.exchange.response, call["id"]
        return line if members(line).get("id") == id else message.replaced(line, id=id)
