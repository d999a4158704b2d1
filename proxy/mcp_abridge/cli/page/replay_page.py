"""`replay --html` and `--watch`: without them, what a rule changes is read call by call."""

import argparse
import webbrowser
from collections.abc import Iterator
from pathlib import Path

from mcp_abridge.cli import options
from mcp_abridge.cli.page import calls, write
from mcp_abridge.cli.page.calls import RecordedCalls
from mcp_abridge.cli.terminal import progress, refuse, refuse_error
from mcp_abridge.cli.transcripts import sessions_in
from mcp_abridge.errors import AbridgeError
from mcp_abridge.replay.recordings import NO_CALL, RecordedSession
from mcp_abridge.storage.redaction import Redaction


def run(arguments: argparse.Namespace) -> int:
    """Write the page of recordings to a file, or serve it until the user ends the command.

    Returns 2 if there is nothing to show. Raises AbridgeError or OSError.
    """
    if arguments.json:
        return refuse(
            "replay", "--json prints the figures without a page; leave one of the two out"
        )
    if arguments.watch:
        from mcp_abridge.cli.page.watch import serve

        return serve(arguments, lambda: read(arguments))
    selection = options.selection(arguments)
    recorded = read(arguments)
    if not recorded.calls:
        return refuse("replay", NO_CALL.format(", ".join(arguments.paths)))
    note = " with the recorded answers; you alone can read the file"
    write("replay", arguments.html, calls.page(recorded, selection, progress), note)
    if arguments.open and arguments.html != "-":
        webbrowser.open(Path(arguments.html).absolute().as_uri())
    return 0


def read(arguments: argparse.Namespace) -> RecordedCalls:
    """Return the calls in the recordings and transcripts, masked; errors are printed."""
    messages = set[str]()

    def report(error: AbridgeError | OSError) -> None:
        if str(error) not in messages:  # a call is replayed for each client
            messages.add(str(error))
            refuse_error("replay", error)

    sessions = (session for session, _ in sessions_in(arguments.paths, report))
    masks = Redaction(arguments.redact or ())
    return RecordedCalls(_masked(sessions, masks), arguments.client, report)


def _masked(sessions: Iterator[RecordedSession], masks: Redaction) -> Iterator[RecordedSession]:
    for session in sessions:
        exchanges = []
        for file, exchange in session.exchanges:
            request = masks.request(exchange.request)
            response = masks.response(exchange.response)
            exchanges.append((file, exchange.masked(request, response)))
        session.exchanges = exchanges
        yield session
