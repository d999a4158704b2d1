import ast
import datetime
import decimal
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.errors import DocumentError
from mcp_abridge.summary import notations

JSON_LIKE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)


@given(JSON_LIKE)
def test_a_python_repr_is_read_as_the_same_value(value: Any) -> None:
    text, used = notations.from_python(repr(value))
    assert json.loads(text) == value
    assert used == len(repr(value))


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("(1, 'a')", [1, "a"]),
        ("{1: 'x', None: 2, True: 3}", {"1": "x", "null": 2, "true": 3}),
        (r"'\x41\u00e9\U0001F600\t\'\"\\\a\v'", "Aé😀\t'\"\\\a\v"),
        (repr({"b": b"a'\xff"}), {"b": 'b"a\'\\xff"'}),
        (repr([decimal.Decimal("1.10")]), ["1.10"]),
        (
            repr(datetime.datetime(33, 1, 31, 9, 5, 7, 25, datetime.UTC)),
            "0033-01-31T09:05:07.000025Z",
        ),
        (repr([datetime.timedelta(1)]), ["datetime.timedelta(days=1)"]),
        ("[f(g('(', [1]), x={')': 2}), 3]", ["f(g('(', [1]), x={')': 2})", 3]),
    ],
)
def test_python_values_without_a_json_form_become_the_nearest_one(literal: str, value: Any) -> None:
    assert json.loads(notations.from_python(literal)[0]) == value


def test_a_set_is_an_array_and_a_call_of_fields_an_object_if_asked_for() -> None:
    assert (
        notations.from_python("[{1, 'a'}, {}, {2: {3}}, (4,)]")[0] == '[[1,"a"],{},{"2":[3]},[4]]'
    )
    user = "[User(id=1, tags={'a'}, on=datetime.date(2024, 1, 31), d=timedelta(days=1))]"
    assert json.loads(notations.from_python(user, objects=True)[0]) == [
        {"id": 1, "tags": ["a"], "on": "2024-01-31", "d": "timedelta(days=1)"}
    ]
    assert json.loads(notations.from_python(user)[0]) == [user[1:-1]]


def test_numbers_keep_their_spelling() -> None:
    assert notations.from_python("[1.50, 1e-07, -0.0, 12345678901234567890123]")[0] == (
        "[1.50,1e-07,-0.0,12345678901234567890123]"
    )


@pytest.mark.parametrize(
    ("literal", "message"),
    [
        ("[1 2]", r"two values without a comma at character 3: '2'"),
        ("[<a>]", r"not a Python literal at character 1: '<a>\]'"),
        ("[f(1", r"a call in a Python literal is not closed"),
        (r"['\N{DASH}']", r"a Python string with the escape '\\\\N'"),
    ],
)
def test_an_invalid_literal_is_refused_with_its_position(literal: str, message: str) -> None:
    with pytest.raises(DocumentError, match=f"^{message}$"):
        notations.from_python(literal)


@given(st.text("'\"\\x4n{}[](),: ", max_size=30))
def test_any_python_literal_is_read_alike(text: str) -> None:
    try:
        result = json.loads(notations.from_python(text)[0])
    except (DocumentError, ValueError):
        return
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError):
        return
    if isinstance(value, str | list):
        assert json.loads(json.dumps(value)) == result


@given(JSON_LIKE)
def test_yaml_written_by_a_library_is_read_as_the_same_value(value: Any) -> None:
    text = yaml.safe_dump(value)
    if text.endswith("...\n"):
        text = text.removesuffix("...\n")
    assert json.loads(notations.from_yaml(text)[0]) == value


@pytest.mark.parametrize(
    ("scalar", "json_text"),
    [
        ("~", "null"),
        ("on", '"on"'),
        ("TRUE", "true"),
        ("0o17", '"0o17"'),
        ("0x1F", '"0x1F"'),
        ("+4930", '"+4930"'),
        ("0644", '"0644"'),
        (".5", '".5"'),
        ("2024-01-31", '"2024-01-31"'),
        ("1_000", '"1_000"'),
        ("-1.", '"-1."'),
        ("01.50", '"01.50"'),
        ("'12'", '"12"'),
    ],
)
def test_plain_scalars_are_those_of_the_core_schema_or_stay_as_they_are_spelled(
    scalar: str, json_text: str
) -> None:
    assert notations.from_yaml(f"- {scalar}")[0] == f"[{json_text}]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n---\nb: 2\n", "several YAML documents in one text"),
        ("? [a]\n: 1\n", "a YAML key that is no scalar"),
        ("a: *x", "a YAML alias \\*x to nothing before it"),
        ("[" * 200, "YAML nested more than 100 levels deep"),
        ("a: [", "not YAML: .*"),
        ("x" * (notations.MOST_YAML + 1), "524289 characters of YAML are more than 524288"),
    ],
)
def test_yaml_that_is_no_one_value_is_refused(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=f"^{message}$"):
        notations.from_yaml(text)


def test_aliases_are_written_out_but_not_without_end() -> None:
    assert notations.from_yaml("a: &x [1]\nb: *x\n&k c: 2\nd: *k")[0] == (
        '{"a":[1],"b":[1],"c":2,"d":"c"}'
    )
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
    )
    with pytest.raises(DocumentError, match=r"^YAML that grows by its aliases$"):
        notations.from_yaml(bomb)


def test_json_is_read_up_to_its_end() -> None:
    assert notations.from_json(' {"a": 1e400}\nand more') == ('{"a": 1e400}', 13)
    assert notations.from_json("[1]\n") == ("[1]", 3)
    with pytest.raises(DocumentError, match=r"^not JSON: "):
        notations.from_json("prose")
