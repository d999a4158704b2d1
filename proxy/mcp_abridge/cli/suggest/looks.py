"""Answers in short that were too little: without them, the first rule goes to the largest answers.

The ledger counts them by server.
"""

import os
import time

from mcp_abridge.session.looks import MANY
from mcp_abridge.storage import ledger_totals
from mcp_abridge.storage.ledger import default_path
from mcp_abridge.storage.meter import Looks

_DAYS = 7


def of_server(server: str) -> dict[str, Looks]:
    """Return the counts of the ledger for a server, by tool. Raises LedgerError."""
    path = os.environ.get("MCP_ABRIDGE_LEDGER") or default_path()
    if path == "off" or not os.path.exists(path):
        return {}
    since = time.time() - _DAYS * 86_400
    sums = ledger_totals.looks(path, since, server=server)
    return {tool or "": Looks(tool or "", None, server, None, *each) for tool, each in sums.items()}


def sentence(looks: Looks) -> str:
    """Return a sentence on the looks of a tool, "" if its answers were enough."""
    signs = (
        (ledger_totals.asked_on(looks), f"asked for all, or for {MANY} parts and more,"),
        (looks.called_again, "made the same call again"),
    )
    words = " and ".join(f"{did} after {count:,}" for count, did in signs if count)
    of = f"{looks.looks:,} shortened answers of the last {_DAYS} days"
    return f"the model {words} of {of}" if words else ""
