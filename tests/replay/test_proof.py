"""Which values of answers later calls used, and whether a model still finds them."""

import json
from typing import Any

import pytest
from mcp_abridge.replay.differences import to_json
from mcp_abridge.replay.exchanges import make, text_result
from mcp_abridge.replay.play import Replay
from mcp_abridge.replay.proof import used_values
from mcp_abridge.ruleset.rule_set import RuleSet
from msgspec import Raw

from tests.builders import EMPTY, rules

Call = tuple[str, dict[str, Any], Any]
BOOKS = {"books": [{"id": f"bk_{n}", "number": 8000 + n, "title": "x" * 99} for n in range(40)]}


def session(*calls: Call, by: RuleSet = EMPTY) -> list[Replay]:
    """Return the answers to calls: tool, arguments, and a document, a text or a whole result."""
    answered = []
    for tool, arguments, content in calls:
        if isinstance(content, dict) and "structuredContent" in content:
            result = Raw(to_json(content))
        else:
            text = content if isinstance(content, str) else json.dumps(content)
            result = text_result(text)
        answered.append(Replay(by, make(tool, arguments, result)))
    return answered


def usage(*calls: Call, by: RuleSet = EMPTY, definitions: str = "") -> Any:
    every = used_values(session(*calls, by=by), definitions)
    return {each.value: (each.path, each.place) for each in every}


@pytest.mark.parametrize(
    ("answer", "argument", "value", "path"),
    [
        (BOOKS, {"id": "bk_7"}, "bk_7", "books[7].id"),
        (BOOKS, {"number": 8012}, "8012", "books[12].number"),
        (BOOKS, {"query": "see bk_7 now"}, "bk_7", "books[7].id"),
        (BOOKS, {"deep": [{"ids": ["bk_3"]}]}, "bk_3", "books[3].id"),
        ("- button [ref=e5]\n- link [ref=e12]", {"ref": "e12"}, "e12", ""),
        ("- button [ref=e5]", {"ref": "e1"}, "e1", None),
        ("- button [ref=e5]", {"ref": "e5"}, "e5", ""),
        ("#512 Fix the door\n#513 Paint it", {"issue_number": 512}, "512", ""),
        ({"note": "a.py:345: def f"}, {"offset": 345}, "345", "note"),
        ("It is the Blue Lamp.", {"query": "Blue Lamp"}, "Blue Lamp", ""),
        (
            "see https://a.b/c?d=1&e=2 now",
            {"url": "https://a.b/c?d=1&e=2"},
            "https://a.b/c?d=1&e=2",
            "",
        ),
        ({"e4f0": {"name": "map"}}, {"key": "e4f0"}, "e4f0", "e4f0"),
        ({"owner": "alice"}, {"user": "alice"}, "alice", "owner"),
        ({"note": "by alice"}, {"user": "alice"}, "alice", None),  # a word of prose
        ({"token": "***"}, {"token": "***"}, "***", None),  # masked by --redact
        ({"total": 100}, {"limit": 100}, "100", None),  # a round number
        ({"structuredContent": {"n": "k-1"}, "content": []}, {"k": "k-1"}, "k-1", "n"),
    ],
)
def test_a_value_that_a_later_call_takes_is_used(
    answer: Any, argument: Any, value: str, path: str | None
) -> None:
    values = usage(("list", {}, answer), ("get", argument, "ok"))

    assert values.get(value) == (None if path is None else (path, "shown"))


def test_of_a_path_its_parts_do_not_count() -> None:
    path = "/srv/shelf-1/book-2.txt"
    values = usage(("list", {}, f"{path}\n/srv/shelf-1"), ("read", {"path": path}, ""))
    assert values == {path: ("", "shown")}


def test_a_value_that_the_model_had_before_is_not_from_an_answer() -> None:
    assert usage(("get", {"id": "bk_7"}, BOOKS), ("get", {"id": "bk_7"}, BOOKS)) == {}
    assert usage(("get", {"id": "bk_7"}, "ok"), ("a", {}, BOOKS), ("b", {"id": "bk_7"}, "")) == {}
    calls: list[Call] = [("list", {}, {"state": "open"}), ("list", {"state": "open"}, "ok")]
    assert usage(*calls) == {"open": ("state", "shown")}
    assert usage(*calls, definitions='{"enum": ["open", "closed"]}') == {}


def test_a_value_that_no_answer_shows_any_more_is_lost() -> None:
    keep = rules("- {tools: list, view: false, response: [{keep: [books.title]}]}")
    calls: list[Call] = [
        ("list", {}, BOOKS),
        ("get", {"id": "bk_7"}, {"id": "bk_7"}),
        ("move", {"to": "bk_7"}, ""),
    ]
    [loss] = [each for each in used_values(session(*calls, by=keep)) if each.place == "lost"]
    assert (loss.value, loss.call, loss.path) == ("bk_7", 0, "books[7].id")
    assert loss.user == "get took it as id"
    # Another answer before the call shows it.
    calls[1:] = [("find", {}, "it is bk_7"), ("get", {"id": "bk_7"}, "ok")]
    assert usage(*calls, by=keep) == {"bk_7": ("books[7].id", "shown")}


@pytest.mark.parametrize(
    ("rule", "further"),
    [
        ("{tools: list, response: [{paginate: {at: books, limit: 5}}]}", {"offset": 35}),
        ("{tools: list, max_bytes: 400}", {"view": "books[?id == 'bk_39']"}),
    ],
)
def test_a_value_on_another_page_or_in_a_view_is_not_lost(rule: str, further: Any) -> None:
    by = rules(f"- {rule}")
    [first, _] = session(("list", {}, BOOKS), ("get", {"id": "bk_39"}, "ok"), by=by)
    assert "bk_39" not in first.answer.text

    assert usage(("list", {}, BOOKS), ("get", {"id": "bk_39"}, "ok"), by=by) == {
        "bk_39": ("books[39].id", "view")
    }
    assert "bk_39" in first.ask(further).text
