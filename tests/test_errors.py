"""What errors say of themselves."""

from proxy.errors import AbridgeError, Problem, RuleErrors, TransformError


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
