"""A tools/list as rules rewrite it."""

import json
from typing import Any

from mcp_abridge.document.tree import encode
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.session.tool_lists import edit
from msgspec import Raw

from tests.builders import rules

PAGES = "- {tools: list, response: [{paginate: {at: items, limit: 20}}]}"


class Listing:
    """A tools/list that was rewritten."""

    def __init__(self, ruleset: RuleSet, result: Any) -> None:
        edited = edit(Raw(result if isinstance(result, bytes) else encode(result)), ruleset)
        if edited.error is not None:
            raise edited.error
        self.raw, self.facts, self.log = edited.result, edited.facts, list(edited.log_lines)

    @property
    def result(self) -> dict[str, Any]:
        assert self.raw is not None
        decoded: dict[str, Any] = json.loads(bytes(self.raw))
        return decoded

    @property
    def tool(self) -> dict[str, Any]:
        [only] = self.result["tools"]
        assert isinstance(only, dict)
        return only


def tool(name: str = "list", **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": {}}, **members}


def listed(text: str, *tools: Any, **members: Any) -> Listing:
    return Listing(rules(text), {"tools": list(tools), **members})


def properties(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    document = listed(text, tool(inputSchema=schema)).tool["inputSchema"]["properties"]
    assert isinstance(document, dict)
    return document
