"""The arms of other products answer as their tools allow, the same on each run."""

import re
import sys
from collections.abc import Sequence

import pytest

from tests.answers import __main__ as command
from tests.answers.arm import Arm
from tests.answers.questions import questions
from tests.answers.rivals import install
from tests.answers.rivals.encoders import Compressor, Terse, UltraLean
from tests.answers.rivals.jmunch import QUERIES, Jmunch
from tests.answers.session import Attempt, attempts
from tests.servers.install import is_installed

QUESTIONS = {question.name: question for question in questions()}


def ask(arm: Arm, *names: str) -> list[Attempt]:
    """Ask some questions, if the product is installed: a test installs nothing."""
    package = arm.name.split()[0]
    pins = install.HERE / f"requirements-{package}.txt"
    if not is_installed(install.CACHE / package, pins):
        pytest.skip(f"{package} is not installed: `make answers` installs it")
    return attempts(arm, [QUESTIONS[name] for name in names])


def test_each_query_is_for_a_question() -> None:
    assert QUERIES.keys() <= QUESTIONS.keys()


def test_handles_are_asked_and_what_varies_is_made_the_same() -> None:
    names = ("list_orders/one", "get_graph/owner", "git_log/race", "get_attachments/retention")
    first = ask(Jmunch(), *names)
    assert [each.never for each in first] == ["", "", "", "lost"]
    assert [each.calls for each in first] == [2, 3, 3, 3]
    assert first == ask(Jmunch(), *names)


@pytest.mark.parametrize("arm", [Compressor("--toonify"), Terse(), UltraLean()])
def test_a_reader_of_a_denser_form_finds_the_answer_in_one_call(arm: Arm) -> None:
    names = ("list_issues/crash", "lint/errors", "get_attachments/contract")
    assert [(each.calls, each.never) for each in ask(arm, *names)] == [(1, "")] * 3


def test_what_is_not_in_a_condensed_result_is_asked_for_in_full() -> None:
    [short, whole] = ask(Compressor("--shrinkfit"), "list_issues/crash", "list_issues/workaround")
    assert (short.calls, whole.calls) == (1, 2)
    assert short.read < 20_000 < whole.read


class Broken(Arm):
    """A product that does not start."""

    name = "broken 1.0"

    def command(self, server: Sequence[str]) -> list[str]:
        return [sys.executable, "-c", "import sys; sys.exit('no tokenizer')"]


def test_a_product_that_does_not_run_is_a_row_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "rivals", lambda: [Broken()])
    monkeypatch.setattr("sys.argv", ["answers", "--arm", "broken", "-k", "get_graph/owner"])
    assert command.main() == 1
    reason = r"\| broken 1\.0 \| not measured: EOFError: .*no tokenizer"
    assert re.search(reason, capsys.readouterr().out)
