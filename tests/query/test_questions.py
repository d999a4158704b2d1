from typing import Any

import pytest
from mcp_abridge.document.tree import Document, encode, plain
from mcp_abridge.errors import Refusal
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.query.view import look

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
    ("view", "lines"),
    [
        ("grep('FAILED')", [(71, "12:00:10 step 70 FAILED: no room"), (200, None)]),
        ("grep('(?i)failed: NO')", [(71, None), (200, None)]),
        ("grep('^12:00:59.*9 ok$')", [(60, None), (120, None), (180, None), (240, None)]),
        ("grep('step 199', 1)", [(199, "".join(LINES[198:201])[:-1])]),
        ("grep('nothing of it')", []),
    ],
)
def test_grep_of_a_text_has_the_lines_and_their_numbers(
    view: str, lines: list[tuple[int, str | None]]
) -> None:
    answer = ask(view, LOG)

    assert answer["hits"] == len(lines)
    assert [each["line"] for each in answer["lines"]] == [number for number, _ in lines]
    for each, (_, text) in zip(answer["lines"], lines, strict=True):
        assert text is None or each["text"] == text
        assert LOG[each["offset"] :].startswith(each["text"])


def test_grep_shows_a_part_of_a_line_that_is_long() -> None:
    line = "x" * 5000 + "needle" + "y" * 5000
    (hit,) = ask("grep needle", f"{line}\n{line[:100]}")["lines"]

    assert len(hit["text"]) <= 300
    assert "needle" in hit["text"]
    assert line[hit["offset"] :].startswith(hit["text"])


def test_every_string_and_number_has_the_path_that_leads_to_it() -> None:
    value = {
        "a": ["x1", {"b c": "x2", "d": [], "e": {}}, [["x3"], 4], None, True],
        "\u00e9": {"f": [[[]], {"g": 5.5}], "h": "x6"},
        "i": "x7",
    }

    answer = ask(r"grep('[x\d]')", value)

    texts = ["x1", "x2", "x3", "4", "5.5", "x6", "x7"]
    assert [each["text"] for each in answer["at"]] == texts
    assert [str(ask(each["path"], value)) for each in answer["at"]] == texts


def test_grep_without_a_hit_shows_those_in_other_case_beside_the_zero() -> None:
    assert ask("grep('crash')", "one\nA Crash\n") == {
        "hits": 0,
        "lines": [],
        "ignoring_case": {"hits": 1, "lines": [{"line": 2, "offset": 4, "text": "A Crash"}]},
    }
    assert ask("grep('nowhere')", LOG) == {"hits": 0, "lines": []}


def test_grep_searches_the_names_in_a_map_and_not_those_in_a_record() -> None:
    packages = {f"left-pad-{number}": {"version": f"1.{number}"} for number in range(61)}
    answer = ask("grep('pad-(7|1)$|version|^1.60$')", {"packages": packages})

    assert [each["path"] for each in answer["at"]] == [
        'packages."left-pad-1"',
        'packages."left-pad-7"',
        'packages."left-pad-60".version',
    ]
    assert ask(answer["at"][1]["path"], {"packages": packages}) == {"version": "1.7"}


@pytest.mark.parametrize("value", ["ok ok\n" * 600 + "ok\n" * 1800, ["ok"] * 3000])
def test_the_hits_beyond_those_that_are_counted_are_told(value: object) -> None:
    answer = ask("grep('k')", value)

    assert answer["hits"] == 2500
    assert answer["more"].startswith("at most 1000 are listed, and 2500 counted")


@pytest.mark.parametrize(
    "pattern", ["b", "^b$", "(?i)B|\u00e9", "b[^x]*", "[^b]b", "^$", "x*", r"\s|c$", r"\Ab", "7"]
)
def test_a_hit_does_not_depend_on_the_texts_beside_it(pattern: str) -> None:
    texts = ["b", "\u00e9\u00e9 b", "", "cb", "d\nb", "xc", "\u00e9 x", "bbb", "x"]
    value = [texts[n * n % 11 % 9] for n in range(2200)]

    answer = ask(f"grep('{pattern}')", value)

    exact = Pattern(f"(?m){pattern}")
    paths = [f"[{n}]" for n, text in enumerate(value) if exact.search(text)]
    assert answer["hits"] == len(paths)
    assert [each["path"] for each in answer["at"]] == paths[:1000]


@pytest.mark.parametrize(
    ("view", "part"),
    [
        ("head(3)", LINES[:3]),
        ("tail(2)", LINES[-2:]),
        ("lines(100, 102)", LINES[99:102]),
        ("head(3) | tail(1)", LINES[2:3]),
        ("tail(300)", LINES),
    ],
)
def test_lines_of_a_text_are_exact(view: str, part: list[str]) -> None:
    assert ask(view, LOG) == "".join(part)


def test_only_a_newline_ends_a_line() -> None:
    text = "a\x0cb\r\nc\u2028d\n"

    assert ask("lines(2, 2)", text) == "c\u2028d\n"
    assert ask("grep('d')", text)["lines"][0]["line"] == 2
    assert ask("outline()", text)["text"] == "2 lines, 9 characters"


def test_lines_of_an_array_are_its_elements() -> None:
    assert ask("items | tail(1) | [].id") == [31]
    with pytest.raises(
        Refusal, match=r"lines\(\) applies to a text or an array, not to object of 2"
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
    assert outline["items[].title"] == "text of 14"
    assert outline["items[].by"] == "object of 1, 15 bytes; in 2 of 3"
    assert all(path == "@" or "login" not in path for path in outline)


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


def test_help_has_examples_in_the_names_of_the_answer() -> None:
    text = ask("help")

    assert len(text) < 1500
    assert text.endswith("items[*].[id, state] or count_by(items, &state)")
    for example in text.rpartition(": ")[2].split(" or "):
        assert ask(example)
    assert ask("help", LOG).endswith("tail(40) or grep('(?i)error')")
    assert ask("help", {"help": 1}) == 1


def test_an_invalid_pattern_is_refused_with_the_reason() -> None:
    with pytest.raises(Refusal, match=r"is not a regular expression RE2 takes: missing \)"):
        ask("grep('(')")
