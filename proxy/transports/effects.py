"""Carry out the outputs of a session on the store, as all transports do."""

from proxy.errors import raised
from proxy.session.outputs import ClaimCall, DropSnapshots, LoadSnapshot, StoreSnapshot
from proxy.session.session import Session
from proxy.storage.snapshots import Snapshot, Store
from proxy.transports.log import Log


def access(
    store: Store, output: LoadSnapshot | StoreSnapshot | DropSnapshots, log: Log
) -> tuple[Snapshot | None, str | None]:
    """Carry out an output on the store; return the loaded snapshot, and the reason of a failure."""
    consequence = ""
    try:
        if isinstance(output, LoadSnapshot):
            shared = output.key.of_caller
            snapshot = store.get(output.key)
            if snapshot is None and shared is not None:
                snapshot = store.get(shared)
            return snapshot, None
        if isinstance(output, StoreSnapshot):
            consequence = "the answer was not kept for later pages and views: "
            store.put(output.key, output.snapshot)
        else:
            consequence = "an outdated answer may still be in the store: "
            store.drop(output.key)
    except Exception as error:  # the response is sent nevertheless
        reason = raised(error)
        log.error(consequence + reason)
        return None, reason
    return None, None


def claim(session: Session, output: ClaimCall) -> bool:
    """Return True if nobody has made a call before; it is remembered. May take a moment."""
    return session.calls is not None and session.calls.claim(output.caller, output.call)
