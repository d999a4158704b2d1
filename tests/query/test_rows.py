"""Views of many rows, which decode the members that they read, say what views of each row do."""

import gc
import json
import tracemalloc
from typing import Any

import pytest
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.tree import Document, encode
from mcp_abridge.errors import Refusal
from mcp_abridge.query import lookups, rows
from mcp_abridge.query.view import look
from msgspec import Raw

from tests.faults.scale import scaled

STATES = ("open", "closed", "failed", "on hold")


def row(n: int) -> Any:
    by = {"login": f"u{n % 9}", "age": n}
    name = f'"name" \u00e9 {n}'
    value = {"id": n, "state": STATES[n % 4], "n": n / 8, "by": by, "name": name, "text": str(n)}
    value["größe"] = n % 5
    value["tags"] = [{"k": f"t{n % 3}", "v": n}, {"k": "x", "v": None}]
    return value | ({"rare": n} if n % 50 == 3 else {})


PLAIN = json.dumps([row(n) for n in range(200)])
FLAT = [{name: row(n)[name] for name in ("id", "name", "state", "n", "text")} for n in range(200)]
KINDS = {
    "plain": PLAIN,
    "flat": json.dumps(FLAT).replace('"n": 2.0', '"n": 2.000').replace('"n": 3.0', '"n": null'),
    "flat but one": json.dumps([*FLAT, {**FLAT[0], "state": ["open"]}]),
    "nulls": json.dumps([None if n % 5 == 2 else row(n) for n in range(200)]),
    "lists": json.dumps([[n] if n % 5 == 2 else row(n) for n in range(200)]),
    "numbers": PLAIN.replace('"n": 1.0', '"n": -0').replace('"n": 2.0', '"n": 1e400'),
    "long": PLAIN.replace('"n": 1.0', f'"n": {"9" * 5000}'),
    "spelled": PLAIN.replace('"open"', '"\\u006fpen"').replace('"n": 2.0', '"n": 2.000'),
    "twice": PLAIN.replace('"state"', '"state": "old", "state"'),
    "mixed": PLAIN.replace('"n": 1.0', '"n": "one"').replace('"n": 2.0', '"n": "3"'),
}
VIEWS = (
    "length(@)",
    "length([?state=='open'])",
    "length(zzz)",
    "count_by(@, &state)",
    "count_by(@, &by.login)",
    "count_by(@, &[state, by.login])",
    'count_by(@, &"größe")',
    '[?"größe" > `3`].id',
    'keys(max_by(@, &"größe"))',
    '[*].["größe", id]',
    "count_by(@, &zzz)",
    "count_by(@, &stat)",
    "count_by(@, &@)",
    "count_by([?n > `4`], &state)",
    "sum_by(@, &state, &n)",
    "sum_by(@, &state, &text)",
    "group_by(@, &state)",
    "sort_by(@, &n)[-3:].id",
    "sort_by(@, &n)[0]",
    "sort_by(@, &rare)[:2]",
    "max_by(@, &n)",
    "max_by(@, &by.age).name",
    "min_by(@, &zzz)",
    "[?state=='open'].[id, name]",
    "[?state==`open`].id",
    '[?state=="open"].id | [:3]',
    "[?stat=='open']",
    "[?stat.x==`1`]",
    "[?by.logn==`1` || stat.x]",
    "[?n > `12`]",
    "[?n == '1']",
    "[?text > `190`].id",
    "[?contains(name, '19')].name",
    "[?by.login=='u3' && !rare]",
    "[?rare]",
    "[?!rare]",
    "[?!n || by.age > `190`].id",
    "[?state=='OPEN']",
    "[?state > 'failed' && text < '5'].id",
    "[?starts_with(state, 'o') && ends_with(text, '4')].id",
    "[?matches(state, '^(open|failed)$') != matches(text, '1{2}')].id",
    "[?contains(n, '1') || id == by.age].n",
    "[?length(state) == `4` || name == 'x'].[id, n]",
    "[?tags[?k=='t1']].id",
    "[?@.id == `7`]",
    "[?grep('u3')].id | [:2]",
    "[?length(keys(@)) > `7`].id",
    "[*].[id, rare]",
    "[*].rare",
    "[*].[id, id, by]",
    "[*].[id, zzz]",
    "[*].{i: id, s: state}",
    "[*].{i: id, i: state}",
    "[*].{i: id, s: state} | grep('open')",
    "[*].by.login | [:2]",
    "grep('open')",
    "grep('OPEN')",
    "grep('^u3$')",
    "grep('\\Au3')",
    "grep('19')",
    "grep('1e400|9{60}')",
    "grep('stat')",
    "grep('open|9')",
    "grep('2.0')",
    "grep('2\\.0')",
    "grep('\"name\" .{1,2}7$')",
    "grep('(?s)e.*d')",
    "grep('[^0-4]8')",
    "grep('nowhere')",
    "[?id > `9`] | grep('1[05]')",
    "[].tags[].v | sum(@)",
    "sum([*].n)",
    "avg([?state=='closed'].id)",
    "max([*].name)",
    "sort([*].text)[:3]",
    "length(sort_by(@, &n)) == `200`",
    "[length(@), length([?n > `1`])]",
    "items[?state=='failed'].id | length(@)",
    "[?id > `100`] | [?id < `104`] | [*].[id, state]",
    "unique([*].state)",
    "entries(group_by(@, &state))",
)


def answered(text: str, view: str) -> tuple[Any, ...]:
    """Return the answer, with the spelling of each value, and the remarks; or the refusal."""
    remarks = list[str]()
    try:
        value = look(Document.read(text.encode()), view, fuel=Fuel(), remarks=remarks)
    except Refusal as error:
        return ("refused", str(error))
    return (json.loads(encode(value), parse_float=str, parse_int=str), remarks)


# Each view with every sixth kind of rows, or with all.
@pytest.mark.parametrize(
    ("view", "kind"),
    [
        (view, kind)
        for number, view in enumerate(VIEWS)
        for kind in [*KINDS][number % scaled(6, 1) :: scaled(6, 1)]
    ],
)
def test_many_rows_are_answered_as_each_row_would_be(
    view: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = answered(KINDS[kind], view)
    monkeypatch.setattr(rows, "_MANY", 1_000)
    monkeypatch.setattr(lookups, "_BATCH", 1_000)
    assert answer == answered(KINDS[kind], view)


def test_rows_that_differ_in_their_spelling_alone_are_one_whether_bytes_tell_them_or_not() -> None:
    for one, other in (('{"a":"A"}', '{"a":"\\u0041"}'), ('{"a":"A"}', '{"a":"A"}')):
        document = Document(Raw(f"[{','.join([one, other] * 100)}]".encode()), compact=True)
        assert json.loads(encode(look(document, "unique(@)"))) == [{"a": "A"}]


@pytest.mark.parametrize("view", ["count_by(@, &state)", "[?state=='open'].id", "max_by(@, &n).id"])
def test_members_that_a_view_does_not_read_are_not_decoded(view: str) -> None:
    text = json.dumps([{**row(n), "body": [{"w": 1}] * 500} for n in range(200)])
    document = Document.read(text.encode())
    tracemalloc.start()
    look(document, view)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * len(text)  # each body alone takes more than that if it is decoded


def test_a_view_lets_go_of_its_document_at_once() -> None:
    def documents() -> int:
        return sum(type(each) is Document for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = documents()
        look(Document.read(PLAIN.encode()), "[?n > `4`] | [0:2]")
        assert documents() == before
    finally:
        gc.enable()
