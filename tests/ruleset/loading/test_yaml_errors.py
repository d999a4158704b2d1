import pytest

from proxy.ruleset.loading.yaml_errors import quote
from proxy.ruleset.loading.yaml_nodes import read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b: c", "1:5: a ':' before a space cannot stand in an unquoted value; quote the value"),
        ("a: !!str 5", "1:4: '!' starts a YAML tag; quote the expression"),
        (
            "a: *",
            "1:4: a leading '*' is a YAML alias, and no anchor has that name; quote the glob: '*'",
        ),
        ("a: @", "1:4: '@' cannot begin a value in YAML; quote it"),
        ("a: `1` < b", "1:4: '`' cannot begin a value in YAML; quote it"),
        ("a: [x{y}]", "1:6: '{' cannot stand inside a list in [ ]; quote the expression: 'x{y}'"),
        ("a: {b: c[0]}", "1:9: '[' cannot stand inside a mapping in { }; quote the path: 'c[0]'"),
        (
            "a: [b[?c=='d']]",
            "1:6: '[' cannot stand inside a list in [ ]; quote the expression: 'b[?c==''d'']'",
        ),
        (
            "a: [[0].b]",
            "1:8: a value that begins with '[' is a list, nothing can follow it; quote the path",
        ),
        ("a: ]", "1:4: expected a value, found ']'"),
        ("a: [1,,2]", "1:7: expected a value, found ','"),
        ("%YAML 3.0\n---\na: 1", "1:1: found incompatible YAML document (version 1.* is required)"),
    ],
)
def test_a_slip_is_explained_in_its_own_terms(text: str, message: str) -> None:
    assert [str(problem) for problem in read("r.yaml", text.encode())[1]] == [f"r.yaml:{message}"]


def test_a_mistyped_alias_is_told_from_a_glob() -> None:
    _, problems = read("r.yaml", b"x: &issue [1]\na: *isue\nb: *.ids")
    assert [problem.message for problem in problems] == [
        "a leading '*' is a YAML alias, and no anchor has that name; did you mean '*issue'?",
        "a leading '*' is a YAML alias, and no anchor has that name; quote the glob: '*.ids'",
    ]


def test_an_alias_that_has_its_anchor_is_no_slip() -> None:
    assert read("r.yaml", b"x: &a-b [1]\ny: [*a-b, {z: *a-b}]")[1] == []


def test_quotes_inside_what_is_to_be_quoted_are_doubled() -> None:
    assert quote("a == 'b'") == "'a == ''b'''"
