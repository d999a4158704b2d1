import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.fuel import LITTLE, MOST, Fuel
from mcp_abridge.document.tree import Document, encode, plain
from mcp_abridge.errors import OutOfFuel, Refusal
from mcp_abridge.query.lookups import Lookups
from mcp_abridge.query.patterns import Expression
from mcp_abridge.query.spellings import translated
from mcp_abridge.query.view import look
from mcp_abridge.transforms.parse import Parse

from tests.documents import TEXTS, call, values
from tests.explosive import EXPLOSIVE
from tests.faults.scale import scaled

RAW = (
    '{"items": [{"id": 1.50, "body": "abcdef", "tags": ["x", "y"]}, null,'
    ' {"id": 1e400, "body": "\\/uvw", "tags": []}], "n": {"a b": -0}, "none": null}'
)


def view_json(expression: str, raw: str = RAW) -> str:
    return Document(look(Document.read(raw.encode()), expression)).encode().decode()


NUMBERS, WIDE, LINES = "[1.0, 2.0, 3.0, 4.0]", json.dumps("😀é" * 10), "a\nb\nc\n"


@pytest.mark.parametrize(
    ("raw", "expression", "value"),
    [
        (RAW, "items[0].id", "1.50"),
        (RAW, "items[*].id", "[1.50,1e400]"),
        (RAW, "items[1:3]", '[null,{"id":1e400,"body":"\\/uvw","tags":[]}]'),
        (RAW, "items[-1].{n: id, start: body[0:2], t: tags}", '{"n":1e400,"start":"/u","t":[]}'),
        (RAW, "items[0].body[::-1]", '"fedcba"'),
        (RAW, "items[?id && contains(body[0:3], 'bc')].id", "[1.50]"),
        (RAW, "length(items[0].body[2:])", "4"),
        (RAW, "sort_by(items[?id], &body[1:2])[0].id", "1.50"),
        (RAW, "items[].tags[]", '["x","y"]'),
        (RAW, 'n."a b"', "-0"),
        (RAW, "@", Document.read(RAW.encode()).encode().decode()),
        (NUMBERS, "[1:3]", "[2.0,3.0]"),
        (WIDE, "text[1:4]", '"é😀é"'),
        (WIDE, "length(text)", "20"),
        (WIDE, "text[0:10] | [2:4]", '"😀é"'),
        (WIDE, "contains(text[0:1], 'é')", "false"),
    ],
)
def test_a_view_keeps_the_spelling_of_upstream(raw: str, expression: str, value: str) -> None:
    assert view_json(expression, raw) == value


@pytest.mark.parametrize(
    ("text", "form", "expression", "value"),
    [
        (LINES, "lines", "[1:3]", ["b", "c"]),
        ("[{'a': 1}]", "python", "[0].a | @ == `1`", True),
        ("[{'a': 1}]", "python", "text[0:5]", '[{"a"'),
        ("{'text': 'abc'}", "python", "[0:8]", '{"text":'),
    ],
)
def test_a_text_read_as_structure_can_be_looked_at_as_both(
    text: str, form: Any, expression: str, value: object
) -> None:
    document = Document(text)
    Parse(as_=form)(document.root, call())
    assert look(document, expression) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("items[?x-y==`2`].id", [2]),
        ("items[0].a.b-c", 1),
        ("meta.app.io/name", "web"),
        ("meta.größe", 7),
        ("meta.$ref", "#/a"),
        ("items[?x-y > 1] | length(@)", 1),
        ("count_by(items, &Given to)", {"Ann": 2}),
        ("items[?Due/Day (UTC) > 1].id", [2]),
        ("items[0].'Due/Day (UTC)'", 1),
        ("Daily (all).2026-11-30.4. close", 5),
        ("meta.+1", 9),
        ("items[?7d > 1].7d", [2]),
    ],
)
def test_a_name_with_signs_needs_no_quotes_if_there_is_such_a_member(
    expression: str, value: object
) -> None:
    whole = {
        "items": [
            {"id": n, "x-y": n, "a": {"b-c": n}, "Given to": "Ann", "Due/Day (UTC)": n, "7d": n}
            for n in (1, 2)
        ],
        "meta": {"app.io/name": "web", "größe": 7, "$ref": "#/a", "+1": 9},
        "Daily (all)": {"2026-11-30": {"4. close": 5}},
    }
    assert plain(look(Document.read(encode(whole)), expression)) == value


