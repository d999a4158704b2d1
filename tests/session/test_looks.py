"""Looks: a shortened answer counts once, and once against it if the model asked on."""

from time import monotonic
from typing import Any

import pytest
from mcp_abridge.storage.meter import LOOK_SIGNS, Looks

from tests.builders import answer, call, document, rules
from tests.samples import BOUND, PAGES
from tests.talk import Talk

LONG = document({"items": [{"id": n, "body": "x" * 20} for n in range(200)]})
SHORT = document({"items": [{"id": 1}]})
PAGED = rules(
    "- {name: pages, tools: list, response: [{paginate: {at: items, limit: 2,"
    " max_age_seconds: 60}}]}"
)


def counted(talk: Talk) -> dict[str, tuple[int, ...]]:
    """Return the counts of LOOK_SIGNS by tool, since the last time."""
    rows = talk.meter.drain(Looks)
    return {row.tool: tuple(getattr(row, sign) for sign in LOOK_SIGNS) for row in rows}


def looked(*views: str | None, result: dict[str, Any] = LONG) -> tuple[int, ...]:
    """Return the counts after a first answer and these further calls; None is the same again."""
    talk = Talk(BOUND)
    talk.exchange(call("get"), answer(result))
    for view in views:
        if view is None:
            talk.exchange(call("get", id=2), answer(result, 2))
        else:
            talk.replied(call("get", {"view": view}, id=3))
    return counted(talk).get("get", (0, 0, 0, 0))


@pytest.mark.parametrize(
    ("views", "counts"),
    [
        ((), (1, 0, 0, 0)),
        (("items[3]", "items[4]"), (1, 0, 0, 0)),
        (("all",), (1, 1, 0, 0)),
        ((" all() ", "all", "items[0]"), (1, 1, 0, 0)),
        (("items[3]", "items[4]", "items[5]", "items[6]", "all"), (1, 0, 1, 0)),
        # Neither the way to write a view nor a mistake in one is a part of the answer.
        (("help", "items[3]", "items[[", "items[4]"), (1, 0, 0, 0)),
        (("kept", "kept", "kept"), (1, 0, 0, 0)),
        ((None,), (2, 0, 0, 1)),
        # A new look has a new chance; what is against the old one counts once.
        ((None, "all"), (2, 1, 0, 1)),
        (("all", None), (2, 1, 0, 0)),
    ],
)
def test_a_look_counts_once_by_the_first_sign(
    views: tuple[str | None, ...], counts: tuple[int, ...]
) -> None:
    assert looked(*views) == counts


def test_an_answer_that_is_whole_is_no_look() -> None:
    assert looked(result=SHORT) == (0, 0, 0, 0)
    talk = Talk(PAGES)
    talk.exchange(call("list"), answer(document({"items": [1, 2]})))
    assert counted(talk) == {}


def test_a_call_that_asks_for_a_part_at_once_is_no_look() -> None:
    talk = Talk(BOUND)
    talk.lists.append(b'{"tools":[{"name":"get","annotations":{"readOnlyHint":true}}]}')
    talk.exchange(call("get", {"view": "items[3]"}), answer(LONG))
    talk.replied(call("get", {"view": "all"}, id=2))
    assert counted(talk) == {}


def test_later_pages_are_parts_and_a_first_page_again_is_the_same_call() -> None:
    talk = Talk(PAGES)
    talk.exchange(call("list"), answer(LONG))
    for offset in (2, 4):
        talk.replied(call("list", {"offset": offset}, id=2))
    assert counted(talk) == {"list": (1, 0, 0, 0)}
    talk.replied(call("list", {"offset": 3}, id=2))
    assert counted(talk) == {"list": (0, 0, 1, 0)}

    talk = Talk(PAGED)
    talk.exchange(call("list"), answer(LONG))
    talk.replied(call("list", id=2))  # from the kept answer
    assert counted(talk) == {"list": (1, 0, 0, 1)}


def test_other_arguments_are_another_answer() -> None:
    talk = Talk(BOUND)
    for query in ("a", "b", "c"):
        talk.exchange(call("get", {"query": query}), answer(LONG))
        talk.replied(call("get", {"query": query, "view": "items[3]"}, id=2))
    assert counted(talk) == {"get": (3, 0, 0, 0)}


def test_the_same_call_after_a_long_time_is_no_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(BOUND)
    talk.exchange(call("get"), answer(LONG))
    later = monotonic() + 3600
    monkeypatch.setattr("mcp_abridge.session.looks.monotonic", lambda: later)
    talk.exchange(call("get", id=2), answer(LONG, 2))
    assert counted(talk) == {"get": (2, 0, 0, 0)}


def test_what_another_session_has_shown_is_judged_by_the_one_that_is_asked() -> None:
    first, second = Talk(BOUND), Talk(BOUND)
    second.session.state.store = first.session.state.store
    first.exchange(call("get"), answer(LONG))
    for id in (2, 3):
        second.replied(call("get", {"view": "all"}, id=id))
    assert counted(first) == {"get": (1, 0, 0, 0)}
    assert counted(second) == {"get": (0, 1, 0, 0)}


def test_the_keys_of_many_answers_take_bounded_memory() -> None:
    talk = Talk(BOUND)
    rows = answer(document({"items": [{"id": n, "body": "x" * 20} for n in range(40)]}))
    for number in range(1_100):
        talk.exchange(call("get", {"query": number}), rows)
    assert len(talk.session.state.stored) == 1_000
    assert counted(talk) == {"get": (1_100, 0, 0, 0)}
