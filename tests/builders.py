"""Builders of rules and messages for tests."""

import json
from textwrap import dedent
from typing import Any

from mcp_abridge.errors import RuleErrors
from mcp_abridge.ruleset.loading import rulefile
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.rule_set import RuleFile, RuleSet

EMPTY = RuleSet()


def rules(text: str) -> RuleSet:
    """Return the rules of a file whose list of rules is `text`, in YAML."""
    return RuleSet((file("version: 1\nrules:\n" + dedent(text)),))


def file(text: str, name: str = "rules.yaml") -> RuleFile:
    """Return the rule file that `text` is."""
    reading = rulefile.read(name, text.encode())
    if reading.rules is None:
        raise RuleErrors(list(reading.problems))
    return reading.rules


def rule(text: str) -> Rule:
    """Return the one rule that `text`, a YAML mapping, is; without `tools` it is for all tools."""
    text = dedent(text).strip()
    text = text if "tools:" in text else f"tools: '*'\n{text}"
    [only] = rules("- " + text.replace("\n", "\n  ")).files[0].rules
    return only


def line(**members: Any) -> bytes:
    """Return a message with these members, compact."""
    return json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":")).encode()


def call(tool: str, arguments: dict[str, Any] | None = None, id: Any = 1, **params: Any) -> bytes:
    """Return a call of a tool."""
    members = {"name": tool, **({} if arguments is None else {"arguments": arguments}), **params}
    return line(id=id, method="tools/call", params=members)


def answer(result: dict[str, Any], id: Any = 1) -> bytes:
    """Return a response."""
    return line(id=id, result=result)


def tool_result(*texts: str, **members: Any) -> dict[str, Any]:
    """Return a result with these texts, each in a block."""
    return {"content": [{"type": "text", "text": text} for text in texts], **members}


def document(value: Any, *, structured: bool = False) -> dict[str, Any]:
    """Return a result whose text is `value` as JSON, and its structuredContent too if asked for."""
    more = {"structuredContent": value} if structured else {}
    return tool_result(json.dumps(value, separators=(",", ":"), ensure_ascii=False), **more)


def result(raw: bytes) -> Any:
    """Return the result of a response, decoded."""
    return json.loads(raw)["result"]


def texts(raw: bytes) -> list[str]:
    """Return the texts of a response's result."""
    return [block["text"] for block in result(raw)["content"] if block["type"] == "text"]
