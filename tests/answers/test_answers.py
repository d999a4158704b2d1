"""The questions have answers: in the direct result, and by the best view; naive readers go on."""

import re
import sys
from collections import Counter
from collections.abc import Sequence

import pytest

from tests.answers import __main__ as command
from tests.answers import picture, table
from tests.answers.arm import Arm, Call, Reply, Steps, visible_text
from tests.answers.direct import ClaudeCode, Codex, Direct
from tests.answers.evidence import Evidence
from tests.answers.ours import Best, Notices
from tests.answers.question import Question, Row
from tests.answers.questions import questions
from tests.answers.rivals.jmunch import QUERIES
from tests.answers.server import RESULTS
from tests.answers.session import Attempt, attempts, open_session

QUESTIONS = questions()
FEW = [question for question in QUESTIONS if question.name.startswith(("get_sync", "git_log"))]
WHOLE = {tool: visible_text(result()) for tool, (_, result) in RESULTS.items()}


class Shared(Best):
    """One process for all questions, which is faster."""

    fresh = False


def test_the_questions_are_many_and_about_every_tool() -> None:
    names = Counter(question.name for question in QUESTIONS)
    assert len(names) == len(QUESTIONS) >= 40
    assert {question.tool for question in QUESTIONS} == set(RESULTS)


def test_the_evidence_stands_in_the_whole_result_and_not_without_the_answer() -> None:
    for question in QUESTIONS:
        whole = WHOLE[question.tool]
        assert Evidence(question).stands_with(whole), question.name
        atom = question.evidence[-1][0]
        [value, *_] = atom.answer if isinstance(atom, Row) else atom.values
        assert not Evidence(question).stands_with(whole.replace(value, "?")), question.name


def test_the_best_view_answers_each_question() -> None:
    results = attempts(Shared(), QUESTIONS)
    assert [each.question for each in results if each.never] == []


def test_clients_show_less_of_a_long_result() -> None:
    [whole] = attempts(Direct(), FEW[-1:])
    [cut] = attempts(Codex(), FEW[-1:])
    [file] = attempts(ClaudeCode(), FEW[-1:])
    assert (whole.never, cut.never, file.never) == ("", "lost", "")
    assert whole.calls == cut.calls == 1 < file.calls
    assert cut.read < 48_100 < whole.read < file.read


def test_the_tables_are_the_same_on_each_run() -> None:
    some = FEW[::3]

    def printed() -> str:
        results = {arm.name: attempts(arm, some) for arm in (Direct(), Notices())}
        return table.summary(some, results, {}) + table.by_question(some, results)

    assert printed() == printed()


class Circle(Arm):
    """Calls without end, or a tool that is not there."""

    def __init__(self, tool: str) -> None:
        self.tool = tool

    def steps(self, question: Question) -> Steps:
        while True:
            yield Call(self.tool)


@pytest.mark.parametrize(("tool", "never"), [("get_graph", "limit"), ("nothing", "limit")])
def test_a_way_that_never_ends_is_given_up(tool: str, never: str) -> None:
    replies: list[Reply] = []
    with open_session(Circle(tool)) as session:
        attempt = session.ask(FEW[0], lambda _, reply: replies.append(reply))
    assert isinstance(attempt, Attempt)
    assert (attempt.calls, attempt.never) == (60, never)
    assert attempt.read == sum(len(reply.text.encode()) for reply in replies)


def test_the_picture_in_the_readme_is_of_this_version() -> None:
    svg = picture.FILE.read_text()

    assert svg == picture.drawing(), "draw it again: python -m tests.answers.picture"


def test_each_query_is_for_a_question() -> None:
    assert QUERIES.keys() <= {question.name for question in QUESTIONS}


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
