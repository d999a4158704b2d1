from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proxy.document.paths import Path
from proxy.document.tree import Document
from proxy.transforms.rename import Rename
from tests.documents import call
from tests.fitting import NAMES, assert_reshaped, fitting, there


def rename(**names: str) -> Rename:
    """Rename `a__b`, which stands for the path `a.b`."""
    return Rename({Path.parse(path.replace("__", ".")): name for path, name in names.items()})


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
