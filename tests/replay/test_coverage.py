"""Marks of what a model reads: nothing counts as shown that does not stand in the text."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_abridge.cli.page.answer import detail
from mcp_abridge.replay.coverage import marks
from mcp_abridge.replay.exchanges import make, text_result
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.ruleset.selection import Selection

from tests.builders import rules
from tests.faults.scale import scaled

BUDGET = Selection(None, 2_000, print)(None, None)
NAMES = st.sampled_from(["id", "name", "state", "a.b", "labels", "owner", "key"])
SCALARS = st.one_of(
    st.text(max_size=30), st.integers(-(10**9), 10**9), st.booleans(), st.none(), st.floats(0, 9)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=40,
)
ROWS = st.lists(st.dictionaries(NAMES, VALUES, max_size=5), max_size=60)


def detail_of(document: Any, by: RuleSet) -> dict[str, Any]:
    text = document if isinstance(document, str) else json.dumps(document, ensure_ascii=False)
    return detail(Replay(by, make("list", {}, text_result(text))))


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict | list) and value:
        members = value.values() if isinstance(value, dict) else value
        return [leaf for member in members for leaf in leaves(member)]
    return [value]


@settings(max_examples=scaled(8, 40))
@given(ROWS | st.dictionaries(NAMES, ROWS))
def test_what_counts_as_shown_by_the_budget_stands_in_the_text(document: Any) -> None:
    answer = detail_of(document, BUDGET)
    text = "\n".join(answer["texts"])
    assert len(answer["marks"]) == len(leaves(document))
    for leaf, mark in zip(leaves(document), answer["marks"], strict=True):
        spelled = json.dumps(leaf, ensure_ascii=False)
        if mark == "s" and spelled.isprintable():
            assert spelled in text


UNIQUE = [
    {
        "id": 1000 + n,
        "title": f"title {n}",
        "open": n % 2 == 0,
        "user": {"login": f"user-{n}", "id": n},
    }
    for n in range(30)
]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("keep: [id, user.login]", lambda n: "sooso"),
        ("drop: [user]", lambda n: "sssoo"),
        ("elide: {at: '', first: 3}", lambda n: "sssss" if n < 3 else "ooooo"),
        ("paginate: {as: rows, limit: 4}", lambda n: "sssss" if n < 4 else "ooooo"),
        ("filter: {where: open}", lambda n: "ooooo" if n % 2 else "sssss"),
        ("sort: {by: id, descending: true}", lambda n: "sssss"),
        ("rename: {title: name}", lambda n: "sssss"),
        ("project: {fields: [title]}", lambda n: "osooo"),
        ("table: {}", lambda n: "sssss"),
        ("clip: {at: title, max_chars: 3}", lambda n: "scsss"),
        ("jmespath: '[*].{n: id, who: user.login}'", lambda n: "sooso"),
    ],
)
def test_a_step_leaves_out_what_its_rows_show(step: str, expected: Any) -> None:
    by = rules(f"- {{tools: list, response: [{{{step}}}]}}")
    answer = detail_of(UNIQUE, by)
    assert answer["outcome"] == "shaped", answer["log"]
    signs = [answer["marks"][at : at + 5] for at in range(0, len(answer["marks"]), 5)]
    assert signs == [expected(n) for n in range(30)]


def test_a_text_counts_by_its_lines() -> None:
    log = "\n".join(f"{n}: started worker {n % 7}" for n in range(400))
    answer = detail_of(log, BUDGET)
    lines = "\n".join(answer["texts"]).split("\n")
    for line, mark in zip(log.split("\n"), answer["marks"], strict=True):
        assert (mark == "s") == (line in lines)
    assert {"s", "o"} == set(answer["marks"])


def test_rows_of_csv_count_by_their_cells() -> None:
    rows = "\n".join(f"{n},name {n},{'ab' * 30}" for n in range(200))
    answer = detail_of(f"id,name,text\n{rows}\n", BUDGET)
    assert answer["form"] == "read from CSV"
    assert answer["marks"].startswith("ss")
    assert answer["tree"][1][:5] == ["{", "id", "0", "name", '"name 0"']


def test_what_is_the_same_in_all_rows_of_an_array_is_not_shown_of_another() -> None:
    issues, pulls = ([{"id": first + n, "state": "open"} for n in range(3)] for first in (10, 20))
    table = {"same": {"state": "open"}, "columns": ["id"], "rows": [[10], [11]]}
    assert marks({"issues": issues, "pulls": pulls}, [{"issues": table}]) == "ssssos" + "o" * 6


def test_equal_rows_count_once_each() -> None:
    assert marks([{"a": 1}, {"a": 1}, {"a": 1}], [[{"a": 1}, {"a": 1}]]) == "sso"
