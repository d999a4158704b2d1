"""What a model sees of a result, counted for each kind of client."""

from proxy.ruleset.clients import Shows
from proxy.shaping.result.visible import VisibleSize
from tests.given import said
from tests.result.given import reading

KINDS: tuple[Shows, ...] = ("structured", "text", "both", "either")


def test_visible_bytes_are_counted_for_each_kind_of_client() -> None:
    shown = reading(said("ä" * 4, "c", structuredContent={"a": 1})).shown

    assert shown == VisibleSize(7, 9)
    assert [shown.to(kind) for kind in KINDS] == [7, 9, 16, 9]
    assert shown.most == 9


def test_without_structured_content_every_client_shows_the_text() -> None:
    shown = reading(said("abc")).shown

    assert [shown.to(kind) for kind in KINDS] == [3, 3, 3, 3]
