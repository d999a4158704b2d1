"""The proxy's own requests: a client that could choose the id of one would get its answer."""

from collections.abc import Callable
from os import urandom
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct

from mcp_abridge.ruleset.guard import QueryResult
from mcp_abridge.session.outputs import Outputs

if TYPE_CHECKING:
    from mcp_abridge.session.inflight import PendingRequest
    from mcp_abridge.session.state import SessionState


class OwnRequest(Struct, frozen=True):
    """A request of the proxy's own, before a held call.

    `read` makes the document of its result, or raises Refusal; `resume` continues the call with it.
    """

    method: str
    params: dict[str, Any]
    read: Callable[[Raw], Any]
    resume: "Callable[[SessionState, PendingRequest, bytes, QueryResult], Outputs]"
    seconds: float = 10.0


class QueryIds:
    """The ids of a session's queries: no client can choose one, since clients never see them."""

    def __init__(self) -> None:
        self._prefix = f'"abridge-{urandom(12).hex()}-'.encode()
        self._count = 0

    def new(self) -> bytes:
        self._count += 1
        return b'%s%d"' % (self._prefix, self._count)

    def issued(self, id: bytes) -> bool:
        return id.startswith(self._prefix)

    def within(self, raw: bytes) -> bool:
        """Return True if a line that cannot be parsed contains an id issued here."""
        return self._prefix in raw
