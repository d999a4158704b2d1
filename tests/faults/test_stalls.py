"""Pings are answered while another session's rule works."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from select import select

import pytest

from tests.builders import texts
from tests.faults.naughty import result, table
from tests.faults.processes import until
from tests.faults.routes import answer_of, modern
from tests.faults.scale import scaled
from tests.faults.sidecar import INITIALIZE, call, compact, post, serving
from tests.faults.wrapper import NAUGHTY, OWN, Wrapped, naughty
from tests.raw_http import RawRequest, RawServer, session, whole
from tests.wrapped import Tee

# The tools of the server are numbers: of the rows that it answers with.
SPINS, EXPLODES, LARGE = "100", "101", "200000"
# Makes 2^26 of one, sharing all of it, and then writes them out one by one.
EXPLOSIVE = " | ".join([*["[@, @]"] * 26, *["[]"] * 25, "length(@)"])
RULES = f"""\
version: 1
transforms: {{spin: "plugins:Spin"}}
rules:
- {{tools: "{SPINS}", response: [{{spin: 1.0}}]}}
- {{tools: "{EXPLODES}", response: [{{jmespath: "{EXPLOSIVE}"}}]}}
- {{tools: "{LARGE}", response: [{{keep: [a]}}]}}
"""
PLACES = (
    *(("command", LARGE), ("url", SPINS), ("command", EXPLODES)),
    *(("url", EXPLODES), ("url", LARGE), ("command", SPINS)),
)
WORST = 1.0  # seconds that a ping may take on a machine that does much else
EXPECTED = {each: table(int(each)) for each in (SPINS, EXPLODES)}
EXPECTED[LARGE] = table(int(LARGE)).replace(',"noise":[1,2,3]', "")


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "rules.yaml").write_text(RULES)
    (folder / "plugins.py").write_text(Path(__file__).with_name("plugins.py").read_text())
    return ("--allow-python", "--rules", str(folder / "rules.yaml"))


def rows(request: RawRequest) -> Iterator[bytes]:
    name = request.message.get("params", {}).get("name", "0")
    yield whole(result(request.id, table(int(name))))


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with RawServer(session(rows)) as raw_server:
        yield raw_server


@pytest.mark.fault(36, "http")
@pytest.mark.parametrize(("place", "tool"), PLACES[: scaled(1, 6)])
def test_others_are_answered_while_a_rule_works(
    rules: tuple[str, ...], server: RawServer, place: str, tool: str
) -> None:
    before = (server.url,) if place == "url" else naughty("rows")
    with serving(*rules, *before) as sidecar, sidecar.client() as busy, sidecar.client() as other:
        own = sidecar.begin()
        # What is large is shaped by a process that is started for it.
        for raw in (modern(7, tool), post(call(7, tool), sidecar.begin())):
            busy.send(raw)
            worst = count = 0.0
            while not select([busy.socket], [], [], 0.01)[0]:
                start = time.monotonic()
                ping = {"jsonrpc": "2.0", "id": f"ping {count}", "method": "ping"}
                other.send(post(compact(ping), own))
                assert other.answer().status == 200
                worst, count = max(worst, time.monotonic() - start), count + 1
            assert texts(answer_of(busy.answer())) == [EXPECTED[tool]]
            assert worst < WORST
            assert count > 2


@pytest.mark.fault(36, "stdio")
@pytest.mark.parametrize("place", ["command", "url"][: scaled(1, 2)])
def test_messages_of_the_client_go_on_while_a_rule_works(
    rules: tuple[str, ...], server: RawServer, place: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.touch()
    command = Tee(log).before([sys.executable, str(NAUGHTY), "rows"])
    before = (server.url,) if place == "url" else ("--", *command)
    server.requests.clear()

    def arrived(method: bytes) -> bool:
        bodies = [request.body for request in server.requests]
        return method in (b"".join(bodies) if place == "url" else log.read_bytes())

    with Wrapped([*OWN, *rules, *before]) as wire:
        wire.ask(INITIALIZE)
        wire.write(call(5, SPINS) + b"\n")
        until(lambda: arrived(b"tools/call"))
        ping = compact({"jsonrpc": "2.0", "id": 6, "method": "ping"})
        wire.write(ping + b"\n", reading=False)
        until(lambda: arrived(b'"ping"'))
        early = b'"id":5' not in wire.buffer
        lines = {wire.line()[:-1], wire.line()[:-1]}
        empty = table(0) if place == "url" else "ok"
        assert lines == {result(b"5", EXPECTED[SPINS]), result(b"6", empty)}
        assert early, "the server heard of it only when the rule had done its work"
