"""Rules whose guard sends a query to the server before each call of a tool."""

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from proxy.ruleset.guard import Allow, Decision, Query, QueryResult, Respond
from proxy.ruleset.rule import RuleFile, RuleSet
from proxy.transforms.base import Call, Parameter
from tests.given import rule


def respond(result: QueryResult) -> Decision:
    """Respond with the result of the query."""
    return Respond(result.failure or result.document)


def onward(result: QueryResult) -> Decision:
    """Allow the call whatever the result."""
    return Allow()


class QueryGuard(Struct, frozen=True):
    """Calls the tool `asks` first, for so many seconds, and decides by `then`."""

    name: ClassVar[str] = "careful"
    shorthand: ClassVar[str | None] = None
    parameters: ClassVar[Mapping[str, Parameter]] = {}

    then: Callable[[QueryResult], Decision]
    seconds: float
    asks: str
    arguments: dict[str, Any]

    def __call__(self, call: Call, result: QueryResult | None) -> Decision:
        """Decide on a call."""
        if result is None:
            return Query(self.asks, self.arguments, self.seconds)
        return self.then(result)


def guarded(
    then: Callable[[QueryResult], Decision],
    seconds: float = 20.0,
    *,
    covers: str = "write",
    asks: str = "status",
    **arguments: Any,
) -> RuleSet:
    guard = QueryGuard(then, seconds, asks, arguments)
    guarded_rule = replace(rule(f"{{name: guarded, tools: {covers}}}"), guard=guard)
    return RuleSet((RuleFile(name="rules.yaml", rules=(guarded_rule,)),))


def query_id(raw: bytes) -> Any:
    """Read the id of a query."""
    message = json.loads(raw)
    assert message["params"]["name"] == "status"
    return message["id"]
