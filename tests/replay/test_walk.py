"""All pages of an answer, one after the other, against the original."""

from typing import Any

import pytest
from mcp_abridge.errors import AbridgeError
from mcp_abridge.replay import answers, walk
from mcp_abridge.replay.exchanges import make, text_result
from mcp_abridge.replay.play import Replay
from msgspec import Raw

from tests.builders import answer, document, rules, tool_result

PAGES = rules("- {tools: t, response: [{paginate: {at: items, limit: 2}}]}")
ITEMS = make("t", {}, text_result('{"items":[1,2,3,4,5]}'))


def walk_pages(*pages: Any) -> list[str]:
    """Walk through these documents in place of the proxy's pages."""
    [rule] = PAGES.files[0].rules
    rest = [
        answers.read(page if isinstance(page, bytes) else answer(document(page))) for page in pages
    ]
    play = Replay(PAGES, ITEMS)
    play.opening = rest.pop(0)
    play.ask = lambda arguments: rest.pop(0)  # type: ignore[method-assign]
    return list(walk.mismatches(rule, play))


@pytest.mark.parametrize(
    ("pages", "lines"),
    [
        ([[1, 2], [3, 4], []], ["items[4]: expected 5, found nothing"]),
        (
            [[1, 2], [2, 3], [4, 5]],
            [
                "items[2]: expected 3, found 2",
                "items[3]: expected 4, found 3",
                "items[4]: expected 5, found 4",
                "items[5]: expected nothing, found 5",
            ],
        ),
    ],
)
def test_pages_that_do_not_rejoin_are_reported(pages: list[Any], lines: list[str]) -> None:
    assert walk_pages(*({"items": page} for page in pages)) == lines


def test_a_page_that_is_an_error_ends_the_walk() -> None:
    with pytest.raises(AbridgeError, match="rejoins: the page from 2 on is an error: expired"):
        walk_pages({"items": [1, 2]}, answer(tool_result("expired", isError=True)))


def test_a_walk_without_a_document_says_so() -> None:
    [rule] = PAGES.files[0].rules
    exchange = make("t", {}, Raw(b'{"content":[]}'))
    play = Replay(PAGES, exchange)
    with pytest.raises(AbridgeError, match="rejoins: the result has no document"):
        list(walk.mismatches(rule, play))
