"""`run URL`: a stdio client before a remote server, as processes, and how that comes to its end."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

from tests.faults.processes import until
from tests.faults.scale import scaled
from tests.python_client import Mode
from tests.raw_http import (
    INITIALIZE,
    INITIALIZED,
    META,
    SECONDS,
    STREAM,
    Answer,
    RawRequest,
    RawServer,
    always,
    call,
    event,
    initialized,
    result,
    session,
    whole,
)
from tests.serving import upstream
from tests.wire import Wire

ROOT = Path(__file__).resolve().parents[3]
SERVER = ROOT / "tests" / "fixtures" / "sdk_server.py"


def bridge(url: str) -> list[str]:
    """Return the command that wraps a remote server; it must be started in ROOT."""
    return [sys.executable, "-m", "mcp_abridge", "run", "--rules", "none", url]


@contextmanager
def wired(answer: Answer) -> Iterator[tuple[RawServer, Wire]]:
    with RawServer(answer) as server, Wire(bridge(server.url), cwd=ROOT) as wire:
        yield server, wire


BEGIN = INITIALIZE + b"\n" + INITIALIZED + b"\n" + call(b"1") + b"\n"


def test_late_responses_arrive_before_the_session_is_ended() -> None:
    over = threading.Event()

    def late(request: RawRequest) -> Iterator[bytes]:
        assert over.wait(SECONDS)
        yield whole(result(request.id))

    with wired(session(late)) as (server, wire):
        wire.write(BEGIN)
        assert wire.line() == initialized(b"0") + b"\n"
        server.wait(3, "POST")
        wire.shut_stdin()
        over.set()
        assert wire.line() == result(b"1") + b"\n"
        assert wire.close() == (0, b"", b"")
        [deleted] = server.of("DELETE")
        assert deleted.headers["mcp-session-id"] == "s-1"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_order(number: signal.Signals) -> None:
    def never(request: RawRequest) -> Iterator[bytes]:
        yield STREAM
        assert request.closed_by_client()

    with wired(session(never)) as (server, wire):
        wire.write(BEGIN)
        server.wait(3, "POST")
        wire.line()
        wire.process.send_signal(number)
        message = json.loads(wire.line())
        assert wire.close().code == 128 + number
        assert len(server.wait(1, "DELETE")) == 1
    assert message["result"]["isError"] is True
    assert message["result"]["content"][0]["text"] == f"the proxy was ended by {number.name}"


def test_the_end_does_not_wait_for_a_subscription() -> None:
    listen = (
        b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":%s}}' % META
    )
    note = b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}'

    def answer(request: RawRequest) -> Iterator[bytes]:
        yield STREAM + event(note)
        assert request.closed_by_client()

    with wired(answer) as (_, wire):
        wire.write(listen + b"\n")
        assert wire.line() == note + b"\n"
        # Less than the time that late answers have.
        end = wire.close(4.5)
    assert end.code == 0
    assert json.loads(end.rest)["id"] == 1


def test_an_unreachable_server_is_an_error_for_the_client_and_on_stderr() -> None:
    with RawServer(always(b"")) as server:
        pass
    with Wire(bridge(server.url), cwd=ROOT) as wire:
        [line] = wire.answer(INITIALIZE + b"\n")
        code = wire.process.wait(SECONDS)
        text = json.loads(line)["error"]["message"]
    assert code == 1
    assert f"no connection to 127.0.0.1:{server.port}" in text
    assert text in wire.errors.decode()


def test_a_client_that_reads_no_more_ends_it() -> None:
    with wired(session()) as (server, wire):
        wire.answer(INITIALIZE + b"\n")
        wire.pipes[1].close()
        wire.write(call(b"1") + b"\n", reading=False)
        assert wire.process.wait(SECONDS) == 0
        wire.pipes[1] = open(os.devnull, "rb")  # noqa: SIM115
        assert len(server.wait(1, "DELETE")) == 1


@pytest.mark.parametrize("lines", [[call(b"1"), call(b"2")], [], None])
def test_the_client_may_be_a_file_or_a_device(tmp_path: Path, lines: list[bytes] | None) -> None:
    source = Path(os.devnull) if lines is None else tmp_path / "said"
    if lines is not None:
        source.write_bytes(b"".join(line + b"\n" for line in lines))
    with RawServer(session()) as server, source.open("rb") as stdin:
        completed = subprocess.run(
            bridge(server.url), stdin=stdin, capture_output=True, cwd=ROOT, timeout=SECONDS
        )
    assert (completed.returncode, completed.stderr) == (0, b"")
    assert sorted(completed.stdout.splitlines()) == [result(b"1"), result(b"2")][: len(lines or ())]


def test_a_client_that_does_not_read_holds_up_the_server() -> None:
    note = b'{"jsonrpc":"2.0","method":"notifications/message","params":"' + b"x" * 100_000 + b'"}'
    piece = event(note)
    size = 0
    stuck = threading.Event()

    def flood(request: RawRequest) -> Iterator[bytes]:
        nonlocal size
        request.connection.settimeout(1.0)
        yield STREAM
        try:
            for _ in range(2000):
                request.connection.sendall(piece)
                size += len(piece)
        except TimeoutError:
            stuck.set()
            yield b""

    with wired(flood) as (_, wire):
        wire.write(call(b"1") + b"\n", reading=False)
        assert stuck.wait(SECONDS)
        assert size < 64_000_000  # the kernel alone may hold 38 MB
        wire.process.send_signal(signal.SIGTERM)
        assert wire.close().code == 143


@contextmanager
def conversing(url: str, mode: Mode, **callbacks: Any) -> Iterator[tuple[Any, Client]]:
    """Connect the official client with callbacks; yield a runner of its coroutines, and it."""
    command, *args = bridge(url)
    server = StdioServerParameters(command=command, args=args, cwd=ROOT)
    client = Client(server, mode=mode, **callbacks)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as entered:
        yield portal.call, entered


async def cancel_call(client: Client, started: threading.Event, progress: Any) -> None:
    """Call a tool that waits, and give up as soon as it has begun."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(client.call_tool, "linger", {}, progress_callback=progress))
        assert await anyio.to_thread.run_sync(started.wait, SECONDS)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"][: scaled(1, 2)])
def test_progress_questions_and_cancellations_pass_in_both_directions(
    era: Mode, tmp_path: Path
) -> None:
    steps: list[float] = []
    started = threading.Event()

    async def progress(
        progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        steps.append(progress)
        started.set()

    async def name(*_: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": "Zoë"})

    log = tmp_path / "log"
    with (
        upstream([sys.executable, str(SERVER), str(log)], tmp_path / "server.log") as origin,
        conversing(f"{origin}/mcp", era, elicitation_callback=name) as (run, client),
    ):
        run(partial(client.call_tool, "report", {}, progress_callback=progress))
        assert steps == [1, 2]
        if era == "legacy":
            # A stateless server asks by its answer, not by a request.
            response = run(partial(client.call_tool, "ask_user", {}))
            assert response.content[0].text == "accept: Zoë"
        started.clear()
        run(partial(cancel_call, client, started, progress))
        response = run(partial(client.call_tool, "echo", {"text": "still here"}))
        assert response.structured_content == {"result": "still here"}
        until(log.exists)
    assert log.read_text() == "cancelled\n"
