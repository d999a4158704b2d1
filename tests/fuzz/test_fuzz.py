"""The fuzzers themselves: what they say of a proxy that is right, and of ones that are broken."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from proxy.document import message
from proxy.document.tree import Document
from proxy.ruleset.loading.convert import fields
from proxy.ruleset.loading.rule_model import RuleSpec
from proxy.ruleset.rule import Rule
from proxy.session.active_rules import ActiveRules, ToolRules
from proxy.session.outputs import Output
from proxy.session.session import Session
from proxy.session.state import InFlight, SessionState
from proxy.shaping import pages, pipeline
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.shaping.result import write as writing
from proxy.shaping.result.frame import Frame
from proxy.transforms import TRANSFORMS
from proxy.transports.driver import Driver
from proxy.transports.http.sse import Events
from proxy.transports.stdio.lines import Lines
from proxy.transports.stdio.pipes import PipeWriter
from tests.fuzz import driving, fuzzer, outlets, relaying, rulefiles, shrinking
from tests.fuzz.__main__ import main
from tests.fuzz.dice import Dice
from tests.fuzz.fuzzer import Report, Wrong, run
from tests.fuzz.pairs import Pair, check, pair, smallest
from tests.fuzz.sharing import FUZZERS
from tests.fuzz.traces import shortest, told
from tests.given import answer, document, said

ROOT = Path(__file__).resolve().parents[2]
INPUTS = {"framing": 3000, "pairs": 500, "traces": 250}


def report(name: str, most: int, seed: int = 11) -> Report:
    """Return what a fuzzer finds among its first inputs; what shows it is not made small."""
    made: Any = FUZZERS[name][0]()
    made.shown = lambda seed, index: ""
    return run(made, seed, range(most))


def finds(name: str, rule: str, most: int) -> bool:
    """Say whether a fuzzer finds a rule broken among its first inputs."""
    made = FUZZERS[name][0]()
    said = (fuzzer.raised(lambda: list(made.try_one(11, index))) for index in range(most))  # noqa: B023
    return any(each is not None and each.startswith(rule) for each in said)


@pytest.mark.parametrize("name", FUZZERS)
def test_nothing_is_found_and_many_states_are_reached(name: str) -> None:
    done = report(name, INPUTS[name])

    assert [each.said for each in done.findings] == []
    assert (done.inputs, done.seed) == (INPUTS[name], 11)
    assert len(done.reached) > INPUTS[name] // 4


def test_the_same_seed_reaches_the_same_states_and_another_one_others() -> None:
    one, again, other = (report("pairs", 150, seed=seed) for seed in (1, 1, 2))

    assert one.reached == again.reached
    assert one.reached != other.reached


def test_a_session_in_an_event_loop_answers_each_request_once() -> None:
    for index in range(8):
        assert list(driving.check(1, index))


def test_a_worker_process_gives_the_same_as_this_one() -> None:
    for index in range(3):
        list(check(pair(1, index), process=True))


def test_the_wrapper_as_a_process_answers_each_request_once() -> None:
    for index in range(2):
        assert list(relaying.check(1, index))


def test_every_option_of_every_transform_and_nearly_every_key_of_a_rule_is_tried() -> None:
    tried: set[tuple[str, str]] = set()
    keys: set[str] = set()
    for index in range(1500):
        rule = rulefiles.rule(Dice.of(1, index))
        keys |= set(rule)
        tried |= set(options([*rule.get("response", []), *rule.get("errors", [])]))

    known = {(word, name) for word, kind in TRANSFORMS.items() for name in fields(kind)}
    assert known - tried == set()
    # These say what becomes of a call or of a list, not of a response.
    assert set(fields(RuleSpec)) - keys == {"guard", "definition", "hide", "tests"}


def options(steps: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield the options of steps, each with its transform."""
    for step in steps:
        if isinstance(step, list):
            yield from options(step)
            continue
        [(word, given)] = step.items()
        if isinstance(given, dict):
            yield from ((word, name) for name in given)


# A planted fault is found


def shaped(change: Callable[[bytes], bytes]) -> Callable[..., ShapeResult]:
    """Return `pipeline.shape` with each line changed."""
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


