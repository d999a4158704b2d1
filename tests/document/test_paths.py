import fnmatch
import json
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.paths import Path, Paths, bare, find, matches, places, select
from mcp_abridge.document.tree import Document, Slot
from mcp_abridge.errors import PathError

from tests.fitting import fitting, paths

DOCUMENT = {
    "id": 1,
    "items": [
        {"id": 2, "labels": [{"name": "x"}, {"name": "y"}], "tagIds": [7]},
        {"id": 3, "labels": [], "a.b": {"id": 4}},
    ],
    "grid": [[{"id": 5}], [6, {"id": 7}]],
    "nothing": None,
}

# Each path, and what it names in DOCUMENT.
SELECTED: list[tuple[str, list[Any]]] = [
    ("", [DOCUMENT]),
    ("id", [1]),
    ("items.id", [2, 3]),
    ("items.labels.name", ["x", "y"]),
    ("items[].id", [2, 3]),
    ("items[0].id", [2]),
    ("items[-1].id", [3]),
    ("items[2].id", []),
    ('items."a.b".id', [4]),
    ("items.*Ids", [[7]]),
    ("*.id", [2, 3, 5, 7]),
    ("grid.id", [5, 7]),
    ("grid[1][0]", [6]),
    ("grid[].[]", [{"id": 5}, 6, {"id": 7}]),
    ("**.id", [1, 2, 3, 4, 5, 7]),
    ("**.name", ["x", "y"]),
    ("items.**.id", [2, 3, 4]),
    ("**[0]", [DOCUMENT["items"][0], {"name": "x"}, 7, [{"id": 5}], {"id": 5}, 6]),  # type: ignore[index]
    ("nothing.id", []),
    ("missing", []),
]


def selection(slot: Slot, path: str) -> list[Any]:
    slots = select(slot, Path.parse(path))
    return [json.loads(Document(place.get()).encode()) for place in slots]


def document(value: Any) -> Document:
    return Document.read(json.dumps(value).encode())


@pytest.mark.parametrize(("path", "values"), SELECTED, ids=[path for path, _ in SELECTED])
def test_a_path_names_these_places(path: str, values: list[Any]) -> None:
    root = document(DOCUMENT).root
    assert selection(root, path) == values
    first = find(root, Path.parse(path))
    assert (first is None) == (not values)
    assert len(places(root, Path.parse(path))) == len(values)


@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize(
    ("raw", "path", "count"),
    [
        (b"[" * 60 + b'{"a": 1}' + b"]" * 60, "**.a", 1),
        (b'{"a":' * 60 + b"1" + b"}" * 60, "**.a.**.a", 59),
        (b'{"a":[' * 30 + b"1" + b"]}" * 30, "**.a.**.b", 0),
    ],
)
def test_no_place_is_gone_through_again_and_again(raw: bytes, path: str, count: int) -> None:
    # By every way to a place, it would take longer than the tests may.
    assert len([*select(Document.read(raw).root, Path.parse(path))]) == count


@given(fitting(), paths())
def test_each_place_comes_once(pair: tuple[Any, Any], path: Path) -> None:
    keys = [(id(slot.parent), slot.key) for slot in select(document(pair[1]).root, path)]
    assert len(keys) == len(set(keys))


@given(fitting(), paths())
def test_a_barred_value_has_no_member_that_a_path_names(pair: tuple[Any, Any], path: Path) -> None:
    if Paths.of([path]).barred(document(pair[1]).root.get()):
        assert selection(document(pair[1]).root, path.text) == []


QUOTES = "is not a plain name; put odd names in double quotes, write expressions in a jmespath step"
ERRORS = [
    ("a[", "'[' without ']' in path 'a['"),
    ("a[x]", "'[x]' in path 'a[x]' is not '[]' or an index such as '[0]'; "
     "conditions and slices belong in a filter or a jmespath step"),
    ("a]b", f"'a]b' in path 'a]b' {QUOTES}"),
    ("$.a", "path '$.a' begins with '$.'; write 'a'"),
    ("$a", f"'$a' in path '$a' {QUOTES}"),
    ("a, b", "path 'a, b' has a ','; write several as a list, [a, b], "
     "and a name with a comma in double quotes"),
    ("a[0]b", "expected '.' before 'b' in path 'a[0]b'"),
    ("a.", "path 'a.' ends in '.'; a name should follow"),
    (".a", "path '.a' begins with '.'; write 'a'"),
    ('"a', "a quoted name in path '\"a' is not closed"),
    ("a**", "'a**' in path 'a**': '**' stands alone between dots"),
    ("**.a.**.b.**", "'**' stands 3 times in path '**.a.**.b.**', and at most 2 may, since each "
     "goes through the whole document"),
    ("name." * 100 + "name", f"a path of 101 steps, '{'name.' * 8}'...: at most 100 may be"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_the_error_of_an_invalid_path_quotes_the_unexpected_text(text: str, message: str) -> None:
    with pytest.raises(PathError) as error:
        Path.parse(text)
    assert str(error.value) == message


@given(st.text())
def test_reading_a_path_never_fails_otherwise(text: str) -> None:
    with suppress(PathError):
        assert str(Path.parse(text)) == text


@given(st.text("ab*", max_size=6), st.text("ab", max_size=8))
def test_a_glob_matches_as_the_shell_has_it(pattern: str, name: str) -> None:
    expected = re.fullmatch(fnmatch.translate(pattern), name) is not None
    assert matches(pattern, name) == expected


@pytest.mark.parametrize("text", ["a.b", "*", "", "a[0]", "**"])
def test_a_bare_name_is_one_name(text: str) -> None:
    with pytest.raises(PathError) as error:
        bare(text)
    assert str(error.value) == f"{text!r} is not one name; put odd names in double quotes"
