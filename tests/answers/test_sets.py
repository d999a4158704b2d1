"""The further sets: of enough questions and lists, each with an answer that stands in the result.

Of the unseen one, only that its results and evidence are there; its views are run by hand.
"""

import pytest

from tests.answers import sets
from tests.answers.arm import visible_text
from tests.answers.evidence import Evidence
from tests.answers.question import Question, Row
from tests.answers.questions import questions
from tests.answers.session import attempts
from tests.answers.test_answers import Shared
from tests.faults.scale import scaled

KINDS = [*sets.SEEN, "unseen"]


def seen_questions() -> list[Question]:
    return [question for kind in sets.SEEN for question in sets.described_questions(kind)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_set_is_of_thirty_questions_on_fifteen_results_with_fifteen_lists(kind: str) -> None:
    results, own = sets.described(kind), sets.described_questions(kind)
    assert len({question.name for question in own}) == len(own) >= 30
    assert {question.tool for question in own} == results.keys()
    assert len(results) >= 15
    assert sum(len(result.names) for result in results.values()) >= 15
    assert all(len(visible_text(sets.whole(kind, name))) > 8_000 for name in results)


def test_the_sets_have_no_question_and_those_described_no_tool_in_common() -> None:
    unseen = sets.described_questions("unseen")
    names = [question.name for question in (*questions(), *seen_questions(), *unseen)]
    assert len(set(names)) == len(names)
    tools = [tool for kind in KINDS for tool in sets.described(kind)]
    assert len(set(tools)) == len(tools)


@pytest.mark.parametrize("kind", KINDS)
def test_the_evidence_stands_in_the_whole_result_and_not_without_the_answer(kind: str) -> None:
    for question in sets.described_questions(kind)[:: scaled(8, 1)]:
        whole = visible_text(sets.whole(question.set, question.tool))
        assert Evidence(question).stands_with(whole), question.name
        atom = question.evidence[-1][0]
        [value, *_] = atom.answer if isinstance(atom, Row) else atom.values
        assert not Evidence(question).stands_with(whole.replace(value, "?")), question.name


def test_the_best_view_answers_each_question() -> None:
    results = attempts(Shared(), seen_questions())
    assert [each.question for each in results if each.never] == []