@pytest.mark.parametrize("expression", ["items[0].x-z", "items[?id-1==`2`]", "items[0].x - y"])
def test_a_name_with_signs_is_quoted_only_if_there_is_such_a_member(expression: str) -> None:
    with pytest.raises(Refusal, match="is not a JMESPath expression"):
        look(Document.read(b'{"items": [{"id": 1, "x-y": 2, "-1": 3}]}'), expression)


UNKNOWN = "'n(@)' fails: unknown JMESPath function 'n'"
SUCH = "; write a JMESPath such as "
TOP = f"{SUCH}items[0:20], or help"
EOF = "is not a JMESPath expression: it ends too early; '[' is not closed"


@pytest.mark.parametrize(
    ("raw", "expression", "message"),
    [
        (RAW, "items[0:20", f"'items[0:20' {EOF}{TOP}"),
        (RAW, "items[::0]", f"'items[::0]' fails: the step of a slice cannot be 0{TOP}"),
        (RAW, "a" * 4001, f"more than 4000 characters{TOP}"),
        (RAW, "(" * 3000, f"nested too deeply{TOP}"),
        ('"text"', "n(@)", f"{UNKNOWN}{SUCH}text[0:2000], or help"),
        ('{"n": 1}', "n(@)", f"{UNKNOWN}{SUCH}keys(@), or help"),
    ],
)
def test_a_view_that_cannot_be_is_refused_with_one_that_could(
    raw: str, expression: str, message: str
) -> None:
    with pytest.raises(Refusal) as error:
        view_json(expression, raw)
    assert str(error.value) == f"view: {message}"


def test_a_count_in_the_words_of_a_shell_or_of_sql_is_read_or_comes_with_the_view() -> None:
    assert look(Document("a\nb\n"), "wc -l") == "2 lines, 4 characters"
    with pytest.raises(Refusal, match=r"for this result: count_by\(items, &n\.state\)$"):
        view_json("select n.state, count(*) from t group by n.state order by 2")


@pytest.mark.fault(36, "inside")
def test_a_view_that_grows_without_end_is_refused() -> None:
    with pytest.raises(Refusal, match=r"gives far more than the whole document; narrow it$"):
        view_json(" | ".join(["[@, @]"] * 40))


@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize("name", ["compared", "joined", "slices of a text"])
def test_an_explosive_view_is_refused_at_the_end_of_its_fuel(name: str) -> None:
    text, value = EXPLOSIVE[name]
    fuel = Fuel(LITTLE)
    with pytest.raises(Refusal) as error:
        look(Document.read(encode(value)), text, "text", fuel)
    assert "takes too much work; ask a part first, as in " in str(error.value)
    assert isinstance(error.value.__cause__, OutOfFuel)


ROWS = b"[%s]" % b",".join(b'{"id":%d.0,"name":"name %d"}' % (n, n) for n in range(20_000))


@pytest.mark.slow
@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize(
    "expression",
    ["[*].id", "[?id > `5`].name", "[19000:]", "length(@)", "sort_by(@, &name)[0:5].id", "[].*"],
)
def test_an_ordinary_view_of_many_rows_is_no_great_work(expression: str) -> None:
    fuel = Fuel()
    look(Document.read(ROWS), expression, "text", fuel)
    assert fuel.remaining > MOST * 9 // 10


