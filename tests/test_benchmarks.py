"""Shows that what the benchmarks measure is what they say: the server, the rules, the verdicts."""

import sys

import orjson
import pytest

from proxy import ruleset
from tests.benchmarks import commands, table
from tests.benchmarks.kinds import Leg, Target, WrongAnswer, calls
from tests.benchmarks.legs import LEGS
from tests.benchmarks.measure import Figures
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
    rules = str(commands.RULES / "keep.yaml")
    start = [sys.executable, "-m", "proxy"]
    assert commands.wrapped("keep", ("--tail",)) == [*start, "--rules", rules, "--", *plain]
    assert commands.wrapped("", ("--tail",)) == [*start, "--", *plain]
