"""The values of answers that later calls, or the model's own words, used."""

from typing import Any

import pytest

from proxy.testing.usage import Usage

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list", {"state": "open", "limit": 3}),
    ("get", {"issue_number": 7, "repo": "octo/parser"}),
    ("read", {"path": "/srv/notes/todo-2026.md", "options": {"ids": ["a-1", "b-2"]}}),
]


@pytest.mark.parametrize(
    ("name", "value", "user"),
    [
        ("number", 7, "get took it as issue_number"),
        ("comments", 7, ""),
        ("state", "open", ""),  # the model had it before the answer
        ("file", "todo-2026.md", "read took it as path"),
        ("key", "b-2", "read took it as ids"),
        ("line", "see octo/parser for more", "get took it as repo"),
        ("id", 19, ""),
        ("locked", True, ""),
        ("closed_at", None, ""),
    ],
)
def test_a_later_call_uses_a_value(name: str, value: object, user: str) -> None:
    assert Usage(CALLS).user(0, name, value) == user


def test_the_models_own_words_use_values() -> None:
    usage = Usage(CALLS, [(0, "look at crash-9"), (2, "The cause is in commit 95ac992, line 12.")])
    assert usage.user(1, "sha", "95ac992") == "the model's own text has it"
    assert usage.user(2, "sha", "95ac992") == ""
    assert usage.user(0, "cause", "crash-9") == ""
