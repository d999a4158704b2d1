"""Steps and guards that a rule file names itself; tests/cases/bad has the wrong ones of ours."""

import pytest
from mcp_abridge.ruleset.loading.rulefile import LoadedRules, read
from mcp_abridge.ruleset.rule import Rule

from tests.rulecases import PYTHON

HEAD = """version: 1
transforms: {noise: "own:Noise", strange: "own:Strange"}
guards: {gate: "own:Gate", odd: "own:Odd"}
"""


def load(text: str, head: str = HEAD) -> LoadedRules:
    return read(str(PYTHON / "r.yaml"), (head + text).encode(), allow_python=True)


def rule(text: str) -> Rule:
    result = load(f"rules: [{text}]")
    assert result.problems == ()
    assert result.rules is not None
    [step] = result.rules.rules
    return step


def problems(text: str) -> list[str]:
    result = load(f"rules: [{text}]")
    assert result.rules is None
    return [f"{each.column}: {each.message}" for each in result.problems]


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("noise", ()),
        ("{noise: null}", ()),
        ("{noise: a}", ("a",)),
        ("{noise: [a, b]}", ("a", "b")),
        ("{noise: {words: a, most: 3, at: x.y}}", ("a",)),
    ],
)
def test_a_step_of_an_own_name_is_read_as_ours_are(step: str, words: tuple[str, ...]) -> None:
    [loaded] = rule(f"{{tools: a, response: [{step}]}}").pipeline
    assert type(loaded).__name__ == "Noise"
    assert vars(type(loaded))["words"].__get__(loaded) == words


@pytest.mark.parametrize(
    ("guard", "level"), [("gate", 1), ("{gate: null}", 1), ("{gate: {level: 2}}", 2)]
)
def test_a_guard_is_read_with_its_options(guard: str, level: int) -> None:
    step = rule(f"{{tools: a, guard: {guard}}}")
    assert repr(step.guard) == f"Gate(level={level})"
    assert step.pipeline == ()


def test_a_rule_takes_the_guard_of_the_defaults_back_with_null() -> None:
    text = "defaults: {guard: gate}\nrules: [{tools: a}, {tools: b, guard: null}]"
    # The names may stand behind where they are used.
    result = load(f"version: 1\n{text}\n{HEAD.partition(chr(10))[2]}", head="")
    assert result.problems == ()
    assert result.rules is not None
    first, second = result.rules.rules
    assert repr(first.guard) == "Gate(level=1)"
    assert (second.guard, second.foreign) == (None, False)


def test_a_rule_knows_whether_anything_of_it_is_not_ours() -> None:
    for keys in ("response: [noise]", "errors: [noise]", "guard: gate"):
        assert rule(f"{{tools: a, {keys}}}").foreign
    assert not rule("{tools: a, response: [{keep: a}], max_bytes: 400}").foreign


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            "response: [{noise: {word: a}}]",
            "40: unknown option 'word' of noise; did you mean 'words'?",
        ),
        ("response: [{noise: none}]", "39: noise: 'words' must not hold 'none'"),
        ("response: [{noise: {fails: at once}}]", "39: noise: KeyError: 'no such thing'"),
        (
            "response: [{strange: {kinds: [a]}}]",
            "41: strange: TypeError: no rule file can hold a value of the type set[str]",
        ),
        (
            "guard: odd",
            "27: odd: its parameter 'a' has no type: expected Parameter({'type': T}), T",
        ),
        (
            "response: [{paginate: {at: a}}, noise]",
            "52: 'noise' cannot follow 'paginate'; after a window only clip, replace and table run",
        ),
    ],
)
def test_a_mistake_in_a_plugin_s_step_is_reported_at_its_position(keys: str, message: str) -> None:
    [problem] = problems(f"{{tools: a, {keys}}}")
    assert problem.startswith(message)


def test_an_unusable_name_is_reported_once_at_its_position() -> None:
    head = 'version: 1\ntransforms: {noise: "own:Nosie"}\n'
    result = load("rules: [{tools: a, response: [noise], errors: [noise]}]", head)
    [problem] = result.problems
    message = f"transforms: {PYTHON / 'own.py'} has no class 'Nosie'; did you mean 'Noise'?"
    assert str(problem) == f"{PYTHON / 'r.yaml'}:2:21: {message}"
