"""Sums are those of the spellings, and orders those of the numbers that are meant."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.tree import Document, encode, plain
from mcp_abridge.errors import Refusal
from mcp_abridge.query.patterns import Expression
from mcp_abridge.query.view import look

ROWS = [{"id": n, "code": str(n), "name": f"n{n}", "price": p, "of": n % 2}
        for n, p in enumerate([9.5, "N/A", 10, None, "8.25", 100])]  # fmt: skip
DECIMALS = st.decimals(-(10**6), 10**6, places=3) | st.integers(-9, 9).map(Decimal)
AS_NUMBERS = "price: texts that are numbers are compared as numbers"


def ask(view: str, value: object = ROWS) -> tuple[Any, list[str]]:
    remarks: list[str] = []
    raw = value if isinstance(value, bytes) else encode(value)
    return plain(look(Document.read(raw), view, "text", None, remarks)), remarks


@given(st.lists(DECIMALS, min_size=1))
def test_sums_of_decimals_are_those_of_decimal_arithmetic(values: list[Decimal]) -> None:
    raw = f"[{','.join(map(str, values))}]".encode()
    assert Decimal(encode(ask("sum(@)", raw)[0]).decode()) == sum(values)
    by_name = ask("sum_by(@, &'all', &@)", raw)[0]
    assert Decimal(encode(by_name["all"]).decode()) == sum(values)
    assert ask("avg(@)", raw)[0] == pytest.approx(float(sum(values) / len(values)))


@pytest.mark.parametrize(
    ("numbers", "sum_"),
    [
        (b"[0.1, 0.2, 0.3]", b"0.6"),
        (b"[1, 2]", b"3"),
        (b"[1.50, 2]", b"3.50"),
        (b"[1e400, -1e400, 7]", b"7"),
        (b"[1e400, 1e-400]", b"1.000000000000000000000000000E+400"),
        (b"[]", b"0"),
    ],
)
def test_a_sum_is_exact_whatever_the_size_of_its_numbers(numbers: bytes, sum_: bytes) -> None:
    assert Decimal(encode(ask("sum(@)", numbers)[0]).decode()) == Decimal(sum_.decode())
    assert encode(Expression("sum(@)").search(plain(Document.read(numbers).cell[0])))


@pytest.mark.parametrize(
    ("view", "value", "remarks"),
    [
        ("sort_by(@, &price)[*].id", [4, 0, 2, 5],
         [AS_NUMBERS, "price is no number in 2 of 6 elements, left out"]),
        ("max_by(@, &price).id", 5,
         [AS_NUMBERS, "price is no number in 1 of 6 elements, left out"]),
        ("min_by(@, &price).id", 4,
         [AS_NUMBERS, "price is no number in 1 of 6 elements, left out"]),
        ("max_by([*].{code: code, x: `9`}, &code).code", "5",
         ["code: texts that are numbers are compared as numbers"]),
        ("sort(['10', '9', '1'])", ["1", "9", "10"],
         ["the value: texts that are numbers are compared as numbers"]),
        ("max(['v9', 'v10'])", "v9", []),
        ("max(['9', '10', 'x'])", "x", ["the value: compared as texts, since not all are numbers"]),
        ("sum([*].price)", 127.75,
         ["the value: texts that are numbers are added as numbers",
          "the value is no number in 1 of 5 elements, left out"]),
        ("sum_by(@, &of, &price)", {"0": 27.75, "1": 100},
         ["price: texts that are numbers are added as numbers",
          "price is no number in 1 of 6 elements, left out"]),
        ("sort_by(@, &name)[0].id", 0, []),
    ],
)  # fmt: skip
def test_numbers_held_as_texts_count_as_numbers_and_what_is_left_out_is_said(
    view: str, value: object, remarks: list[str]
) -> None:
    assert ask(view) == (value, remarks)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("sum([*].name)", "the value: only numbers can be added, and there are texts"),
        ("max(@)", "the value: only numbers and texts can be compared, and there are objects"),
        ("sum_by(@, &of, &name)", "name: only numbers can be added, and there are texts"),
        (
            "sum([*].[id])",
            "the value: only numbers can be added, and there are arrays; write [] "
            "after the first argument if it has arrays of them",
        ),
        ("max_by(@, &@).id", "@: only numbers and texts can be compared, and there are objects"),
        (
            "sort_by(@, &[id])[0]",
            "…: only numbers and texts can be compared, and there are arrays",
        ),
    ],
)
def test_what_can_be_neither_added_nor_compared_is_no_sum_of_zero_and_no_null(
    view: str, message: str
) -> None:
    with pytest.raises(Refusal) as error:
        ask(view)
    assert str(error.value) == f"view: {message}"


TAGS = {"rows": [{"n": n, "tags": ["a", "b"][: n % 3], "of": [{"by": "x"}]} for n in range(6)]}


@pytest.mark.parametrize(
    ("view", "what", "better", "value"),
    [
        ("count_by(rows, &tags)", "tags is an array in all 6 elements",
         "count_by(unnest(rows, &tags), &tags)", {"a": 4, "b": 2}),
        ("count_by(rows, &of[].by)", "of[].by is an array in all 6 elements",
         "count_by(unnest(rows, &of[].by), &of)", {"x": 6}),
        ("sum_by(rows, &tags, &n)", "tags is an array in all 6 elements",
         "sum_by(unnest(rows, &tags), &tags, &n)", {"a": 12, "b": 7}),
    ],
)  # fmt: skip
def test_groups_by_whole_arrays_come_with_the_view_that_groups_by_their_elements(
    view: str, what: str, better: str, value: object
) -> None:
    remark = f"{what}, each a group of its own; by its elements: {better}"
    assert ask(view, TAGS)[1] == [remark]
    assert ask(better, TAGS) == (value, [])


def test_groups_by_values_and_texts_that_are_spelled_like_them_say_so() -> None:
    rows = [{"ok": value} for value in (True, "true", "true", None, 1, {"a": 1})]
    counts, remarks = ask("count_by(@, &ok)", rows)
    assert counts == {"true": 3, "null": 1, "1": 1, '{"a":1}': 1}
    assert remarks == ["ok: true and the text 'true' are one group"]
    assert ask("count_by(@, &ok)", rows[1:])[1] == []


def test_groups_by_several_members_are_meant() -> None:
    assert ask("count_by(rows, &[n, tags[0]])", TAGS)[1] == []


def test_the_order_of_a_rule_is_that_of_jmespath() -> None:
    rows = [{"n": "9"}, {"n": "10"}]
    assert Expression("max_by(@, &n).n").search(rows) == "9"
    assert Expression("sort_by(@, &n)[0].n").search(rows) == "10"


def test_a_sum_of_values_and_their_total_says_so() -> None:
    rows = [{"name": name, "n": n} for name, n in (("a", 0.1), ("b", 2), ("c", 3), ("all", 5.1))]
    assert ask("sum([*].n)", rows) == (10.2, ["the last value is the sum of the others"])
    assert ask("sum([*].n)", rows[:-1]) == (5.1, [])


@pytest.mark.parametrize("missing", ["N/A", "-", "", "null", "\u2014"])
def test_numbers_among_marks_for_a_missing_one_are_compared_as_numbers(missing: str) -> None:
    rows = [{"id": n, "n": each} for n, each in enumerate(("9", missing, "10", None, "2"))]
    converted = "n: texts that are numbers are compared as numbers"
    out = "n is no number in 1 of 5 elements, left out"
    assert ask("max_by(@, &n).id", rows) == (2, [converted, out])
    assert ask("length([?n > '2'])", rows)[0] == 2
    assert ask("max([].n)", [*rows, {"n": "~"}])[0] in ("~", "\u2014")


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Tue, 03 Nov 2026 10:00:00 GMT", "Fri, 06 Nov 2026 10:00:00 GMT"),
        ("Tue Nov 3 10:00:00 2026 +0100", "Fri Nov 6 10:00:00 2026 +0100"),
        ("11/30/2025", "01/02/2026"),
        ("30.11.2025 10:00", "01.02.2026 10:00"),
        ("11:30 AM", "01:15 PM"),
        ("9:15", "10:00"),
        ("Nov 30, 2025", "Jan 2, 2026"),
        ("Oct 31 10:00:00", "Nov  1 10:00:00"),
        ("2026-11-02T10:30:00+02:00", "2026-11-02T09:00:00Z"),
        ("2026-11-02T10:30:00", "2026-11-02 11:00:00"),
        ("20261102T103000", "20261102T093000Z"),
    ],
)
def test_times_that_are_not_in_the_order_of_their_letters_say_so(earlier: str, later: str) -> None:
    rows = [{"at": later}, {"at": earlier}]
    assert ask("sort_by(@, &at)[-1]", rows) == (rows[1], ["at: compared as texts, not as times"])
    for each in ("2026-11-{:02}T10:00:00Z", "March {} of the penguins", "2026-{}"):
        titles = [{"at": each.format(n)} for n in (10, 12)] + [{"at": "Room"}] * 2
        assert ask("sort_by(@, &at)[-1]", titles)[1] == []


def test_levels_and_durations_that_are_compared_as_texts_say_so() -> None:
    rows = [
        {"n": n, "level": ("low", "high", "medium")[n], "age": ("5d3h", "12h9m", "7m2s")[n]}
        for n in range(3)
    ]
    levels = ["level: compared as texts, not as levels"]
    assert ask("max_by(@, &level).level", rows)[1] == levels
    assert ask("length([?level > 'low'])", rows) == (1, levels)
    assert ask("sort_by(@, &age)[-1].age", rows)[1] == ["age: compared as texts, not as numbers"]


@pytest.mark.parametrize("form", ["${}", "{} kB", "{},5", "{}%"])
def test_amounts_that_are_compared_as_texts_say_so(form: str) -> None:
    rows = [{"n": form.format(n)} for n in (9, 10)]
    assert ask("max_by(@, &n)", rows) == (rows[0], ["n: compared as texts, not as numbers"])
    for other in ("n{}", "2026-01-{:02}"):
        assert ask("max_by(@, &n)", [{"n": other.format(n)} for n in (9, 10)])[1] == []


def test_what_stands_behind_a_comma_may_be_decimals() -> None:
    rows = [{"kg": each} for each in ("0,75", "2,250", "1,5", "12,125", "7")]
    out = "is no number in 4 of 5 elements, left out"
    added = ["the value: texts that are numbers are added as numbers", f"the value {out}"]
    assert ask("sum([].kg)", rows) == (7, added)
    assert ask("max_by(@, &kg).kg", rows)[1][-1] == "kg: compared as texts, not as numbers"
    for order in (rows, rows[::-1]):
        assert ask("[?kg > `100`]", order)[0] == []
        assert ask("[?kg > `5`].kg", order)[0] == ["7"]


def test_texts_that_to_number_cannot_read_are_said() -> None:
    rows = [{"n": f"{n * 5000:,}"} for n in range(1, 4)] + [{"n": "9 kB"}, {"n": "10 kB"}]
    assert ask("sum([].to_number(n))", rows) == (
        30_000,
        ['to_number(n) is null for 2 texts that are no numbers, as "9 kB" is'],
    )
    assert ask("max_by([:3], &n).n", rows) == (
        "15,000",
        ["n: texts that are numbers are compared as numbers"],
    )


def test_one_value_of_another_kind_does_not_keep_texts_from_being_ordered() -> None:
    rows = [{"n": "b"}, {"n": {"odd": 1}}, {"n": "a"}]
    assert ask("sort_by(@, &n)[].n", rows) == (
        ["a", "b"],
        ["n is no text in 1 of 3 elements, left out"],
    )


TIES = [{"n": n % 3, "a": {"b c": str(n % 2)}, "tags": ["x"] * (n % 2)} for n in range(9)]


@pytest.mark.parametrize(
    ("view", "remark"),
    [
        ("max_by(@, &n).tags", "2 more elements have this value: [?n==`2`]"),
        ("min_by(@, &length(tags))", "4 more elements have this value: [?length(tags)==`0`]"),
        ("max_by([:8], &n)", "1 more element has this value: [:8][?n==`2`]"),
        ('max_by([:2], &a."b c")', 'a."b c": texts that are numbers are compared as numbers'),
        ("[?n==`1`] | max_by(@, &n)", "2 more elements have this value"),
        ("max_by([?n==`1`], &n)", "2 more elements have this value"),
        (
            "group_by(@, &n).*.max_by(@, &n)",
            "max_by() gives the first of several with this value, in 3 arrays",
        ),
    ],
)
def test_a_greatest_element_that_is_not_the_only_one_says_so(view: str, remark: str) -> None:
    assert ask(view, TIES)[1][0] == remark


@pytest.mark.parametrize("view", ["max_by(@, &n).n", "max_by([].n, &@)", "max_by([0:2], &n)"])
def test_a_greatest_value_is_that_of_all_who_have_it(view: str) -> None:
    assert ask(view, TIES)[1] == []