FROM_SERVER, LINES, FEED, EVENTS = Session.from_server, Lines.__init__, Lines.feed, Events.feed
NO_RULES = ToolRules((), None, None, False)
IN_PIECES = "a line comes whole or in pieces"
PLANTED: dict[str, tuple[str, Any, str, Any, str]] = {
    "a line ends at another sign": (
        *("framing", Lines, "feed"),
        lambda self, raw, size: FEED(self, bytes(raw[:size]).replace(b"\r", b"\n"), size),
        IN_PIECES,
    ),
    "a limit is not kept": (
        *("framing", Lines, "__init__"),
        lambda self, limit, *more: LINES(self, limit + 1, *more),
        IN_PIECES,
    ),
    "events lose their ids": (
        *("framing", Events, "feed"),
        lambda self, chunk: (replace(event, id=None) for event in EVENTS(self, chunk)),
        "the events are those of the specification",
    ),
    "an id is read deeper": (
        *("framing", message, "response_key", first_id),
        "the id of a response is never another",
    ),
    "a number is rounded": (
        *("pairs", pipeline, "shape", shaped(lambda raw: raw.replace(b"1.10", b"1.1"))),
        "a value that is kept is spelled as it came",
    ),
    "an id is spelled anew": (
        *("pairs", pipeline, "shape", shaped(renumbered)),
        "the id keeps its spelling",
    ),
    "a text is longer than counted": (
        *("pairs", pipeline, "shape"),
        shaped(lambda raw: raw.replace(b'"text":"', b'"text":"' + b"x" * 9000)),
        "what the model sees is counted",
    ),
    "the JSON is broken": (
        *("pairs", pipeline, "shape", shaped(lambda raw: raw[:-1] + b",}")),
        "what is sent is JSON",
    ),
    "an end is not told": (
        *("traces", Session, "ended", lambda *_: ()),
        "each request is answered",
    ),
    "an output is sent twice": (
        *("traces", Session, "from_server", twice),
        "what no rule is for goes to the client as it came",
    ),
    "a refusal is lost": (
        *("traces", SessionState, "refuse", lambda *_: ()),
        "each request is answered",
    ),
    "a query's response is passed on": (
        *("traces", InFlight, "is_stray", lambda *_: False),
        "no client sees a question of the proxy's own",
    ),
    "a streamed response is forgotten": (
        *("traces", Session, "streamed", lambda *_: None),
        "no request is answered twice",
    ),
    "no rule covers a tool": (
        *("traces", ActiveRules, "covering", lambda *_: NO_RULES),
        "a hidden tool is never called",
    ),
}


@pytest.mark.parametrize(
    ("fuzzer", "owner", "name", "broken", "rule"), PLANTED.values(), ids=PLANTED
)
def test_a_planted_fault_is_found(
    fuzzer: str, owner: Any, name: str, broken: Any, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, broken)
    assert finds(fuzzer, rule, 1500)


def test_a_line_that_breaks_into_another_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def send(self: PipeWriter, lines: list[bytes]) -> None:
        self._write(b"\n".join(lines) + b"\n")

    monkeypatch.setattr(PipeWriter, "send", send)
    with pytest.raises(Wrong, match="each line goes out once and whole"):
        list(outlets.check(outlets.Talk((("piece", (b"one",)),))))


def test_pages_that_leave_something_out_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = b"version: 1\nrules: [{tools: get, response: [{paginate: {at: items, limit: 2}}]}]"
    given = Pair(rule, answer(document({"items": [1, 2, 3, 4, 5, 6, 7]})), b"1")
    assert ("rejoined", "paginate", True) in list(check(given))

    def further(raw: bytes) -> bytes:
        return re.sub(
            rb'nextOffset\\":(\d+)', lambda at: b'nextOffset\\":%d' % (int(at[1]) + 1), raw
        )

    monkeypatch.setattr(pipeline, "shape", shaped(further))
    with pytest.raises(Wrong, match="pages rejoin"):
        list(check(given))


def test_structured_content_that_is_only_a_note_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = b"version: 1\nrules: [{tools: get, max_bytes: 300, output_schema: {type: object}}]"
    given = Pair(rule, answer(said("word " * 200)), b"1")
    assert list(check(given))

    def write_for(rule: Rule, frame: Frame, document: Document, *more: Any) -> Any:
        return writing.write(frame, document, *more)

    monkeypatch.setattr(pages, "write_for", write_for)
    monkeypatch.setattr(pipeline, "write_for", write_for)
    with pytest.raises(Wrong, match="what is promised is what the texts say"):
        list(check(given))


