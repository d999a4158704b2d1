"""The sessions that `record` wrote: without them, a rule is tested on single answers only."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Literal

from msgspec import Struct

from mcp_abridge.document.message import members
from mcp_abridge.document.tree import plain, text
from mcp_abridge.errors import DocumentError
from mcp_abridge.replay.answers import read
from mcp_abridge.replay.exchanges import ExchangeError, RecordedExchange, recorded
from mcp_abridge.storage.regular import open_regular

TOOLS = "0000-tools.json"
SESSION = "session.json"

NO_CALL = "no recorded call in {}; `mcp-abridge --record DIR` makes recordings"

_NUMBER = re.compile(r"\d*")


class RecordedSession(Struct):
    """The calls of one client to one server, in order, each with the path of its file.

    `shows_widgets`: the client shows the widgets of tools (MCP Apps). `cut` are the tools of calls
    whose answers the client did not keep whole.
    """

    path: str
    server: str | None
    client: str | None
    tools: dict[str, Any]
    exchanges: list[tuple[str, RecordedExchange]]
    shows_widgets: bool = False
    cut: list[str] = []


def _raise(error: ExchangeError) -> None:
    raise error


def sessions(
    paths: Iterable[str], report: Callable[[ExchangeError], object] = _raise
) -> Iterator[RecordedSession]:
    """Yield the sessions in files and folders. Raises OSError.

    The JSON files of a folder are one session, and those of each folder in it another. `report`
    gets the error of each file that cannot be read; the others are read all the same.
    """
    for path in paths:
        if not os.path.isdir(path):
            yield _session(path, [path], open, report)
            continue
        names = sorted(os.listdir(path), key=_order)
        files = [os.path.join(path, name) for name in names if name.endswith(".json")]
        if files:
            # The user has not named these: one of them may be a pipe without a writer.
            yield _session(path, files, lambda file, _: open_regular(file), report)
        inner = [os.path.join(path, name) for name in names if not name.startswith(".")]
        yield from sessions(filter(os.path.isdir, inner), report)


def _order(name: str) -> tuple[int, str]:
    """Return the number that a file's name begins with, and the name: 9999 is before 10000."""
    number = _NUMBER.match(name)
    return int(number[0] or 0) if number else 0, name


def _session(
    path: str,
    files: list[str],
    opened: Callable[[str, Literal["rb"]], BinaryIO],
    report: Callable[[ExchangeError], object],
) -> RecordedSession:
    session = RecordedSession(path, None, None, {}, [])
    for file in files:
        try:
            with opened(file, "rb") as content:
                raw = content.read()
            _add(session, file, raw)
        except (DocumentError, AttributeError, KeyError, TypeError) as error:
            report(ExchangeError(f"{file}: not as `record` writes it: {error}"))
        except (ExchangeError, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            report(ExchangeError(f"{file}: {reason}"))
    return session


def _add(session: RecordedSession, file: str, raw: bytes) -> None:
    match os.path.basename(file):
        case name if name == SESSION:
            about = members(raw)
            session.server, session.client = (
                text(about[key]) if key in about else None for key in ("server", "client")
            )
            session.shows_widgets = "shows_widgets" in about
        case name if name == TOOLS:
            result = members(members(members(raw)["response"])["result"])
            session.tools = {str(tool["name"]): tool for tool in plain(result["tools"])}
        case _:
            exchange = recorded(raw)
            read(exchange.response)  # raises if it is no response
            session.exchanges.append((file, exchange))
