"""One caller never gets, runs or ends what is another's: seen by two tokens of one sidecar."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from tests.faults.processes import until
from tests.faults.routes import Naughty, failure, modern
from tests.faults.scale import scaled
from tests.faults.sidecar import (
    EVENTS,
    INITIALIZE,
    Client,
    RawResponse,
    Sidecar,
    call,
    get,
    keys,
    post,
    request,
    serving,
)
from tests.faults.wrapper import OWN
from tests.platforms import on_posix
from tests.redis_server import redis_server
from tests.wire import Wire

pytestmark = pytest.mark.fault(53, "http")

MIXER = (sys.executable, str(Path(__file__).with_name("mixer.py")))
# `make faults` has one that is a little more than a pipe takes at once, too.
SIZES = (60_000, 100, 6000)[: scaled(1, 3)]
ANN, BOB = "Authorization: Bearer secret-of-ann", "Authorization: Bearer secret-of-bob"


@contextmanager
def two_callers(folder: Path, *upstream: str, **top: Any) -> Iterator[Sidecar]:
    """Serve a command or a URL to two tokens."""
    (file := folder / "tokens").write_text("ann secret-of-ann\nbob secret-of-bob\n")
    words = ("--", *upstream) if len(upstream) > 1 else upstream
    with serving(*keys(token_file=str(file), **top), *words) as sidecar:
        yield sidecar


@pytest.fixture
def mixer(tmp_path: Path) -> Iterator[Sidecar]:
    with two_callers(tmp_path, *MIXER) as sidecar:
        yield sidecar


def ask(id: int, name: str, header: str, **arguments: Any) -> bytes:
    return modern(id, name, header, arguments=arguments)


def text_of(response: RawResponse) -> str:
    assert response.status == 200, response
    text: str = json.loads(response.messages[-1])["result"]["content"][0]["text"]
    return text


@contextmanager
def waiting(sidecar: Sidecar, raw: bytes) -> Iterator[Client]:
    """Send a request whose answer is to come later."""
    children = len(sidecar.children)
    with sidecar.client() as client:
        client.send(raw)
        until(lambda: len(sidecar.children) > children)
        sleep(0.3)  # until its server has read it: nothing outside shows that
        yield client


@pytest.mark.parametrize("size", SIZES)
def test_an_answer_that_breaks_off_never_carries_another_callers_answer(
    mixer: Sidecar, size: int
) -> None:
    with waiting(mixer, ask(1, "half", ANN, secret="of-ann", size=size)) as ann:
        # More than there may be processes, so that some of these come to each of them.
        for number in range(6):
            text = text_of(mixer.ask(ask(1, "echo", BOB, secret=f"of-bob-{number}")))
            assert text.startswith(f"of-bob-{number} ")
        ann.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            ann.more()
        assert b"of-bob" not in ann.buffer


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("way", ["stdio", "http"])
def test_in_a_session_too_an_answer_that_breaks_off_is_an_error(way: str, size: int) -> None:
    half = call(1, "half", arguments={"secret": "first", "size": size})
    echo = call(2, "echo", arguments={"secret": "second"})
    if way == "stdio":
        with Wire([*OWN, "--", *MIXER]) as wire:
            wire.write(half + b"\n" + echo + b"\n")
            error, answer = sorted((wire.line(), wire.line()))
    else:
        with serving("--", *MIXER) as sidecar:
            session = sidecar.begin()
            with sidecar.client() as client:
                client.send(post(half, session))
                sleep(0.3)
                [answer] = [e for e in sidecar.post(echo, session).messages if b'"id":2' in e]
                [error] = [each for each in client.answer().messages if b'"id":1' in each]
    assert failure(error, 1).startswith("the server's answer broke off after ")
    assert (json.loads(answer)["id"], b"first" in answer, b"second" in error) == (2, False, False)


@pytest.mark.parametrize("size", SIZES)
def test_an_answer_that_breaks_off_is_an_error_once_another_follows_on_its_line(
    tmp_path: Path, size: int
) -> None:
    with (
        serving(*keys(limits={"children": 1}), "--", *MIXER) as sidecar,
        waiting(sidecar, modern(1, "half", arguments={"secret": "first", "size": size})) as first,
    ):
        second = sidecar.ask(modern(2, "echo", arguments={"secret": "second"}))
        assert text_of(second).startswith("second ")
        [message] = first.answer().messages
        assert failure(message, 1).startswith("the server's answer broke off after ")
        assert b"second" not in message
        assert not any("first" in each for each in sidecar.errors.decode().splitlines())


def test_a_log_line_about_a_call_never_reaches_another_caller(mixer: Sidecar) -> None:
    with waiting(mixer, ask(1, "half", BOB, secret="of-bob", size=10)) as bob:
        for _ in range(6):
            mixer.ask(ask(1, "log", ANN, secret="of-ann", late=True))
        bob.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            bob.more()
        assert b"of-ann" not in bob.buffer


def test_no_log_line_of_a_caller_is_lost_while_it_has_several_calls(mixer: Sidecar) -> None:
    raw = modern(1, "log", ANN, EVENTS, arguments={"secret": "of-ann"})
    with waiting(mixer, modern(2, "half", ANN, EVENTS, arguments={"size": 0})):
        texts = [mixer.ask(raw).body for _ in range(3)]
    assert all(b"about of-ann" in text for text in texts)


def begin(sidecar: Sidecar, token: str) -> str:
    response = sidecar.post(INITIALIZE, token)
    assert response.status == 200, response
    return f"Mcp-Session-Id: {response.one('mcp-session-id')}"


def refusals(sidecar: Sidecar, token: str, session: str) -> list[tuple[int, str]]:
    """Ask in a session by every method."""
    responses = [
        sidecar.post(call(2, "echo"), token, session),
        sidecar.ask(get("/mcp", EVENTS, token, session)),
        sidecar.ask(get("/mcp", EVENTS, token, session, "Last-Event-ID: 1-1")),
        sidecar.ask(request("DELETE", "/mcp", token, session)),
    ]
    return [(each.status, each.error) for each in responses]


def test_a_session_of_another_caller_does_not_exist(mixer: Sidecar) -> None:
    session = begin(mixer, ANN)
    nothing = refusals(mixer, BOB, "Mcp-Session-Id: none")
    assert refusals(mixer, BOB, session) == nothing
    assert {status for status, _ in nothing} == {404}
    assert text_of(mixer.post(call(3, "echo"), ANN, session))


def test_a_session_of_a_caller_who_is_gone_is_nobody_elses(tmp_path: Path) -> None:
    with serving("--", *MIXER) as server, two_callers(tmp_path, server.url()) as sidecar:
        session = begin(sidecar, ANN)
        (tmp_path / "tokens").write_text("bob secret-of-bob\n")
        assert {status for status, _ in refusals(sidecar, BOB, session)} == {404}


def test_a_request_that_names_a_session_of_its_own_and_another_one_is_refused(
    tmp_path: Path,
) -> None:
    with serving("--", *MIXER) as server, two_callers(tmp_path, server.url()) as sidecar:
        sessions = begin(sidecar, BOB), begin(sidecar, ANN)
        for pair in (sessions, reversed(sessions)):
            response = sidecar.post(call(2, "echo"), BOB, *pair)
            assert (response.status, response.error) == (
                400,
                "the request has several Mcp-Session-Id headers",
            )


@pytest.mark.parametrize("store", ["memory", "redis"][: scaled(1, 2)])
def test_a_session_before_a_url_is_of_the_token_that_began_it(tmp_path: Path, store: str) -> None:
    with ExitStack() as stack:
        top = {}
        if store == "redis":
            top["store"] = stack.enter_context(redis_server()).url
        server = stack.enter_context(serving("--", *MIXER))
        one = stack.enter_context(two_callers(tmp_path, server.url(), **top))
        session = begin(one, ANN)
        replica = one
        if store == "redis":
            replica = stack.enter_context(two_callers(tmp_path, server.url(), **top))
        for sidecar in {id(one): one, id(replica): replica}.values():
            nothing = refusals(sidecar, BOB, "Mcp-Session-Id: none")
            assert refusals(sidecar, BOB, session) == nothing
            assert {status for status, _ in nothing} == {404}
            assert sidecar.ask(modern(2, "echo", BOB, session)).status == 404
            assert text_of(sidecar.post(call(3, "echo"), ANN, session))


def test_a_token_that_replaces_another_of_its_name_keeps_the_sessions(
    mixer: Sidecar, tmp_path: Path
) -> None:
    session = begin(mixer, ANN)
    (tmp_path / "tokens").write_text("ann another-secret\nbob secret-of-bob\n")
    assert text_of(mixer.post(call(3, "echo"), "Authorization: Bearer another-secret", session))
    assert mixer.post(call(3, "echo"), ANN, session).status == 401
    # A mistake in the file closes nothing, and is said.
    (tmp_path / "tokens").write_text("ann another-secret too many words\n")
    assert text_of(mixer.post(call(4, "echo"), "Authorization: Bearer another-secret", session))
    lines: list[str] = []

    def is_logged() -> bool:
        lines[:] = [each for each in mixer.messages() if "tokens" in each and "stay valid" in each]
        return bool(lines)

    until(is_logged)
    [line] = lines
    assert "secret" not in line.replace(str(tmp_path), "")


def test_the_log_names_the_caller_of_each_call(mixer: Sidecar) -> None:
    assert text_of(mixer.ask(ask(1, "echo", ANN, secret="x")))
    assert [each["token"] for each in mixer.events("call")] == ["ann"]


def test_sessions_of_one_caller_end_none_of_anothers(tmp_path: Path) -> None:
    with two_callers(tmp_path, *MIXER, limits={"sessions": 6}) as sidecar:
        session = begin(sidecar, BOB)
        for _ in range(10):
            begin(sidecar, ANN)
        assert text_of(sidecar.post(call(2, "echo"), BOB, session))


def test_sessions_that_begin_at_once_end_none_of_anothers(tmp_path: Path) -> None:
    with two_callers(tmp_path, *MIXER, limits={"sessions": 6}) as sidecar, ExitStack() as stack:
        session = begin(sidecar, BOB)
        for _ in range(12):
            stack.enter_context(sidecar.client()).send(post(INITIALIZE, ANN))
        until(lambda: len(sidecar.children) >= 6)
        assert text_of(sidecar.post(call(2, "echo"), BOB, session))


def test_a_caller_gets_a_process_although_another_one_has_them_all(tmp_path: Path) -> None:
    with two_callers(tmp_path, *MIXER, limits={"children": 2}) as sidecar:
        with waiting(sidecar, ask(1, "hold", ANN)):
            pids: set[str] = set()

            def takes_both() -> bool:
                pids.add(text_of(sidecar.ask(ask(2, "echo", ANN))).split()[-1])
                return len(pids) == 2

            until(takes_both)
            own = text_of(sidecar.ask(ask(1, "echo", BOB))).split()[-1]
            assert own not in pids
        assert text_of(sidecar.ask(ask(9, "echo", ANN))).split()[-1] != own


@on_posix("no signal that stops a process")
def test_a_server_that_was_stopped_gets_no_more_requests(tmp_path: Path) -> None:
    with (
        serving(*keys(limits={"children": 2}), "--", *MIXER) as sidecar,
        waiting(sidecar, modern(1, "stop")) as client,
    ):
        sleep(1.0)
        for number in range(12):
            if number == 6:
                client.reset()  # its client gives up, and nothing is open there any more
            assert text_of(sidecar.ask(modern(2, "echo"), seconds=10.0))


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_body_of_a_get_or_delete_is_never_sent_on(method: str) -> None:
    hidden = post(call(7), "Mcp-Session-Id: s")
    with Naughty() as server, serving(server.url) as sidecar:
        raw = request(method, "/mcp", EVENTS, "Mcp-Session-Id: s", body=hidden)
        response = sidecar.ask(raw)
        assert (response.status, response.one("connection")) == (400, "close")
        assert server.requests == []


def test_a_server_never_finds_the_sidecars_own_secrets(tmp_path: Path) -> None:
    env = {"Of_a_Route": "a", "MCP_ABRIDGE_TOKEN": "b", "MCP_ABRIDGE_STORE": "memory", "ITS": "c"}
    env |= {"MCP_ABRIDGE_URL": "http://d", "MCP_ABRIDGE_HEADER": "E: f"}
    config = keys(routes=[{"path": "/mcp", "token_env": "Of_a_Route"}])
    with serving(*config, "--", *MIXER, env=env) as sidecar:
        raw = modern(1, "variables", "Authorization: Bearer a")
        variables = json.loads(text_of(sidecar.ask(raw)))
    # Windows has all names in capitals.
    assert {each.upper() for each in env} & {each.upper() for each in variables} == {"ITS"}
