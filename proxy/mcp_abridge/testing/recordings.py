"""The sessions that `record` wrote: without them, a rule is tested on single answers only."""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from mcp_abridge.document.message import members
from mcp_abridge.document.tree import loads, plain
from mcp_abridge.errors import DocumentError
from mcp_abridge.testing.exchange import ExchangeError, RecordedExchange, recorded

TOOLS = "0000-tools.json"
SESSION = "session.json"

NO_CALL = "no recorded call in {}; `mcp-abridge record` makes recordings"

_NUMBER = re.compile(r"\d*")


class RecordedSession(Struct):
    """The calls of one client to one server, in order, each with the path of its file."""

    path: str
    server: str | None
    client: str | None
    tools: dict[str, Any]
    exchanges: list[tuple[str, RecordedExchange]]


def sessions(paths: Iterable[str]) -> Iterator[RecordedSession]:
    """Yield the sessions in files and folders. Raises ExchangeError or OSError.

    The JSON files of a folder are one session, and those of each folder in it another.
    """
    for path in paths:
        if not os.path.isdir(path):
            yield _session(path, [path])
            continue
        names = sorted(os.listdir(path), key=_order)
        files = [os.path.join(path, name) for name in names if name.endswith(".json")]
        if files:
            yield _session(path, files)
        inner = [os.path.join(path, name) for name in names if not name.startswith(".")]
        yield from sessions(filter(os.path.isdir, inner))


def _order(name: str) -> tuple[int, str]:
    """Return the number that a file's name begins with, and the name: 9999 is before 10000."""
    number = _NUMBER.match(name)
    return int(number[0] or 0) if number else 0, name


def _session(path: str, files: list[str]) -> RecordedSession:
    session = RecordedSession(path, None, None, {}, [])
    for file in files:
        try:
            with open(file, "rb") as content:
                raw = content.read()
            match os.path.basename(file):
                case name if name == SESSION:
                    about = loads(raw)
                    session.server, session.client = about.get("server"), about.get("client")
                case name if name == TOOLS:
                    result = members(members(members(raw)["response"])["result"])
                    session.tools = {tool["name"]: tool for tool in plain(result["tools"])}
                case _:
                    session.exchanges.append((file, recorded(raw)))
        except (DocumentError, AttributeError, KeyError, TypeError) as error:
            raise ExchangeError(f"{file}: not as `record` writes it: {error}") from error
        except (ExchangeError, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ExchangeError(f"{file}: {reason}") from error
    return session
