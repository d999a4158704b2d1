"""Products that write a result in a denser form, and have no tools to ask for a part of it."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.answers.arm import Arm, Call, Result, Steps, visible_text
from tests.answers.evidence import documents
from tests.answers.question import Question
from tests.answers.rivals.install import home, program


class Terse(Arm):
    """terse-mcp: tables of positional rows, and a legend of repeated values.

    One process for all questions, since it explains its form once in a session.
    """

    name = "terse-mcp 0.45.1"
    fresh = False

    def command(self, server: Sequence[str]) -> list[str]:
        # It fetches a tokenizer if it can, and then makes another legend than if it cannot: here,
        # it never can.
        environment = [f"HOME={home('terse-mcp')}", "https_proxy=http://127.0.0.1:9"]
        own = [program("terse-mcp", "terse"), "proxy", "--no-stats", "--"]
        return ["env", *environment, *own, *server]

    def steps(self, question: Question) -> Steps:
        yield Call(question.tool)

    def readings(self, text: str) -> Iterator[str]:
        for document in documents(text):
            if isinstance(document, dict) and "__terse_dict__" in document:
                yield json.dumps(_resolved(document["data"], document["legend"]))


def _resolved(value: Any, legend: dict[str, Any]) -> Any:
    """Put the values of a legend in place of their names, and members' names before cells."""
    if isinstance(value, str):
        return _resolved(legend[value], legend) if value in legend else value
    if isinstance(value, list):
        return [_resolved(each, legend) for each in value]
    if isinstance(value, dict):
        members = {name: _resolved(each, legend) for name, each in value.items()}
        if "__terse_table__" not in members:
            return members
        return [dict(zip(members["cols"], row, strict=True)) for row in members["rows"]]
    return value


class UltraLean(Arm):
    """ultra-lean-mcp-proxy: tables of positional rows, and short names for members.

    A process for each question: it answers a repeated call with what has changed.
    """

    name = "ultra-lean-mcp-proxy 0.3.2"

    def command(self, server: Sequence[str]) -> list[str]:
        own = program("ultra-lean-mcp-proxy", "ultra-lean-mcp-proxy")
        return ["env", f"HOME={home('ultra-lean-mcp-proxy')}", own, "proxy", "--", *server]

    def steps(self, question: Question) -> Steps:
        yield Call(question.tool)

    def show(self, result: Result) -> str:
        """Return structuredContent if the text only says that there is one."""
        text = visible_text(result)
        if text == "[ultra-lean-mcp-proxy] structured result":
            return visible_text({**result, "content": []})
        return text

    def readings(self, text: str) -> Iterator[str]:
        for document in documents(text):
            if isinstance(document, dict) and document.get("encoding") == "lapc-json-v1":
                yield json.dumps(_renamed(document["data"], document.get("keys", {})))


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """Put the members' names in place of the short ones."""
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    if isinstance(table := value.get("~t"), dict):
        columns = [names.get(each, each) for each in table["c"]]
        return {"columns": columns, "rows": _renamed(table["r"], names)}
    return {names.get(name, name): _renamed(each, names) for name, each in value.items()}


class Compressor(Arm):
    """mcp-compressor: all tools behind two, and results condensed to 20,000 characters.

    A condensed result is asked for once more, in full, if the answer does not stand in it. The
    schema of a tool is not asked for: none has arguments, and the listing says so.
    """

    name = "mcp-compressor 0.38.2 --shrinkfit"
    fresh = False

    def command(self, server: Sequence[str]) -> list[str]:
        own = program("mcp-compressor", "mcp-compressor")
        environment = f"HOME={home('mcp-compressor')}"
        return ["env", environment, own, "--server-name", "answers", "--shrinkfit", "--", *server]

    def steps(self, question: Question) -> Steps:
        arguments: dict[str, Any] = {"tool_name": question.tool, "tool_input": {}}
        yield Call("answers_invoke_tool", arguments)
        yield Call("answers_invoke_tool", {**arguments, "full": True})
