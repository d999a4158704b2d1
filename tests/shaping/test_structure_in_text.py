"""Without a rule, structure inside a text is shown and asked as structure, and the text is kept."""

import csv
import json
import re
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from mcp_abridge.ruleset.selection import Selection
from mcp_abridge.shaping.job import ShapeResult
from mcp_abridge.shaping.pipeline import shape

from tests.builders import answer, result, texts, tool_result
from tests.jobs import job

BUDGET = 1_500
RULE = Selection((), BUDGET, print)(None, None).otherwise
Row = dict[str, Any]


def of_csv(rows: list[Row], separator: str = ",") -> str:
    file = StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def of_yaml(rows: list[Row]) -> str:
    lines = ["kind: List  # of rows\nitems:\n"]
    for row in rows:
        first, *others = (f"{name}: {dumped(value)}\n" for name, value in row.items())
        lines.append("  ".join([f"- {first}", *others]))
    return "".join(lines)


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# How servers write rows.
FORMS: dict[str, Callable[[list[Row]], str]] = {
    "prose": lambda rows: f"Found {len(rows)} items:\n{json.dumps(rows, indent=1)}\n",
    "prefix": lambda rows: f"Echo: {json.dumps({'items': rows})}",
    "page": lambda rows: f"Raw content:\nContents of http://x/y:\n{dumped({'items': rows})}",
    "fence": lambda rows: f"Here:\n```json\n{json.dumps(rows)}\n```\n",
    "bare fence": lambda rows: f"```\n{json.dumps(rows)}\n```",
    "NDJSON": lambda rows: "".join(json.dumps(row) + "\n" for row in rows),
    "CSV": of_csv,
    "TSV": lambda rows: of_csv(rows, "\t"),
    "Python": repr,
    "YAML": of_yaml,
    "YAML in a fence": lambda rows: f"The list:\n\n```yaml\n{of_yaml(rows)}```",
}


def first(text: str, **members: Any) -> ShapeResult:
    assert RULE is not None
    return shape(job(RULE, answer(tool_result(text, **members)), keep=True))


def view(text: str, expression: str, **members: Any) -> str:
    """Return the text that answers a view."""
    assert RULE is not None
    outcome = shape(job(RULE, answer(tool_result(text, **members)), keep=True, view=expression))
    return texts(outcome.raw)[0]


def value(text: str, expression: str) -> Any:
    return json.loads(view(text, expression))["view"]


def notes(outcome: ShapeResult) -> dict[str, str]:
    """Return the notes, which stand in the document or beside it."""
    *_, text = texts(outcome.raw)
    decoded: dict[str, str] = json.loads(text[text.index("{") :].removesuffix("\n```"))
    return decoded["_abridged"]  # type: ignore[return-value]


def rows_of(count: int) -> list[Row]:
    return [
        {"id": n, "code": f"0{n:03}", "name": f"é, '{n}'", "note": f'a "text" of row {n} ' * 5}
        for n in range(count)
    ]


def test_a_text_that_begins_with_many_empty_lines_is_looked_through_once() -> None:
    # One by one, or two at once, or three: the ways to read thirty of them took minutes.
    text = "\n" * 2000 + "no key\n" * 300
    [begin, _] = texts(first(text).raw)
    assert begin.startswith("\n\n\n")


@pytest.mark.parametrize("form", FORMS)
def test_the_first_answer_shows_rows_and_the_way_to_the_others(form: str) -> None:
    text = FORMS[form](rows_of(60))
    outcome = first(text)
    blocks = texts(outcome.raw)
    assert len("".join(blocks).encode()) <= BUDGET
    assert '"columns":["id","name"' in blocks[0]
    entries = notes(outcome)
    word = form.partition(" in ")[0]
    assert entries.get("read_from", "JSON").partition(";")[0] in (word, "JSON")
    assert ("read_from" in entries) == (word in ("NDJSON", "CSV", "TSV", "Python", "YAML"))
    ways = re.findall(r"""view=(?:'([^']*)'|"([^"]*)")""", "; ".join(entries.values()))
    assert len(ways) >= 2
    assert not any(view(text, "".join(way)).startswith("view: ") for way in ways)
    before = text[: text.index("[{")] if form == "page" else ""
    assert blocks[0].startswith(before.partition("{")[0])