@pytest.mark.slow
@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize(
    "expression",
    [
        f"[{', '.join(['to_array(@)'] * 300)}]",
        f"[{', '.join(['[*].id'] * 400)}]",
        f"[{', '.join(['grep(`7`)'] * 350)}]",
    ],
)
def test_fuel_is_charged_each_time_that_a_view_opens_a_value(expression: str) -> None:
    # On a quick machine, the size of the results is a bound before their time is.
    either = r"too much work; ask a part first, as in \[0:20\] \| \.\.\.|…' gives far more than"
    with pytest.raises(Refusal, match=either):
        look(Document.read(ROWS), expression, "text", Fuel(scaled(200_000, MOST // 2)))


@pytest.mark.fault(40, "inside")
@given(st.lists(values(leaves=10), max_size=30), st.integers(1, 9), st.booleans())
def test_slices_of_an_array_rejoin_to_the_whole(rows: list[bytes], step: int, inside: bool) -> None:
    array = "[" + ", ".join(row.decode() for row in rows) + "]"
    raw = f'{{"a": {{"items": {array}}}}}' if inside else array
    place = "a.items" if inside else ""
    slices = ",".join(
        part[1:-1]
        for start in range(0, len(rows), step)
        if (part := view_json(f"{place}[{start}:{start + step}]", raw))
    )
    assert f"[{slices}]" == Document.read(array.encode()).encode().decode()


@pytest.mark.fault(40, "inside")
@given(TEXTS, st.integers(1, 500))
def test_windows_of_a_text_rejoin_to_the_text(text: str, length: int) -> None:
    document = Document(text)
    starts = range(0, max(len(text), 1), length)
    assert "".join(look(document, f"text[{n}:{n + length}]") for n in starts) == text
    holder = Document.read(encode({"notes": [{"body": text}]}))
    windows = (look(holder, f"notes[0].body[{n}:{n + length}]") for n in starts)
    assert "".join(windows) == text


PLAIN_EXPRESSIONS = ["a", "a.b", "a[0]", "a[*].b", "a[]", "[]", "*", "a[?b]", "a[?b == `1`].c"]
PLAIN_EXPRESSIONS += ["[*].id", "{x: a, y: [b, c]}", "a || b", "a && b", "!a", "a | b", "type(@)"]
PLAIN_EXPRESSIONS += ["not_null(a, b)", "items[*].id | [0]", "items[].body", "body.items[1].id"]


@given(values(leaves=30), st.sampled_from(PLAIN_EXPRESSIONS))
def test_a_lazy_view_gives_the_result_of_jmespath(raw: bytes, expression: str) -> None:
    import jmespath

    whole = Document.read(raw)
    if whole.textual:
        return
    value = plain(whole.cell[0])
    members = {"items": value} if isinstance(value, list) and "items" in expression else value
    expected = jmespath.search(expression, members)
    if expected in (None, []):
        with suppress(Refusal):  # no element has a member that is asked for
            assert plain(look(whole, expression)) == expected
    else:
        assert plain(look(whole, expression)) == plain(expected)


ITEMS = {
    "items": [
        {"name": "a", "state": "Pending", "user": {"login": "ann"}, "labels": [], "closed": None},
        {"name": "b", "state": "Done", "user": None, "labels": [{"name": "bug"}], "closed": None},
        {"name": "c", "state": "Pending", "user": {"login": "bob"}, "labels": [{}], "draft": True},
    ],
    "tags": ["bug", "new"],
}


def answered(expression: str, value: object = ITEMS) -> tuple[Any, list[str]]:
    remarks: list[str] = []
    result = look(Document.read(encode(value)), expression, "text", None, remarks)
    return plain(result), remarks


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('items[?state=="Pending"].name', ["a", "c"]),
        ('items[?state != "Pending"].name', ["b"]),
        ('items[?starts_with(state, "Pen") && user.login == "bob"].name', ["c"]),
        ('items[?contains(state, "one")].name', ["b"]),
        ('items[?labels[*].name | contains(@, "bug")].name', ["b"]),
        ('items[*].[name, state == "Done"]', [["a", False], ["b", True], ["c", False]]),
        ('contains(tags, "new")', True),
        ("items[?draft == true].name", ["c"]),
    ],
)
def test_a_text_in_double_quotes_that_is_no_member_is_the_text(
    expression: str, value: object
) -> None:
    assert answered(expression) == (value, [])


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('[?state == "open"].n', [2]),
        ('[?"open" == `true`].n', [1]),
    ],
)
def test_a_name_in_double_quotes_that_some_element_has_is_that_member(
    expression: str, value: object
) -> None:
    rows = [{"n": 1, "state": "open", "open": True}, {"n": 2, "state": None}]
    assert answered(expression, rows)[0] == value


DOTS = {"rows": [{"at": {"log.level": each, "id": 1}} for each in "abb"], "log": {"level": 1}}


