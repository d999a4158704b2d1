"""Messages of the server: responses are shaped, stored or withheld; all else is forwarded."""

import msgspec
from msgspec import Raw

from mcp_abridge.document import message
from mcp_abridge.document.message import SERVER_INFO, Message, string_at
from mcp_abridge.document.tree import ABSENT
from mcp_abridge.errors import DocumentError
from mcp_abridge.ruleset.clients import client_for
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.session import effects, guards, looks, tasks, tool_lists
from mcp_abridge.session.inflight import GET_TASK, PendingOwnRequest, PendingRequest, stale
from mcp_abridge.session.outputs import Noise, Outputs, Shape, ToClient
from mcp_abridge.session.state import SessionState
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.shaping.result.write import mended
from mcp_abridge.storage.snapshots import Snapshot

PROGRESS = "notifications/progress"

_LARGEST_HANDLE = 64 << 10  # bytes of a response that names a task in place of a result


def take(state: SessionState, raw: bytes, envelope: Message, exchange: bytes) -> Outputs:
    """Process one message, parsed as `envelope`."""
    if not envelope.responds:
        _record_progress(state, envelope, exchange)
        if envelope.verb == tasks.NEWS:
            return _news_of_task(state, raw, envelope, exchange)
        return (ToClient(raw),)
    key = envelope.key
    pending = None if key is None else state.inflight.find(exchange + key)
    if pending is None:
        is_stray = key is not None and state.inflight.is_stray(exchange, key)
        return () if is_stray else (ToClient(raw),)
    is_error = envelope.result is ABSENT or envelope.error is not ABSENT
    if pending.trace is not None:
        pending.trace.respond(raw)
    if isinstance(pending, PendingOwnRequest):
        outputs = guards.query_answered(state, pending, raw)
    elif _begins_task(state, raw, envelope, pending):
        # A call with a rule is counted with its result.
        counts = pending.rule is None
        outputs = _untouched(state, raw, pending) if counts else (ToClient(pending.end(raw)),)
    elif pending.only_counted or (is_error and not _shapes_error(pending, envelope, len(raw))):
        outputs = _untouched(state, raw, pending)
    else:
        outputs = _response(state, raw, envelope, pending)
    if pending.method == "tools/call" and not isinstance(pending, PendingOwnRequest):
        outputs = (*stale(state, pending), *outputs)
    _record(state, raw, pending)
    # Only now: if this failed, the request must still be known.
    state.inflight.answer(pending.slot)
    return outputs


def unprocessed(state: SessionState, raw: bytes, exchange: bytes, error: Exception) -> Outputs:
    """Process a message that cannot be read, or on which the proxy failed."""
    key = answered_id(raw)
    pending = None if key is None else state.inflight.answer(exchange + key)
    if pending is not None:
        _record(state, raw, pending)
    if isinstance(pending, PendingOwnRequest):
        return guards.give_up(state, pending, f"the answer cannot be read: {error}")
    if pending is None and (
        state.inflight.queries.within(raw)
        or (key is not None and state.inflight.is_stray(exchange, key))
    ):
        return ()
    return state.unprocessed(raw, pending, error)


def _record(state: SessionState, raw: bytes, pending: PendingRequest) -> None:
    if state.recorder is not None and pending.record is not None:
        peer, exchange = state.rules.peer, pending.record._replace(response=raw)
        widgets = peer.shows_widgets
        state.recorder.record(exchange, peer.server, peer.client, shows_widgets=widgets)


def answered_id(raw: bytes) -> bytes | None:
    """Return the id that a message responds to, as far as it can be told; None if to none."""
    read = message.envelope(raw)
    if read.is_message:
        return read.key if read.responds else None
    return message.responds_to(raw)


def _untouched(state: SessionState, raw: bytes, pending: PendingRequest) -> Outputs:
    state.counts.untouched(pending, len(raw), raw)
    return (ToClient(raw if pending.rule is None else _usable(state, raw, pending)),)


def _usable(state: SessionState, raw: bytes, pending: PendingRequest | None) -> bytes:
    """Return the response to a call in the form that the client can use and awaits."""
    needs = client_for(state.rules.peer.client).needs
    raw = mended(raw, needs) if needs and not (pending and pending.uri) else raw
    return raw if pending is None or not pending.around else tasks.inside(pending, raw)


