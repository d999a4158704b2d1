"""A name in single quotes orders and filters rows; a text that all have alike never does."""

import pytest

from tests.query.views import asking

ROWS = {
    "rows": [
        {"id": n, "code": str(n), "note": None if n == 2 else f"x{n}", "user": {"login": "ann"}}
        for n in range(12)
    ],
    "packages": {"left-pad": {"v": 1}, "is": {"v": 2}},
}

ask, refusal = asking(ROWS)


@pytest.mark.parametrize(
    ("view", "value", "name"),
    [
        ("max_by(rows, &'id').id", 11, "id"),
        ("count_by(rows, &'user.login')", {"ann": 12}, "user.login"),
        ("length(rows[?'user.login'=='ann' && id < 3])", 3, "user.login"),
        ("rows[?`7` <= 'id' && !'note'].id", [], "id"),
        ("rows[?contains('code', '11')].id", [11], "code"),
        ("sort_by(packages.*, &'v')[-1].v", 2, "v"),
    ],
)
def test_a_name_in_single_quotes_is_read_as_one_where_a_text_says_nothing(
    view: str, value: object, name: str
) -> None:
    answer, remarks = ask(view)
    assert answer == value
    assert remarks[0] == f"'{name}' is a text; it is read as the name {name}"


def test_such_a_name_may_have_signs_or_be_nowhere() -> None:
    rows = [{"%CPU": 2, "a.b": 1}, {"%CPU": 3, "a.b": 5}]
    assert ask("max_by(@, &'%CPU').\"%CPU\"", rows)[0] == 3
    assert ask("sort_by(@, &'a.b')[-1].\"%CPU\"", rows)[0] == 3
    alike = "'%MEM' is a text, and the same for all elements"
    assert ask("count_by(@, &'%MEM')", rows) == ({"%MEM": 2}, [alike])
    assert "no element has 'c'" in refusal("[?'c.d'=='x']", rows)
    assert refusal("[?'5'=='a.b']", rows) == '"a.b" is a number in all 2 elements: write `5`'
    assert ask("[*].{is: 'a.b'}", rows) == ([{"is": "a.b"}] * 2, [])


def test_names_in_quotes_are_columns_of_rows() -> None:
    is_id, is_code = (
        f"'{name}' is a text; it is read as the name {name}" for name in ("id", "code")
    )
    for view in ("rows[:2]['id', 'code']", "$.rows[:2]['id', 'code']"):
        assert ask(view) == ([[0, "0"], [1, "1"]], [is_id, is_code])
    assert ask("rows[:1].[id, 'code']") == ([[0, "code"]], [])
    assert ask("contains(['id', 'code'], 'id')") == (True, [])


def test_a_text_that_a_key_gives_itself_is_no_name() -> None:
    assert ask("count_by(rows, &(id > `8` && 'big' || 'small'))") == ({"small": 9, "big": 3}, [])
    assert ask("map(&(id > `8` && 'big' || 'small'), rows)[8:10]") == (["small", "big"], [])


@pytest.mark.parametrize(
    ("view", "text", "way"),
    [
        ("rows[?code=='3' || '4']", "4", "code=='4'"),
        ("rows[?code==('3' || '4')]", "3", "code=='3'"),
        ("rows[?contains(note, 'x3' || 'x4')]", "x3", "contains(note, 'x3')"),
        ("rows[?!'nowhere']", "nowhere", "name=='nowhere'"),
    ],
)
def test_a_text_that_is_a_condition_by_itself_is_refused_if_it_is_no_name(
    view: str, text: str, way: str
) -> None:
    assert refusal(view) == f"'{text}' alone is true of all elements: compare it, as in {way}"
