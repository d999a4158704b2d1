"""One call played out: the first call before a later page, what the server saw, what came back."""

import json

from msgspec.structs import replace

from proxy.testing.exchange import RecordedExchange, made, of_text
from proxy.testing.play import Replay
from tests.given import document, rules, texts

PAGES = rules("- {name: pages, tools: list, response: [{paginate: {at: items, limit: 2}}]}")


def exchange(**arguments: object) -> RecordedExchange:
    return made("list", arguments, of_text('{"items":[1,2,3,4,5]}'))


def items(play: Replay) -> object:
    return json.loads(texts(play.answer.line)[0])["items"]


def test_a_call_is_made_once() -> None:
    play = Replay(PAGES, exchange(limit=3, x=1))

    assert (items(play), play.seen) == ([1, 2, 3], [{"x": 1}])
    assert play.opening is play.answer


def test_a_later_page_follows_a_call_for_the_first_one() -> None:
    play = Replay(PAGES, exchange(offset=4))

    assert (items(play), play.seen) == ([5], [{}])
    assert json.loads(texts(play.opening.line)[0])["items"] == [1, 2]


def test_the_first_call_can_be_left_out() -> None:
    play = Replay(PAGES, exchange(offset=4), opened=False)

    assert play.seen == []
    assert play.answer.failed


def test_further_pages_can_be_asked_for() -> None:
    play = Replay(PAGES, exchange())

    further = play.ask({"offset": 2})

    assert json.loads(texts(further.line)[0])["items"] == [3, 4]
    assert len(play.seen) == 1


def test_a_call_that_the_server_gets_again_is_answered_and_seen() -> None:
    play = Replay(PAGES, exchange())

    assert not play.ask({"other": 1}).failed
    assert play.seen == [{}, {"other": 1}]


def test_the_rule_and_the_document_before_are_known() -> None:
    play = Replay(PAGES, exchange())
    assert play.applied is not None
    assert play.applied.name == "pages"
    reading = play.reading(play.applied)

    assert reading is not None
    assert json.loads(reading.document.encode()) == {"items": [1, 2, 3, 4, 5]}
    assert [outcome.word for _, outcome in play.shaped] == ["shaped"]
    assert play.before.texts == (document({"items": [1, 2, 3, 4, 5]})["content"][0]["text"],)


def test_a_refused_call_is_not_tried_twice() -> None:
    play = Replay(PAGES, exchange(offset=2, limit=99))

    assert play.answer.failed
    assert play.seen == []


def test_what_is_logged_is_kept() -> None:
    play = Replay(rules("- {name: r, tools: list, response: [{keep: [a.b]}]}"), exchange())

    assert len(play.log) == 1


def test_what_became_of_each_call_is_known() -> None:
    play = Replay(PAGES, exchange())
    words = [play.word]
    play.ask({"offset": 2})
    words += [play.word, Replay(PAGES, exchange(offset=2, limit=99)).word]

    assert words == ["shaped", "page", "refused"]


def test_the_same_can_be_played_with_another_rule_in_place_of_the_one_that_applied() -> None:
    play = Replay(PAGES, exchange(offset=4))
    assert play.applied is not None

    again = play.again(replace(play.applied, pipeline=()))

    assert items(again) == [1, 2, 3, 4, 5]
    assert (items(play), again.seen) == ([5], [{"offset": 4}])
