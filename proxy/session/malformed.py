"""Lines that cannot be parsed: which parts are forwarded, and which are dropped."""

from msgspec import UNSET, Raw

from proxy.document import message
from proxy.document.tree import Number, encode
from proxy.errors import DocumentError
from proxy.session import forwarding as replies
from proxy.session.active_rules import ActiveRules
from proxy.session.ambiguity import called, differs, may_call, repeated
from proxy.session.counts import SessionMeter
from proxy.session.inflight import PendingRequest
from proxy.session.outputs import Forward, Output


def from_client(
    raw: bytes, cause: DocumentError, exchange: bytes, standing: ActiveRules, tally: SessionMeter
) -> tuple[Output, ...]:
    """Forward a line that cannot be parsed, unless it may be a call that a rule must stop."""
    import json

    try:
        read = json.loads(raw, parse_float=Number)
    except (ValueError, RecursionError):
        read = UNSET
    elements = read if isinstance(read, list) else [read]
    messages = [each for each in elements if isinstance(each, dict)]
    twofold = may_call(raw) and (repeated(Raw(raw)) or any(map(differs, messages)))
    if read is UNSET or twofold:
        if not (may_call(raw) and standing.protects()):
            return (Forward(raw),)
        # Another reader may parse more of it, and see a tool call.
        id = message.request_id(raw[:512], raw[-512:]) or b"null"
        line = message.error(id, -32700, f"the message cannot be read: {cause}")
        return replies.reply(tally, PendingRequest(exchange, id, ""), "refused", line)
    standing.now()
    if not any(standing.guarded(tool) for tool in map(called, messages) if tool is not None):
        return (Forward(raw),)
    outputs: list[Output] = []
    for each in messages:
        if "id" not in each or "method" not in each:
            tally.log(f"a message that cannot be read and has no id was dropped: {cause}")
            continue
        pending = PendingRequest(exchange, encode(each["id"]), "", called(each) or "")
        said = f"the call cannot be read: {cause}"
        line = message.refusal(pending.id, said, modern=False)
        if not pending.tool:
            line = message.error(pending.id, -32700, f"the batch cannot be read: {cause}")
        outputs += replies.reply(tally, pending, "refused", line)
    return tuple(outputs)


def noise(raw: bytes) -> int:
    """Return the number of bytes that are no message in an unreadable line of the server's stdout.

    It is 0 if only the proxy cannot parse the line.

    >>> noise(b"listening"), noise(b'debug {"jsonrpc":"2.0","method":"ping"}')
    (9, 6)
    >>> noise(b'{"jsonrpc":"2.0","id":1,"result":NaN}')
    0
    """
    if b'"jsonrpc"' not in raw:
        return len(raw)
    at = message.behind_noise(raw)
    if at is not None:
        return at
    return 0 if raw.lstrip()[:1] in (b"{", b"[") else len(raw)
