"""One call replayed in a Session: the call, the requests to the server, the response."""

from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from proxy.document import message
from proxy.document.message import members
from proxy.document.tree import plain
from proxy.errors import AbridgeError
from proxy.ruleset.rule import Rule, RuleSet
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.shaping.result.locate import LocatedDocument
from proxy.storage.meter import OutcomeKind as Word
from proxy.testing import answer as answers
from proxy.testing import exchange as exchanges
from proxy.testing import walk
from proxy.testing.answer import ClientView
from proxy.testing.choice import applying
from proxy.testing.decisions import Decided, recording_guards
from proxy.testing.exchange import RecordedExchange
from proxy.testing.rehearsal import InMemoryTransport


class PlayError(AbridgeError):
    """A call that was not answered by exactly one response."""


class Replay:
    """A call and its answer.

    `seen` are the arguments of every call that reached the server, `asks` the queries of guards,
    `decided` the decisions of guards, `answer` is the response that the client got. A call for a
    later page or a view is preceded by the call for the first page, as a model would make it, whose
    answer is `opening`.
    """

    def __init__(
        self,
        rules: RuleSet,
        exchange: RecordedExchange,
        *,
        opened: bool = True,
        found: Raw | None = None,
    ) -> None:
        """Make the call; unless `opened`, without a first one. Raises PlayError or DocumentError.

        `found` is the result that a guard gets for its query; None means no answer.
        """
        self.rules, self.exchange = rules, exchange
<<<<<<< HEAD
        self.calls: list[dict[str, Any]] = []
        self.queries: list[dict[str, Any]] = []
        self.decisions: list[Decided] = []
        self._first_call, self._query_result = first_call, query_result
        super().__init__(
            recording_guards(rules, self.decisions.append), self._serve, self._serve_query
=======
        self.seen: list[dict[str, Any]] = []
        self.asks: list[dict[str, Any]] = []
        self.decided: list[Decided] = []
        self._opened, self._found = opened, found
        self._rehearsal = InMemoryTransport(
            watched(rules, self.decided.append), self._serve, self._probed
>>>>>>> main
        )
        arguments, applied = exchange.arguments, self.applied
        first = arguments if applied is None else walk.start(applied, arguments)
        if first == arguments or not opened:
            self.opening = self.answer = self._said(exchange.request)
        else:
            id = members(exchange.request)["id"]
            self.opening = self._said(exchanges.asked(id, exchange.tool, first))
            self.answer = self.ask(arguments) if self.seen else self.opening

    def ask(self, arguments: dict[str, Any]) -> ClientView:
        """Make a further call of the tool."""
        return self._said(exchanges.asked("a further call", self.exchange.tool, arguments))

    def again(self, rule: Rule) -> "Replay":
        """Replay the same call with `rule` in place of the rule that applied."""
        applied = self.applied
        files = tuple(
            replace(file, rules=tuple(rule if each is applied else each for each in file.rules))
            for file in self.rules.files
        )
        otherwise = rule if self.rules.otherwise is applied else self.rules.otherwise
        rules = RuleSet(files, otherwise)
        return Replay(rules, self.exchange, opened=self._opened, found=self._found)

    @property
    def applied(self) -> Rule | None:
        """The rule that applies to the call."""
        return applying(self.rules, self.exchange.tool, self.exchange.arguments)

    @property
    def word(self) -> Word:
        """The outcome of the call, as the meter records it."""
        words = self._rehearsal.words
        return words[-1] if words else "untouched"

    @property
    def log(self) -> list[str]:
        """The messages that were logged."""
        return self._rehearsal.log

    @property
    def shaped(self) -> list[tuple[ShapeJob, ShapeResult]]:
        """The responses that a rule was run on, and the result of each."""
        return self._rehearsal.shaped

    @property
    def before(self) -> ClientView:
        """The answer as the server sent it."""
        return answers.read(self.exchange.response)

    def reading(self, rule: Rule) -> LocatedDocument | None:
        """Return the document that `rule` reads in the server's response; a new one each time."""
        return answers.reading(self.exchange.response, rule)

    def _said(self, line: bytes) -> ClientView:
        got = self._rehearsal.say(line)
        if len(got) != 1:
            raise PlayError(f"the client got {len(got)} lines for one call")
        return answers.read(got[0])

    @property
    def warnings(self) -> list[str]:
        """The kinds of the warnings since the last access, each once."""
        return self._rehearsal.warnings()

    def _probed(self, line: bytes) -> bytes | None:
        call = members(line)
        params = members(call["params"])
        self.asks.append({"tool": plain(params["name"]), "arguments": plain(params["arguments"])})
        return None if self._found is None else message.result(call["id"], self._found)

    def _serve(self, line: bytes) -> bytes | None:
        call = members(line)
        if "id" not in call:  # a notification
            return None
        params = members(call["params"])
        self.seen.append(plain(params["arguments"]) if "arguments" in params else {})
        # A second call is answered again; `seen` shows that there were two.
        return exchanges.under(self.exchange.response, Raw(call["id"]))
