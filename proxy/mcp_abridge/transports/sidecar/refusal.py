"""The refusal of a request, whoever refuses it: without it, each would be told in its own way."""

from collections.abc import Mapping

from aiohttp import web

from mcp_abridge.document import message
from mcp_abridge.errors import AbridgeError
from mcp_abridge.transports.http.negotiation import JSON

NOT_JSON = message.PARSE_ERROR
INVALID = message.INVALID_REQUEST
FAILED = message.PROXY_ERROR


class RequestRefused(AbridgeError):
    """A request that is answered with this HTTP status and a JSON-RPC error."""

    def __init__(
        self,
        status: int,
        code: int,
        reason: str,
        headers: Mapping[str, str] | None = None,
        *,
        closes: bool = False,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.code = code
        self.headers = headers or {}
        # True if the connection must close: the start of the next request is unknown.
        self._closes = closes

    def response(self, id: bytes = b"null") -> web.Response:
        raw = message.error(id, self.code, str(self))
        response = web.Response(
            status=self.status, body=raw, content_type=JSON, headers=self.headers
        )
        if self._closes:
            response.force_close()
        return response


def unavailable(reason: str, seconds: int) -> RequestRefused:
    """Return the refusal of a request that may be tried again after some seconds."""
    return RequestRefused(503, FAILED, reason, {"Retry-After": str(seconds)})