def _shapes_error(pending: PendingRequest, envelope: Message, size: int) -> bool:
    rule = pending.rule
    if rule is None:
        return False
    # With both members, one must not disclose the content withheld in the other.
    if rule.errors or (rule.failure_policy.withholds and envelope.result is not ABSENT):
        return True
    return rule.max_bytes is not None and size > rule.max_bytes and envelope.result is ABSENT


def _response(
    state: SessionState, raw: bytes, envelope: Message, pending: PendingRequest
) -> Outputs:
    try:
        if pending.method == "initialize":
            state.rules.rename(server=string_at(envelope.result, "serverInfo", "name"))
            state.tool_list = tool_lists.new_history(envelope.result)
        elif pending.method == "server/discover":
            state.rules.rename(server=string_at(envelope.result, "_meta", SERVER_INFO, "name"))
        elif pending.method == "tools/list":
            return tool_lists.listed(state, raw, envelope, pending)
        elif pending.method == GET_TASK and envelope.error is ABSENT:
            return _of_task(state, raw, envelope.result, pending)
        elif pending.rule is not None:
            return to_shape(state, raw, pending, pending.rule)
    except (DocumentError, msgspec.DecodeError) as error:
        return state.unprocessed(raw, pending, error)
    return _untouched(state, raw, pending)


def _begins_task(
    state: SessionState, raw: bytes, envelope: Message, pending: PendingRequest
) -> bool:
    # Few answers name a task, and none of those is long: it has no content yet.
    may = pending.method == "tools/call" and len(raw) <= _LARGEST_HANDLE and b'"taskId"' in raw
    return may and tasks.begins(state, envelope.result, pending)


def _of_task(state: SessionState, raw: bytes, task: Raw, pending: PendingRequest) -> Outputs:
    """Have the response inside of a line about a task shaped as one to the call itself would be."""
    line = tasks.final(state, raw, task, pending)
    if line is None or pending.rule is None:
        return (ToClient(raw),)
    envelope = message.envelope(line)
    if envelope.result is ABSENT and not _shapes_error(pending, envelope, len(line)):
        return (ToClient(raw),)
    return to_shape(state, line, pending, pending.rule)


def _news_of_task(state: SessionState, raw: bytes, envelope: Message, exchange: bytes) -> Outputs:
    pending = PendingRequest(exchange, b"null", tasks.NEWS)
    try:
        pending = tasks.awaits(state, envelope.params, pending)
        return _of_task(state, raw, envelope.params, pending)
    except Exception as error:  # nobody waits for it: the client may ask for the state of its task
        outputs = state.unprocessed(raw, pending, error)
        return () if pending.withholds else outputs


def progress_token(meta: Raw) -> bytes:
    """Return the progress token in a request's `_meta` as an id_key; empty if there is none."""
    return message.id_key(bytes(message.value_at(meta, message.PROGRESS_TOKEN)))


def _record_progress(state: SessionState, envelope: Message, exchange: bytes) -> None:
    if state.inflight.deadline is None or envelope.id is not ABSENT or envelope.verb != PROGRESS:
        return
    token = progress_token(envelope.params)
    if token:
        state.inflight.progress(exchange + token)


def to_shape(state: SessionState, raw: bytes, pending: PendingRequest, rule: Rule) -> Outputs:
    """Have a response shaped, unless its rule only bounds its size and it surely fits."""
    # The part of a line that a model sees is never longer than the line.
    short = rule.max_bytes is not None and len(raw) <= rule.max_bytes and rule.passes_small
    windowed = pending.view is not None or pending.key in state.stored
    plain = not (windowed or rule.failure_policy.withholds)
    if short and plain and not message.may_hold_blobs(raw):
        return _untouched(state, raw, pending)
    return (Shape(job(state, pending, rule, raw=raw)),)


def job(
    state: SessionState,
    pending: PendingRequest,
    rule: Rule,
    *,
    raw: bytes | None = None,
    snapshot: Snapshot | None = None,
) -> ShapeJob:
    """Suspend a call, and return the job that shapes its response; see mcp_abridge.shaping.job."""
    facts, client = state.rules.facts(pending.tool), client_for(state.rules.peer.client)
    return ShapeJob(
        rule=rule,
        tool=pending.tool,
        id=pending.id,
        raw=raw,
        snapshot=snapshot,
        arguments=pending.step_arguments,
        names=pending.names,
        view=pending.view,
        viewable=pending.cacheable,
        dates=facts is None or not facts.reads_only or _precedes_a_write(state, snapshot),
        author_bytes=0 if facts is None else facts.author_bytes,
        keep=pending.cacheable and pending.key is not None and rule.snapshot_step.is_used,
        uri=pending.uri,
        # Claude Code and Codex show the JSON of the contents, opencode their texts.
        shows="blocks" if pending.uri else client.shows,
        base64=client.base64,
        modern=pending.modern,
        token=state.inflight.suspend(pending),
        bypass=rule.circuit_breaker.open,
    )


