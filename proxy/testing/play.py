"""One call played out in a Session: what was asked, what the server saw, what came back."""

from typing import Any

from msgspec import Raw

from proxy.document import plain
from proxy.errors import AbridgeError
from proxy.message import members
from proxy.pipeline import Job, Outcome
from proxy.result import Reading
from proxy.rule import Rule, RuleSet
from proxy.testing import answer as answers
from proxy.testing import exchange as exchanges
from proxy.testing import walk
from proxy.testing.answer import Answer
from proxy.testing.choice import applying
from proxy.testing.exchange import Exchange
from proxy.testing.rehearsal import Rehearsal


class PlayError(AbridgeError):
    """A call that was not answered by one response."""


class Play:
    """A call and its answer.

    `seen` are the arguments of every call that reached the server, `answer` is what the client
    got. A call for a later page or a view is preceded by the call for the first one, as a model
    would make it, whose answer is `opening`.
    """

    def __init__(self, rules: RuleSet, exchange: Exchange, *, opened: bool = True) -> None:
        """Make the call; not `opened`: without a first one. Raises PlayError or DocumentError."""
        self.rules, self.exchange = rules, exchange
        self.seen: list[dict[str, Any]] = []
        self._rehearsal = Rehearsal(rules, self._serve)
        arguments, applied = exchange.arguments, self.applied
        first = arguments if applied is None else walk.start(applied, arguments)
        if first == arguments or not opened:
            self.opening = self.answer = self._said(exchange.request)
        else:
            id = members(exchange.request)["id"]
            self.opening = self._said(exchanges.asked(id, exchange.tool, first))
            self.answer = self.ask(arguments) if self.seen else self.opening

    def ask(self, arguments: dict[str, Any]) -> Answer:
        """Make a further call of the tool."""
        return self._said(exchanges.asked("a further call", self.exchange.tool, arguments))

    @property
    def applied(self) -> Rule | None:
        """The rule that applies to the call."""
        return applying(self.rules, self.exchange.tool, self.exchange.arguments)

    @property
    def log(self) -> list[str]:
        """What was logged."""
        return self._rehearsal.log

    @property
    def shaped(self) -> list[tuple[Job, Outcome]]:
        """The responses that a rule was run on, and what came of each."""
        return self._rehearsal.shaped

    @property
    def before(self) -> Answer:
        """The answer as the server gave it."""
        return answers.read(self.exchange.response)

    def reading(self, rule: Rule) -> Reading | None:
        """Return the document as the server gave it and `rule` reads it; a fresh one each time."""
        return answers.reading(self.exchange.response, rule)

    def _said(self, line: bytes) -> Answer:
        got = self._rehearsal.say(line)
        if len(got) != 1:
            raise PlayError(f"the client got {len(got)} lines for one call")
        return answers.read(got[0])

    def _serve(self, line: bytes) -> bytes:
        call = members(line)
        params = members(call["params"])
        self.seen.append(plain(params["arguments"]) if "arguments" in params else {})
        # Asked again, the server answers again: who must not ask it twice can tell by `seen`.
        return exchanges.under(self.exchange.response, Raw(call["id"]))
