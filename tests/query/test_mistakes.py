"""Mistakes in expressions are told in the words of their author, with the right spelling."""

import pytest
from mcp_abridge.document.tree import Document, encode, plain
from mcp_abridge.errors import Refusal
from mcp_abridge.query.patterns import Expression, PatternError
from mcp_abridge.query.view import look


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a[?b", "it ends too early; '[' is not closed"),
        ("a.b ==", "it ends too early"),
        ("a..b", "'.' at column 3; '..' for all levels is unknown: outline() lists what is there"),
        ("..b", "'.' at column 1; '..' for all levels is unknown: outline() lists what is there"),
        ("größe", "'ö' at column 3; a name with signs stands in double quotes: \"größe\""),
        ("a[?b in ['x']]", "'in' at column 6; there is no 'in' here: "
         "write contains(['a', 'b'], state)"),
        ("a[?b ~ 'x']", "'~' at column 6; there is no '~' here: write matches(name, '^x')"),
        ("a.filter(x => x.b)", "'=' at column 12; there is no '=>' here: write items[?n > `3`].id"),
        ("SELECT b FROM a WHERE b = 3", "'=' at column 25; there is no 'select' here: "
         "write items[?state=='open'].[id, title], or count_by(items, &state)"),
        ("a.x-4 == 'b'", "'-4' at column 4; a name with signs stands in double quotes: \"x-4\""),
        ("a == 'b", '"\'" at column 6 is not closed'),
        ("a == 5", "'5' at column 6; a number stands in backticks, such as `5`"),
        ("rows[?[3]].[1]", "'1' at column 13; an element follows without a dot: rows[?[3]][1]"),
        ("$ref", "'$' at column 1; a name with signs stands in double quotes: \"$ref\""),
        ("a.b.@timestamp", "'@' at column 5; a name with signs stands in double quotes: "
         '"@timestamp"'),
        ("items[?x-y]", "'-' at column 9; a name with signs stands in double quotes: \"x-y\""),
    ],
)  # fmt: skip
def test_an_expression_that_cannot_be_read_is_told_where_and_what_may_be_meant(
    text: str, reason: str
) -> None:
    with pytest.raises(PatternError) as error:
        Expression(text)
    assert str(error.value) == f"{text!r} is not a JMESPath expression: {reason}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("abs(a)", "abs() takes a number, found a text"),
        ("length(n)", "length() takes a text or an array or an object, found a number"),
        ("sum(l)", "sum() takes an array of numbers, found a text"),
        ("count_by(@, &a)", "count_by() takes an array, found an object; its array is l"),
        ("count_by(o, &a)", "count_by() takes an array, found an object; "
         "write values() of it, or entries() for rows with key and value"),
        ("keys(z)", "keys() takes an object, found null"),
        ("l[::0]", "the step of a slice cannot be 0"),
    ],
)  # fmt: skip
def test_an_expression_that_does_not_fit_is_told_without_the_words_of_python(
    text: str, reason: str
) -> None:
    value = {"a": "x", "n": 1, "l": ["x"], "o": {"b": 1}}
    with pytest.raises(Refusal) as error:
        Expression(text).search(value)
    assert str(error.value) == reason
    if text != "sum(l)":
        with pytest.raises(Refusal) as error:
            look(Document.read(encode(value)), text)
        assert f"fails: {reason}" in str(error.value) or "there is no 'z'" in str(error.value)


@pytest.mark.parametrize(
    ("view", "value"),
    [
        ("rows[?id == $.current].id", [3]),
        ("rows[?id > $.rows[2].id].id", [3, 4]),
        ("rows[0:1].[id, $.current, length($.rows)]", [[0, 3, 5]]),
        ("$.current", 3),
        ("rows[?t == '$'] | length(@)", 5),
    ],
)
def test_the_dollar_sign_is_the_whole_document_inside_a_row_too(view: str, value: object) -> None:
    whole = {"current": 3, "rows": [{"id": n, "t": "$"} for n in range(5)]}
    assert plain(look(Document.read(encode(whole)), view)) == value
    assert Expression(view).search(whole) == value


def test_a_member_of_the_whole_document_that_is_not_there_is_named() -> None:
    remarks: list[str] = []
    look(Document.read(b'{"current": 3, "rows": [{"id": 3}]}'), "rows[?id==$.curent]", "text",
         None, remarks)  # fmt: skip
    assert remarks == ["there is no 'curent'; members: current, rows; did you mean 'current'?"]