@pytest.mark.parametrize("form", FORMS)
def test_rows_in_a_text_can_be_asked_and_the_text_is_kept(form: str) -> None:
    rows = rows_of(60)
    text = FORMS[form](rows)
    assert value(text, "length(items)") == 60
    assert value(text, "items[7].{id, code, name}") == {
        name: rows[7][name] for name in ("id", "code", "name")
    }
    starts = range(0, len(text), 500)
    assert "".join(view(text, f"text[{start}:{start + 500}]") for start in starts) == text
    assert text.startswith(view(text, "lines(1, 1)")[:200])


def test_numbers_of_csv_keep_their_digits_and_can_be_compared() -> None:
    ids = ["1.50", "-2", "", "12345678901234567890123", "1e3"] * 30
    text = "price,zip code,name\n" + "".join(f"{n},0{at:04},x\n" for at, n in enumerate(ids))
    assert "[[1.50],[-2],[null],[12345678901234567890123],[1e3]]" in view(
        text, "items[0:5].[price]"
    )
    assert value(text, "length(items[?price > 1])") == 90
    assert view(text, 'items[1]."zip code"') == "00001"


LINES = [f"line {n} of a text that is long enough" for n in range(80)]


@pytest.mark.parametrize(
    "text",
    {
        "prose": "\n".join(LINES),
        "prose with commas": "\n".join(f"{line}, and more" for line in LINES),
        "a log": "\n".join(f"[INFO] a: [{n}] ended" for n in range(90)),
        "JSON after prose, and more": f"Found:\n{json.dumps(rows_of(30))}\nThat is all.",
        "JSON that is cut off": "Found:\n" + json.dumps(rows_of(30))[:-9],
        "NDJSON with another line": FORMS["NDJSON"](rows_of(30)) + "ended",
        "CSV without a head": "\n".join(f"{n},{n + 1},{n + 2}" for n in range(300)),
        "CSV with a short row": FORMS["CSV"](rows_of(30)) + "1,2\r\n",
        "CSV with a name twice": "a,b,a\n" + "1,2,3\n" * 400,
        "YAML of one level": "\n".join(f"key{n}: some value" for n in range(200)),
        "two fences": "```json\n[1]\n```\n" + f"```json\n{json.dumps(rows_of(30))}\n```",
        "a repeated key": "a:\n  b: 1\n" + "a:\n  c: 2\n" * 200,
        "a list of Markdown": "\n".join(f"- {line}\n  - below" for line in LINES),
        "a Python literal that goes on": repr(rows_of(30)) + " and more",
        "nothing but brackets": "a:\n  b: " + "[" * 30_000,
    }.values(),
)
def test_a_text_of_doubtful_form_stays_a_text(text: str) -> None:
    outcome = first(text)
    assert outcome.log_line is None
    assert "chars" in notes(outcome)["text"]
    assert view(text, "text[0:50]") == text[:50]


def test_a_text_that_fits_is_unchanged_and_one_that_fits_as_json_is_whole() -> None:
    small = FORMS["Python"](rows_of(4))
    assert first(small).outcome == "untouched"
    spread = json.dumps([[n, n] for n in range(100)], indent=8)
    outcome = first(f"Found:\n{spread}")
    assert texts(outcome.raw) == [
        "Found:\n" + json.dumps(json.loads(spread), separators=(",", ":"))
    ]
    deep = "items:\n" + "".join(f"{'':40}- a: {n}\n" for n in range(60))
    assert json.loads(texts(first(deep).raw)[0]) == {"items": [{"a": n} for n in range(60)]}


def test_an_error_and_a_text_in_structured_content_stay_texts() -> None:
    text = FORMS["CSV"](rows_of(60))
    failed = texts(first(text, isError=True).raw)[0]
    assert failed.startswith("id,code,name,note\r\n0,")
    # The text of a member stays a text, though it is written as JSON.
    members = result(first(text, structuredContent={"content": text}).raw)["structuredContent"]
    assert json.loads(members["content"])["columns"][0] == "id"
    window = view(text, "content[4:30]", structuredContent={"content": text})
    assert window == text[4:30]
