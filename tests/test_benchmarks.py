"""Shows that what the benchmarks measure is what they say: the server, the rules, the verdicts."""

import subprocess
import sys

import orjson
import pytest

from proxy.ruleset import selection as ruleset
from tests.benchmarks import commands, mix, table
from tests.benchmarks.kinds import Leg, Target, calls
from tests.benchmarks.legs import LEGS
from tests.benchmarks.measure import Figures
from tests.benchmarks.web_client import WrongAnswer
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


@pytest.mark.parametrize("name", sorted({leg.rules for leg in LEGS} - {"none", ""}))
def test_the_rules_of_every_leg_load(name: str) -> None:
    [file] = ruleset.load([str(commands.RULES / f"{name}.yaml")])
    assert file.rules


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


# One leg of each way, and of each kind of measurement that the ways have.
SHORT = (
    "HTTP to stdio: small",
    "HTTP to stdio: start",
    "stdio to HTTP: large, project",
    "HTTP to HTTP: small, JSON of a stream",
)


@pytest.mark.parametrize("name", SHORT)
def test_a_leg_over_http_can_be_measured(name: str) -> None:
    [leg] = [leg for leg in LEGS if leg.name == name]
    figures = leg.measure(leg, 0.01)
    assert len(figures.direct) == len(figures.wrapped) >= 2
    assert min(*figures.direct, *figures.wrapped) > 0


def printed(*words: str) -> list[str]:
    """Run a benchmark as a user does; return the lines that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=commands.ROOT,
        env=commands.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout.splitlines()


def test_the_load_on_the_knowledge_base_is_told_for_each_kind_of_request() -> None:
    rows = printed("tests.benchmarks.load", "--seconds", "1", "-c", "2")
    assert [row.split()[:2] for row in rows[2:7]] == [["2", kind.name] for kind in mix.KINDS]
    assert any("failures 0 and 0" in row for row in rows)
    assert any(row.startswith("with 2: the sidecar: ") for row in rows)
