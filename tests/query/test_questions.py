import json
from typing import Any

import pytest
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.tree import Document, encode, plain
from mcp_abridge.errors import Refusal
from mcp_abridge.query.view import look
from mcp_abridge.summary.structure_in_text import read_structure

LOG = "".join(
    f"12:00:{n % 60:02} step {n} {'FAILED: no room' if n in (70, 199) else 'ok'}\n"
    for n in range(250)
)
LINES = LOG.splitlines(keepends=True)
ISSUES = {
    "items": [
        {"id": 1, "state": "open", "title": "Crash on start", "n": 1.5, "by": {"login": "ann"}},
        {"id": 2, "state": "closed", "title": "Typo", "n": 2, "by": {"login": "bob"}},
        {"id": 31, "state": "open", "title": None, "n": 0.25},
    ],
    "total": 3,
}


def ask(view: str, value: object = ISSUES) -> Any:
    document = Document(value) if isinstance(value, str) else Document.read(encode(value))
    return plain(look(document, view))


@pytest.mark.parametrize(
    ("view", "part"),
    [
        ("head(3)", LINES[:3]),
        ("tail(2)", LINES[-2:]),
        ("lines(100, 102)", LINES[99:102]),
        ("head(3) | tail(1)", LINES[2:3]),
        ("tail(300)", LINES),
        ("lines(-3, -2)", LINES[-3:-1]),
        ("lines(248, -1)", LINES[247:]),
    ],
)
def test_lines_of_a_text_are_exact(view: str, part: list[str]) -> None:
    assert ask(view, LOG) == "".join(part)


def test_only_a_newline_ends_a_line() -> None:
    text = "a\x0cb\r\nc\u2028d\n"

    assert ask("lines(2, 2)", text) == "c\u2028d\n"
    assert ask("outline()", text)["text"] == "2 lines, 9 characters"


def test_lines_of_an_array_are_its_elements() -> None:
    assert ask("items | tail(1) | [].id") == [31]
    with pytest.raises(
        Refusal,
        match=r"lines\(\) applies to a text or an array, not to object of 2.*items \| lines",
    ):
        ask("lines(1, 2)")


def test_an_outline_has_the_headings_of_a_text() -> None:
    text = "intro\n# First\nwords\n<h2 id='x'>Second <b>part</b></h2>\n### Third\n"

    assert ask("outline()", text)["headings"] == [
        {"line": 2, "text": "# First"},
        {"line": 4, "text": "Second part"},
        {"line": 5, "text": "### Third"},
    ]


def test_an_outline_has_the_members_of_structure_to_two_levels() -> None:
    outline = ask("outline()")

    assert outline["total"] == "number"
    assert outline["items"].startswith("array of 3, ")
    assert outline["items[].title"] == "text of 14 or null"
    assert outline["items[].by"] == "object of 1, 15 bytes; in 2 of 3"
    assert all(path == "@" or "login" not in path for path in outline)


def test_an_outline_of_many_rows_opens_a_few() -> None:
    document = Document.read(b'{"items": [%b]}' % b", ".join([b'{"id": 7, "n": 1.50}'] * 50_000))

    assert plain(look(document, "outline()", fuel=Fuel(50_000))) == {
        "@": "object of 1, 900011 bytes",
        "items": "array of 50000, 900001 bytes; read are the first 200",
        "items[].id": "number",
        "items[].n": "number",
    }


@pytest.mark.parametrize(
    ("view", "value"),
    [
        ("count_by(items, &by.login)", {"ann": 1, "bob": 1, "null": 1}),
        ("sum_by(items, &state, &n)", {"open": 1.75, "closed": 2}),
        ("max_by(items, &n).id", 2),
        ("min_by([{n: total}, {n: null}, {n: `7`}], &n)", {"n": 3}),
        ("group_by(items, &state).closed[].id", [2]),
        ("entries({a: total, b: items[0].n})[1:]", [{"key": "b", "value": 1.5}]),
        ("unique([items[0].n, total, items[0].n])", [1.5, 3]),
        ("items[?matches(title, '(?i)crash|typo')].id", [1, 2]),
    ],
)
def test_elements_are_counted_and_grouped(view: str, value: object) -> None:
    assert ask(view) == value


@pytest.mark.parametrize(
    ("view", "value"),
    [
        ("length(@)", len(LOG)),
        ("length(grep('FAILED').lines)", 2),
        ("max_by(grep('FAILED').lines, &line).line", 200),
        ("length(split(lines(1, 3), 'ok'))", 4),
        ("contains(@, 'FAILED') && matches(text, 'no room')", True),
        ("{last: tail(1), first: text[0:8]}", {"last": LINES[-1], "first": "12:00:00"}),
    ],
)
def test_a_text_is_asked_as_a_text_inside_of_other_functions(view: str, value: object) -> None:
    assert ask(view, LOG) == value


