"""The questions have answers: in the direct result, and by the best view; naive readers go on."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

from mcp_abridge.cli.figures import size_text

from tests.answers import picture
from tests.answers.arm import visible_text
from tests.answers.direct import ClaudeCode, Codex, Direct
from tests.answers.evidence import Evidence
from tests.answers.ours import Best
from tests.answers.question import Row
from tests.answers.questions import questions
from tests.answers.rivals import ctxtual, jmunch
from tests.answers.server import RESULTS
from tests.answers.session import attempts
from tests.answers.sets import described_questions
from tests.faults.scale import scaled

# Not while tests are collected, which each worker of a run does.
every = cache(questions)


class Shared(Best):
    """One process for all questions, which is faster."""

    fresh = False


def test_the_questions_are_many_and_about_every_tool() -> None:
    names = Counter(question.name for question in every())
    assert len(names) == len(every()) >= 40
    assert {question.tool for question in every()} == set(RESULTS)


def test_the_evidence_stands_in_the_whole_result_and_not_without_the_answer() -> None:
    for question in every()[:: scaled(8, 1)]:
        whole = visible_text(RESULTS[question.tool]())
        assert Evidence(question).stands_with(whole), question.name
        atom = question.evidence[-1][0]
        [value, *_] = atom.answer if isinstance(atom, Row) else atom.values
        assert not Evidence(question).stands_with(whole.replace(value, "?")), question.name


def test_the_best_view_answers_each_question() -> None:
    results = attempts(Shared(), every())
    assert [each.question for each in results if each.never] == []


def test_clients_show_less_of_a_long_result() -> None:
    last = [each for each in every() if each.name.startswith(("get_sync", "git_log"))][-1:]
    [whole] = attempts(Direct(), last)
    [cut] = attempts(Codex(), last)
    [file] = attempts(ClaudeCode(), last)
    assert (whole.never, cut.never, file.never) == ("", "lost", "")
    assert whole.calls == cut.calls == 1 < file.calls
    assert cut.read < 48_100 < whole.read < file.read


def test_the_picture_in_the_readme_has_the_figures_of_this_version(tmp_path: Path) -> None:
    html = picture.write_page(tmp_path).read_text(encoding="utf-8")
    [head] = re.findall(r'id="calls-data">(.*?)</script>', html)
    after, before, *_ = json.loads(head)["figures"][0][0]
    sizes = f"the server sent {size_text(before)}, the model reads {size_text(after)}]"
    readme = picture.FILE.parents[1] / "README.md"
    assert sizes in readme.read_text(encoding="utf-8"), "python -m tests.answers.picture"


def test_each_query_of_a_rival_is_for_a_question() -> None:
    names = {question.name for question in every()}
    assert jmunch.QUERIES.keys() <= names
    assert ctxtual.QUERIES.keys() <= names | {each.name for each in described_questions("second")}
