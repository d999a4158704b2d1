"""Carries out outputs that need neither side: each driver of a session would do it otherwise."""

from collections.abc import Callable
from functools import partial

from mcp_abridge.errors import raised
from mcp_abridge.session.outputs import (
    ClaimCall,
    DropSnapshots,
    LoadSnapshot,
    Outputs,
    RunInBackground,
    StoreSnapshot,
)
from mcp_abridge.session.session import Session
from mcp_abridge.storage.snapshots import Store

Effect = ClaimCall | DropSnapshots | LoadSnapshot | RunInBackground | StoreSnapshot


def carry_out(
    output: Effect, session: Session, store: Store, fail: Callable[[str], None]
) -> Callable[[], Outputs]:
    """Carry out an output; return the function that enters the session with the result.

    `fail` gets a line if the store fails.
    """
    if isinstance(output, RunInBackground):
        return partial(output.then, output.do())
    if isinstance(output, ClaimCall):
        calls = session.state.calls
        first = calls is not None and calls.claim(output.caller, output.call)
        return partial(session.claimed, output.token, first=first)
    snapshot, failure, consequence = None, None, ""
    try:
        if isinstance(output, StoreSnapshot):
            consequence = "the answer was not kept for later pages and views: "
            store.put(output.key, output.snapshot)
        elif isinstance(output, DropSnapshots):
            consequence = "an outdated answer may still be in the store: "
            store.drop(output.key)
        else:
            shared = output.key.of_caller
            snapshot = store.get(output.key)
            if snapshot is None and shared is not None:
                snapshot = store.get(shared)
    except Exception as error:  # the response is sent nevertheless
        failure = raised(error)
        fail(consequence + failure)
    if isinstance(output, LoadSnapshot):
        return partial(session.loaded, output.token, snapshot, failure)
    return tuple
