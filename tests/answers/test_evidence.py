"""Evidence stands in rows, tables and lines, and does not stand across rows."""

import json

import pytest

from tests.answers.evidence import Evidence
from tests.answers.question import Alone, Atom, Question, Row

ISSUES = [
    {"number": 41, "title": "Crash on start", "user": {"login": "ann"}, "labels": [{"name": "x"}]},
    {"number": 42, "title": "Slow search", "user": {"login": "bob"}, "labels": [{"name": "y"}]},
]


def question(*atoms: Atom) -> Question:
    return Question(name="", group="structured", tool="", text="", answer="", evidence=(atoms,))


def in_table(**same: str) -> str:
    rows = [[each["number"], each["title"]] for each in ISSUES]
    document = {"same": same, "columns": ["number", "title"], "rows": rows}
    return json.dumps({"items": document, "_abridged": {"items": "2 of 30"}})


@pytest.mark.parametrize(
    ("atom", "text", "stands"),
    [
        (Row(("Slow search",), ("42",)), json.dumps(ISSUES), True),
        (Row(("Slow search", "y", "bob"), ("42",)), json.dumps(ISSUES, indent=2), True),
        (Row(("Slow search",), ("41",)), json.dumps(ISSUES, indent=2), False),
        # Cut in the middle, and with prose before it.
        (Row(("Slow search",), ("42",)), "Two:\n" + json.dumps(ISSUES)[:-9], True),
        (Row(("Crash on start", "open"), ("41",)), in_table(state="open"), True),
        (Row(("Crash on start",), ("42",)), in_table(state="open"), False),
        (Row(("ann",), ("42",)), "41,Crash,ann\n42,Slow,bob\n", False),
        (Row(("port: 80",), ("web",), near=20), "name: web\n  port: 80\n", True),
        (Row(("port: 80",), ("web",), near=20), "name: web\n" + "\n" * 30 + "port: 80\n", False),
        (Row(("17",), ("p16",)), json.dumps({f"p{n}": n for n in range(40)}), False),
        (Row(("17",)), '{"total": 17.50}', False),
        (Row(("b: 2",), ("a: 1",)), json.dumps({"view": "a: 1\nb: 2"}), False),
        (Alone(("37",)), json.dumps({"view": [37] * 400}), False),
        (Alone(("37",)), json.dumps({"view": {"hits": 37, "lines": [{"line": 3}] * 200}}), True),
        (Alone(("37",)), json.dumps({"view": {"hits": 38, "lines": [{"line": 37}] * 200}}), False),
    ],
)
def test_values_stand_together_in_one_row_or_line(atom: Atom, text: str, stands: bool) -> None:
    assert Evidence(question(atom)).stands_with(text) is stands


def test_the_request_counts_for_the_context_and_not_for_the_answer() -> None:
    request = '{"view": "items[?number==`42`].title"}'
    row = Row(("Slow search",), ("42",))
    assert Evidence(question(row)).stands_with('{"view": ["Slow search"]}', request)
    assert not Evidence(question(row)).stands_with('{"view": []}', "Slow search 42")


def test_a_row_that_a_view_opens_is_a_row_however_many_members_it_has() -> None:
    row = {f"m{n}": n for n in range(40)} | {"owners": [{"name": "ann"}], "title": "Crash"}
    answer = json.dumps({"view": row})
    atom = Row(("ann",), ("Crash",))
    assert Evidence(question(atom)).stands_with(answer, '{"view":"items[3]"}')
    assert not Evidence(question(atom)).stands_with(answer, '{"view":"items"}')


def test_all_rows_may_come_in_several_answers() -> None:
    evidence = Evidence(question(Row(("ann",), ("41",)), Row(("bob",), ("42",))))
    assert not evidence.stands_with(json.dumps(ISSUES[:1]))
    assert evidence.stands_with(json.dumps(ISSUES[1:]))


def test_the_columns_of_a_row_may_come_in_several_answers_with_its_key() -> None:
    evidence = Evidence(question(Row(("ann", "7"), key="id-41")))
    assert not evidence.stands_with('[["id-41", "ann"], ["id-42", "bob"]]')
    assert not evidence.stands_with('[["id-41", "x"], ["id-42", 7]]')
    assert evidence.stands_with('[["id-41", 7]]')
