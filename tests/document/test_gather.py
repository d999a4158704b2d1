import json
from typing import Any

import pytest
from hypothesis import given
from msgspec import UNSET, Raw

from proxy.document.gather import column_values, values_at
from proxy.document.paths import Path
from proxy.document.tree import Value, encode, opened
from tests.fitting import fitting, paths

VALUE = {
    "id": 1,
    "user": {"login": "a"},
    "labels": [{"name": "x"}, {}, {"name": "y"}],
    "grid": [[{"n": 1}], [{"n": 2}, {}]],
    "fooIds": [7],
    "barIds": [],
    "none": None,
}

# Each path, and what stands there; MISSING where nothing does.
MISSING = object()
GATHERED: list[tuple[str, Any]] = [
    ("id", 1),
    ("user.login", "a"),
    ("user.nope", MISSING),
    ("id.nope", MISSING),
    ("none", None),
    ("none.nope", MISSING),
    ("labels.name", ["x", "y"]),
    ("labels[].name", ["x", "y"]),
    ("labels[2].name", "y"),
    ("labels[-3].name", "x"),
    ("labels[3].name", MISSING),
    ("user[0]", MISSING),
    ("grid.n", [[1], [2]]),
    ("*Ids", [[7], []]),
    ("**.n", [1, 2]),
    ("user.**", [{"login": "a"}, "a"]),
]


def said(value: Value) -> Any:
    return MISSING if value is UNSET else json.loads(encode(value))


@pytest.mark.parametrize(("path", "expected"), GATHERED)
def test_what_stands_at_a_path_is_gathered(path: str, expected: Any) -> None:
    steps = Path.parse(path).steps
    raw = Raw(json.dumps(VALUE).encode())
    assert said(values_at(raw, steps)) == expected
    assert said(values_at(opened(raw), steps)) == expected


@given(fitting(), paths())
def test_a_column_is_the_same_however_the_array_is_read(pair: tuple[Any, Any], path: Path) -> None:
    raw = Raw(json.dumps([pair[1], None, {}]).encode())
    columns = [list(map(said, column_values(array, path))) for array in (raw, opened(raw))]
    assert columns[0] == columns[1]
    assert columns[0][1:] == [said(values_at(None, path.steps)), said(values_at({}, path.steps))]
