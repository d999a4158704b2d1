import pytest

from proxy.document.patterns import Expression
from proxy.ruleset.loading.jmespath_lint import condition_mistake, mistake


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "action == status",
            "action == status compares two arguments; did you mean 'status' in single quotes?",
        ),
        (
            'force || action != "status"',
            "action != status compares two arguments; did you mean 'status' in single quotes?",
        ),
        (
            "(params.mode >= full)",
            "... >= full compares two arguments; did you mean 'full' in single quotes?",
        ),
        (
            "force == true",
            "force == true compares two arguments; did you mean `true` in backticks?",
        ),
        (
            "argument('a') == 'b'",
            "`when` sees the arguments themselves: write name, not argument('name')",
        ),
    ],
)
def test_a_condition_that_cannot_be_meant_is_explained(text: str, message: str) -> None:
    assert condition_mistake(Expression(text)) == message


@pytest.mark.parametrize(
    "text", ["action == 'status'", "force == `true`", "a && !b", "length(items) > `3`", "'x' == a"]
)
def test_a_condition_that_compares_with_a_constant_is_right(text: str) -> None:
    assert condition_mistake(Expression(text)) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("frobnicate(@)", "unknown JMESPath function 'frobnicate'"),
        ("a[?lenght(b) > `1`].c", "unknown JMESPath function 'lenght'; did you mean 'length'?"),
        ("{x: keys(a, b)}", "the JMESPath function 'keys' takes 1 argument, found 2"),
        ("merge()", "the JMESPath function 'merge' takes 1 argument or more, found 0"),
    ],
)
def test_a_wrong_call_of_a_function_is_found_wherever_it_stands(text: str, message: str) -> None:
    assert mistake(Expression(text)) == message


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('status == "Pending"', "Pending"),
        ('"status" != "Pending"', "Pending"),
        ('"Pending" == status', "Pending"),
        ('!gone && items[?user.name >= "B"]', "B"),
        ('starts_with(name, "x_1")', "x_1"),
        ('contains(labels[*].name, "bug")', "bug"),
        ("status == 'a' || status == \"b\"", "b"),
    ],
)
def test_a_text_in_double_quotes_is_reported_as_the_name_it_is(text: str, name: str) -> None:
    said = f'"{name}" in double quotes is a name, as {name} is'
    assert mistake(Expression(text)) == f"{said}; did you mean '{name}' in single quotes?"


def test_true_and_false_without_backticks_are_reported_as_the_names_they_are() -> None:
    message = "true is a name, and no literal; did you mean `true` in backticks?"
    assert mistake(Expression("draft == true")) == message


@pytest.mark.parametrize(
    "text",
    [
        '"user-id" == "owner-id"',
        'status == "in progress"',
        "created == updated",
        "\"status\" == 'open'",
        "\"id\" == argument('id')",
        '"total" > `3` && "name"',
        "contains(\"tags\", 'x')",
        "closed == null",
        "\"true\" == 'x'",
        'a."b" == c."d"',
        "join(', ', \"names\")",
    ],
)
def test_a_comparison_of_members_is_right_also_with_quotes_that_they_need(text: str) -> None:
    assert mistake(Expression(text)) is None


@pytest.mark.parametrize("text", ["sort_by(a, &b)", "merge(a, b, c)", "argument('x')", "a.b[0]"])
def test_functions_that_exist_are_right(text: str) -> None:
    assert mistake(Expression(text)) is None
