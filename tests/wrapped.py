"""Servers behind the wrapper: the command line, the lines between the two, the text for models."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson

ROOT = Path(__file__).resolve().parents[1]
TEE = Path(__file__).parent / "fixtures" / "tee.py"

# As `mcp-abridge`, without needing it to be installed, wherever the command is started.
START = f"""
import sys
sys.path.insert(0, {str(ROOT / "proxy")!r})
from mcp_abridge.cli import main
sys.exit(main())
"""


def wrapped(server: Sequence[str], *options: str) -> list[str]:
    """Return the command that wraps a server's command."""
    return [sys.executable, "-c", START, *options, "--", *server]


class Tee(msgspec.Struct, frozen=True):
    """A log of the lines to and from a server, however it is wrapped.

    Put `before(command)` in place of the command.
    """

    log: Path

    def before(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs `command` and fills the log."""
        return [sys.executable, str(TEE), str(self.log), *command]

    def calls(self) -> list[dict[str, Any]]:
        """Return the params of each tools/call that reached the server, in order."""
        return [each["params"] for each in self.requests() if each.get("method") == "tools/call"]

    def requests(self) -> list[dict[str, Any]]:
        """Return each message that reached the server."""
        return [orjson.loads(line) for line in self._lines(b">")]

    def lines(self) -> list[bytes]:
        """Return each line of the server, without its newline."""
        return list(self._lines(b"<"))

    def result(self) -> dict[str, Any]:
        """Return the last result of a call that the server gave."""
        for line in reversed(self.lines()):
            message = orjson.loads(line)
            if "content" in message.get("result", {}):
                result: dict[str, Any] = message["result"]
                return result
        raise LookupError("the server has answered no call")

    def _lines(self, mark: bytes) -> Iterator[bytes]:
        # The server's lines end in one newline; U+2028 and the like stand inside of them.
        for line in self.log.read_bytes().split(b"\n"):
            if line[:1] == mark:
                yield line[1:]


Result = dict[str, Any]


def texts(result: Result) -> list[str]:
    """Return the text blocks of a result."""
    return [block["text"] for block in result["content"] if block["type"] == "text"]


def sizes(result: Result) -> tuple[int, int]:
    """Count the bytes that clients show which show structuredContent, and text blocks."""
    text_bytes = sum(len(text.encode()) for text in texts(result))
    if result.get("structuredContent") is None:
        return text_bytes, text_bytes
    return len(orjson.dumps(result["structuredContent"])), text_bytes


NOTICES = ("_abridged", "truncation", "pagination")


def notice(value: Any) -> Any:
    """Return the notice in `value` of something left out, None without one.

    In a text it is JSON, perhaps after a line of prose; in a list of texts any may have it.
    """
    if isinstance(value, list):
        return next(filter(None, map(notice, value)), None)
    if isinstance(value, str):
        try:
            value = orjson.loads(value[max(value.find("{"), 0) :])
        except orjson.JSONDecodeError:
            return None
    if not isinstance(value, dict):
        return None
    if "hasMore" in value:
        return value
    own = next((value[name] for name in NOTICES if name in value), None)
    return own or next((inner for member in value.values() if (inner := notice(member))), None)
