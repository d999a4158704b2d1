"""`explain --definitions`: the bytes of each tool's definition: direct, as sent, and on a diet."""

from typing import Any

from msgspec import Raw

from mcp_abridge.cli.terminal import console, table
from mcp_abridge.document import message
from mcp_abridge.document.message import string_at
from mcp_abridge.document.tree import compact, level, text
from mcp_abridge.errors import DocumentError
from mcp_abridge.ruleset.rule import Definition, Rule, RuleSet
from mcp_abridge.session import tool_lists

_SIZES = ("direct", "sent", "diet")


def explained(raw: bytes, rules: RuleSet, limit: int) -> list[dict[str, Any]]:
    """Return the bytes of each tool in a recorded result of tools/list, or its response.

    `sent` is 0 for a tool that a rule hides. `limit` are the bytes of prose that the diet leaves to
    each. Raises DocumentError if the recording has no tools.
    """
    result = _result(raw)
    definition = Definition(max_bytes=limit)
    diet = RuleSet(otherwise=Rule(name="diet", tools=("*",), view=False, definition=definition))
    shortened = _edited(result, diet)
    lists = [_sizes(each) for each in (result, _edited(result, rules), _edited(shortened, rules))]
    return [
        {"tool": name, **dict(zip(_SIZES, (sizes.get(name, 0) for sizes in lists), strict=True))}
        for name in lists[0]
    ]


def show(account: list[dict[str, Any]], limit: int) -> None:
    """Print the account as a table with its totals."""
    totals = (f"{sum(each[size] for each in account):,}" for size in _SIZES)
    titles = (">direct", ">as sent", f">with definition:\n{{max_bytes: {limit}}}")
    rows = table("bytes of tool", *titles, footers=[f"{len(account)} in all", *totals])
    for each in account:
        rows.add_row(each["tool"], *(f"{each[size]:,}" for size in _SIZES))
    console().print(rows)


def _result(raw: bytes) -> Raw:
    """Return the result in a recording: {request, response}, a response, or a result."""
    value = Raw(raw)
    for name in ("response", "result"):
        value = message.members(value).get(name, value)
        line = text(value)
        value = value if line is None else Raw(line.encode())
    if not _sizes(value):
        raise DocumentError("no tools: --definitions takes a recorded result of tools/list")
    return Raw(compact(bytes(value)))  # no server indents what it sends


def _edited(result: Raw, rules: RuleSet) -> Raw:
    edited = tool_lists.edit(result, rules)
    if edited.error is not None:
        raise edited.error
    return result if edited.result is None else edited.result


def _sizes(result: Raw) -> dict[str, int]:
    tools = level(message.members(result).get("tools", Raw(b"[]")))
    names = ((string_at(each, "name"), each) for each in (tools if isinstance(tools, list) else ()))
    return {name: len(memoryview(each)) for name, each in names if name is not None}