@pytest.mark.parametrize(
    ("expression", "value", "read_as"),
    [
        ("count_by(rows, &at.log.level)", {"a": 1, "b": 2}, 'count_by(rows, &at."log.level")'),
        ("rows[?at.log.level=='a'].at.id", [1], "rows[?at.\"log.level\"=='a'].at.id"),
        ("rows[0].at.log.level", "a", 'rows[0].at."log.level"'),
        (
            "rows[?at.id].[at.log.level]",
            [["a"], ["b"], ["b"]],
            'rows[?at.id].[at."log.level"]',
        ),
    ],
)
def test_a_name_with_a_dot_needs_no_quotes_if_nothing_has_its_parts(
    expression: str, value: object, read_as: str
) -> None:
    assert answered(expression, DOTS) == (value, [f"read as {read_as}"])


def test_a_member_of_an_element_of_an_inner_array_is_missed_by_its_name() -> None:
    remark = "there is no 'nam'; members: name; did you mean 'name'?"
    assert answered("a.b[0].nam", {"a": {"b": [{"name": 1}]}}) == (None, [remark])


@pytest.mark.parametrize("expression", ["sum(n)", "length(a.n)", "sum(@.n) || `1`"])
def test_the_members_of_the_elements_of_an_array_are_there(expression: str) -> None:
    assert answered(expression, [{"n": 1, "a": {"n": 2}}, {"n": 1}])[1] == []


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("items.due", [5]),
        ("items.by.a", [1]),
        ("[items.id, items.by.a]", [[1, 2, 3], [1]]),
        ("items.tags.n", [[3]]),
        ("items[1:].tags.length", [0, 1]),
        ("items[?tags | length > `0`].id", [3]),
        ("items | [length, columns]", [3, ["id", "by"]]),
    ],
)
def test_a_member_that_the_first_element_of_an_array_lacks_is_there(
    expression: str, value: object
) -> None:
    first, second = {"id": 1, "by": None}, {"id": 2, "by": {"a": 1}, "tags": []}
    items = [first, second, {"id": 3, "due": 5, "tags": [{"n": 3}]}]
    assert answered(expression, {"items": items}) == (value, [])


def test_a_path_that_is_there_is_no_name_with_a_dot() -> None:
    assert answered("log.level", DOTS) == (1, [])


META = [{"a": {"meta": '{"gift": true}'}}]
ROW = "members: name, state, user, labels, closed, draft"
STATE = f"no element has 'stat'; {ROW}; did you mean 'state'?"
TEXT = "; did you mean the text 'Pending', in single quotes?"


@pytest.mark.parametrize(
    ("expression", "message", "value"),
    [
        ("items[?stat == 'Pending'].name", STATE, ITEMS),
        ("length(items[?stat == 'x'])", STATE, ITEMS),
        ("count_by(items[?stat == 'x'], &state)", STATE, ITEMS),
        ("items[?state == Pending]", f"no element has 'Pending'; {ROW}{TEXT}", ITEMS),
        ("items[*].size", f"no element has 'size'; {ROW}", ITEMS),
        ("items[?user.logn == 'ann']",
         "no element has 'logn' in 'user'; members: login; did you mean 'login'?", ITEMS),
        ("max_by(items, &login)",
         f"no element has 'login'; {ROW}; did you mean user.login?", ITEMS),
        ("items[].labels[].nam",
         "no element has 'nam'; members: name; did you mean 'name'?", ITEMS),
        ("items[0].*.x", "no element has 'x'; members: login", ITEMS),
        ("[?log.levle=='a']", "no element has 'log'; members: \"log.level\"; "
         'did you mean "log.level"?', [{"log.level": "a"}]),
        ("rows[?a.meta.gift=='x']", "no element has 'gift' in 'a.meta'; found a text in place "
         "of an object: write from_json(a.meta).gift", {"rows": META}),
        ("[*].gift", "no element has 'gift'; found a text in place of an object: write "
         "from_json(@).gift", [row["a"]["meta"] for row in META]),
        ("pairs[*].stat", "no element has 'stat'; found an array in place of an object: write [0] "
         "for its first element", {"pairs": [["x", 1]] * 3}),
        ("pairs[?stat=='x']", "no element has 'stat'; found a text in place of an object",
         {"pairs": [["x", 1]] * 3}),
        ("tags[?a == 'b']", "no element has 'a'; found a text in place of an object", ITEMS),
        ("[*].a", "no element has 'a'; found a number in place of an object", [1, None]),
        ("[*].a.b", "no element has 'b' in 'a'; found a text in place of an object",
         [{"a": None}, {"a": "b: 1"}]),
        # Names that a terminal or a line could not bear are left out.
        ("[*].a", "no element has 'a'; members: e", [{"b\nc": 1, "d\x1b[31m": 2, "e": 3}]),
    ],
)  # fmt: skip
def test_a_view_that_finds_nothing_for_want_of_a_member_is_refused_with_those_there_are(
    expression: str, message: str, value: object
) -> None:
    with pytest.raises(Refusal) as error:
        answered(expression, value)
    assert str(error.value) == f"view: {message}"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("items[?state == 'Gone'].name", []),
        ("items[?closed == 'x']", []),
        ("items[?archived != `null` || state == 'Done'].name", ["b"]),
        ("items[*].[titel || name]", [["a"], ["b"], ["c"]]),
        ("items[*].labels[*].name", [[], ["bug"], []]),
        ("items[*].[user.login]", [["ann"], [None], ["bob"]]),
        ("type(items[0].titel)", "null"),
    ],
)
def test_a_member_that_may_be_absent_is_no_slip(expression: str, value: object) -> None:
    assert answered(expression) == (value, [])