def test_it_is_said_that_a_count_is_of_the_hits_that_are_listed() -> None:
    remarks: list[str] = []

    listed = look(Document("fine\n" * 1001), "length(grep('fine').lines)", remarks=remarks)

    assert (listed, remarks) == (1000, ["grep() lists the first 1000 hits alone"])


def test_groups_and_sums_by_a_member_that_no_element_has_are_refused() -> None:
    by_stat = ("count_by(items, &stat)", "sum_by(items, &stat, &n)", "group_by(items, &stat)")
    for view in (*by_stat, "map(&stat, items)", "sum_by(items, &state, &nn)"):
        name = "nn" if "nn" in view else "stat"
        with pytest.raises(Refusal, match=f"no element has '{name}'"):
            look(Document.read(encode(ISSUES)), view)


def test_words_that_a_terminal_shows_in_a_row_are_found_in_a_row() -> None:
    text = "".join(f"\x1b[32mok\x1b[0m test {n}\n" for n in range(300)) + "word " * 300 + "end"

    hits = ask("grep('^ok test 29$')", text)["lines"]
    assert [(hit["line"], hit["text"]) for hit in hits] == [(30, "ok test 29")]
    [hit] = ask("grep('word end')", text)["lines"]
    assert ask(hit["more"], text).endswith("word end")
    assert ask(r"grep('\x1b\[32m')", text)["matches"] == 300


def test_a_line_that_ends_as_on_windows_has_its_end_behind_its_last_word() -> None:
    for text in (LOG.replace("\n", "\r\n"), {"log": LOG.replace("\n", "\r\n")}):
        hits = ask("grep('no room$')", text)
        assert next(iter(hits.values())) == (2 if isinstance(text, str) else 1)
    assert ask("grep('[$]$')", "5 $\r\n6 $\n7")["matches"] == 2


def test_words_are_found_across_other_blanks_and_in_either_form_of_their_letters() -> None:
    text = "The quick brown\nfox is\u00a0here.\nCafe\u0301, caf\u00e9\n"

    for words in ("brown fox", "fox is here", "Caf\u00e9", "cafe\u0301$"):
        for value in (text, {"a": [text]}):
            hits = ask(f"grep('{words}')", value)
            assert not next(iter(hits.values()))
            assert next(iter(hits["loosely"].values())) == 1, (words, value)
    assert "loosely" not in ask("grep('brown cat')", text)


def test_a_word_that_is_also_beside_rows_in_other_case_is_found_in_them() -> None:
    for rows, count in ((1, 1), (6, 6)):
        value = json.dumps([{"id": n, "state": "done"} for n in range(rows)])
        document = Document(f"{value}\n\nDone.")
        assert read_structure(document, Fuel()) is not None
        hits: Any = look(document, "grep('done')")
        assert hits["matched_values"] == count
        assert "text" not in hits.get("ignoring_case", {})


def test_a_line_that_is_too_far_above_is_no_part_of_what_a_hit_stands_under() -> None:
    text = f"{'x' * 900}:\n" + "    a\n" * 3300 + "    needle\n"
    [hit] = ask("grep('needle')", text)["lines"]
    assert "under" not in hit


def test_what_is_neither_text_nor_number_is_found_by_its_name() -> None:
    rows = [{"id": n, "done": n == 7, "by": None if n == 9 else "x"} for n in range(200)]
    for value in (rows, {"items": rows}, [*rows, {"by": [1]}]):
        for word, path in {"true": "[7].done", "null": "[9].by"}.items():
            hits = ask(f"grep('{word}')", value)
            assert (hits["matched_values"], hits["at"][0]["path"][-len(path) :]) == (1, path)
    assert ask("grep('e')", rows)["matched_values"] == 0


@pytest.mark.parametrize(
    ("pattern", "way"),
    [
        ('"state": "open"', "items[?state=='open']"),
        ('"n":1.5,', "items[?n==`1.5`]"),
        ("state=closed", "items[?state=='closed']"),
        ('"total": "x"', "grep('x')"),
    ],
)
def test_a_member_that_is_searched_as_json_writes_it_comes_with_its_condition(
    pattern: str, way: str
) -> None:
    with pytest.raises(Refusal, match="names and values are searched each for itself") as error:
        ask(f"grep('{pattern}')")
    assert str(error.value).endswith(f": write {way}")
    assert ask(way)
    assert ask("grep('\"other\": 1')")["matched_values"] == 0


def test_help_has_examples_for_the_answer() -> None:
    text = ask("help")

    assert len(text) < 1500
    assert text.endswith("outline() or items[0:20]")
    for example in text.rpartition(": ")[2].split(" or "):
        assert ask(example)
    assert ask("help", LOG).endswith("tail(40) or grep('(?i)error')")
    assert ask("help", {"help": 1}) == 1