def _precedes_a_write(state: SessionState, snapshot: Snapshot | None) -> bool:
    """Return True if a call that may write came after a snapshot: its tool may answer otherwise."""
    age = 0 if snapshot is None else snapshot.age
    return state.inflight.clock() - age <= state.inflight.last_write


def shaped(
    state: SessionState, job: ShapeJob, result: ShapeResult, pending: PendingRequest | None
) -> Outputs:
    """Process the result of a job; `pending` is the suspended call, None if it was given up."""
    if pending is None or not pending.is_repeat:
        state.counts.shaped(job, result, pending)
    forward = ToClient(_usable(state, result.raw, pending))
    key = None if pending is None else pending.key
    if pending is None or key is None:
        return (forward,)
    looks.follow(state, key, pending, job, result)
    if result.snapshot is not None:
        return effects.keep(state, key, result.snapshot), forward
    if key in state.stored and job.raw is not None and result.outcome != "error":
        # The server answered the same call again: a view of the old response would mislead.
        del state.stored[key]
        return effects.drop(state, key), forward
    return (forward,)


def read_ends(state: SessionState, raw: bytes, exchange: bytes) -> Message | None:
    """Return a long response as far as its head and tail show it, None if that is not enough."""
    key = message.responds_to(raw)
    if key is None or message.may_hold_another(raw):
        return None
    pending = state.inflight.find(exchange + key)
    if not (pending is None or pending.only_counted):
        shapes = pending.rule is not None and (pending.gets_tool_result or pending.uri)
        if not shapes or not message.succeeds(raw[: message.ENDS]):
            return None
    return Message(id=Raw(key), result=Raw(b"{}"))


def is_withheld(state: SessionState, raw: bytes, exchange: bytes) -> bool:
    """Return True if a response is to a call whose rule withholds what it could not process."""
    key = answered_id(raw)
    pending = None if key is None else state.inflight.find(exchange + key)
    return pending is not None and pending.withholds


def take_half(state: SessionState, raw: bytes, size: int, exchange: bytes) -> tuple[Outputs, bytes]:
    """Answer the call whose response broke off after `size` bytes, before a message on its line.

    Anything else there is noise. Returns the outputs and the rest to process, nothing of it if it
    may be a part of a withheld response: what looks like a message may be an object within it.
    """
    half, rest = raw[:size], raw[size:]
    start = half[: message.ENDS]
    responds = message.answers(start)
    key = message.response_key(start, b"") if responds else None
    pending = None if key is None else state.inflight.retire(exchange + key)
    outputs: Outputs = ()
    if responds:
        reason = message.BROKE_OFF.format(size)
        state.log(reason)
        outputs = () if pending is None else guards.give_up(state, pending, reason)
    every = state.inflight.pending.values() if key is None else (pending,)
    withheld = any(each is not None and each.withholds for each in every)
    if withheld and half.lstrip()[:1] in (b"{", b"["):
        return outputs, other_response(state, rest, exchange)
    return outputs if responds else (Noise(half),), rest


def other_response(state: SessionState, rest: bytes, exchange: bytes) -> bytes:
    """Return the rest of a line if it is surely not part of a response to be withheld, else b""."""
    other = message.responds_to(rest)
    return rest if other is not None and exchange + other in state.inflight.pending else b""


def noise_size(raw: bytes) -> int:
    """Return the number of bytes that are no message in an unreadable line of the server's stdout.

    It is 0 if only the proxy cannot parse the line.

    >>> noise_size(b"listening"), noise_size(b'debug {"jsonrpc":"2.0","method":"ping"}')
    (9, 6)
    >>> noise_size(b'{"jsonrpc":"2.0","id":1,"result":NaN}')
    0
    """
    if b'"jsonrpc"' not in raw:
        return len(raw)
    offset = message.offset_after_noise(raw)
    if offset is not None:
        return offset
    return 0 if raw.lstrip()[:1] in (b"{", b"[") else len(raw)
