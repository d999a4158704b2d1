"""A view never reads as "none" because a value is of another kind than the view takes it for."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.names import nameable, spelled
from mcp_abridge.document.tree import encode
from mcp_abridge.errors import Refusal
from mcp_abridge.query.numerals import kind
from mcp_abridge.query.patterns import Expression

from tests.looks.documents import ROWS as ROWS_OF_MANY_KINDS
from tests.looks.oracle import search
from tests.query.views import asking

ROWS = {
    "rows": [
        {
            "id": n,
            "code": str(n),
            "ok": n % 2 == 0,
            "price": n + 0.5 if n != 3 else "N/A",
            "note": None if n == 2 else f"x{n}" if n != 5 else 5,
            "tags": ["a", "b"],
            "labels": [{"name": "bug"}] if n else [],
            "user": {"login": "ann"},
            "cells": [n, "a"],
            "spare": ["a"] if n % 2 else None,
            "names": ["anna", "bob"],
            "end": "" if n % 2 else "now",
        }
        for n in range(12)
    ],
    "people": [
        {"name": "bob", "homes": [{"in": "NY", "current": True}, {"in": "LA", "current": False}]},
        {"name": "ann", "homes": [{"in": "NY", "current": True}]},
    ],
    "packages": {"left-pad": {"v": 1}, "is": {"v": 2}},
}

ask, refusal = asking(ROWS)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("rows[?id=='3']", "id is a number in all 12 elements: write `3`"),
        ("rows[?code==3]", "code is a text in all 12 elements: write '3'"),
        ("rows[?ok=='true']", "ok is a boolean in all 12 elements: write `true`"),
        ("rows[?id=='007']", "id is a number in all 12 elements: write `7`"),
        ("rows[?contains(labels, 'bug')]", "the elements of labels are objects; members: name"),
        ("rows[?'3'==id]", "id is a number in all 12 elements: write `3`"),
        ("rows[?@.id=='x']", "@.id is a number in all 12 elements"),
        ("rows[?id==code]", "id is a number and code a text in all 12 elements"),
        ("rows[?tags=='a']", "tags is an array in all 12 elements: write contains(tags, 'a')"),
        ("rows[?labels[].name=='bug']", "labels[].name is an array in all 12 elements: "
         "write contains(labels[].name, 'bug')"),
        ("length(rows[?tags=='a'])", "tags is an array in all 12 elements: "
         "write contains(tags, 'a')"),
        ("rows[?spare=='a']", "spare is an array in 6 of 12 elements: write contains(spare, 'a')"),
        ("rows[?labels=='bug']", "labels is an array in all 12 elements: write labels[?…]; "
         "members of its elements: name"),
        ("rows[?user=='ann']", "user is an object in all 12 elements; members: login"),
        ("rows[?contains(tags, 1)]", "the elements of tags are texts: write '1'"),
        ("rows[?contains(id, '3')]", "id is a number in all 12 elements, and contains() takes "
         "texts or arrays"),
        ("rows[?contains('12', id)]", "'12' is a text and id a number in all 12 elements"),
        ("rows[?contains(`[\"1\"]`, id)]", "the elements of `[\"1\"]` are texts, "
         "and id is a number"),
        ("rows[?matches(id, '3')]", "id is a number in all 12 elements, and matches() takes texts"),
    ],
)  # fmt: skip
def test_a_condition_on_another_kind_of_value_is_refused_with_the_right_spelling(
    view: str, message: str
) -> None:
    assert refusal(view) == message


@pytest.mark.parametrize(
    "view",
    [
        "rows[?id==`3`]",
        "rows[?code=='3']",
        "rows[?ok==`true`]",
        "rows[?contains(tags, 'a')]",
        "rows[?contains(labels[].name, 'bug')]",
        "entries(packages)[?value.v==`2`].key",
        "rows[?labels[?name=='bug']]",
        "values(packages)[?v==`2`]",
        "packages.* | [?v==`2`]",
    ],
)
def test_what_a_refusal_advises_to_write_finds_what_was_meant(view: str) -> None:
    rows_found, remarks = ask(view)
    assert rows_found
    assert not remarks


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("packages[?v==`2`]", "packages is an object, and [?…] takes an array: "
         "write values(packages)[?…]; members: \"left-pad\", is"),
        ("packages[*].v", "packages is an object, and [*] takes an array: "
         "write values(packages)[*]; members: \"left-pad\", is"),
        ("rows[*].user.login[?@]", "user.login is a text, and [?…] takes an array"),
        ("rows[*].id[0]", "id is a number, and [0] takes an array; "
         "for all the results together write | [0]"),
        ("packages[?value.v==`2`].key", "packages is an object, and [?…] takes an array: "
         "write entries(packages)[?…]; members: \"left-pad\", is"),
        ("packages.is[0:1].[key, value]", "packages.is is an object, and [0:1] takes an array: "
         "write entries(packages.is)[0:1]; members: v"),
        ("packages.*[?v==`2`]", "@ is an object, and [?…] takes an array; "
         "for all the results together write | [?…]"),
        ("rows[].user[?login=='ann']", "user is an object, and [?…] takes an array; "
         "for all the results together write | [?…]"),
        ("rows.*", "rows is an array, and .* takes an object: write rows[*]"),
        ("rows[0].id[0]", "rows[0].id is a number, and [0] takes an array"),
        ("rows[0][0]", "rows[0] is an object, and [0] takes an array: write values(rows[0])[0]; "
         "members: id, code, ok, price, note, tags, labels, user, …"),
        ("rows[?@.idd==`3`]", "no element has 'idd'; members: id, code, ok, price, note, tags, "
         "labels, user, cells, spare, names, end; did you mean 'id'?"),
        ("rows[*].labels.nam[?@]", "no element has 'nam' in 'labels'; members: name; "
         "did you mean 'name'?"),
    ],
)  # fmt: skip
def test_brackets_after_what_is_no_array_are_refused_with_what_it_is(
    view: str, message: str
) -> None:
    assert refusal(view) == message


@pytest.mark.parametrize(
    ("view", "value"),
    [
        ("packages[0] || packages.is.v", 2),
        ("rows[?id==`99` || id=='99']", []),
        ("not_null(packages[0], `7`)", 7),
        ("rows[?note=='gone']", []),
        ("rows[?tags==`[]`]", []),
        ("rows[?user==null]", []),
    ],
)
def test_a_kind_that_is_tried_for_or_is_there_is_no_slip(view: str, value: object) -> None:
    assert ask(view)[0] == value


@pytest.mark.parametrize(
    ("view", "as_if"),
    [
        ("people[?name=='bob'].homes[?current]", "people[?name=='bob'] | [*].homes[?current]"),
        ("people[?name=='bob'].homes[?!current].in", "people[0:1].homes[?!current].in"),
        ("people[?name].homes[?in!='NY']", "people[*].homes[?in!='NY']"),
        ("people[?name].homes[?current] | [0]", "people[0].homes[?current]"),
    ],
)  # fmt: skip
def test_a_condition_after_a_condition_is_asked_of_each_inner_element(
    view: str, as_if: str
) -> None:
    assert ask(view) == ask(as_if)
    assert ask(view)[0]


@pytest.mark.parametrize(
    ("view", "as_if"),
    [
        ("rows[?id>2][0]", "rows[3]"),
        ("rows[?id>2][-1].id", "rows[11].id"),
        ("rows[?id==4][0].tags[1]", "rows[4].tags[1]"),
        ("rows[*][0].id", "rows[0].id"),
        ("rows[?id>2].cells[0]", "rows[3:].cells[0]"),
        ("rows[*].cells | [?[0]==`4`][1]", "['a']"),
    ],
)
def test_an_index_after_a_condition_is_the_first_match_if_no_match_is_an_array(
    view: str, as_if: str
) -> None:
    assert ask(view) == ask(as_if)


def test_an_index_after_a_condition_stays_one_of_each_element_in_rules() -> None:
    assert Expression("rows[?id>`2`][0]").search(ROWS) == []


@pytest.mark.parametrize(
    ("view", "value", "remark"),
    [
        ("rows[?price > 10].id", [10, 11],
         "price is no number in 1 of 12 elements, which does not match"),
        ("rows[?price > 99].id", [],
         "price is no number in 1 of 12 elements, which does not match"),
        ("rows[?contains(note, '1')].id", [1, 10, 11],
         "note is a number in 1 of 12 elements, which does not match"),
        ("rows[?starts_with(note, 'x1')].id", [1, 10, 11],
         "note is a number in 1 of 12 elements, which does not match"),
        ("rows[?code > 9].id", [10, 11], "code: texts that are numbers are compared as numbers"),
        ("rows[?id > '9'].id", [10, 11], "'9' is compared as a number"),
        ("rows[?code > 'x'].id", [], "code: compared as texts, since 'x' is no number"),
        ("rows[?code > '9'].id", [10, 11], "code: texts that are numbers are compared as numbers"),
        ("rows[?note > '9'].id", [0, 1, 3, 4, 6, 7, 8, 9, 10, 11],
         "note: compared as texts, since not all are numbers"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_compared_do_not_match_and_are_counted(
    view: str, value: object, remark: str
) -> None:
    rows_found, remarks = ask(view)
    assert rows_found == value
    assert remark in remarks


@pytest.mark.parametrize(
    ("view", "value", "remark"),
    [
        ("rows[?user.login=='Ann'].id", [], "user.login: 'ann' differs from 'Ann' by case alone"),
        ("rows[?contains(user.login, 'NN')].id", [], "user.login: 'NN' is there in another case"),
        ("length(rows[?contains(tags, 'B')])", 0, "tags: 'B' is there in another case"),
        ("rows[?starts_with(user.login, 'A')]", [], "user.login: 'A' is there in another case"),
        ("rows[?note=='null']", [], "note is null in 1 of 12 elements: write `null`"),
        ("rows[?note=='']", [], "note is null in 1 of 12 elements: write `null`"),
        ("rows[1:4].labels[?name=='Bug']", [],
         "name: 'bug' differs from 'Bug' by case alone"),
        ("rows[50].id", None, "there is no [50] in rows: the array has 12 elements"),
        ("rows[-13]", None, "there is no [-13] in rows: the array has 12 elements"),
        ("rows[*].tags[2]", [], "there is no [2] in tags: the array has at most 2 elements"),
        ("rows[?id>`90`][0].id", None, "there is no [0]: the array has 0 elements"),
        ("rows[?contains(names, 'ann')].id", [],
         "contains() looks for a whole element of names; for a part of one write"
         " names[?contains(@, 'ann')]"),
        ("rows[?end==null].id", [], "end is an empty text in 6 of 12 elements: write ''"),
    ],
)  # fmt: skip
def test_nothing_comes_with_what_is_there_instead(view: str, value: object, remark: str) -> None:
    assert ask(view) == (value, [remark])


@pytest.mark.parametrize(
    ("there", "condition", "spelling"),
    [
        ("Cafe\u0301 12", "name=='Caf\xe9 12'", r'"Cafe\u0301 12"'),
        ("10\xa0kg", "name=='10 kg'", r'"10\u00a0kg"'),
        ("\ufb01le", "name=='file'", r'"\ufb01le"'),
        ("Cafe\u0301 12", "contains(name, 'Caf\xe9')", r'"Cafe\u0301"'),
        ("10\u202fkg net", "starts_with(name, '10 kg')", r'"10\u202fkg"'),
        (["a", "Cafe\u0301"], "contains(name, 'Caf\xe9')", r'"Cafe\u0301"'),
    ],
)
def test_a_text_in_other_letters_comes_with_its_spelling(
    there: object, condition: str, spelling: str
) -> None:
    rows = {"rows": [{"name": "\xc9mile"}, {"name": there}]}
    value, [remark] = ask(f"rows[?{condition}]", rows)
    assert value == []
    assert remark.endswith(
        f"is there with other forms of its letters or blanks: write `{spelling}`"
    )
    literal = re.search("'.*'", condition)
    assert literal is not None
    assert ask(f"rows[?{condition.replace(literal[0], f'`{spelling}`')}].name", rows)[0] == [there]


def test_a_text_with_accents_that_were_not_written_comes_with_its_spelling() -> None:
    rows = [{"name": "Ana Garc\xeda", "in": ["K\xf6ln"]}, {"name": "Stra\xdfe", "in": []}]
    here = r'is there with other accents: write `"Ana Garc\u00eda"`'
    assert ask("[?name=='ana garcia']", rows) == ([], [f"name: 'ana garcia' {here}"])
    assert ask("[?contains(name, 'Garcia')]", rows) == ([], [f"name: 'Garcia' {here}"])
    assert "accents" not in str(ask("[?name=='Ana Garcio']", rows)[1])
    assert ask("length([?contains(in, 'Koln')])", rows) == (
        0,
        ["in: 'Koln' is there with other accents: write `\"K\\u00f6ln\"`"],
    )
    many = [{"name": f"Ana Garc\xeda {n}"} for n in range(200)]
    [remark] = ask("[?name=='ana garcia 7']", many)[1]
    assert remark.endswith(r'other accents: write `"Ana Garc\u00eda 7"`')


@pytest.mark.parametrize(
    ("condition", "count", "remark"),
    [
        ("plan!='Pro'", 200, "plan: 'pro' differs from 'Pro' by case alone"),
        ("plan=='Pro' || plan=='free'", 100, "plan: 'pro' differs from 'Pro' by case alone"),
        ("!contains(plan, 'PR')", 200, "plan: 'PR' is there in another case"),
        ("!starts_with(plan, 'Fr') && id < `9`", 9, "plan: 'Fr' is there in another case"),
        ("!contains(tags, 'A')", 200, "tags: 'A' is there in another case"),
        ("matches(plan, 'PR')", 0, "plan: 'PR' is there in another case: write '(?i)PR'"),
        ("!matches(plan, '^PR')", 200, "plan: '^PR' is there in another case: write '(?i)^PR'"),
        ("state!='canceled'", 200,
         "state: 'canceled' has no match here; did you mean 'cancelled'?"),
        ("state in ('paid', 'canceled')", 100,
         "state: 'canceled' has no match here; did you mean 'cancelled'?"),
        ("state in ('Paid', 'cancelled')", 100,
         "state: 'Paid' has no match here; did you mean 'paid'?"),
        ("plan!='pro'", 100, None),
        ("!contains(plan, 're')", 100, None),
        ("matches(plan, 're')", 100, None),
        ("state in ('paid', 'unknown')", 100, None),
        ("plan=='gold' || plan=='pro'", 100, "plan: 'gold' has no match here, only 'pro', 'free'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("small", [True, False])  # one by one, and many at once
def test_a_part_of_a_condition_that_matches_nothing_comes_with_another_spelling(
    condition: str, count: int, remark: str | None, small: bool
) -> None:
    rows = [
        {"id": n, "plan": ("pro", "free")[n % 2], "state": ("paid", "cancelled")[n % 2]}
        | {"tags": ["a", "b"]}
        for n in range(200)
    ]
    parts = [rows[:50], rows[50:100], rows[100:150], rows[150:]] if small else [rows]
    view = f"[*].rows[?{condition}][] | length(@)"
    assert ask(view, [{"rows": part} for part in parts]) == (count, [remark] if remark else [])


@pytest.mark.parametrize(
    ("condition", "count", "remark"),
    [
        ("dept=='Sales'", 100, "dept: 'sales' differs from 'Sales' by case alone"),
        ("dept=='Sales' || dept=='sales'", 200, None),
        ("contains(dept, 'sal')", 100, "dept: 'sal' is there in another case, too"),
        ("boss != `null`", 200, "boss is an empty text in 100 of 300 elements: write ''"),
        ("boss != `null` && boss != ''", 100, None),
        ("boss != '' && boss != `null`", 100, None),
        ("tags != `null`", 300, "tags is an empty array in 150 of 300 elements: write `[]`"),
        ("tags != `null` && tags != `[]`", 150, None),
        ("boss == `null`", 100, "boss is an empty text in 100 of 300 elements: write ''"),
        ("boss == `null` || boss == ''", 200, None),
        ("matches(dept, 'sal')", 100, "dept: 'sal' is there in another case, too: "
         "write '(?i)sal'"),
        ("day == '2026'", 0,
         "day: '2026' is inside, as in '1/2/2026': write contains(day, '2026')"),
        ("day == '26'", 0, None),
        ("day == '03/02/2026'", 0, "day: '03/02/2026' has no match here; did you mean '3/2/2026'?"),
        ("code == '7'", 0, "code: '7' has no match here; did you mean '0007'?"),
        ("starts_with(day, '2026')", 0,
         "day: '2026' is inside, as in '1/2/2026': write contains(day, '2026')"),
        ("ends_with(day, '/2')", 0,
         "day: '/2' is inside, as in '1/2/2026': write contains(day, '/2')"),
        ("starts_with(day, 'x')", 0, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("small", [True, False])
def test_what_a_condition_leaves_out_in_another_spelling_is_said_beside_its_matches(
    condition: str, count: int, remark: str | None, small: bool
) -> None:
    rows = [
        {"dept": ("Sales", "sales", "HR")[n % 3], "boss": ("", "Bob", None)[n % 3]}
        | {"code": f"{n:04}", "day": f"{n % 9 + 1}/2/2026", "tags": [[], ["a"]][n % 2]}
        for n in range(300)
    ]
    parts = [rows[:50], rows[50:]] if small else [rows]
    view = f"[*].rows[?{condition}][] | length(@)"
    assert ask(view, [{"rows": part} for part in parts]) == (count, [remark] if remark else [])


@pytest.mark.parametrize("count", [12, 300])
def test_a_text_that_is_a_number_is_advised_as_it_is_spelled(count: int) -> None:
    rows = [{"code": f"{n:04}", "ok": str(n > 5).upper()} for n in range(count)]
    assert refusal("[?code==7]", rows).endswith("write '0007'")
    assert refusal("[?ok==true]", rows).endswith("write 'TRUE'")


@pytest.mark.parametrize(
    ("texts", "remark"),
    [
        (("9.000,50", "12.000,00"), "n is a text in all 2 elements, as '9.000,50' is"),
        (("$9.50", "$1,200.00"), "n is a text in all 2 elements, as '$9.50' is"),
        (("2025-12-31", "2026-01-01"), "n is a text in all 2 elements: write '2025'"),
    ],
)
def test_texts_whose_order_is_not_that_of_numbers_come_without_a_text_to_compare(
    texts: tuple[str, ...], remark: str
) -> None:
    assert refusal("[?n > `2025`]", [{"n": each} for each in texts]) == remark


@pytest.mark.parametrize(
    "view", ["rows[?user.login=='ann' || id==`3`]", "rows[-12]", "rows[11]", "rows[?note=='x1']"]
)
def test_what_is_found_needs_no_such_word(view: str) -> None:
    rows_found, remarks = ask(view)
    assert rows_found
    assert not remarks


@pytest.mark.parametrize(
    ("form", "words"), [("v1.{}.0", "versions"), ("{:02}/03/2026", "times"), ("{} kB", "numbers")]
)
def test_texts_that_do_not_stand_in_the_order_of_their_letters_say_so(
    form: str, words: str
) -> None:
    rows = [{"at": form.format(n)} for n in range(1, 15)]
    remark = f"at: compared as texts, not as {words}"
    assert ask(f"[?at > '{form.format(3)}'] | length(@)", rows)[1] == [remark]
    assert ask("max_by(@, &at)", rows)[1] == [remark]


def test_dates_are_compared_as_texts_without_a_word() -> None:
    rows = [{"at": f"2026-01-0{n}"} for n in range(1, 9)]
    assert ask("[?at > '2026-01-07']", rows) == ([{"at": "2026-01-08"}], [])


SCALARS = st.integers(-99, 99) | st.booleans()


@given(st.lists(SCALARS, min_size=1), SCALARS, st.booleans(), st.sampled_from(["==", "!="]))
def test_a_literal_of_another_kind_never_finds_a_bare_nothing(
    values: list[Any], other: Any, texts: bool, sign: str
) -> None:
    """Whatever the rows hold, numbers, booleans or their texts: it is refused, or remarked."""

    def spelled(value: Any) -> str:
        return encode(value).decode()

    rows = [{"v": spelled(value) if texts else value} for value in values]
    literal = f"`{spelled(other)}`" if texts else f"'{spelled(other)}'"
    view = f"[?v {sign} {literal}]"
    if sign == "==":
        assert refusal(view, rows).startswith("v is a ")
    else:
        rows_found, remarks = ask(view, rows)
        assert len(rows_found) == len(rows)
        assert remarks


NUMBERS = st.integers(-999, 999) | st.decimals(-99, 99, places=2).map(float)


@given(st.lists(NUMBERS, min_size=1), NUMBERS, st.sampled_from(["<", "<=", ">", ">="]))
def test_numbers_that_are_held_as_texts_are_compared_as_numbers(
    values: list[float], limit: float, sign: str
) -> None:
    rows = [{"v": value, "t": repr(value)} for value in values]
    expected = ask(f"[?v {sign} `{limit!r}`].v", rows)[0]

    assert ask(f"[?t {sign} '{limit!r}'].v", rows)[0] == expected
    assert ask(f"[?t {sign} `{limit!r}`].v", rows)[0] == expected


def test_a_negation_is_of_the_whole_path_or_comparison_in_views() -> None:
    rows = [{"id": n, "user": {"admin": n == 1, "roles": ["x"][:n]}} for n in range(3)]
    assert ask("[?!user.admin].id", rows) == ([0, 2], [])
    assert ask("[?!user.roles[0] && id < 9].id", rows) == ([0], [])
    assert ask("[?not user.admin].id", rows) == ([0, 2], [])
    assert ask("[?!(user.admin)].id", rows) == ([0, 2], [])
    assert ask("[?!id==1].id", rows) == ([0, 2], [])
    assert ask("[?not id > 1 && id != 0].id", rows) == ([1], [])
    assert ask("!@ | @", rows) == (False, [])


CONDITIONS = (
    *("{n} == {x}", "{n} != {x}", "{n} > {x}", "contains({n}, {x})", "starts_with({n}, {x})"),
    *("{n}[0] == {x}", "{n}[].name == {x}", "{n}.login == {x}", "{n}[?name=={x}]", "{n}.no == {x}"),
)
FILTERS = ("[?{c}]", "length([?{c}])", "[?{c}].{n}", "count_by([?{c}], &{n})", "[?{c}].no")
LITERALS = ("'open'", "'OPEN'", "`3`", "'3'", "`true`", "''", "'red'")


@st.composite
def slips(draw: st.DrawFn) -> tuple[list[Any], str]:
    """Return rows, and a view that may be no view of such rows."""
    rows = [{"id": n, **row} for n, row in enumerate(draw(ROWS_OF_MANY_KINDS))]
    names = {name for row in rows for name in row if nameable(name)}
    name = draw(st.sampled_from(sorted(names)))
    forms = st.sampled_from([*FILTERS, "[*].no", "[*].{n}.no", "[*].{n}[5]", "[999].{n}"])
    condition = draw(st.sampled_from(CONDITIONS)).format(
        n=spelled(name), x=draw(st.sampled_from(LITERALS))
    )
    return rows, draw(forms).format(c=condition, n=spelled(name))


@given(slips())
def test_what_is_said_beside_nothing_is_so_of_the_rows(case: tuple[list[Any], str]) -> None:
    rows, view = case
    try:
        sentences = ask(view, rows)[1]
    except Refusal as error:
        sentences = [str(error).removeprefix("view: ").rpartition(" fails: ")[2]]
    for sentence in sentences:
        for claim, check in CLAIMS.items():
            if match := re.match(claim, sentence):
                assert check(rows, *match.groups()), (sentence, view)


def is_kind(rows: list[Any], what: str, word: str, every: str, some: str, total: str) -> bool:
    kinds = [kind(search(what, row)) for row in rows]
    amounts = [int(each) for each in (every or some, every or total) if each]
    return word in kinds and amounts in ([], [kinds.count(word), len(rows)])


def is_lacking(rows: list[Any], inside: str, members: str) -> bool:
    parts = [row.get(inside) if inside else row for row in rows]
    parts = [each for part in parts for each in (part if isinstance(part, list) else [part])]
    names = {name for part in parts if isinstance(part, dict) for name in part}
    printable = [*filter(str.isprintable, names)]
    listed = re.findall(r'"(?:[^"\\]|\\.)*"|[^, …]+', members.partition("; did")[0])
    if not printable:
        return listed == ["none"]
    marked = {*names, *(f"{name}_of_server" for name in names)}
    return (
        "no" not in names
        and {json.loads(each) if each[0] == '"' else each for each in listed} <= marked
    )


@pytest.mark.parametrize(
    ("view", "remark"),
    [
        ("length([?done])", "done is a text, and any text is true: compare it, as in done=='NO'"),
        ("[?!by.n && id].id", "by.n is a number, and 0 is true, too: write by.n != `0`"),
    ],
)
def test_what_is_true_as_a_condition_and_reads_as_false_is_said(view: str, remark: str) -> None:
    rows = [{"id": 1, "done": "NO", "by": {"n": 0}}, {"id": 2, "done": "YES", "by": {"n": 2}}]
    assert remark in ask(view, rows)[1]
    for each in ("[?id].id", "[?name]", "[?done=='NO']", "[?by]"):
        assert ask(each, [{"id": 1, "name": "a", "done": "NO", "by": {}}])[1] == []


def test_null_is_unequal_to_a_text_that_stands_for_it_which_is_said() -> None:
    rows = [{"note": None}, {"note": ""}, {"note": "x"}]
    remark = "note is null in 1 of 3 elements: write `null`"
    assert ask("length([?note != ''])", rows) == (2, [remark])
    assert ask("length([?note != 'x'])", rows) == (2, [])


def test_members_are_counted_with_a_word_if_an_array_is_meant() -> None:
    rows = [["a", 0.5], ["b", 0.7], ["c", 0.9], ["d", 1]]
    sheet = {"result": [["Code", "Rate"], *rows]}
    assert ask("length(@)", sheet) == (1, ["length() counts one member; result has 5 elements"])
    assert ask("length(result)", sheet) == (5, [])
    of_one = ["length() counts members; result has 5 elements"]
    assert ask("count(*)", sheet | {"total": 9}) == (2, of_one)
    assert ask("result[?[1]==`0.5`] | length(@)", sheet) == (1, [])  # and the head is none
    assert ask("result[?[0]=='b'].[1,2]", sheet)[0] == [[0.7, None]]
    assert refusal("count_by(result, &Rate)", sheet).endswith(
        "the rows by their names: records[*].Rate"
    )
    assert ask("sum(records[*].Rate)", sheet)[0] == 3.1
    many = {"rows": [{"id": n} for n in range(9)]}
    assert refusal("rows[?id==rows[1].id]", many).endswith("that of the whole is $.rows")
    assert refusal("[?contains(@, 'a')]", sheet).startswith(
        "@ is an object, and [?…] takes an array: write result[?…]"
    )


@pytest.mark.parametrize("count", [6, 300])
def test_empty_texts_and_marks_are_before_no_time(count: int) -> None:
    due = ("2026-01-02", "", "2027-01-02", "N/A", None, "2025-06-01")
    rows = [{"due": due[n % 6], "end": "2026-06-01"} for n in range(count)]
    remark = "due is no number or time in some elements, which do not match"
    for view in ("[?due < '2026-12-31']", "[?due < end]"):
        assert ask(f"length({view})", rows) == (count // 3, [remark])
    assert ask("length([?'2026-12-31' > due])", rows)[0] == count // 3
    assert ask("length([?due < '2028'])", rows)[0] == count // 2
    assert ask("length([?due < 'a'])", rows)[0] == count // 6 * 5


@pytest.mark.parametrize("count", [6, 300])
def test_times_of_a_day_are_after_it_which_is_said(count: int) -> None:
    rows = [{"at": f"2026-05-{10 + n % 3}T10:00:00Z"} for n in range(count)]
    way = "at: times of 2026-05-11 itself are after '2026-05-11'; write at[:10] {} to compare days"
    for test, count_there, count_meant in (
        ("<=", count // 3, 2 * count // 3),
        (">", 2 * count // 3, count // 3),
    ):
        test += " '2026-05-11'"
        assert ask(f"length([?at {test}])", rows) == (count_there, [way.format(test)])
        assert ask(f"length([?at[:10] {test}])", rows) == (count_meant, [])
    assert ask("length([?at < '2026-05-11'])", rows) == (count // 3, [])
    assert ask("length([?at > '2026-05-09'])", rows) == (count, [])
    assert ask("length([?at > '2026-05' && at < '2026-06'])", rows) == (count, [])
    [remark] = ask("length([?at <= '2026-05'])", rows)[1]
    assert remark.endswith("write at[:7] <= '2026-05' to compare months")


def test_members_are_counted_with_a_word_if_rows_side_by_side_may_be_meant() -> None:
    hourly = {"hourly": {"time": ["a", "b", "c"], "rain": [0, 1, 2]}}
    rows = "length() counts members; hourly.rows has 3 elements"
    assert ask("length(hourly)", hourly) == (2, [rows])
    assert ask("length(hourly.rows)", hourly) == (3, [])


def test_elements_that_are_null_are_counted_if_they_are_left_out() -> None:
    values = {"n": [1, None, 3, None]}
    remark = "@ is null in {} elements, which are left out"
    assert ask("length(n[?@==null])", values) == (0, [remark.format("all 2")])
    assert ask("n[*]", values) == ([1, 3], [remark.format("2 of 4")])
    assert ask("n[1:]", values) == ([None, 3, None], [])


def test_matches_in_several_arrays_are_not_counted_as_these() -> None:
    groups = [{"rows": [{"id": n, "ok": n % 3 == 0} for n in range(size)]} for size in range(5)]
    counted = "length() counts 5 arrays; write [] after them to count their elements"
    assert ask("groups[].rows[?ok] | length(@)", {"groups": groups}) == (5, [counted])
    assert ask("length(groups[].rows[?ok][])", {"groups": groups}) == (5, [])
    assert ask("groups[].rows[?id==`9`] | length(@)", {"groups": groups}) == (0, [])
    assert ask("length(groups[].rows)", {"groups": [{"rows": [1, 2]}] * 3}) == (3, [])
    alike = {"groups": [{"rows": [{"id": 1}, {"id": 2}]}] * 5}
    assert ask("length(groups[*].rows)", alike) == (5, [counted])
    assert "no element has 'v'" in refusal("length(rows[?v > `1`])", {"rows": [[1, 2], [3, 4]]})


def test_matches_in_a_single_array_are_not_counted_as_it() -> None:
    runs = {"runs": [{"results": [{"level": "error"}] * 3}], "nodes": {"1": {"a": {"b": [1, 2]}}}}
    counted = ["length() counts 1 array; write [] after it to count its elements"]
    assert ask("runs[].results[?level=='error'] | length(@)", runs) == (1, counted)
    assert ask("length(runs[*].results)", runs) == (1, counted)
    assert ask("length(nodes.*.a.b)", runs) == (1, counted)
    assert ask("length(runs[].results[])", runs) == (3, [])


def test_the_characters_of_a_text_are_no_count_of_its_lines() -> None:
    characters = ["length() counts characters, of 3 lines"]
    for view in ("length(@)", "length(text)", "lines(1, -1) | length(@)"):
        assert ask(view, "a\nb\nc\n") == (6, characters)
    assert ask("length(@)", "a line") == (6, [])
    assert ask("[*].length(a)", [{"a": "b\nc"}, {"a": "b"}]) == ([3, 1], [])


def test_rows_that_are_arrays_are_counted_without_a_word() -> None:
    sheet = {"values": [["a", "x"], ["b"], ["a"], ["a", "y", "z"]]}
    assert ask("values[?[0]=='a'] | length(@)", sheet) == (3, [])
    assert ask("length(values[*])", sheet) == (4, [])
    assert ask("rows[*].[id, code] | length(@)") == (12, [])


def is_longest(rows: list[Any], what: str, length: str) -> bool:
    arrays = [search(what, row) for row in rows] if what else [rows]
    return max(len(each) for each in arrays if isinstance(each, list)) == int(length)


CLAIMS: dict[str, Callable[..., bool]] = {
    r"(?:.*; )?([^;]+?) is an? (\w+)(?: in (?:all (\d+)|(\d+) of (\d+)) elements)?"
    r"(?=:|;|, and|, which|$)": is_kind,
    r"no element has 'no'(?: in '(.+?)')?; members: (.*)": is_lacking,
    r"there is no \[\d+\](?: in (.+?))?: the array has (?:at most )?(\d+) element": is_longest,
    r"the elements of (.+) are (\w+)s(?:[,:;]|$)": lambda rows, what, word: (
        {word} == {kind(each) for row in rows for each in search(what, row) or ()}
    ),
    r"(.+): '(.*)' differs from '": lambda rows, what, text: (
        text in [search(what, row) for row in rows]
    ),
    r"(.+): '(.*)' is there in another case": lambda rows, what, text: (
        text.lower() in str([search(what, row) for row in rows]).lower()
    ),
}


@pytest.mark.parametrize("count", [30, 300])  # one by one, and many at once
def test_values_that_are_spelled_alike_in_another_kind_are_said_to_be_there(count: int) -> None:
    kinds = (lambda n: f"x{n}", lambda n: n, lambda n: f"y{n}")
    rows = [{"n": kinds[n % 3](n), "ok": (True, "true", "no")[n % 3]} for n in range(count)]
    third = f"in {count // 3} of {count} elements"
    for view in ("[?n=='7']", "[?n!='7']", "[?'7'==n]"):
        assert ask(view, rows)[1] == [f"n is a number {third}: write `7`"]
    assert ask("[?n=='8']", rows)[1] == []
    assert ask("[?ok=='true']", rows)[1] == [f"ok is a boolean {third}: write `true`"]


@pytest.mark.parametrize(
    ("view", "value"),
    [
        ("rows[?id > `2`][0:2].id", [3, 4]),
        ("sort_by(rows, &id)[::-1][:3].[id]", [[11], [10], [9]]),
        ("rows[?id > `2`][-1:] | length(@)", 1),
        ("rows[*].tags[0:1]", [["a"]] * 12),
        ("rows[0].names[?starts_with(@, 'anna')][0:3]", ["ann"]),
    ],
)
def test_a_slice_after_a_condition_or_a_slice_is_of_what_is_left(view: str, value: object) -> None:
    assert ask(view) == (value, [])
