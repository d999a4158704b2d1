"""The text of exceptions and of suggestions."""

import time

import pytest
from mcp_abridge.errors import (
    BESIDE_RULES,
    nearest,
    raised,
)


def test_an_exception_of_python_beside_a_rule_file_has_its_last_line_there() -> None:
    source = "def call(read):\n    return int(read)\n\n\ndef outer(read):\n    return call(read)\n"
    module = {"__name__": f"{BESIDE_RULES}1.careful"}
    exec(compile(source, "/rules/careful.py", "exec"), module)
    with pytest.raises(ValueError, match="x3") as caught:
        module["outer"]("x3")  # type: ignore[operator]

    assert raised(caught.value) == (
        "ValueError: invalid literal for int() with base 10: 'x3' (careful.py:2)"
    )


@pytest.mark.parametrize(
    ("word", "words", "expected"),
    [
        ("ofset", ["max_offset", "offset"], "offset"),
        ("ofset", ["max_offset", "limit"], None),
        ("form", ["format", "from"], "from"),
        ("tow", ["one", "two"], "two"),
        ("maxBytes", ["max_chars", "max_bytes"], "max_bytes"),
        ("bytes", ["max_bytes", "at"], "max_bytes"),
        ("issue", ["get_issue", "list_issue"], None),
        ("--rule", ["--rules", "--role"], "--rules"),
        ("x", ["at", "is"], None),
    ],
)
def test_the_word_with_the_fewest_letters_to_change_is_meant(
    word: str, words: list[str], expected: str | None
) -> None:
    assert nearest(word, words) == expected


def test_a_word_of_any_length_is_compared_in_no_time() -> None:
    assert nearest("paginate" * 100_000, ["paginate"]) is None
    names = [f"{number}_name_of_a_tool_that_is_as_long_as_they_get" for number in range(500)]
    start = time.process_time()
    nearest("nane_of_a_tool_that_is_as_long_as_they_get_5000", names)
    assert time.process_time() - start < 1
