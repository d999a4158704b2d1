from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.document.paths import Path
from proxy.document.tree import Document
from proxy.errors import PathError
from proxy.transforms.rename import Rename
from tests.documents import call, shaped
from tests.fitting import NAMES, assert_reshaped, fitting, there


def rename(**names: str) -> Rename:
    """Rename `a__b`, which stands for the path `a.b`."""
    return Rename({Path.parse(path.replace("__", ".")): name for path, name in names.items()})


def renames(names: dict[str, str]) -> Rename:
    return Rename({Path.parse(path): name for path, name in names.items()})


# What is renamed, in what, and what comes of it.
CASES: dict[str, tuple[Rename, str, str]] = {
    "an old holder of the name gives way": (
        rename(a="b"),
        '{"b": 1, "a": 2, "c": 3}',
        '{"b":2,"c":3}',
    ),
    "but stays where there is nothing to rename": (
        rename(a="b"),
        '{"b": 1, "c": 3}',
        '{"b":1,"c":3}',
    ),
    "names can be swapped": (rename(a="b", b="a"), '{"a": 1, "b": 2}', '{"b":1,"a":2}'),
    "a member and what is in it can both be renamed": (
        rename(user="author", user__login="name"),
        '{"user": {"login": "x", "id": 1}}',
        '{"author":{"name":"x","id":1}}',
    ),
    "patterns lead to members": (
        renames({"**.html_url": "url", "*.n": "m"}),
        '{"html_url": 1, "a": {"n": 2, "b": [{"html_url": 3}]}}',
        '{"url":1,"a":{"m":2,"b":[{"url":3}]}}',
    ),
    "where patterns give two members one name the later path is right": (
        renames({"*.a": "x", "k.b": "x"}),
        '{"k": {"a": 1, "b": 2}, "l": {"a": 3, "b": 4}}',
        '{"k":{"x":2},"l":{"x":3,"b":4}}',
    ),
}


@pytest.mark.parametrize(("step", "before", "after"), CASES.values(), ids=CASES)
def test_members_are_renamed_where_they_stand(step: Rename, before: str, after: str) -> None:
    assert shaped(before.encode(), step).decode() == after


def test_a_document_without_what_is_renamed_is_not_changed() -> None:
    document, told = Document.read(b'{"a": {"c": 1}, "d": null}'), call()
    rename(a__b="x", d__e="y")(document.root, told)
    assert not document.changed
    assert told.missing == ["a.b"]


@given(fitting(), st.data())
def test_what_is_renamed_fits_its_schema(pair: tuple[Any, Any], data: st.DataObject) -> None:
    schema, document = pair
    some = there(document).filter(lambda path: path.text[-1] not in "*]")
    names = data.draw(st.dictionaries(some, st.sampled_from([*NAMES, "new"]), min_size=1))
    taken = {(path.text.rpartition(".")[0], name): path for path, name in names.items()}
    assert_reshaped(Rename({path: name for (_, name), path in taken.items()}), schema, document)


def test_the_schema_has_the_new_name() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    assert rename(a="b", b="a").reshape(schema) == {
        "type": "object",
        "properties": {"b": {"type": "string"}, "a": {"type": "integer"}},
        "required": ["b", "a"],
        "additionalProperties": False,
    }


REFUSED: list[tuple[dict[str, str], str]] = [
    ({}, "no path to rename"),
    ({"a*": "b"}, "'a*' ends in no name of its own to replace"),
    ({"a[0]": "b"}, "'a[0]' ends in no name of its own to replace"),
    ({"": "b"}, "'' ends in no name of its own to replace"),
    ({"a.b": "x", "a.c": "x"}, "'a.b' and 'a.c' cannot both become 'x'"),
    ({"a.b": "a.c"}, "'a.c' is not one name; put odd names in double quotes"),
]


@pytest.mark.parametrize(("names", "message"), REFUSED)
def test_what_cannot_be_renamed_is_refused(names: dict[str, str], message: str) -> None:
    with pytest.raises((ValueError, PathError)) as refused:
        renames(names)
    assert str(refused.value) == message
