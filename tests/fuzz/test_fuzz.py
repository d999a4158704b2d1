"""The fuzzers themselves: what they say of a proxy that is right, and of ones that are broken."""

import re
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from proxy.document import message
from proxy.ruleset.loading.convert import fields
from proxy.ruleset.loading.rule_model import RuleSpec
from proxy.session.active_rules import ActiveRules, ToolRules
from proxy.session.outputs import Output
from proxy.session.session import Session
from proxy.session.state import InFlight
from proxy.shaping import pipeline
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.transforms import TRANSFORMS
from tests.fuzz import fuzzer, rules
from tests.fuzz.__main__ import FUZZERS, main
from tests.fuzz.fuzzer import run
from tests.fuzz.grammar import Dice

ROOT = Path(__file__).resolve().parents[2]
# Few: CI runs each of them for half a minute.
INPUTS = {"messages": 500, "pairs": 150, "traces": 100}


@pytest.mark.parametrize("name", FUZZERS)
def test_fuzzing_has_no_findings_and_reaches_many_states(name: str) -> None:
    report = run(FUZZERS[name][0], 11, range(INPUTS[name]))

    assert report.findings == []
    assert report.inputs == INPUTS[name]
    assert len(report.states) > INPUTS[name] // 4


def test_every_option_of_every_transform_and_nearly_every_key_of_a_rule_is_tried() -> None:
    combinations: set[tuple[str, str]] = set()
    keys: set[str] = set()
    for index in range(1500):
        rule = rules.rule(Dice.of(1, index))
        keys |= set(rule)
        combinations |= set(options([*rule.get("response", []), *rule.get("errors", [])]))

    every = {(word, name) for word in TRANSFORMS for name in fields(TRANSFORMS[word])}
    assert every - combinations == set()
    # These say what becomes of a call or of a list, not of a response.
    assert set(fields(RuleSpec)) - keys == {"guard", "definition", "hide", "tests"}


def options(steps: list[Any]) -> Iterator[tuple[str, str]]:
    for step in steps:
        if isinstance(step, list):
            yield from options(step)
            continue
        [(word, value)] = step.items()
        if isinstance(value, dict):
            yield from ((word, name) for name in value)


def shaped(change: Callable[[bytes], bytes]) -> Callable[..., ShapeResult]:
    plain = pipeline.shape

    def shape(job: ShapeJob, *more: Any) -> ShapeResult:
        result = plain(job, *more)
        return replace(result, raw=change(result.raw))

    return shape


def renumbered(raw: bytes) -> bytes:
    return raw.replace(b'"id":5.0', b'"id":5')


def first_id(start: bytes, end: bytes) -> bytes | None:
    match = re.search(rb'"id":(\d+)[,}]', start)
    return None if match is None else match[1]


def twice(session: Session, raw: bytes, exchange: bytes = b"") -> tuple[Output, ...]:
    outputs = FROM_SERVER(session, raw, exchange)
    return outputs + outputs[-1:]


FROM_SERVER, NO_RULES = Session.from_server, ToolRules((), None, None, False)
# The fuzzer that finds it, what is broken and by what, and the rule that it is found by.
PLANTED: list[tuple[str, Any, str, Any, str]] = [
    ("messages", message, "response_key", first_id, "the id of a response is never another"),
    (
        *("pairs", pipeline, "shape", shaped(lambda raw: raw.replace(b"1.10", b"1.1"))),
        "a value that is kept is spelled as it came",
    ),
    ("pairs", pipeline, "shape", shaped(renumbered), "the id keeps its spelling"),
    (
        *("pairs", pipeline, "shape", shaped(lambda raw: raw.replace(b'"text":"', b'"text":"x'))),
        "what the model sees is counted",
    ),
    ("pairs", pipeline, "shape", shaped(lambda raw: raw[:-1] + b",}"), "what is sent is JSON"),
    ("traces", Session, "ended", lambda *_: (), "each request is answered"),
    ("traces", Session, "from_server", twice, "what no rule is for goes to the client as it came"),
    ("traces", InFlight, "is_stray", lambda *_: False, "no client sees a question of the proxy's"),
    ("traces", Session, "streamed", lambda *_: None, "no request is answered twice"),
    ("traces", ActiveRules, "covering", lambda *_: NO_RULES, "a hidden tool is never called"),
]


@pytest.mark.parametrize(
    ("name", "owner", "attribute", "broken", "rule"), PLANTED, ids=[each[-1] for each in PLANTED]
)
def test_a_planted_fault_is_found(
    name: str,
    owner: Any,
    attribute: str,
    broken: Any,
    rule: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner, attribute, broken)
    check = FUZZERS[name][0]
    failures = (fuzzer.failure_of(lambda: list(check(11, index))) for index in range(1500))  # noqa: B023
    assert any(each is not None and each.startswith(rule) for each in failures)


def test_an_endless_check_is_a_finding_though_it_catches_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def endless(seed: int, index: int) -> Iterator[Hashable]:
        try:
            while True:
                pass
        except BaseException:
            yield "caught"

    monkeypatch.setattr(fuzzer, "SECONDS", 0.1)
    [(_, failure)] = run(endless, 1, [0]).findings
    assert failure.startswith("it takes more than 0.1 seconds; it was then at\n")
    assert "while True" in failure or "pass" in failure


def test_a_finding_is_printed_with_its_input_and_can_be_tried_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline, "shape", shaped(renumbered))
    words = ["pairs", "--processes", "1", "--seed", "5"]
    assert main([*words, "--count", "200"]) == 1

    match = re.search(
        r"\n#(\d+): the id keeps its spelling: 5\nPair\(.*\n", capsys.readouterr().out
    )
    assert match is not None
    assert main([*words, "--first", match[1], "--count", "1"]) == 1
    assert match[0] in capsys.readouterr().out
