"""A session whose exchanges are recorded as the client asked and the server answered."""

from collections import OrderedDict

from mcp_abridge.document import message
from mcp_abridge.document.message import READ, string_at
from mcp_abridge.session import responses
from mcp_abridge.session.outputs import Outputs
from mcp_abridge.session.session import Session
from mcp_abridge.session.state import SessionState
from mcp_abridge.storage.recorder import CallRecord, Recorder, SessionRecorder

_MOST_REQUESTS = 1000  # without a response; the oldest is forgotten first


class RecordingSession(Session):
    """A Session that gives each answered call or read, and each tool list, to a recorder."""

    def __init__(self, recorder: Recorder, state: SessionState) -> None:
        super().__init__(state)
        self._recorder = SessionRecorder(recorder)
        self._requests: OrderedDict[bytes, CallRecord] = OrderedDict()
        self._calls = 0

    def from_client(self, raw: bytes, exchange: bytes = b"") -> Outputs:
        read = message.envelope(raw)
        if read.key is not None and read.verb:
            slot = exchange + read.key
            self._requests.pop(slot, None)
            if read.verb in ("tools/call", READ):
                self._calls += 1
                tool = READ if read.verb == READ else string_at(read.params, "name") or ""
                self._requests[slot] = CallRecord(self._calls, tool, raw, b"")
            elif read.verb == "tools/list":
                next_page = string_at(read.params, "cursor") is not None
                self._requests[slot] = CallRecord(0, "tools", raw, b"", next_page)
            if len(self._requests) > _MOST_REQUESTS:
                self._requests.popitem(last=False)
        return super().from_client(raw, exchange)

    def from_server(self, raw: bytes, exchange: bytes = b"") -> Outputs:
        recorded = None
        if self._requests and (key := responses.answered_id(raw)) is not None:
            recorded = self._requests.pop(exchange + key, None)
        outputs = super().from_server(raw, exchange)
        if recorded is not None:
            peer, recorded = self.rules.peer, recorded._replace(response=raw)
            widgets = peer.shows_widgets
            self._recorder.record(recorded, peer.server, peer.client, shows_widgets=widgets)
        return outputs

    def may_stream(self, start: bytes) -> bool:
        """Return True if a long line need not be read; a response that is recorded must be."""
        if not self._requests or message.asks(start):
            return super().may_stream(start)
        key = message.response_key(start, b"")
        if key is not None:
            self.state.inflight.renew(key)
        return False
