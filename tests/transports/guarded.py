"""Rules whose guard sends a query to the server before each call of a tool."""

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from mcp_abridge.query.call import Call
from mcp_abridge.ruleset.guard import Allow, Decision, Query, QueryResult, Respond
from mcp_abridge.ruleset.rule_set import RuleFile, RuleSet
from mcp_abridge.transforms.base import Parameter
from msgspec import Struct
from msgspec.structs import replace

from tests.builders import rule


def respond(result: QueryResult) -> Decision:
    """Respond with the result of the query."""
    return Respond(result.failure or result.document)


def onward(result: QueryResult) -> Decision:
    """Allow the call whatever the result."""
    return Allow()


class ScriptedGuard(Struct, frozen=True):
    """Decides by a function."""

    name: ClassVar[str] = "scripted"
    shorthand: ClassVar[str | None] = None

    decide: Callable[[Call, QueryResult | None], Decision]
    parameters: Mapping[str, Parameter] = {}

    def __call__(self, call: Call, result: QueryResult | None) -> Decision:
        """Decide on a call."""
        return self.decide(call, result)


def querying(
    then: Callable[[QueryResult], Decision],
    seconds: float = 20.0,
    asks: str = "status",
    **arguments: Any,
) -> ScriptedGuard:
    """Return a guard that calls the tool `asks` first, and decides by `then`."""

    def decide(call: Call, result: QueryResult | None) -> Decision:
        return Query(asks, arguments, seconds) if result is None else then(result)

    return ScriptedGuard(decide)


def guarded(
    then: Callable[[QueryResult], Decision],
    seconds: float = 20.0,
    *,
    covers: str = "write",
    **arguments: Any,
) -> RuleSet:
    guard = querying(then, seconds, **arguments)
    guarded_rule = replace(rule(f"{{name: guarded, tools: {covers}}}"), guard=guard)
    return RuleSet((RuleFile(name="rules.yaml", rules=(guarded_rule,)),))


def query_id(raw: bytes) -> Any:
    """Read the id of a query."""
    message = json.loads(raw)
    assert message["params"]["name"] == "status"
    return message["id"]
