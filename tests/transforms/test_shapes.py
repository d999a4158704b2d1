import pytest
from msgspec import UNSET, Raw

from proxy.document.paths import Path
from proxy.transforms.project import FromPath
from proxy.transforms.shapes import (
    FromArgument,
    Leaf,
    constant,
    deep_merge,
    leaves,
    paths,
    spelled,
    standing,
    taken_apart,
    unknown_word,
)

SOURCE = FromPath(Path.parse("a"), default={"code": "X"})
SHAPE = taken_apart({"a": [{"b": 1}, {"b": SOURCE, "c": {}}], "d": "x"}, ("to",))


def test_every_leaf_knows_what_leads_to_it() -> None:
    assert list(leaves(SHAPE)) == [
        Leaf(1, ("to", "a", 0, "b")),
        Leaf(SOURCE, ("to", "a", 1, "b")),
        Leaf("x", ("to", "d")),
    ]


def test_a_leaf_takes_the_place_of_a_mapping_and_a_mapping_that_of_a_leaf() -> None:
    one, two = Leaf(1, ()), Leaf(2, ())
    assert deep_merge({"a": one}, {"a": {"b": two}}) == {"a": one}
    assert deep_merge({"a": {"b": two}}, {"a": one}) == {"a": {"b": two}}


@pytest.mark.parametrize("said", ["{", "}", "a {b c} d", "{}", "{{}", "{a}}"])
def test_a_brace_alone_is_no_text(said: str) -> None:
    with pytest.raises(ValueError, match="stands alone in"):
        spelled(said)


def test_what_stands_at_a_path_is_found_through_lists_and_in_sources() -> None:
    assert [each for each, _ in standing(SHAPE, Path.parse("a.b").steps)] == [
        Leaf(1, ("to", "a", 0, "b")),
        Leaf(SOURCE, ("to", "a", 1, "b")),
    ]
    [(inside, rest)] = standing(SHAPE, Path.parse("a.b.code").steps)
    assert inside == Leaf(SOURCE, ("to", "a", 1, "b"))
    assert constant(inside, rest) == "X"
    assert list(standing(SHAPE, Path.parse("e").steps)) == []
    assert list(paths(SHAPE)) == ["a", "a.b", "a.b", "a.c", "d"]


@pytest.mark.parametrize(
    ("part", "known"),
    [("a{{b}}", "a{b}"), ("a{b}", UNSET), ("{", UNSET), (5, 5), (FromArgument("x"), UNSET)],
)
def test_a_constant_is_known_before_any_call(part: object, known: object) -> None:
    assert constant(Leaf(part, ()), ()) == known


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("a", None),
        (None, None),
        (UNSET, None),
        (Raw(b'["a", null, "b"]'), "b"),
        (["a", [Raw(b'"c"')]], "c"),
        (Raw(b'{"a": 1}'), {"a": Raw(b"1")}),
        (False, False),
    ],
)
def test_words_that_are_none_of_the_vocabulary_are_found(value: object, found: object) -> None:
    assert unknown_word(value, ("a",)) == found
