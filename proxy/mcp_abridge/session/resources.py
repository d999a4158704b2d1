"""Reads of resources: without it, the client cuts a long one itself, and nothing shows the rest.

Rules say which are shaped; any other passes as it is. A view in the fragment of a URI is answered
from the stored contents, or from the server's: a read has no effects, so it may be repeated.
"""

import msgspec
from msgspec import Raw

from mcp_abridge.document import message
from mcp_abridge.document.message import READ, Message, string_at
from mcp_abridge.document.tree import ABSENT, encode
from mcp_abridge.query.fragment import split
from mcp_abridge.session import effects, requests
from mcp_abridge.session.inflight import PendingRequest
from mcp_abridge.session.outputs import Outputs
from mcp_abridge.session.state import SessionState
from mcp_abridge.storage.snapshots import Key


def read(state: SessionState, raw: bytes, envelope: Message, pending: PendingRequest) -> Outputs:
    """Send a read on, or load the snapshot for the view that its URI asks for."""
    try:
        params = requests.PARAMS.decode(envelope.params)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return state.inflight.send(raw, pending)
    pending.tool, pending.scope = READ, pending.scope or state.scope
    if params.meta is not ABSENT:
        requests.read_meta(state, params.meta, pending)
    state.rules.select()
    whole = string_at(envelope.params, "uri") or ""
    uri, view = split(whole)
    rule = state.rules.of_resource(uri)
    answers = rule is not None and rule.mode == "active" and rule.snapshot_step.viewable
    if view is not None and not answers:  # the view is the server's to answer
        uri, view, rule = whole, None, state.rules.of_resource(whole)
    if rule is None or not uri:
        return state.inflight.send(raw, pending)
    pending.rule, pending.arguments, pending.view = rule, {"uri": uri}, view
    pending.call = requests.call_key(encode([READ, pending.arguments]), READ)
    pending.cacheable = params.begins
    if rule.snapshot_step.restart is not None:
        pending.key = Key(pending.scope, rule.name, pending.call + rule.snapshot_key)
    if view is None:
        return state.inflight.send(raw, pending)
    if pending.cacheable and pending.key is not None and pending.key != pending.searched_key:
        pending.line = raw
        return effects.load(state, pending, pending.key, requests.loaded)
    own = Raw(message.replaced(bytes(envelope.params), uri=uri))
    return state.inflight.send(message.replaced(raw, params=own), pending)