LEFT_OUT = "user.login is null in 1 of 3 elements, which is left out; write [user.login] to keep it"


@pytest.mark.parametrize(
    ("expression", "value", "remark"),
    [
        ("items[*].user.login", ["ann", "bob"], LEFT_OUT),
        ("length(items[].user.login)", 2, LEFT_OUT),
        ("items[].user.login | length(@)", 2, LEFT_OUT),
        ("items[?name=='b'].user.login", [],
         "user.login is null, which is left out; write [user.login] to keep it"),
    ],
)  # fmt: skip
def test_values_that_are_fewer_than_their_rows_say_so(
    expression: str, value: object, remark: str
) -> None:
    assert answered(expression) == (value, [remark])


def test_a_slice_of_each_text_says_so_if_elements_may_be_meant() -> None:
    rows = {"items": [{"key": f"PAY-{n}", "in": {"title": "Crash"}} for n in range(9)]}
    remark = "[0:3] is a part of each text here; for elements write | [0:3]"
    assert answered("items[*].key[0:3]", rows) == (["PAY"] * 9, [remark])
    assert answered("items[?key].in.title[:2]", rows) == (["Cr"] * 9, [remark.replace("0:3", ":2")])
    assert answered("items[*].key | [0:3]", rows) == (["PAY-0", "PAY-1", "PAY-2"], [])
    assert answered("items[*].in.title[0:40]", rows) == (["Crash"] * 9, [])
    assert answered("items[*].{start: key[0:3]}", rows) == ([{"start": "PAY"}] * 9, [])


def test_members_of_many_rows_that_are_fewer_say_so() -> None:
    rows = [{"id": n} if n % 3 else {"id": None} for n in range(300)]
    values, [remark] = answered("[].id", rows)
    assert len(values) == 200
    assert (
        remark == "id is null in 100 of 300 elements, which are left out; write [id] to keep them"
    )


FIRST = "members: name, state, user, labels, closed; did you mean"


@pytest.mark.parametrize(
    ("expression", "value", "remark"),
    [
        ("items[?archived].name", [], f"no element has 'archived'; {ROW}"),
        ("items[?archived == null].name", ["a", "b", "c"], f"no element has 'archived'; {ROW}"),
        (
            "items[?usr == `null`] | length(@)",
            3,
            f"no element has 'usr'; {ROW}; did you mean 'user'?",
        ),
        ("items[?!archived && state == 'Done'].name", ["b"], f"no element has 'archived'; {ROW}"),
        (
            "items[?!user.b].name",
            ["a", "b", "c"],
            "no element has 'b' in 'user'; members: login",
        ),
        ("items[:1].[stat]", [[None]], f"no element has 'stat'; {FIRST} 'state'?"),
        ("items[0].nam", None, f"there is no 'nam'; {FIRST} 'name'?"),
        ("items[0].[name, nam]", ["a", None], f"there is no 'nam'; {FIRST} 'name'?"),
        (
            "{n: length(items), m: itms}",
            {"n": 3, "m": None},
            "there is no 'itms'; members: items, tags; did you mean 'items'?",
        ),
        ("items[0].user.b", None, "there is no 'b'; members: login"),
        (
            "items[0].user | keys",
            None,
            "there is no 'keys'; members: login; "
            "did you mean | keys(@) for all of the value before it?",
        ),
    ],
)
def test_a_missing_member_is_remarked_beside_an_answer_that_stands_without_it(
    expression: str, value: object, remark: str
) -> None:
    assert answered(expression) == (value, [remark])


