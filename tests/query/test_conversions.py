"""Questions about the inside of texts and of inner arrays, in views and in rules alike."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jmespath.functions import Functions
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.tree import Document, encode, plain
from mcp_abridge.errors import OutOfFuel, Refusal
from mcp_abridge.query.functions import MeteredFunctions
from mcp_abridge.query.patterns import Expression
from mcp_abridge.query.view import look, usage

ADF = {"type": "doc", "content": [
    {"type": "heading", "content": [{"type": "text", "text": "Plan"}]},
    {"type": "paragraph", "content": [
        {"type": "text", "text": "Ask "}, {"type": "mention", "attrs": {"id": 1, "text": "@ann"}},
        {"type": "hardBreak"}, {"type": "text", "text": "today", "marks": [{"type": "strong"}]}]},
    {"type": "bulletList", "content": [
        {"type": "listItem", "content": [{"type": "paragraph", "content": [
            {"type": "text", "text": text}]}]} for text in ("one", "two")]}]}  # fmt: skip
NOTION = [{"type": "text", "text": {"content": "To "}, "plain_text": "To "},
          {"type": "mention", "plain_text": "Bob"}]  # fmt: skip
SLACK = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [
    {"type": "text", "text": "see "}, {"type": "link", "url": "x", "text": "this"}]}]}  # fmt: skip
MAIL = """<html><head><title>Bill</title><style>p { color: red }</style></head><body>
<p>Dear&nbsp;Ann,</p><div>the <b>bill</b> for Q3 &amp; Q4
is due:</div><table><tr><td>Rent</td><td>900 &euro;</td></tr></table><br/>Tom &lt; Tim<!-- x -->
<ul><li>plain</li></ul></body></html>"""
WHOLE = {
    "streams": [
        {"labels": {"app": "a"}, "values": [["1", "x"], ["2", "y"]]},
        {"labels": {"app": "b"}, "values": [["3", "x"]]},
        {"labels": {"app": "c"}, "values": []},
    ],
    "people": [{"n": "bob", "at": {"homes": [{"c": "NY"}, {"c": "LA"}]}, "k": 1.50}],
    "files": [
        {"name": "src", "in": [{"name": "a.py", "size": 3}, {"name": "lib", "in": []}]},
        {"name": "top.md", "size": 9},
    ],
    "hourly": {"time": ["09:00", "10:00", "11:00"], "rain": [0, 3.50, 1]},
    "body": '{"id": 1.50, "tags": ["a", "B"]}',
    "bodies": ['{"id": 1}', "none", None, {"id": 3}],
    "log": "a 1\nb 2\na 1\nc\n",
    "adf": ADF,
    "notion": NOTION,
    "slack": SLACK,
    "mail": MAIL,
}


def ask(view: str, value: object = WHOLE) -> tuple[Any, list[str]]:
    remarks: list[str] = []
    return plain(look(Document(value), view, "text", None, remarks)), remarks


@pytest.mark.parametrize(
    ("view", "value"),
    [
        ("from_json(body).tags[0]", "a"),
        ("bodies[].from_json(@).id", [1, 3]),
        ("unnest(streams, &values)[*].[labels.app, values[1]]",
         [["a", "x"], ["a", "y"], ["b", "x"]]),
        ("unnest(people, &at.homes)[*].[n, at.homes.c]", [["bob", "NY"], ["bob", "LA"]]),
        ("unnest(people, &at.homes[?c=='LA'])[*].[n, at.homes.c]", [["bob", "LA"]]),
        ("count_by(unnest(streams, &values), &values[1])", {"x": 2, "y": 1}),
        ("nodes(files, &in)[*].[depth, at, name, in]",
         [[0, "[0]", "src", 2], [0, "[1]", "top.md", None], [1, "[0].in[0]", "a.py", None],
          [1, "[0].in[1]", "lib", 0]]),
        ("sum(nodes(files, &in)[].size)", 12),
        ("nodes(files[0], &in)[-1].at", "@.in[1]"),
        ("lower(from_json(body).tags[1])", "b"),
        ("split(streams[0].values[0][1], 'q')", ["x"]),
        ("split(log, '\\n')[1]", "b 2"),
        ("split('a,b,', ',') | length(@)", 3),
        ("length(split(log, '\\n'))", 4),
        ("split(log, '\\n')[].capture(@, '(?P<w>[a-z]) (?P<n>.)') | [?w=='b'].n", ["2"]),
        ("log | uniq()", [{"count": 2, "text": "a 1"}, {"count": 1, "text": "b 2"},
                          {"count": 1, "text": "c"}]),
        ("streams[].values[][1] | uniq()[0]", {"count": 2, "value": "x"}),
        ("plain_text(adf)", "Plan\nAsk @ann\ntoday\none\ntwo"),
        ("plain_text(notion)", "To Bob"),
        ("plain_text(slack)", "see this"),
        ("plain_text(mail)",
         "Dear Ann,\nthe bill for Q3 & Q4 is due:\nRent 900 €\nTom < Tim\nplain"),
        ("plain_text(log)", "a 1\nb 2\na 1\nc\n"),
        ("log | grep('b', `1`).lines[].text", ["a 1\nb 2\na 1"]),
    ],
)  # fmt: skip
def test_what_is_inside_is_reached_in_views_and_in_rules(view: str, value: object) -> None:
    assert ask(view)[0] == value
    assert Expression(view).search(WHOLE) == value


def test_numbers_of_json_in_a_text_keep_their_spelling() -> None:
    assert encode(look(Document(WHOLE), "from_json(body).id")) == b"1.50"


@pytest.mark.parametrize(
    ("view", "remark"),
    [
        ("bodies[].from_json(@)", "from_json() is null where a text is no JSON"),
        ("people[].lower(k)", "lower() is null where there is no text"),
        ("people[].split(k, '.')", "split() is null where there is no text"),
    ],
)
def test_what_cannot_be_converted_is_null_with_a_remark(view: str, remark: str) -> None:
    assert remark in ask(view)[1]


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        ("split(log, '')", "the separator is empty"),
        ("capture(log, 'a')", "names no group"),
        ("unnest(streams, &[0])", "the second is the name of the inner array"),
        ("unnest(streams, &valuse)", "did you mean 'values'?"),
        ("nodes(files, &[0])", "the second is the member with those below"),
        ("hourly.rows[*].rian", "did you mean 'rain'?"),
        ("people[0] | uniq()", "uniq() applies to a text or an array"),
    ],
)
def test_a_conversion_that_cannot_be_is_refused_with_the_right_form(view: str, reason: str) -> None:
    with pytest.raises(Refusal, match=re.escape(reason)):
        ask(view)


@pytest.mark.parametrize(
    ("view", "expression"),
    [
        ("body | fromjson | .tags", "from_json(body).tags"),
        ("JSON.parse(body)", "from_json(body)"),
        ("log.split('b')", "split(log, 'b')"),
        ("people[0].n.toLowerCase()", "lower(people[0].n)"),
        ("unwind(streams, values)", "unnest(streams, &values)"),
        ("recurse(files, in)", "nodes(files, &in)"),
        ("log | uniq -c", "log | uniq()"),
        ("log | sort | uniq -c | sort -rn | head -1", "log | uniq()[:1]"),
        ("maxBy(people, &k).n", "max_by(people, &k).n"),
        ("uniq(streams[].values[][1])", "unique(streams[].values[][1])"),
        ("textContent(adf)", "plain_text(adf)"),
    ],
)
def test_the_words_of_other_languages_for_conversions_are_understood(
    view: str, expression: str
) -> None:
    expected = ask(expression)[0]
    assert expected
    assert ask(view)[0] == expected


@pytest.mark.parametrize(
    ("view", "value"),
    [
        ("max_by(hourly.rows, &rain)", {"time": "10:00", "rain": 3.5}),
        ("hourly.rows[?rain > 0].time", ["10:00", "11:00"]),
        ("hourly[?rain > 0].time", ["10:00", "11:00"]),
        ("max_by(hourly, &rain).time", "10:00"),
        ("hourly[-1].rain", 1),
        ("length(hourly)", 2),
        ("hourly | rows[1:2]", [{"time": "10:00", "rain": 3.5}]),
        ("{hourly: hourly}.hourly.rows[0].time", "09:00"),
        ("people[0].rows", None),
    ],
)
def test_arrays_side_by_side_are_rows_in_views(view: str, value: object) -> None:
    assert ask(view)[0] == value


@given(st.lists(st.fixed_dictionaries({"k": st.integers(), "v": st.lists(st.integers())})))
def test_each_inner_element_is_one_row_beside_the_members_of_its_outer_one(
    rows: list[dict[str, Any]],
) -> None:
    expected = [{"k": row["k"], "v": value} for row in rows for value in row["v"]]
    assert Expression("unnest(@, &v)").search(rows) == expected


@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("from_json(@)", f"[{'[],' * 9000}1]"),
        ("from_json(@)", f"[{'{},' * 9000}1]"),
        ("split(@, ',')", "," * 9000),
        ("uniq()", "\n".join(map(str, range(9000)))),
        ("plain_text(@)", [{"text": "x"}] * 9000),
        ("unnest(@, &v)", [{"v": [1] * 3000}]),
        ("nodes(@, &v)", [{"v": [{"v": []}]}] * 900),
    ],
)
def test_a_conversion_ends_with_its_fuel(expression: str, value: object) -> None:
    with pytest.raises(OutOfFuel):
        Expression(expression).bind({}, Fuel(15_000))(value)


def test_help_and_the_reference_name_every_function_of_ours_and_help_those_of_notices() -> None:
    text = usage(Document(WHOLE))
    pages = [Path("rules/reference", name).read_text() for name in ("views.md", "values.md")]
    reference = "".join(pages)
    ours = MeteredFunctions.FUNCTION_TABLE.keys() - Functions.FUNCTION_TABLE.keys()
    sources = "".join(
        file.read_text() for room in ("summary", "transforms")
        for file in Path("proxy/mcp_abridge", room).glob("*.py")
    )  # fmt: skip
    notices = set(re.findall(r"\b([a-z_]+)\((?:\{place|@|&|')", sources))
    table = MeteredFunctions.FUNCTION_TABLE.keys()
    for name in (ours | (notices & table)) - {"root", "argument"}:
        assert f"{name}(" in text, name
    for name in ours - {"root"}:
        assert f"`{name}(" in reference, name
    assert len(text) < 1700


LAYERS = [{"n": 1, "in": [{"n": 2, "in": [{"n": 3}]}, {"n": 4}]}, {"n": 5}]


@pytest.mark.parametrize(
    ("whole", "top", "of_top"),
    [
        ({"page": {"layers": LAYERS}}, "page.layers", "page.layers"),
        (LAYERS, "", "@"),
        ({"a": {"in": LAYERS}}, "a.in", "a.in"),
    ],
)
def test_a_condition_at_the_top_of_a_tree_says_how_what_is_below_is_asked_for(
    whole: object, top: str, of_top: str
) -> None:
    remark = f"{of_top} is the top of a tree; nodes({of_top}, &in) has what is below it, too"
    assert ask(f"{top}[?n==`3`]", whole) == ([], [remark])
    assert ask(f"{top}[?n>`2`].n", whole) == ([5], [remark])
    assert ask(f"nodes({of_top}, &in)[?n==`3`].n", whole) == ([3], [])
    assert ask(f"max_by({of_top}, &n).n", whole) == (5, [remark])
    assert ask(f"sum({top}[].n)", whole) == (6, [remark])
    assert ask(f"sum(nodes({of_top}, &in)[].n)", whole) == (15, [])
    assert ask(f"{top}[4]", whole)[1][-1] == remark
    assert ask(f"{top}[1].n", whole) == (5, [])


def test_the_trees_of_several_rows_are_one_array_of_nodes() -> None:
    plans = [{"plan": {"in": LAYERS}}, {"plan": {"in": [{"n": 6, "in": [{"n": 7}]}]}}]
    answer = ask("nodes(items.plan.in, &in)[*].[at, n]", plans)
    assert answer == (
        [["[0][0]", 1], ["[0][1]", 5], ["[1][0]", 6], ["[0][0].in[0]", 2], ["[0][0].in[1]", 4],
         ["[1][0].in[0]", 7], ["[0][0].in[0].in[0]", 3]],
        [],
    )  # fmt: skip
    assert ask("length(nodes(plans[*].plan.in, &in))", {"plans": plans}) == (7, [])
    assert ask("length(items.plan)", plans) == (2, [])
