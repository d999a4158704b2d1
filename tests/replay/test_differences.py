"""Where a value is not as expected."""

from typing import Any

import pytest
from mcp_abridge.document.tree import Number
from mcp_abridge.replay.differences import differences


@pytest.mark.parametrize(
    ("expected", "value", "lines"),
    [
        (1, True, ["expected 1, found true"]),
        (False, 0, ["expected false, found 0"]),
        ("1", 1, ['expected "1", found 1']),
        ({}, [], ["expected {}, found []"]),
        ([1, 2], [2, 1], ["[0]: expected 1, found 2", "[1]: expected 2, found 1"]),
        ([[1]], [[]], ["[0][0]: expected 1, found nothing"]),
        ({"a": {"b.c": 1}}, {"a": {"b.c": 2}}, ['a."b.c": expected 1, found 2']),
        ({"": 1}, {}, ['"": expected 1, found nothing']),
        ({"a": None}, {}, ["a: expected null, found nothing"]),
        ({}, {"a": Number("1.50")}, ["a: expected nothing, found 1.50"]),
        ("\ud800", "x", ['expected "\\ud800", found "x"']),
    ],
)
def test_each_difference_has_its_place(expected: Any, value: Any, lines: list[str]) -> None:
    assert list(differences(expected, value)) == lines
