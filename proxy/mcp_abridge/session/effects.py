"""Work on the store, which neither side sees: without it, no page or view of an answer is found."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp_abridge.errors import raised
from mcp_abridge.session.outputs import Outputs, RunInBackground, ToClient
from mcp_abridge.storage.snapshots import Key, Snapshot

if TYPE_CHECKING:
    from mcp_abridge.session.inflight import PendingRequest
    from mcp_abridge.session.state import SessionState

Lookup = tuple[Snapshot | None, str | None]
"""A snapshot, and the reason why it could not be looked up; None if there is none."""


def keep(state: "SessionState", key: Key, snapshot: Snapshot) -> RunInBackground:
    """Return the output that puts a snapshot into the store."""
    failure = "the answer was not kept for later pages and views: "
    return _tried(state, lambda: state.store.put(key, snapshot), failure)


def drop(state: "SessionState", key: Key) -> RunInBackground:
    """Return the output that drops the snapshots under a key, which may cover all of a rule."""
    failure = "an outdated answer may still be in the store: "
    return _tried(state, lambda: state.store.drop(key), failure)


def load(
    state: "SessionState",
    pending: "PendingRequest",
    key: Key,
    resume: "Callable[[SessionState, PendingRequest, Lookup], Outputs]",
) -> Outputs:
    """Suspend a call until the snapshot of its key, or of its caller's, was looked up."""

    def get() -> Lookup:
        try:
            snapshot, shared = state.store.get(key), key.of_caller
            if snapshot is None and shared is not None:
                snapshot = state.store.get(shared)
        except Exception as error:  # the call goes on nevertheless
            state.store_failed(error)
            return None, raised(error)
        return snapshot, None

    return (suspended(state, pending, get, resume, long=state.store.remote),)


def suspended(
    state: "SessionState",
    pending: "PendingRequest",
    do: Callable[[], Any],
    resume: "Callable[[SessionState, PendingRequest, Any], Outputs]",
    *,
    long: bool,
) -> RunInBackground:
    """Suspend a call until `do` is done; `resume` continues it unless it was cancelled."""
    token = state.inflight.suspend(pending)

    def then(result: Any) -> Outputs:
        if state.inflight.suspended.pop(token, None) is None:
            return ()
        try:
            return resume(state, pending, result)
        except Exception as error:
            return (ToClient(state.give_up(pending, error)),)

    return RunInBackground(do, then, long, token)


def _tried(state: "SessionState", do: Callable[[], None], failure: str) -> RunInBackground:
    def tried() -> None:
        try:
            do()
        except Exception as error:  # the response is sent nevertheless
            state.store_failed(error, failure)

    return RunInBackground(tried, lambda _: (), state.store.remote)
