"""The text of exceptions and of suggestions."""

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


def test_a_word_of_any_length_is_compared_in_no_time() -> None:
    assert nearest("paginate" * 100_000, ["paginate"]) is None
