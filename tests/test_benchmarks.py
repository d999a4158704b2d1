"""Shows that what the benchmarks measure is what they say: the server, the rules, the verdicts."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import orjson
import pytest

from proxy.ruleset import selection as ruleset
from tests import raw_http
from tests.benchmarks import commands, lines, mix, raw, services, table, web_client
from tests.benchmarks.kinds import Leg, Target, WrongAnswer, calls
from tests.benchmarks.legs import LEGS
from tests.benchmarks.measure import Figures
from tests.conformance.suite import free_port
from tests.raw_http import Asked, RawServer
from tests.wire import Wire

HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}


@pytest.mark.parametrize(
    ("options", "members"),
    [((), ["jsonrpc", "id", "result"]), (("--tail",), ["result", "jsonrpc", "id"])],
)
def test_the_server_answers_in_the_sizes_and_spellings_that_the_legs_speak_of(
    options: tuple[str, ...], members: list[str]
) -> None:
    with Wire(commands.direct(options)) as wire:
        [shaken] = wire.send("initialize", 1, **HANDSHAKE)
        assert orjson.loads(shaken)["result"]["protocolVersion"] == "2025-11-25"
        wire.send("notifications/initialized")
        listed = orjson.loads(wire.send("tools/list", 2)[-1])["result"]["tools"]
        declares = [tool["name"] for tool in listed if "outputSchema" in tool]
        assert declares == ["large_s"]
        sizes = {"small": 221, "large": 571_000, "large_s": 1_030_000, "huge": 10_780_000}
        for number, (name, size) in enumerate(sizes.items(), 300):
            [answer] = wire.send("tools/call", number, name=name, arguments={})
            assert len(answer) == pytest.approx(size, rel=0.01)
            read = orjson.loads(answer)
            assert list(read) == members
            assert read["id"] == number
            if name == "large_s":
                said = read["result"]["content"][0]["text"]
                assert orjson.loads(said) == read["result"]["structuredContent"]
        [refused] = wire.send("tools/call", "a text", name="none")
        assert orjson.loads(refused)["error"]["message"] == "Unknown tool: none"


def test_the_server_speaks_the_stateless_revision_when_it_is_told_to() -> None:
    with Wire(commands.direct(("--modern",))) as wire:
        assert b'"error"' in wire.send("initialize", 1, **HANDSHAKE)[-1]
        found = orjson.loads(wire.send("server/discover", 2)[-1])["result"]
        assert found["supportedVersions"] == ["2026-07-28"]
        [answer] = wire.send("tools/call", 3, name="small", arguments={})
        assert orjson.loads(answer)["result"]["resultType"] == "complete"


def test_many_requests_in_one_write_get_an_answer_each() -> None:
    ask = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"small"}}\n'
    with Wire(commands.direct()) as wire:
        wire.write(b"".join(ask % number for number in range(500)))
        answers = [orjson.loads(wire.line()) for _ in range(500)]
        assert [answer["id"] for answer in answers] == list(range(500))
        assert all("result" in answer for answer in answers)


@pytest.mark.parametrize("name", sorted({leg.rules for leg in LEGS} - {"none", ""}))
def test_the_rules_of_every_leg_load(name: str) -> None:
    [file] = ruleset.load([str(commands.RULES / f"{name}.yaml")])
    assert file.rules


def test_every_leg_has_a_name_of_its_own() -> None:
    assert len({leg.name for leg in LEGS}) == len(LEGS)


def test_a_wrong_answer_is_no_measurement() -> None:
    same, short = Leg("a", calls), Leg("b", calls, most=10)
    same.check(b"answer\n", b"answer\n")
    short.check(b"a long answer\n", b"answer\n")
    with pytest.raises(WrongAnswer, match="not the 7 bytes of a direct answer: Answer"):
        same.check(b"answer\n", b"Answer\n")
    with pytest.raises(WrongAnswer, match="14 bytes, expected 10 at most: a long answer"):
        short.check(b"a long answer\n", b"a long answer\n")
    with pytest.raises(WrongAnswer, match="isError"):
        Leg("c", calls, most=100).check(b"", b'{"result":{"isError":true}}')


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (Target("ratio", 2.0), "met"),
        (Target("ratio", 1.6), "MISSED by 25%"),
        (Target("added", 0.03), "met (+20.0 ms)"),
        (Target("wrapped", 0.1, least=True), "MISSED by 60%"),
        (None, ""),
    ],
)
def test_a_verdict_says_by_how_much_a_target_is_missed(target: Target | None, said: str) -> None:
    figures = Figures(direct=(0.02, 0.02, 0.01), wrapped=(0.03, 0.04, 0.04))
    assert table.verdict(Leg("a", calls, target=target), figures) == said


def test_a_row_shows_medians_and_the_ratio_pair_by_pair() -> None:
    figures = Figures(direct=(0.02, 0.02, 0.01), wrapped=(0.03, 0.04, 0.04))
    cells = table.row(Leg("a", calls, target=Target("ratio", 2.0)), figures)
    assert cells == ("a", "20.0 ms", "40.0 ms", "×2.00 (1.50 to 4.00)", "<= ×2", "met")
    assert table.text([cells]).splitlines()[-1].split()[0] == "a"


def test_the_commands_differ_by_the_wrapper_alone() -> None:
    plain = commands.direct(("--tail",))
    rules = ["--rules", str(commands.RULES / "keep.yaml"), "--budget", "off"]
    start = [sys.executable, "-m", "proxy"]
    assert commands.wrapped("keep", ("--tail",)) == [*start, *rules, "--", *plain]
    assert commands.wrapped("", ("--tail",)) == [*start, "--", *plain]


@pytest.mark.parametrize("options", [(), ("--stream",)])
def test_over_http_the_server_gives_the_same_answers_as_over_stdio(
    options: tuple[str, ...],
) -> None:
    port = free_port()
    with (
        Wire(commands.direct()) as wire,
        services.service(services.web_server(port, options), port),
        web_client.Client(port) as client,
    ):
        client.connect()
        for name in ("small", "large", "huge"):
            [said] = wire.send("tools/call", 7, name=name, arguments={})
            answer = client.ask(raw.tools_call(name, number=7))
            assert answer.message() == said.removesuffix(b"\n")
            assert (b"text/event-stream" in answer.head) == bool(options)


def test_an_answer_in_chunks_is_put_together_and_a_broken_one_is_seen() -> None:
    assert web_client.unchunked(b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n") == b"abc0123456789"
    with pytest.raises(ValueError, match="a chunk without its end"):
        web_client.unchunked(b"3\r\nabcd\r\n0\r\n\r\n")


# One leg of each way, and of each kind of measurement that the ways have.
SHORT = (
    "HTTP to stdio: small",
    "HTTP to stdio: start",
    "stdio to HTTP: small, stateless",
    "stdio to HTTP: large, project",
    "HTTP to HTTP: small",
    "HTTP to HTTP: small, JSON of a stream",
    "HTTP to HTTP: large, first byte of a stream",
    "HTTP to HTTP: large, stream against JSON",
)


@pytest.mark.parametrize("name", SHORT)
def test_a_leg_over_http_can_be_measured(name: str) -> None:
    [leg] = [leg for leg in LEGS if leg.name == name]
    figures = leg.measure(leg, 0.01)
    assert len(figures.direct) == len(figures.wrapped) >= 2
    assert min(*figures.direct, *figures.wrapped) > 0


def test_the_load_on_the_knowledge_base_is_told_for_each_kind_of_request() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.load", "--seconds", "1", "-c", "2"]
    done = subprocess.run(
        command,
        cwd=commands.ROOT,
        env=commands.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    rows = done.stdout.splitlines()
    assert [row.split()[:2] for row in rows[2:7]] == [["2", kind.name] for kind in mix.KINDS]
    assert "failures 0 and 0" in done.stdout
    assert "with 2: the sidecar: " in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")
def test_long_lines_can_be_measured_over_stdio_and_http() -> None:
    ways, cases = ("command", "serve URL"), ("untouched, id last", "not read")
    words = [word for case in cases for word in ("-k", case)]
    words += [word for way in ways for word in ("--way", way)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.lines", "--megabytes", "1", *words],
        cwd=commands.ROOT,
        env=commands.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    rows = done.stdout.splitlines()
    assert [sum(row.startswith(f"{way}  ") for row in rows) for way in ways] == [2, 2]


def test_a_line_that_is_not_as_it_should_be_is_no_measurement() -> None:
    whole, touched = lines.Case("whole"), lines.Case("touched", touched=True)
    assert lines.Took(0.1, 1_000_000, b'{"result":').checked(whole, 1) == 0.1
    assert lines.Took(0.1, 10, b'{"result":').checked(touched, 1) == 0.1
    with pytest.raises(WrongAnswer, match=r'^10 bytes: {"result":$'):
        lines.Took(0.1, 10, b'{"result":').checked(whole, 1)
    with pytest.raises(WrongAnswer, match="isError"):
        lines.Took(0.1, 10, b'{"result":{"isError":true').checked(touched, 1)


@pytest.mark.parametrize(
    ("memory", "seconds", "said"),
    [
        (300, 1.9, "met"),
        (301, 1.9, "memory MISSED: at most 300 MB"),
        (300, 2.1, "time MISSED: at most 2.0 s"),
    ],
)
def test_a_long_line_is_held_to_its_bounds(memory: float, seconds: float, said: str) -> None:
    found = lines.Found((), (seconds,) * 3, memory)
    assert lines.verdict(lines.Case("untouched"), 100, found) == said
    assert lines.verdict(lines.Case("shaped", touched=True), 100, found) == ""


@pytest.mark.parametrize(
    ("answer", "counted"),
    [
        (raw_http.whole(b"", "503 Service Unavailable"), "tools/list: HTTP 503"),
        (
            raw_http.STREAM.replace(b"Connection: close", b"Transfer-Encoding: chunked")
            + b"8\r\ndata: {}\r\n0\r\n\r\n",
            "tools/list: cut short or not there: ValueError: an event without its end: b'data: {}'",
        ),
        (
            raw_http.whole(b'{"jsonrpc":"2.0","id":11,"resu'),
            "tools/list: cut short or not there: ValueError: no whole message: ",
        ),
        (
            raw_http.whole(b'{"id":11,"error":{"code":-1,"message":"no"}}'),
            'tools/list: an answer that is none: {"id":11,"error":{"code":-1,"message":"no"}}',
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{}",
            "tools/list: cut short or not there: EOFError: the connection ended after ",
        ),
    ],
)
def test_under_load_whatever_is_no_whole_answer_is_counted(answer: bytes, counted: str) -> None:
    over = threading.Event()

    def said(asked: Asked) -> Iterator[bytes]:
        if asked.message.get("id", 0) == 11:
            over.set()
            yield answer
        elif "id" in asked.message:
            yield raw_http.whole(raw_http.initialized(asked.id))
        else:
            yield raw_http.ACCEPTED

    tally = mix.Tally()
    with RawServer(said) as server:
        mix.ask_on(server.port, ["a"], 0, ["JSON"], tally, over)
    [(failure, times)] = tally.failures.items()
    assert failure.startswith(counted)
    assert (times, tally.answers()) == (1, 1)