def test_a_pipeline_that_raises_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(raw: bytes) -> bytes:
        raise KeyError("get")

    monkeypatch.setattr(pipeline, "shape", shaped(raises))
    [first, *_] = report("pairs", 50).findings
    assert first.said.endswith("KeyError: 'get'\n")


def test_a_driver_that_is_broken_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Driver, "ended", lambda *_: [])
    with pytest.raises(Wrong, match=r"^each request is answered|^nothing is left at the end"):
        list(chain.from_iterable(driving.check(1, index) for index in range(20)))


# What is found is shown


def test_what_is_found_is_printed_as_python_that_shows_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline, "shape", shaped(renumbered))
    code = main(["pairs", "--count", "200", "--processes", "1", "--seed", "5"])

    said = capsys.readouterr().out
    assert code == 1
    assert re.match(r"pairs: seed 5, \d+ inputs, [\d,]+ per second, \d+ distinct states, ", said)
    assert "\n#" in said
    python = said[said.index("from tests.fuzz.pairs") :].partition("\n\n")[0]
    with pytest.raises(Wrong, match="the id keeps its spelling"):
        exec(python)


def test_a_pair_is_made_as_small_as_shows_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "shape", shaped(renumbered))
    rule = b"version: 1\nrules: [{tools: get, name: a, response: [{drop: b}, {sort: c}]}]"
    document = json.dumps({"a": [{"b": 1}, 2], "b": "x" * 50})
    text = f'{{"content":[{{"type":"text","text":{json.dumps(document)}}}]}}'
    line = f'{{"jsonrpc":"2.0","id":5.0,"result":{text}}}'.encode()

    made = smallest(Pair(rule, line, b"5.0", {"limit": 5}))

    assert made.line == b'{"jsonrpc":"2.0","id":5.0}'
    assert yaml.safe_load(made.rule)["rules"] == [{"tools": "get"}]
    assert made.arguments == {}
    with pytest.raises(Wrong):
        list(check(made))


def test_a_trace_is_made_as_short_as_shows_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "ended", lambda *_: ())
    kept = shortest(1, 0)

    assert 1 <= len(kept) <= 4
    assert [what for what, _, _ in told(1, 0, kept)].count("client says") >= 1


def test_what_takes_too_long_is_found_even_where_it_catches_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Endless:
        name = "endless"

        def try_one(self, seed: int, index: int) -> Iterator[Hashable]:
            try:
                while True:
                    pass
            except BaseException:
                yield "caught"

        def shown(self, seed: int, index: int) -> str:
            return "Endless()"

    monkeypatch.setattr(fuzzer, "SECONDS", 0.1)
    [one] = run(Endless(), 1, [0]).findings
    assert one.said.startswith("it takes more than 0.1 seconds; it was then at\n")
    assert "while True" in one.said or "pass" in one.said


def test_json_is_taken_apart_in_every_way() -> None:
    assert list(shrinking.documents('{"a":[1,"{\\"b\\":2}"]}')) == [
        "{}",
        '{"a":[1]}',
        '{"a":["{\\"b\\":2}"]}',
        '{"a":["{\\"b\\":2}"]}',
        '{"a":[1]}',
        '{"a":[1,"{}"]}',
    ]


# The command


def test_the_command_prints_a_line_for_each_fuzzer() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "framing", "traces", "--count", "40"]
    done = subprocess.run(
        [*command, "--seed", "3", "--processes", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    form = r"{}: seed 3, 40 inputs, [\d,]+ per second, \d+ distinct states, slowest \d+\.\d\d s"
    for name, line in zip(("framing", "traces"), done.stdout.splitlines(), strict=True):
        assert re.fullmatch(form.format(name) + r" \(#\d+\), 0 findings", line)


def test_the_command_ends_when_its_time_is_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["framing", "--seconds", "0.2", "--processes", "1"]) == 0
    assert re.match(r"framing: seed 1, [\d,]+ inputs, ", capsys.readouterr().out)


def test_a_fuzzer_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["frames"])
    said = capsys.readouterr().err
    assert said.endswith("error: unknown fuzzer 'frames'; known: framing, pairs, traces\n")
