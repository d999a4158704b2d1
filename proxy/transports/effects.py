"""Carry out the outputs of a session that both transports treat alike: the store, and failures."""

from proxy.errors import RuleErrors, StoreError, raised
from proxy.session.outputs import (
    DropSnapshots,
    Forward,
    LoadSnapshot,
    Output,
    Reply,
    StoreSnapshot,
)
from proxy.session.session import error_in_place_of
from proxy.session.state import failure_reason
from proxy.storage.snapshots import Snapshot, Store
from proxy.transports.log import Log


def access(
    store: Store, output: LoadSnapshot | StoreSnapshot | DropSnapshots, log: Log
) -> tuple[Snapshot | None, str | None]:
    """Carry out an output on the store; return the loaded snapshot, and the reason of a failure."""
    consequence = ""
    try:
        if isinstance(output, LoadSnapshot):
            return store.get(output.key), None
        if isinstance(output, StoreSnapshot):
            consequence = "the answer was not kept for later pages and views: "
            store.put(output.key, output.snapshot)
        else:
            consequence = "an outdated answer may still be in the store: "
            store.drop(output.key)
    except Exception as error:  # the response is sent nevertheless
        reason = store_failure(error)
        log.error(consequence + reason)
        return None, reason
    return None, None


def store_failure(error: Exception) -> str:
    """Return the text of a failure of the store."""
    return str(error) if isinstance(error, StoreError) else raised(error)


def failure_outputs(
    raw: bytes, error: Exception, log: Log, *, of_client: bool
) -> tuple[Output, ...]:
    """Return the outputs for a message on which the session failed: one must not end all others."""
    reason = failure_reason(error)
    if not isinstance(error, RuleErrors):
        log.error(reason)
    line = error_in_place_of(raw, reason, answers=not of_client)
    if of_client:
        return () if line is None else (Reply(line),)
    return (Forward(raw if line is None else line),)
