"""The messages that server and client have of what a guard asks before a call.

What each answer and failure means is shown in tests/session/test_guards.py, and before a URL in
tests/transports/sidecar/url/test_queries.py.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import texts
from tests.faults.asking import Start, each_way, on_stdio
from tests.faults.bad_answers import NOTE
from tests.faults.naughty import result
from tests.faults.processes import until
from tests.faults.puppets import Puppet
from tests.faults.routes import Naughty, answer_of, modern
from tests.faults.sidecar import call, keys, serving
from tests.faults.wrapper import Wrapped, naughty, wrapped
from tests.platforms import on_posix
from tests.raw_http import RawRequest

PUPPET = naughty("puppet")
FREE = '{"busy":false}'
GUARD = "version: 1\nguards: {gate: 'plugins:Gate'}\nrules: [{tools: act, guard: gate}]\n"


@pytest.fixture
def guarded(tmp_path: Path) -> tuple[str, ...]:
    """Return options for rules with a guard before `act`."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(GUARD)
    (tmp_path / "plugins.py").write_text(Path(__file__).with_name("plugins.py").read_text())
    return ("--allow-python", "--rules", str(rules))


def act(id: int, answer: bytes, *, allow: bool = False) -> bytes:
    return call(id, "act", arguments={"asks": answer.hex(), "allow": allow})


@each_way()
def test_a_guard_gets_the_answer_and_the_client_all_other_messages(
    start: Start, guarded: tuple[str, ...]
) -> None:
    with start(*guarded, server=PUPPET) as client:
        puppet = Puppet(client)
        puppet.server_lines()
        for id, allow in ((7, False), (8, True)):
            note, answer = client.messages(act(id, NOTE + b"\n" + result(b"ID", FREE), allow=allow))
            assert (note, texts(answer)) == (NOTE, ["ok" if allow else FREE])
            query, *calls = map(json.loads, puppet.server_lines().splitlines())
            assert query["params"]["name"] == "fault"
            assert [each["id"] for each in calls] == [8] * allow


def test_a_held_call_goes_on_after_the_end_of_the_clients_input(guarded: tuple[str, ...]) -> None:
    with on_stdio(*guarded, server=PUPPET) as wire:
        assert isinstance(wire, Wrapped)
        wire.write(act(7, result(b"ID", FREE)) + b"\n")
        wire.shut_stdin()
        [answer] = wire.rest()
        assert texts(answer) == [FREE]


@on_posix("its pipes take whole what is written")
@pytest.mark.fault(16, "stdio")
def test_queries_to_a_server_that_does_not_read_hold_the_client_up(
    guarded: tuple[str, ...], tmp_path: Path
) -> None:
    calls = b"".join(act(id, b"x" * 50_000) + b"\n" for id in range(2, 200))
    with wrapped("deaf", str(tmp_path / "gate"), options=guarded) as wire:
        assert wire.pour(calls) < len(calls)
        wire.process.kill()


@on_posix("its pipes take whole what is written")
@pytest.mark.fault(16, "stdio")
@pytest.mark.parametrize(
    ("rule", "view"),
    [
        pytest.param("max_bytes: 8000", {"view": "a"}, id="a question for the tools"),
        pytest.param("response: [{paginate: {max_age_seconds: 60}}]", {}, id="the call"),
    ],
)
def test_what_follows_a_look_into_the_store_waits_for_a_server_that_does_not_read(
    rule: str, view: dict[str, str], tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(f"version: 1\nrules: [{{tools: '*', {rule}}}]\n")
    parts = [call(id, "get", arguments={**view, "x": "x" * 900}) for id in range(2, 3000)]
    with wrapped("deaf", str(tmp_path / "gate"), options=("--rules", str(rules))) as wire:
        assert wire.pour(b"\n".join(parts) + b"\n") < sum(map(len, parts))
        assert wire.holds.threads < 20
        wire.process.kill()


def test_a_stateless_client_that_goes_away_ends_its_query(guarded: tuple[str, ...]) -> None:
    closed: list[bool] = []

    def silent(request: RawRequest) -> Iterator[bytes]:
        closed.append(request.closed_by_client())
        yield b""

    with Naughty(silent) as server, serving(*guarded, server.url) as sidecar:
        with sidecar.client() as client:
            client.send(modern(7, "act", arguments={}))
            server.wait(1)
            client.reset()
        until(lambda: bool(closed))
        assert closed == [True]
        assert len(server.requests) == 1
    one_server = keys(limits={"children": 1})
    with serving(*guarded, *one_server, *PUPPET) as sidecar:

        def arrived(method: bytes) -> bool:
            [lines] = texts(answer_of(sidecar.ask(modern(8, "heard"))))
            return method in bytes.fromhex(lines)

        with sidecar.client() as client:
            client.send(modern(7, "act", arguments={"asks": ""}))
            until(lambda: arrived(b'"fault"'))
            client.reset()
        until(lambda: arrived(b"notifications/cancelled"))