def test_of_an_array_the_members_of_its_elements_are_named() -> None:
    rows = [{"id": n, "title": f"t {n}", "state": ("open", "closed")[n % 2]} for n in range(9)]
    [remark] = answered("titel", rows)[1]
    expected = "there is no 'titel'; members of its elements: id, title, state"
    assert remark == f"{expected}; did you mean 'title'?"
    with pytest.raises(Refusal, match="title is an array: write contains"):
        answered("title == 'x'", rows)


def test_the_members_that_a_refusal_names_take_little_room() -> None:
    rows = [{f"member {n} of this row" * 9: n for n in range(1000)}]
    with pytest.raises(Refusal, match=r'…", …$') as error:
        answered("[*].titel", rows)
    assert len(str(error.value)) < 500


CRASHES = [
    {
        "id": n,
        "state": "open" if n % 3 else "closed",
        "title": f"crash {n}",
        "n": n,
        "by": {"a": 1, "s.t": "x"},
    }
    for n in range(9)
]


# Views of an object, of an array and of a text, as they are written, and in JMESPath.
OF_AN_OBJECT = [
    # jq
    ('.items[] | select(.state == "open") | .title', "items[?state=='open'].title"),
    ("items[?by['s.t'] == 'x'].n", "items[?by.\"s.t\"=='x'].n"),
    (".items | map(select(.n > 3)) | length", "length(items[?n > `3`])"),
    (".items[] | .title", "items[].title"),
    ("items | map(.title)", "items[].title"),
    (".items[] | select(.by.a | not) | .id", "items[?!(by.a)].id"),
    ('.items[] | select(.title | test("3$")) | .n', "items[?matches(title, '3$')].n"),
    ("items[]?.id", "items[].id"),
    ("items.3.id", "items[3].id"),
    ("length(.items)", "length(items)"),
    (".items | sort_by(.n)", "sort_by(items, &n)"),
    (".items | map(.title) | .[0:2]", "items[*].title | [0:2]"),
    ('[.items[] | select(.state == "open")] | length', "length(items[?state=='open'])"),
    ("[.items[].id] | add", "sum(items[].id)"),
    (".items[] | select(.n > 6) | {id, t: .title}", "items[?n > `6`].{id: id, t: title}"),
    ("[.items[] | select(.n > 6) | [.id, .x]]", "items[?n > `6`].[id, x]"),
    (".items[] | {id, m: .n} | select(.m > 6)", "items[?n > `6`].{id: id, m: n}"),
    (".items | map({id, a: .by.a})", "items[].{id: id, a: by.a}"),
    ("{n: [.items[] | select(.n > 6)] | length, total}", "{n: `2`, total: total}"),
    ("[.items[].x] | length", "`9`"),  # of null, as jq counts it
    (".items | length", "`9`"),
    # JSONPath
    ('$.items[?(@.state=="open")].title', "items[?state=='open'].title"),
    ('.items[0].by | to_entries[] | select(.key == "a") | .value', "[items[0].by.a]"),
    ('.items[] | select((.id | tostring) == "3") | .title', "items[?id == `3`].title"),
    (".items[] | {id, m: (.n | tostring | tonumber)}", "items[*].{id: id, m: n}"),
    ('.items[] | select(.title | test("CRASH 1"; "i")) | .id', "items[?contains(title, 'h 1')].id"),
    ('.items | map(.title | split(" ")[0]) | join(",")', "join(',', items[].split(title, ' ')[0])"),
    ("$.items[*].title", "items[*].title"),
    # Python and JavaScript
    ("len(items)", "length(items)"),
    ("items[?by.a != [] && by != {}].n", "items[*].n"),
    ("items[?id != None].n", "items[?id != `null`].n"),
    ("items[?contains(title, '3') == True].n", "items[?contains(title, '3')].n"),
    ("items.length", "length(items)"),
    ('items[0]["title"]', "items[0].title"),
    ("items[?title.startswith('crash 1')].id", "items[?starts_with(title, 'crash 1')].id"),
    (".items | group_by(.state) | map({state: .[0].state, n: length})", "count_by(items, &state)"),
    ("group_by(items, &state) | map({n: length(@), s: .[0].state})", "count_by(items, &state)"),
    (
        ".items | group_by(.state) | map({s: .[0].state, sum: (map(.n) | add)})",
        "sum_by(items, &state, &n)",
    ),
    ("sort_by(items, n)[0]", "sort_by(items, &n)[0]"),
    ("sum_by(items, 'state', \"n\")", "sum_by(items, &state, &n)"),
    ("$['items'][0]['id']", "items[0].id"),
    ("$.items[?(@.state in ['open'])].id", "items[?state=='open'].id"),
    ("head(items, 2)", "items[:2]"),
    # SQL
    ("items[?state = 'open' and n > 5].id", "items[?state=='open' && n > `5`].id"),
    ("items[?state == 'x' OR not contains(title, '1')].id", "items[?!contains(title, '1')].id"),
    ("count(items, state)", "count_by(items, &state)"),
    ("items[?n in [1, 2]].id", "items[?n == `1` || n == `2`].id"),
    ("items[?contains([1, 2], n)].id", "items[?n == `1` || n == `2`].id"),
    ("items[?n in (1, 2)].id", "items[?n == `1` || n == `2`].id"),
    ("items[?state IN ['open', 'x']].id", "items[?state=='open'].id"),
    ("items[?state not in ('open', 'x')].id", "items[?state=='closed'].id"),
    ("items[?not(state=='open') && n > 2].id", "items[?state!='open' && n > `2`].id"),
    ("items[?title LIKE '%h 1%'].id", "items[?contains(title, 'h 1')].id"),
    ("items[?title like 'crash 1%'].id", "items[?starts_with(title, 'crash 1')].id"),
    ("items[?title ilike 'CRASH 1%'].id", "items[?matches(title, '^crash 1')].id"),
    ("items[?title not like '%h 1%'].id", "items[?!contains(title, 'h 1')].id"),
    ("items[?x is null and n is not null].id", "items[?x == null && n != null].id"),
    ("items[?n between 2 and 4 and state <> 'x'].id", "items[?n >= `2` && n <= `4`].id"),
    ("items[?n === 3 || state !== 'open'].id", "items[?n == `3` || state != 'open'].id"),
    ("mean(items[].n)", "avg(items[].n)"),
    ("items[?title contains '3'].id", "items[?contains(title, '3')].id"),
    ("items[?title =~ '[34]$'].id", "items[?matches(title, '[34]$')].id"),
    ("last(items)", "items[-1]"),
    # JMESPath, almost
    ("items[state=='open'].id", "items[?state=='open'].id"),
    ("items[id, title]", "items[*].[id, title]"),
    # the table that a result shows in place of an array
    ("items.rows[3:5]", "items[3:5]"),
    ("items.columns", "keys(items[0])"),
    ("items.title", "items[*].title"),
    ("items.by.a", "items[*].by.a"),
    ("grep('o') | head(1)", "grep('o').at[:1]"),
    ("sum_by(items, n)", "sum(items[].n)"),
    ("items[?6 < n || id == 3].id", "items[?`6` < n || id == `3`].id"),
    ("items[*].{id, by.a}", "items[*].{id: id, a: by.a}"),
    ('items[?matches(title, "1")].id', "items[?matches(title, '1')].id"),
    ("items[?title == 'n > 5 {a, b}' || id == 3]", "items[?id == `3`]"),
]
OF_AN_ARRAY = [
    ("items[0].id", "[0].id"),
    ("rows[2:4]", "[2:4]"),
    ("items[?state=='open'] | length(@)", "length([?state=='open'])"),
    (".[0].id", "[0].id"),
    ("[.[] | .state] | unique", "unique([].state)"),
    ("map(select(.n > 6)) | length", "`2`"),
    ("map(.n) | add", "sum([].n)"),
    (". | length", "length(@)"),
    ("count_by(items, &state)", "count_by(@, &state)"),
]
OF_A_TEXT = [
    ("head 2", "head(2)"),
    ("tail -n 2", "tail(2)"),
    ("sed -n 3,5p", "lines(3, 5)"),
    ("grep -i CRASH", "grep('(?i)crash')"),
    ("grep -ci CRASH", "grep('(?i)crash') | length(@)"),
    ("grep -n -C 2 'crash 4'", "grep('crash 4', 2)"),
    ("cat | grep 'crash 4' | head -3", "grep('crash 4')"),
    ("text | grep crash", "grep('crash')"),
    ("grep('crash 4', context=1)", "grep('crash 4', 1)"),
    ("/crash 4/", "grep('crash 4')"),
    ("grep crash | grep 4", "split(@, '\\n')[?contains(@, 'crash 4')]"),
    ("grep -i CRASH | grep -v 4 | wc -l", "split(@, '\\n')[?!contains(@, '4')] | length(@)"),
    ("grep -vc 4", "split(@, '\\n')[?!contains(@, '4')] | length(@)"),
    ("grep -F 'h 4' | tail -2", "grep('h 4') | tail(2)"),
    ("grep -w 'ash 4\\|crash 5' | wc -l", "grep('crash 5') | length(@)"),
    ("head -4 | tail -2", "lines(3, 4)"),
    ("sort | uniq | wc -l", "uniq() | length(@)"),
    ("search('crash 4')", "grep('crash 4')"),
]
TRANSLATIONS: list[tuple[Any, str, str]] = [
    *(({"items": CRASHES, "total": 9}, *each) for each in OF_AN_OBJECT),
    *((CRASHES, *each) for each in OF_AN_ARRAY),
    *(("".join(f"a {row['title']}\n" for row in CRASHES), *each) for each in OF_A_TEXT),
]


