import pytest

from proxy.loading.conditions import mistake, slip
from proxy.patterns import Expression


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
    assert slip(Expression(text)) == message


@pytest.mark.parametrize(
    "text", ["action == 'status'", "force == `true`", "a && !b", "length(items) > `3`", "'x' == a"]
)
def test_a_condition_that_compares_with_a_constant_is_right(text: str) -> None:
    assert slip(Expression(text)) is None


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


@pytest.mark.parametrize("text", ["sort_by(a, &b)", "merge(a, b, c)", "argument('x')", "a.b[0]"])
def test_functions_that_exist_are_right(text: str) -> None:
    assert mistake(Expression(text)) is None
