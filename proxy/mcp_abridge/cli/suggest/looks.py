"""Answers in short that were too little: without them, the first rule goes to the largest answers.

The ledger counts them by server. Transcripts have the views that tell; recordings only those that
reached the server, since the proxy answers others itself.
"""

import os
import time
from collections import Counter
from collections.abc import Iterable

from mcp_abridge.cli.server import arguments_of
from mcp_abridge.document.tree import encode
from mcp_abridge.replay.recordings import RecordedSession
from mcp_abridge.session.looks import MANY, Look
from mcp_abridge.session.tools.arguments import VIEW
from mcp_abridge.storage import ledger_totals
from mcp_abridge.storage.ledger import default_path
from mcp_abridge.storage.meter import LOOK_SIGNS, Looks

_DAYS = 7


def of_server(server: str) -> dict[str, Looks]:
    """Return the counts of the ledger for a server, by tool. Raises LedgerError."""
    path = os.environ.get("MCP_ABRIDGE_LEDGER") or default_path()
    if path == "off" or not os.path.exists(path):
        return {}
    since = time.time() - _DAYS * 86_400
    sums = ledger_totals.looks(path, since, server=server)
    return {tool or "": Looks(tool or "", None, server, None, *each) for tool, each in sums.items()}


def of_sessions(sessions: Iterable[RecordedSession]) -> dict[str, Looks]:
    """Return the counts of calls in sessions, by tool; each answer counts as a look."""
    counts: dict[str, Counter[str]] = {}
    for session in sessions:
        looks: dict[bytes, Look] = {}
        for _, each in session.exchanges:
            declares = VIEW in arguments_of(session.tools.get(each.tool, {}))
            name = f"abridged_{VIEW}" if declares else VIEW
            own = {key: value for key, value in each.arguments.items() if key != name}
            call, view = encode([each.tool, own], ordered=True), each.arguments.get(name)
            look, count = looks.get(call), counts.setdefault(each.tool, Counter())
            if view is None:
                count["looks"] += 1
                looks[call] = Look()
            if look is not None and (sign := look.sign_of(view)):
                count[sign] += 1
    return {
        tool: Looks(tool, None, None, None, *(count[sign] for sign in LOOK_SIGNS))
        for tool, count in counts.items()
    }


def sentence(looks: Looks) -> str:
    """Return a sentence on the looks of a tool, "" if its answers were enough."""
    signs = (
        (ledger_totals.asked_on(looks), f"asked for all, or for {MANY} parts and more,"),
        (looks.called_again, "made the same call again"),
    )
    words = " and ".join(f"{did} after {count:,}" for count, did in signs if count)
    of = f"shortened answers of the last {_DAYS} days" if looks.server else "answers"
    return f"the model {words} of {looks.looks:,} {of}" if words else ""