@pytest.mark.parametrize(("value", "view", "expression"), TRANSLATIONS)
def test_a_view_in_another_language_is_understood(value: Any, view: str, expression: str) -> None:
    expected = plain(look(Document(value), expression))
    assert expected is not None
    assert plain(look(Document(value), view)) == expected


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        ("lenght(items)", "unknown JMESPath function 'lenght'; did you mean 'length'?"),
        ("select id from items", "there is no 'select' here: write items[?state=='open']"),
        ("", "an empty text is no JMESPath expression; write a JMESPath such as items[0:20]"),
        ("[&title]", "&name stands only where a function takes an expression"),
        ("to_array(&title)", "&name stands only where a function takes an expression"),
        ("sum(items, &n)", "the JMESPath function 'sum' takes 1 argument, found 2"),
        ("items[?state==open]", "did you mean the text 'open', in single quotes?"),
        ("grep('a', 'i')", "(?i) before it ignores case"),
        ("sort_by(items, &nam)", "view: no element has 'nam'; members: "),
        ("[.items[] | .id, .title] | length", "is not a JMESPath expression"),
        ("items[?length(`null`) > 3]", "found null; for what may be null write length(name || '')"),
        ("length(itms)", "; there is no 'itms'; members: items; did you mean 'items'?"),
    ],
)
def test_an_unknown_expression_is_refused_with_the_next_step(view: str, reason: str) -> None:
    with pytest.raises(Refusal) as error:
        look(Document.read(encode({"items": CRASHES})), view)
    assert reason in str(error.value)


@pytest.mark.fault(36, "inside")
def test_members_are_looked_for_as_long_as_the_fuel_lasts() -> None:
    expression = Expression(" || ".join(f"a == b{number}" for number in range(100)))
    with pytest.raises(OutOfFuel):
        Lookups(expression).corrected(
            expression.tree, [{"a": 1}] * 1000, lambda value: value, Fuel(LITTLE), single=True
        )


def test_a_long_name_is_no_long_search_for_another_language() -> None:
    start = time.process_time()
    translated("a" * 4000)
    with pytest.raises(Refusal):
        look(Document.read(b"{}"), "-" * 4000)
    assert time.process_time() - start < 0.3
