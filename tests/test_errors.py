"""What errors say of themselves."""

import pytest

from proxy.errors import (
    BESIDE_RULES,
    AbridgeError,
    Problem,
    RuleErrors,
    TransformError,
    did_you_mean,
    nearest,
    raised,
)


def test_a_problem_is_written_as_editors_and_compilers_write_places() -> None:
    assert str(Problem("r.yaml", 4, 9, "unknown key")) == "r.yaml:4:9: unknown key"
    assert str(Problem("r.yaml", 0, 0, "no such file")) == "r.yaml: no such file"


def test_rule_errors_say_every_problem() -> None:
    problems = [Problem("r.yaml", 4, 9, "one"), Problem("s.yaml", 1, 1, "two")]

    assert str(RuleErrors(problems)) == "r.yaml:4:9: one\ns.yaml:1:1: two"
    assert RuleErrors(problems).problems == problems


def test_a_transform_error_names_its_step_and_what_was_raised() -> None:
    error = TransformError("keep", KeyError("a"))

    assert (error.step, str(error)) == ("keep", "keep: KeyError: 'a'")
    assert isinstance(error, AbridgeError)


def test_what_python_beside_a_rule_file_raised_has_its_last_line_there() -> None:
    source = "def call(read):\n    return int(read)\n\n\ndef outer(read):\n    return call(read)\n"
    module = {"__name__": f"{BESIDE_RULES}1.careful"}
    exec(compile(source, "/rules/careful.py", "exec"), module)
    with pytest.raises(ValueError, match="x3") as caught:
        module["outer"]("x3")  # type: ignore[operator]

    assert raised(caught.value) == (
        "ValueError: invalid literal for int() with base 10: 'x3' (careful.py:2)"
    )


def test_what_was_raised_elsewhere_has_no_line() -> None:
    with pytest.raises(ValueError, match="x3") as caught:
        int("x3")

    assert raised(caught.value) == "ValueError: invalid literal for int() with base 10: 'x3'"


def test_the_nearest_known_word_is_named() -> None:
    assert nearest("respnse", ["response", "arguments"]) == "response"


def test_a_word_like_none_is_given_no_advice() -> None:
    assert did_you_mean("zebra", ["response", "arguments"]) == ""


def test_a_word_of_any_length_is_compared_in_no_time() -> None:
    assert nearest("paginate" * 100_000, ["paginate"]) is None
