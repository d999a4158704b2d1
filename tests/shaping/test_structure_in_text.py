"""Without a rule, structure inside a text is shown and asked as structure, and the text is kept."""

import csv
import gc
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import reduce
from io import StringIO
from time import process_time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.tree import Document, encode
from mcp_abridge.ruleset.selection import Selection
from mcp_abridge.shaping.job import ShapeResult
from mcp_abridge.shaping.pipeline import shape
from mcp_abridge.storage.snapshots import Snapshot, pack, unpack
from mcp_abridge.summary.structure_in_text import read_structure
from msgspec import Raw
from msgspec.structs import replace

from tests.builders import answer, result, texts, tool_result
from tests.faults.scale import scaled
from tests.jobs import job
from tests.summary.logs import BLOCKS, blocks

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
    lines = ["kind: List\nitems:\n"]
    for row in rows:
        first, *others = (f"{name}: {dumped(value)}\n" for name, value in row.items())
        lines.append("  ".join([f"- {first}", *others]))
    return "".join(lines)


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# How servers write rows.
FORMS: dict[str, Callable[[list[Row]], str]] = {
    "words around": lambda rows: f"Rows: {dumped(rows)}\n\nThat is all.",
    "words with brackets behind": lambda rows: (
        f"### Result\n{json.dumps(rows, indent=2)}\n### Code\n```js\n{'a[0]({}); ' * 9}\n```"
    ),
    "tags": lambda rows: f"<result>{dumped(rows)}</result>",
    "BOM": lambda rows: f"\ufeff{dumped(rows)}",
    "prose": lambda rows: f"Found {len(rows)} items:\n{json.dumps(rows, indent=1)}\n",
    "prefix": lambda rows: f"Echo: {json.dumps({'items': rows})}",
    "page": lambda rows: f"Raw content:\nContents of http://x/y:\n{dumped({'items': rows})}",
    "fence": lambda rows: f"Here:\n```json\n{json.dumps(rows)}\n```\n",
    "bare fence": lambda rows: f"```\n{json.dumps(rows)}\n```",
    "NDJSON": lambda rows: "".join(json.dumps(row) + "\n" for row in rows),
    "NDJSON in lines": lambda rows: "\n".join(json.dumps(row, indent=1) for row in rows),
    "JSON with NaN": lambda rows: json.dumps([{**row, "zero": float("nan")} for row in rows]),
    "CSV": of_csv,
    "CSV in a file of Excel": lambda rows: "\ufeff" + of_csv(rows, ";"),
    "CSV below a title": lambda rows: f"Rows of today, all\n\n{of_csv(rows)}",
    "TSV": lambda rows: of_csv(rows, "\t"),
    "Python": repr,
    "YAML": of_yaml,
    "YAML in a fence": lambda rows: f"The list:\n\n```yaml\n{of_yaml(rows)}```",
}
NOTATIONS = ("NDJSON", "JSON with NaN", "CSV", "TSV", "Python", "YAML")


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
    read_from = entries.get("read_from", "JSON").partition(";")[0]
    assert form.startswith(read_from if form.startswith(NOTATIONS) else "")
    assert (read_from != "JSON") == form.startswith(NOTATIONS)
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


@pytest.mark.parametrize("form", ["CSV", "prefix"])
def test_a_text_beside_a_few_words_is_read_as_if_it_stood_alone(form: str) -> None:
    assert RULE is not None
    text = FORMS[form](rows_of(99))
    raw = answer(tool_result("Found some", text))
    for expression in ("text[0:40]", "[9].code", "items[9].code"):
        parts = texts(shape(job(RULE, raw, keep=True, view=expression)).raw)
        assert view(text, expression) in parts


@pytest.mark.parametrize(
    "closing",
    [
        "## Next Steps\n\n- Use the id to see more.",
        "## Next Steps\n\n- To see more: use the id.",
        "# Using this information\n\n- Use the id to see more.",
        "### More\n\n- Use the id to see more.",
    ],
)
def test_sections_are_rows_before_a_closing_one_without_their_fields(closing: str) -> None:
    issues = "".join(
        f"## SHOP-{n}\n\n- **Status**: {'open' if n % 2 else 'closed'}\n- **Events**: {n * 37}\n\n"
        for n in range(90)
    )
    text = f"# Issues\n\n{issues}{closing}\n"
    outcome = first(text)
    [look, _] = texts(outcome.raw)
    assert look.startswith("# Issues\n\n{")
    assert look.split()[-len(closing.split()) :] == closing.split()
    assert value(text, "length(@)") == 90
    assert value(text, "[?Status=='open'] | length(@)") == 45


RECORDS = {
    "lines": "Title: Page {n}\nURL: https://example.org/{n}\nDescription: About {n}, {x}",
    "a text at the end": "Title: Page {n}\nAuthor: Ann\nURL: u/{n}\nText: About {n}\n\n- {x}\n- b",
    "names with signs": "Document ID: {n}\nTitle: Page {n}\n@timestamp: 2026\ntext: {x}",
}


@pytest.mark.parametrize("words", [(), ("Total results: 40, showing 40 from position 0",)])
@pytest.mark.parametrize("form", RECORDS)
def test_records_that_are_a_block_each_are_read_as_rows(form: str, words: tuple[str, ...]) -> None:
    assert RULE is not None
    records = [RECORDS[form].format(n=n, x="x" * 90) for n in range(40)]
    raw = answer(tool_result(*words, *records))

    def ask(expression: str) -> str:
        return texts(shape(job(RULE, raw, keep=True, view=expression)).raw)[0]

    outcome = shape(job(RULE, raw, keep=True))
    assert '"rows":[[' in texts(outcome.raw)[0]
    assert texts(outcome.raw)[0].startswith(words or "{")
    assert notes(outcome)["read_from"].startswith("blocks of fields; ")
    assert ask("rows[7].Title") == "Page 7"
    assert json.loads(ask("length(@)"))["view"] == 40
    assert ask("[39] | values(@)[-1]") in records[39]
    assert ask("text[0:400]").startswith((*words, *records)[0])


@pytest.mark.parametrize(
    "odd", ["", "no field", "Other: 1\nName: 2", "Title: 1\nno field\nURL: 2\nTitle: 3"]
)
def test_blocks_that_are_no_records_stay_blocks(odd: str) -> None:
    assert RULE is not None
    records = [RECORDS["lines"].format(n=n, x="x" * 90) for n in range(40)]
    raw = answer(tool_result(*records[:20], odd, *records[20:]))
    outcome = shape(job(RULE, raw, keep=True))
    assert records[0] in texts(outcome.raw)


@pytest.mark.parametrize("outer", [(), ("data",), ("result", "data")])
@pytest.mark.parametrize("promised", [False, True], ids=["text", "structuredContent"])
@pytest.mark.parametrize("form", ["CSV", "NDJSON", "page"])
def test_a_text_that_is_nearly_all_of_an_object_is_read_in_its_place(
    form: str, promised: bool, outer: tuple[str, ...]
) -> None:
    assert RULE is not None
    rows = rows_of(300)
    text = FORMS[form](rows)
    whole: dict[str, Any] = {"stdout": text, "stderr": "", "exit_code": 0}
    for name in reversed(outer):
        whole = {"ok": True, name: whole}

    def inner(value: Any) -> Any:
        return reduce(dict.__getitem__, outer, value)

    members: dict[str, Any] = {"structuredContent": whole} if promised else {}
    raw = answer(tool_result(json.dumps(whole), **members))
    outcome = shape(job(RULE, raw, keep=True))
    after = json.loads(texts(outcome.raw)[0])
    holder = inner(after)
    assert isinstance(holder["stdout"], str)
    assert (holder["stderr"], holder["exit_code"]) == ("", 0)
    assert outcome.visible_after < 6000
    if form == "page":
        assert holder["stdout"].startswith(text[:35])
    place = ".".join([*outer, "stdout", *["items"] * (form == "page")])
    assert f"view='{place}[" in after["_abridged"]["more"]

    def view_of(expression: str) -> Any:
        [part] = texts(shape(job(RULE, raw, keep=True, view=expression)).raw)
        return json.loads(part)["view"]

    assert view_of(f"{place}[9].[code, name]") == [rows[9]["code"], rows[9]["name"]]
    assert view_of(f"length({place})") == 300
    assert view_of(".".join([*outer, "exit_code"])) == 0
    assert inner(view_of("all"))["stdout"].startswith(text[:300])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("member", ["text", "line", "other line"])
def test_a_log_in_json_has_rows_though_it_has_other_lines(member: str, end: str) -> None:
    rows = [{"level": "warn" if n % 9 == 0 else "info", "n": n, "took": n * 37} for n in range(200)]
    names = ("text", "line", "other line")
    lines = [json.dumps(row | dict.fromkeys(names[: names.index(member)])) for row in rows]
    lines[0:0] = ["listening on 8080"]
    lines[100:100] = ["panic: out of range", "  goroutine 1", ""]
    text = end.join([*lines, '{"level": "inf'])
    assert notes(first(text))["read_from"].startswith(
        "NDJSON and 4 other lines at [0], [100], [202]; view='text[0:"
    )
    assert value(text, "[?level=='warn'] | length(@)") == 23
    quoted = json.dumps(member)
    assert value(text, f"[?{quoted}].{quoted}") == [
        "listening on 8080",
        "panic: out of range\n  goroutine 1",
        '{"level": "inf',
    ]
    assert view(text, "text[0:40]") == text[:40]


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
        "a log with fractions of seconds": "".join(
            f"2026-05-21 08:00:{n // 20:02},{n * 37 % 900 + 99:03} INFO a: ended {n}\n"
            for n in range(900)
        ),
        "JSON after prose, and far more": f"Found:\n{json.dumps(rows_of(30))}\n" + "prose " * 3000,
        "JSON that is cut off": "Found:\n" + json.dumps(rows_of(30))[:-9],
        "NDJSON among many lines": "".join(f"{json.dumps(row)}\nended\n" for row in rows_of(30)),
        "words in a comma": "\n".join(f"{'abc'[n % 3]},word{n}" for n in range(300)),
        "rules of a Makefile": "".join(f"target{n}: a b\n\tcc -c a,{n}\n" for n in range(90)),
        "CSV with a short row": FORMS["CSV"](rows_of(30)) + "1,2\r\n",
        "CSV with a name twice": "a,b,a\n" + "1,2,3\n" * 400,
        "YAML of one level": "\n".join(f"key{n}: some value" for n in range(200)),
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


def test_an_error_and_a_text_in_structured_content_stay_texts() -> None:
    text = FORMS["CSV"](rows_of(60))
    failed = texts(first(text, isError=True).raw)[0]
    assert failed.startswith("id,code,name,note\r\n0,")
    # The text of a member stays a text, though it is written as JSON.
    members = result(first(text, structuredContent={"content": text}).raw)["structuredContent"]
    assert json.loads(members["content"])["columns"][0] == "id"
    window = view(text, "content[4:30]", structuredContent={"content": text})
    assert window == text[4:30]


YAML_OF_PEOPLE = "# keep these\n" + "".join(
    f"- name: n{n}  # keep\n  role: !Ref Role{n}\n  base: &a{n} {{x: {n % 2}}}\n  copy: *a{n}\n"
    for n in range(200)
)


def test_a_text_that_says_more_than_its_structure_is_shown_and_views_read_both() -> None:
    outcome = first(YAML_OF_PEOPLE)
    assert texts(outcome.raw)[0].startswith(
        "# keep these\n- name: n0  # keep\n  role: !Ref Role0\n"
    )
    entries = notes(outcome)
    page, *_ = entries["rows"].split("; ")
    assert page == "200 rows of name, role, base, copy, read from YAML: view='rows[0:20]'"
    assert "read_from" not in entries
    assert value(YAML_OF_PEOPLE, "grep('keep')")["matched_lines"] == 201
    assert value(YAML_OF_PEOPLE, "rows[?name=='n7'].role") == ["Role7"]
    assert value(YAML_OF_PEOPLE, "count_by(rows, &copy.x)") == {"0": 100, "1": 100}
    assert view(YAML_OF_PEOPLE, "lines(2, 2)") == "- name: n0  # keep\n"
    assert view(YAML_OF_PEOPLE, "[0:12]") == "# keep these"
    assert "name" in view(YAML_OF_PEOPLE, "rows[?nmae=='n7']")
    assert "max_by(rows, &base.x)" in view(YAML_OF_PEOPLE, "help")
    template = "Resources:\n" + "".join(f"  B{n}:\n    Type: !Ref T{n}\n" for n in range(200))
    assert notes(first(template))["members"] == "1, read from YAML: view='Resources'"
    assert value(template, "Resources.B7") == {"Type": "T7"}


def test_the_way_to_a_line_that_stands_out_is_the_row_that_its_block_is_read_as() -> None:
    text = blocks(BLOCKS[0])
    outcome = first(text)
    assert notes(outcome)["rows"].startswith("40 rows of Name, ")
    more = notes(outcome)["more"]
    match = re.search(r"view='(rows\[\d+\])' shows line (\d+)", more)
    assert match
    [line] = view(text, f"lines({match[2]}, {match[2]})").splitlines()
    assert line.strip() == "Reason:       CrashLoopBackOff"
    assert line.strip() in value(text, match[1])["Containers"]


@pytest.mark.parametrize(
    "line",
    {
        "a comment": "  - a: 1  # why\n",
        "a tag": "  - a: !Ref b\n",
        "an anchor": "  - a: &x 1\n",
        "a folded text": "  - a: >\n      b\n      c\n",
        "a text in two lines": "  - a: b\n      c\n",
        "a word that JSON spells otherwise": "  - a: True\n",
        "quotes that matter": "  - a: '0644'\n  - a: 0755\n",
    }.values(),
)
def test_yaml_that_json_says_less_than_is_shown_as_text(line: str) -> None:
    text = "items:\n" + "  - a: 1\n" * 500 + line
    assert "chars" in notes(first(text))["text"]


def test_structure_that_fits_says_what_it_was_read_from() -> None:
    deep = "items:\n" + "".join(f"{'':40}- mode: 0644\n" for n in range(60))
    document = json.loads(texts(first(deep).raw)[0])
    assert document == {
        "items": [{"mode": "0644"}] * 60,
        "_abridged": {"read_from": "YAML; view='text[0:1325]' shows it"},
    }


def test_the_first_record_is_no_head() -> None:
    names = "".join(f"{'MAD'[n % 3]}\tsrc/file{n}.py\n" for n in range(500))
    refs = "".join(f"{n:040x}\trefs/heads/b{n}\n" for n in range(500))
    for text in (names, refs):
        assert value(text, "length(rows)") == 500
        assert value(text, 'rows[0].["1", "2"]') == text.partition("\n")[0].split("\t")
    weights = "".join(f"Ann {n}\t{n % 9} kg\n" for n in range(500))
    assert value(f"Bob\t94 kg\n{weights}", "length(rows)") == 501
    assert value("\n".join(f"{n},{n + 1},x" for n in range(300)), "rows[0]") == {
        "1": 0,
        "2": 1,
        "3": "x",
    }


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("Alpha,Beta", "{n},x"),
        ("Alpha,Beta", "x,2026-01-{n:02}"),
        ("Alpha,Beta", "x,https://example.com/{n}"),
        ("Alpha,Beta", "a,this is row {n} of all"),
        ("authorName,Titel", "a{n},b{n}"),
        ("Alpha,Beta", "a{n},b"),
        ("#,coin,24h volume", "{n},a,{n}"),
        ("coin,% change,7d", "a,{n},x{n}"),
    ],
)
def test_a_head_is_unlike_what_is_below_it(head: str, row: str) -> None:
    text = "\n".join([head, *(row.format(n=n) for n in range(10, 99))]) * 1
    assert value(text + "\n" + "\n" * (BUDGET - len(text)), "keys(rows[0])") == head.split(",")


def test_years_above_numbers_are_a_head_and_not_added_to_them() -> None:
    rows = "".join(f"C{n},{n * 7},,{n * 3}\n" for n in range(600))
    assert view(f"country,2019,2020,2021\n{rows}", 'sum([*]."2019")') == '{"view":1257900}'
    spans = "".join(f"n{n},{1990 + n % 9},{2000 + n % 9}\n" for n in range(900))
    assert view(f"n,1989,1999\n{spans}", "length(@)") == '{"view":901}'


def test_questions_of_a_form_are_a_head_of_csv() -> None:
    why, rating = "What went wrong, if anything? Please tell us all of it.", "Rating (1-10)"
    rows: list[Row] = [
        {"Id": f"R_{n}", why: f"It hung,\nand {n} times", rating: n % 10} for n in range(40)
    ]
    assert value(of_csv(rows), f'[7].["{why}", "{rating}"]') == ["It hung,\nand 7 times", 7]


@pytest.mark.parametrize("head", ["station\tday\tat", "#CHROM\tPOS\tID"])
def test_comments_before_a_table_may_be_many(head: str) -> None:
    comments = "".join(f"## key={n},name={n}, some words\n" for n in range(80))
    text = f"{comments}{head}\n" + "".join(f"chr{n % 9}\t{n}\trs{n}\n" for n in range(900))
    name, number, _ = head.split("\t")
    answer = json.loads(view(text, f"""rows[?{number}==`7`]."{name}\""""))
    assert answer["view"] == ["chr7"]


def test_a_first_column_of_csv_without_a_name_is_an_index() -> None:
    rows = "".join(f"{n},Row {n},{n * 3 % 97}.5\n" for n in range(900))
    assert value(f",name,amount\n{rows}", "[7]") == {"1": 7, "name": "Row 7", "amount": 21.5}
    readings = "".join(f",,{n % 7},2026-11-14T00:00:{n % 60:02}Z,{n}.5\n" for n in range(900))
    notes = "#group,false,false,true,false\n#datatype,string,long,dateTime,double\n#default,a,,,\n"
    answer = value(f"{notes},result,table,_time,_value\n{readings}", "max_by(@, &_value)")
    assert answer["table"] == 899 % 7
    assert answer["_value"] == 899.5


def test_blanks_after_the_commas_of_csv_are_no_part_of_its_cells() -> None:
    text = "id, full name\n" + "".join(f'{n}, "n {n}"\n' for n in range(300))
    assert value(text, "rows[7]") == {"id": 7, "full name": "n 7"}


def test_quotes_of_csv_keep_a_number_a_text_and_those_of_tsv_are_its_own() -> None:
    codes = "code,name\n" + "".join(f'"{n}",x\n' for n in range(300))
    assert value(codes, "rows[7]") == {"code": "7", "name": "x"}
    quoted = "id\tword\n" + "".join(f'{n}\t"x" y\n' for n in range(300))
    assert value(quoted, "rows[7]") == {"id": 7, "word": '"x" y'}
    whole = '"id"\t"word"\n' + "".join(f'"{n}"\t"x\ty"\n' for n in range(300))
    assert value(whole, "rows[7]") == {"id": "7", "word": "x\ty"}


def test_several_blocks_are_shown_as_text_and_each_can_be_asked() -> None:
    text = "".join(f"Part:\n```json\n{json.dumps(rows_of(20))}\n```\n" for _ in range(2))
    assert "chars" in notes(first(text))["text"]
    assert value(text, "rows[1][19].id") == 19


class SimpleUser(SimpleNamespace):
    def __init__(self, number: int) -> None:
        super().__init__(id=number, name=f"n{number}")


def of_pods(rows: list[Row]) -> str:
    cells = [["NAME", "READY", "LAST SEEN"], *([f"pod-{r['id']}", "1/1", "5m ago"] for r in rows)]
    return "".join(f"{a:12}{b:8}{c}\n" for a, b, c in cells)


REPEATED: dict[str, Callable[[list[Row]], str]] = {
    "logfmt": lambda rows: "".join(f'id={r["id"]} level=info msg="row of all"\n' for r in rows),
    "logfmt behind a time and a program": lambda rows: "".join(
        f"2026-11-25T23:40:{r['id'] % 60:02}Z host app[1]: id={r['id']} status=20{r['id'] % 3}\n"
        for r in rows
    ),
    "ls": lambda rows: (
        "total 9148\n"
        + "".join(
            f"-rw-r--r-- 1 ann staff {r['id']:>9} Oct {r['id'] % 28 + 1:2} 11:14 {r['id']} b.txt\n"
            for r in rows
        )
    ),
    "kubectl": of_pods,
    "kubectl top": lambda rows: (
        "NAME  CPU(cores)   MEMORY(bytes)\n"
        + "".join(f"{r['id']:<6}{r['id']}m           {r['id']}Mi\n" for r in rows)
    ),
    "ps": lambda rows: (
        "USER         id %CPU STAT START   TIME COMMAND\n"
        + "".join(
            f"{'root':8}{r['id']:7}  {r['id'] % 9}.5 Ss   09:11   0:{r['id'] % 50 + 10} a --b {r}\n"
            for r in rows
        )
    ),
    "dpkg": lambda rows: (
        "Desired=Unknown/Install\n|/ Err?=(none)/Reinst-required\n"
        "||/ Name           id Architecture Description\n+++-============-====-============-=====\n"
        + "".join(
            f"ii  lib{r['id']:<10}{r['id']:>4} amd64        failed error of {r}\n" for r in rows
        )
    ),
    "pip": lambda rows: (
        "Package    id\n---------- --\n" + "".join(f"pkg{r['id']:<8}{r['id']}\n" for r in rows)
    ),
    "Markdown": lambda rows: (
        "Rows:\n\n| id | name |\n|---:|---|\n"
        + "".join(f"| {r['id']} | n, {r['id']} |\n" for r in rows)
    ),
    "psql": lambda rows: (
        " id | name \n----+------\n"
        + "".join(f" {r['id']:2} | x\n" for r in rows)
        + f"({len(rows)} rows)\n"
    ),
    "mysql": lambda rows: (
        "+----+---+\n| id | a |\n+----+---+\n"
        + "".join(f"| {r['id']:2} | x |\n" for r in rows)
        + "+----+---+\n"
    ),
    "pandas": lambda rows: (
        "         name  id  unit price\n"
        + "".join(
            f"{r['id']:<3}{'n, ' + str(r['id']):>10}{r['id']:4}{-r['id'] / 2:12}\n" for r in rows
        )
    ),
    "pandas with two labels": lambda rows: (
        "              price\nteam id            \n"
        + "".join(f"{'' if r['id'] % 3 else 'a b':5}{r['id']:<6}   {r['id']:>5}\n" for r in rows)
        + f"\n[{len(rows)} rows x 1 columns]"
    ),
    "tags": lambda rows: "".join(f"[{'FILE' if r['id'] % 3 else 'DIR'}] {r}\n" for r in rows),
    "grep -c": lambda rows: "".join(f"src/{r['id']}.py:{r['id']}\n" for r in rows),
    "git log": lambda rows: "\n".join(
        f"commit {r['id']:040x}\nAuthor: A <a@b>\nDate:   today\n\n    Row {r['id']}\n"
        for r in rows
    ),
    "blocks": lambda rows: "\n".join(f"id: {r['id']}\nName: n{r['id']}\n" for r in rows),
    "sections": lambda rows: (
        "# All\n\n"
        + "\n".join(f"## n{r['id']}\n- **id**: {r['id']}\n- **State**: open\n" for r in rows)
        + "\nThat is all.\n"
    ),
    "bullets": lambda rows: (
        "- Fields: many\n\n" + "\n---\n".join(f"- id: {r['id']}\n- State: **open**" for r in rows)
    ),
}


@pytest.mark.parametrize("form", REPEATED)
def test_a_repeated_form_is_read_as_rows(form: str) -> None:
    text = REPEATED[form](rows_of(300))
    assert notes(first(text))["read_from"].partition(";")[0]
    assert value(text, "length(rows)") == 300
    row = value(text, "rows[7]")
    assert row.get("id", 7) == 7
    assert all(str(cell) in text for cell in row.values())
    assert view(text, "lines(1, 1)").strip() == text.partition("\n")[0].strip()


def test_a_table_of_pandas_with_rows_left_out_or_cells_beside_its_columns_has_no_rows() -> None:
    lines = ["         name  id", *(f"{n:<3}{'a b' * (n % 9 > 0):>10}{n:4}" for n in range(300))]
    assert value("\n".join(lines), "rows[27]") == {"index": 27, "name": "", "id": 27}
    lines[8] = "7         NaN   7"
    assert value("\n".join(lines), "rows[7]") == {"index": 7, "id": 7}
    assert value("\n".join([lines[3]] * 300), "rows") is None
    sums = "\n".join(f"a{n * 7919 % 4096:03x}  {n:03}.txt" for n in range(300))
    for text in ("a job is done\n" * 300, sums):
        assert value(text, "rows") is None
    for line in ("..       ...  ..", "7       a b  7", "7       a b 77 7", "7       a b    77"):
        lines[8] = line.ljust(len(lines[0]))
        assert value("\n".join(lines), "rows") is None, line


def test_files_of_several_folders_stay_a_text_and_their_rows_have_the_folder() -> None:
    text = "\n".join(
        f"src/{n}:\ntotal 8\n" + f"-rw-r--r-- 1 ann staff {n} Oct  7 11:14 a.txt\n" * (1 + n % 8)
        for n in range(90)
    )
    assert notes(first(text))["rows"].startswith("399 rows of folder, mode, links, owner, group")
    assert value(text, "count_by(rows, &folder)")["src/7"] == 8
    assert value(f"{text}ls: cannot open\n", "rows") is None


def test_sections_with_more_than_fields_stay_a_text_and_their_rows_can_be_asked() -> None:
    parts = [f"### {n}. Row\n**id:** {n}\nmore of {n}\n**State:** open\n" for n in range(200)]
    text = "\n".join(parts)
    assert "rows of heading, id, State" in notes(first(text))["rows"]
    assert value(text, "rows[7]") == {"heading": "7. Row", "id": "7\nmore of 7", "State": "open"}
    assert view(f"{text}\n### Without fields\n", "rows[199].State") == "open"
    assert "rows" not in notes(first("\n".join([*parts[:9], "### Without fields\n", *parts[9:]])))


def test_text_around_the_fields_of_a_section_is_in_no_field() -> None:
    text = "# Runbook\n\n" + "\n".join(
        f"## Service s{n}\n\nAbout {n}.\n\nMore.\n\n- owner: Ann\n- port: {8000 + n}\n\n"
        f"```sh\nrestart {n}\n```\n\n**Notes:**\n\nOne\n\nTwo\n"
        for n in range(60)
    )
    assert value(text, "rows[?heading=='Service s7'].port") == [8007]
    assert value(text, "rows[?port > 8050] | length(@)") == 9
    about = "About 7.\n\nMore.\n\n```sh\nrestart 7\n```"
    assert value(text, "rows[7].[text, Notes]") == [about, "One\n\nTwo"]


def test_lines_with_a_place_or_a_speaker_stay_a_text_and_can_be_asked() -> None:
    hits = "".join(f"./a/b{n % 7}.py:{n}:{n % 5}: E501 line {n} is long\n" for n in range(1, 200))
    assert "rows of path, line, column, text, read from hits" in notes(first(hits))["rows"]
    assert value(hits, "count_by(rows, &path)")["./a/b3.py"] == 29
    chat = "".join(
        f"{n % 28 + 1}/06/2026, 09:{n % 60:02} - {['Ann', 'Bo'][n % 2]}: It is {n},\nI think\n"
        for n in range(200)
    )
    assert "rows[?author=='Bo'].[text, time]" in notes(first(chat))["rows"]
    assert view(chat, "rows[3].text") == "It is 3,\nI think"
    log = "".join(f"[2026-11-24 10:00:{n % 60:02}] app.ERROR: {n} is bad\n" for n in range(200))
    assert "read from a log" in notes(first(log))["rows"]  # and no chat with app.ERROR
    joint = "".join(f"{'web-1 db-1  '[n % 2 * 6 :][:6]} | line {n} of it\n" for n in range(300))
    assert value(joint, "count_by(rows, &source)") == {"web-1": 150, "db-1": 150}


def test_a_calendar_stays_a_text_and_its_events_can_be_asked() -> None:
    alarm = "BEGIN:VALARM\r\nTRIGGER:-PT15M\r\nEND:VALARM\r\n"
    events = "".join(
        f"BEGIN:VEVENT\r\nUID:{n}@x\r\n"
        f"DTSTART;TZID=Europe/Oslo:202611{n * 5 % 28 + 1:02}T09{n % 60:02}{n % 7:02}\r\n"
        f'SUMMARY:Meeting {n} of\r\n  all\r\nATTENDEE;CN="A:B":a\r\nATTENDEE:b\r\n'
        f"{alarm}END:VEVENT\r\n"
        for n in range(120)
    )
    text = f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{events}END:VCALENDAR\r\n"
    assert notes(first(text))["rows"].startswith(
        "120 rows of UID, DTSTART, SUMMARY, ATTENDEE, read"
    )
    assert "sort_by(rows, &DTSTART)[-3:]" in notes(first(text))["rows"]
    assert value(text, "rows[3].[SUMMARY, ATTENDEE]") == ["Meeting 3 of all", "a\nb"]


def test_a_table_drawn_with_lines_is_rows_with_what_is_around_it() -> None:
    lines = "".join(f"│ {n:>5} │ Place {n % 7:<4} │ {n / 4:>7} │\n" for n in range(200))
    head = "│   id  │    place   │ minutes │\n│ int64 │  varchar   │ double  │\n"
    edges = ("┌───────┬────────────┬─────────┐\n", "├───────┼────────────┼─────────┤\n")
    end = f"{edges[1]}│ 200 rows            3 columns │\n└───────────────────────────────┘\n"
    text = edges[0] + head + edges[1] + lines + end
    look = texts(first(text).raw)[0]
    assert look.startswith('│ int64 │ varchar │ double │\n{"columns":["id",')
    assert look.endswith("\n│ 200 rows 3 columns │\n")
    assert value(text, "max_by(@, &minutes)") == {"id": 199, "place": "Place 3", "minutes": 49.75}
    cut = text.replace(
        lines[-60:], "│     · │     ·      │    ·    │\n│     · │     ·      │    ·    │\n"
    )
    assert texts(first(cut).raw)[0].startswith(edges[0])  # whose rows are not all there


def test_of_several_tables_of_markdown_each_row_has_the_heading_of_its_own() -> None:
    lines = ["".join(f"| {n} | {a}{n % 3} |\n" for n in range(150)) for a in "ab"]
    rule = "| --- | --- |\n"
    text = f"## Costs\n| id | owner |\n{rule}{lines[0]}\n## Staff\n| id | team |\n{rule}{lines[1]}"
    assert notes(first(text))["rows"].startswith("300 rows of heading, id, owner, read from")
    assert value(text, "count_by(rows, &heading)") == {"Costs": 150, "Staff": 150}
    assert value(text, "rows[?team=='b1'] | [0]") == {"heading": "Staff", "id": 1, "team": "b1"}


def test_texts_that_are_json_each_come_with_a_view_that_reads_them() -> None:
    rows = [json.dumps({"name": f"job {n}", "state": "ab"[n % 2]}) for n in range(300)]
    more = notes(first(json.dumps(rows)))["more"]
    assert "view='[*].from_json(@)' reads the JSON in each" in more
    assert "view='[*].from_json(@) | count_by(@, &state)' counts" in more
    assert value(json.dumps(rows), "[*].from_json(@) | count_by(@, &state)") == {"a": 150, "b": 150}
    assert "from_json" not in notes(first(json.dumps(["{no json}"] * 900)))["more"]


def test_the_cells_of_a_table_of_markdown_are_read_without_its_escapes() -> None:
    lines = "".join(f"| {n} | on\\_hold \\| {'ab'[n % 2]} |\n" for n in range(200))
    text = f"| id | state |\n| --- | --- |\n{lines}"
    assert value(text, "count_by(@, &state)") == {"on_hold | a": 100, "on_hold | b": 100}
    psql = " id |  path\n----+--------\n" + "".join(f" {n} | C:\\_x \n" for n in range(200))
    assert value(psql, "[3].[path]") == ["C:\\_x"]


def test_a_bar_in_a_cell_of_psql_or_mysql_is_part_of_it() -> None:
    lines = [f"{n:4} | {'it | was' if n % 9 == 7 else 'é'}" for n in range(200)]
    psql = "\n".join(["  id | note", "-----+------", *lines])
    mysql = "\n".join(["+-----+----------+", "| id  | note     |", "+-----+----------+"])
    mysql += "".join(f"\n|{line:16}|" for line in lines) + "\n+-----+----------+\n"
    for text in (psql, mysql):
        assert value(text, "rows[7]") == {"id": 7, "note": "it | was"}
        assert value(text, "length(rows)") == 200


def test_a_bibliography_is_rows() -> None:
    text = "\n".join(
        f"@article{{key{n},\n\ttitle = {{Drivers of {{S}}ea ice {n}}},\n"
        f'\tjournal = "Polar Research",\n\tyear = {1990 + n % 30},\n}}\n'
        for n in range(120)
    )
    assert notes(first(text))["read_from"].startswith("BibTeX")
    assert value(text, "min_by(@, &year).[title]") == ["Drivers of {S}ea ice 0"]
    assert value(text, "length(@)") == 120


def test_one_of_many_columns_may_stand_beside_its_name() -> None:
    head = "COMMAND   PID   USER   FD   TYPE  DEVICE NODE NAME\n"
    text = head + "".join(
        f"nginx   {n + 1000:5}  {'ilse'[: 3 + n % 2]:>5} {n % 300:4}u  IPv4 {n * 77 + 10000:7}"
        f"  TCP a:{n}->b:443 (OPEN)\n"
        for n in range(300)
    )
    assert value(text, "[7].[FD, NAME]") == ["7u", "a:7->b:443 (OPEN)"]
    assert value(text, "count_by(@, &USER)") == {"ils": 150, "ilse": 150}


def test_lines_whose_words_do_not_stand_below_those_of_the_first_are_no_rows() -> None:
    lines = [f"{'of it' * (n % 7)} {n} row: all {'is well ' * (n % 5)}here" for n in range(400)]
    for head in ("What was found in all of it", "NAME  AGE  SIZE  STATE  TYPE"):
        assert "read_from" not in notes(first("\n".join([head, *lines])))


@pytest.mark.parametrize(
    ("form", "cell", "other"),
    [
        ("ps", "root         70", "DOM user     70"),
        ("ps", "root         70", "● root       70"),
        ("pip", "pkg70      70", "豆腐的名字    7 "),
    ],
)
def test_a_table_with_a_cell_that_moves_the_others_has_no_rows(
    form: str, cell: str, other: str
) -> None:
    text = REPEATED[form](rows_of(300))
    assert text.count(cell) == 1
    assert value(text, "length(rows)") == 300
    assert "there is no 'rows'" in view(text.replace(cell, other), "length(rows)")


def test_a_line_is_no_head_because_the_one_below_it_is_unlike_all_others() -> None:
    lines = [f"2026-11-01 10:00:{n} INFO worker {n} took {n} ms" for n in range(10, 60)]
    lines[5] = "Traceback (most recent call last):"
    structure = read_structure(Document("\n".join(lines)), Fuel())
    assert structure is not None
    assert (structure.frame.form, structure.frame.loses) == ("a log", True)


LOGS = {
    "Python": "2026-11-02 10:{:02}:{:02},123 - {source} - {level} - {text}",
    "Spring": "2026-11-02 10:{:02}:{:02}.123  {level} 1 --- [main] {source} : {text}",
    "Log4j": "10:{:02}:{:02}.123 [main] {level} {source} - {text}",
    "in brackets": "[2026-11-02T10:{:02}:{:02}Z] [{level}] [{source}] {text}",
    "glog of Rust": "2026-11-02T10:{:02}:{:02}Z {level} {source}: {text}",
}


@pytest.mark.parametrize("form", LOGS)
def test_a_log_stays_a_text_and_its_lines_can_be_counted(form: str) -> None:
    lines = [
        LOGS[form].format(
            *(n // 60, n % 60),
            source=f"app.{('db', 'web', 'db')[n % 3]}",
            level=("INFO", "WARN", "INFO", "ERROR")[n * 7 % 4],
            text=f"request {n} took {n * 37 % 90} ms" + "\n  at x" * (n % 50 == 7),
        )
        for n in range(600)
    ]
    text = "\n".join(lines)
    note = notes(first(text))["rows"]
    assert note.startswith("rows of time, level, source, text, read from a log: ")
    assert "count_by(rows, &" in note
    assert value(text, "count_by(rows, &level)") == {"INFO": 300, "ERROR": 150, "WARN": 150}
    assert value(text, "count_by(rows, &source)") == {"app.db": 400, "app.web": 200}
    assert value(text, "rows[7].[text]") == ["request 7 took 79 ms\n  at x"]


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-02 10:00:{n:02} {text}",
        "[Mon Nov  2 10:00:{n:02} 2026] {text}",
        "[   {n:02}.504123] {text}",
    ],
)
def test_a_log_without_levels_has_times_and_texts(line: str) -> None:
    lines = [line.format(n=n, text=f"status installed lib{n}:amd64") for n in range(90)]
    assert "rows of time, text, read from a log" in notes(first("\n".join(lines)))["rows"]
    row = value("\n".join(lines), "rows[?contains(text, 'lib42:')] | [0]")
    assert list(row) == ["time", "text"]
    assert row["text"] == "status installed lib42:amd64"
    assert str(row["time"]) in lines[42]


def test_lines_of_a_log_that_begin_with_their_level_can_be_counted() -> None:
    text = "".join(f"[{'INFO' if n % 3 else 'ERROR'}] Ran {n}\n" for n in range(300)) + "  at x"
    assert value(text, "count_by(rows, &level)") == {"INFO": 200, "ERROR": 100}
    assert view(text, "rows[-1].text") == "Ran 299\n  at x"


def test_metrics_stay_a_text_and_their_samples_can_be_asked() -> None:
    text = "# HELP hits All requests.\n# TYPE hits counter\n" + "".join(
        f'hits{{code="{200 + n % 2}",path="/a\\"{n}"}} {n} 1793000000\n' for n in range(200)
    )
    assert notes(first(text))["rows"].startswith("200 rows of metric, code, path, value, timestamp")
    assert value(text, "sum_by(rows, &code, &value)") == {"200": 9900, "201": 10000}
    assert view(text, "rows[7].path") == '/a"7'
    assert value(f"{text}no sample, but words\n", "rows") is None


def test_lines_that_only_begin_as_those_with_a_tag_or_a_number_have_no_rows() -> None:
    for line, other in (
        ("[FILE] a{}.py", "Total: 3"),
        ("src/{}.py:7", "src/other.py"),
        ("db.example.org:{}", "db.example.org:7"),
        ("registry.example.org/app:{}", "registry.example.org/app:7"),
    ):
        text = "\n".join([*(line.format(n) for n in range(300)), other])
        assert value(text, "rows") is None, line


def test_a_log_of_a_system_has_its_programs() -> None:
    text = "".join(
        f"Nov  2 10:{n // 60:02}:{n % 60:02} host1 {('sshd', 'cron')[n % 3 % 2]}[{n}]: done {n}\n"
        for n in range(600)
    )
    assert value(text, "count_by(rows, &program)") == {"sshd": 400, "cron": 200}


def test_each_line_of_a_log_with_a_time_is_a_row_of_it() -> None:
    lines = [f"2026-11-02 10:00:{n % 60:02} INFO web: done {n}\n  at x\n" for n in range(90)]
    lines[30] = "[2026-11-02T10:00:30] started once more\n"
    text = "".join(lines)
    assert value(text, "count_by(rows, &level)") == {"INFO": 89, "null": 1}
    assert value(text, "rows[30]") == {"time": "2026-11-02T10:00:30", "text": "started once more"}
    lines = [f"Nov  2 10:00:{n % 60:02} h1 sshd[{n}]: done {n}\n" for n in range(90)]
    lines[30] = "Nov  2 10:00:30 h1 last message repeated 3 times\n    or more\n"
    assert value("".join(lines), "count_by(rows, &host)") == {"h1": 90}
    assert view("".join(lines), "rows[30].text") == "last message repeated 3 times\n    or more"


def test_hits_in_files_without_a_folder_or_an_ending_are_hits_of_their_own() -> None:
    lines = [f"{'Makefile' if n % 3 else 'a/b.py'}:{n}:x = {n}" for n in range(200)]
    lines[1] = "a/b.py:1:x = 1"
    text = "\n".join(lines)
    assert value(text, "count_by(rows, &path)") == {"Makefile": 132, "a/b.py": 68}
    text = text.replace("Makefile:20:", "make: error:")
    assert value(text, "length(rows)") == 68  # the others may belong to those above


def test_a_log_of_commits_with_more_than_rows_hold_is_shown_as_text() -> None:
    text = REPEATED["git log"](rows_of(99)).replace("    Row", "    Row\n\n    of all:")
    outcome = first(text)
    assert notes(outcome)["rows"].startswith("99 rows of commit, author, date, message, read from")
    assert view(text, "rows[3].message") == "Row\n\nof all: 3"


def test_the_rows_of_a_text_that_is_shown_can_be_filtered_counted_ranked_and_added_up() -> None:
    cases = [(f"test {n}", n * 37 % 101 / 8, n % 9 == 4) for n in range(300)]
    inner = "".join(
        f'<testcase name="{name}" time="{time}">{"<skipped/>" * skipped}</testcase>\n'
        for name, time, skipped in cases
    )
    text = f'<testsuite name="all">{inner}</testsuite>'
    outcome = first(text)
    assert len(texts(outcome.raw)[-1]) < BUDGET
    page, *offers = notes(outcome)["rows"].split("; ")
    assert page == "300 rows of suite, name, time, result, read from JUnit: view='rows[0:20]'"
    offered = [re.fullmatch(r"""view=(["'])(.*)\1 ([a-z ]+)""", each) for each in offers]
    views = {each[3]: each[2] for each in offered if each}
    assert [*views] == ["filters", "counts", "finds the greatest", "adds up"]
    filtered, counts, most, total = (value(text, each) for each in views.values())
    assert "result=='skipped'" in views["filters"]
    assert [name for name, *_ in filtered] == [name for name, _, skipped in cases if skipped]
    assert counts == {"passed": 267, "skipped": 33}
    assert (most["name"], most["time"]) == max(cases, key=lambda case: case[1])[:2]
    assert total == sum(time for _, time, _ in cases)


AT = "[{day}/Nov/2026:06:25:24 +0000]"
COMMON = f'198.51.100.{{client}} - {{user}} {AT} "{{request}}" {{status}} {{size}}'
COMBINED = f'{COMMON} "-" "Mozilla/5.0 (X11; Linux) (KHTML, like \\"Gecko\\")"'
ACCESS_LOGS = {
    "common": COMMON,
    "combined": COMBINED,
    "host": f'www.example.com:443 {COMBINED} "10.0.0.1" {{took}}',
    "names": f'{COMBINED} rt={{took}} uct="-" urt="0.10"',
    "lists": f"{COMBINED} 412 {{took}} [shop-80] 10.0.0.1:80, 10.0.0.2:80 0.001, {{took}} 502, 200",
}


def requests_of(form: str) -> tuple[list[Row], list[str]]:
    """Return requests, and the lines in which a server logs them."""
    words = ["GET /a/{n}?b=1 HTTP/1.1", "POST /b HTTP/2.0", "\\x16\\x03", "-"]
    rows = [
        {
            "client": n * 37 % 19,
            "user": ("-", "ann", "-", "jane doe")[n % 4],
            "day": (n // 9 + 24) % 28 + 1,
            "request": words[{3: 2, 17: 3}.get(n % 50, n % 4 == 1)].format(n=n),
            "status": 502 if n * 37 % 101 % 9 == 3 else 200,
            "size": n * 31 if n % 7 else "-",
            "took": f"{n * 37 % 101 / 100:.2f}",
        }
        for n in range(300)
    ]
    return rows, [ACCESS_LOGS[form].format(**row) for row in rows]


@pytest.mark.parametrize("form", ACCESS_LOGS)
def test_requests_of_an_access_log_can_be_asked_and_its_text_is_shown(form: str) -> None:
    requests, lines = requests_of(form)
    text = "\n".join(lines)
    rule = Selection((), 3 * BUDGET, print)(None, None).otherwise
    assert rule is not None
    outcome = shape(job(rule, answer(tool_result(text)), keep=True))
    assert texts(outcome.raw)[0].startswith(lines[0])
    page, *offers = notes(outcome)["rows"].split("; ")
    host = "host, " * (form == "host")
    assert page.startswith(f"300 rows of {host}remote_addr, time_local, method, path, status, ")
    assert page.endswith("read from an access log: view='rows[0:20]'")
    offered = [re.fullmatch(r"""view=(["'])(.*)\1 ([a-z ]+)""", each) for each in offers]
    views = {each[3]: each[2] for each in offered if each}
    assert [*views] == ["filters", "counts", "finds the greatest", "adds up"]
    filtered, counts, most, total = (value(text, each) for each in views.values())
    assert views["filters"].startswith("rows[?status==`502`].")
    statuses = Counter(str(row["status"]) for row in requests)
    assert len(filtered) == statuses["502"] > 9
    assert counts == statuses
    greatest = views["finds the greatest"].partition("&")[2].rstrip(")")
    assert most[greatest] == (299 * 31 if greatest == "body_bytes_sent" else 1.0)
    assert total == sum(row["size"] for row in requests if row["size"] != "-")
    assert value(text, "count_by(rows, &remote_addr)") == Counter(
        f"198.51.100.{row['client']}" for row in requests
    )
    part = text[: scaled(5_000, len(text))]
    windows = (f"text[{start}:{start + 500}]" for start in range(0, len(part), 500))
    assert "".join(view(text, each) for each in windows) == part
    names = "method, path, protocol, request, remote_user, body_bytes_sent"
    for row, cells in zip(requests, value(text, f"rows[0:60].[{names}]"), strict=False):
        *parts, request, user, size = cells
        assert " ".join(filter(None, parts)) + (request or "") == row["request"]
        assert (user or "-", "-" if size is None else size) == (row["user"], row["size"])
    extra = {"host": "extra_2", "names": "rt", "lists": "extra_2"}.get(form)
    if extra:
        assert value(text, f"max_by(rows, &{extra}).{extra}") == 1.0
    if form == "lists":
        assert value(text, "rows[1].[extra_4, extra_6]") == ["10.0.0.1:80, 10.0.0.2:80", "502, 200"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("form", ACCESS_LOGS)
def test_other_lines_of_an_access_log_are_rows_of_one_text(form: str, end: str) -> None:
    requests, lines = requests_of(form)
    cut = [lines[0][-60:], *lines[:99], "nginx: [emerg] bind() failed", "", *lines[99:]]
    text = end.join([*cut, lines[7].rpartition(" ")[0] + ' "Mozil'])
    document = Document(text)
    read_structure(document, Fuel())
    frame = document.closers[0].sources[0][2]
    assert frame.form == "an access log and 3 other lines at [0], [100], [302]"
    assert value(text, "length(rows)") == 303
    assert value(text, "rows[?text].text") == [cut[0], cut[100], text.rpartition("\n")[2]]
    failed = sum(row["status"] == 502 for row in requests)
    assert value(text, "rows[?status==`502`] | length(@)") == failed
    assert value(text, "rows[?status] | length(@)") == 300


def test_times_of_an_access_log_are_not_taken_for_its_order() -> None:
    _, lines = requests_of("names")
    text = "\n".join(lines)
    assert "sort_by" not in notes(first(text))["rows"]
    assert "shows the last" not in view(text, "rows[0:299].[time_local, path, status]")
    more = json.loads(view(text, "sort_by(rows, &time_local)[-1:].time_local"))["more"]
    assert more == "time_local: compared as texts, not as times"


@pytest.mark.parametrize(
    "line",
    [
        "access.log:{line}",
        "{n}:{line}",
        "  12 {line}",
        "{line} {more}",
        "localhost nginx {line}",
    ],
)
def test_lines_that_only_have_a_request_in_them_are_no_access_log(line: str) -> None:
    _, lines = requests_of("combined")
    text = "\n".join(
        line.format(line=each, n=n, more="x " * (n % 5)) for n, each in enumerate(lines)
    )
    assert "rows" not in notes(first(text))


@pytest.mark.parametrize(
    "piece",
    ['a - - [1/Nov/ "', 'a - - [1/Nov/1] "GET / HTTP/1" 200 1 "', "a - b ", "a, ", '"\\', '"a" '],
)
def test_lines_that_nearly_are_an_access_log_are_gone_through_once(piece: str) -> None:
    _, lines = requests_of("lists")
    for text in (piece * 40_000, f"{piece}\n" * 40_000):
        start = process_time()
        read_structure(Document("\n".join([*lines[1:3] * 9, lines[1] + text])), Fuel())
        assert process_time() - start < 2


def test_a_log_with_two_dates_of_each_commit_has_its_messages() -> None:
    text = REPEATED["git log"](rows_of(99)).replace(
        "Date:   today", "AuthorDate: today\nCommit: C\nCommitDate: later"
    )
    row = value(text, "rows[3]")
    assert row.pop("commit").endswith("3")
    assert row == {
        "author": "A <a@b>",
        **{"AuthorDate": "today", "Commit": "C", "CommitDate": "later", "message": "Row 3"},
    }


def test_objects_that_python_prints_can_be_asked_and_their_text_is_shown() -> None:
    text = repr([SimpleUser(n) for n in range(99)])
    assert notes(first(text))["rows"].startswith("99 rows of id, name, read from Python")
    assert value(text, "rows[7]") == {"id": 7, "name": "n7"}


def test_a_heading_and_a_message_of_several_lines_belong_to_blocks_of_fields() -> None:
    text = "Commit history:\n" + "".join(
        f"Commit: {n:040x}\nAuthor: A\nDate: today\nMessage: Row {n}\n\nOf all.\nBy: me\n\n"
        for n in range(40)
    )
    assert notes(first(text))["rows"].startswith("40 rows of Commit, Author, Date, Message, read")
    assert view(text, "rows[3].Message") == "Row 3\n\nOf all.\nBy: me"


def test_the_text_of_a_mail_is_no_part_of_its_subject() -> None:
    text = "".join(
        f"From: a{n}@example.org\nDate: {n}\nSubject: Mail {n}\n\nHello,\n\nall is well.\n\n"
        for n in range(200)
    )
    answer = json.loads(view(text, "rows[?Subject=='Mail 7'].[From, text]"))
    assert answer == {"view": [["a7@example.org", "Hello,\n\nall is well."]]}


@pytest.mark.parametrize("line", ["From b{}@example.org Mon Nov 30", "=== Mail {} ===", "Mail {}:"])
def test_a_line_above_each_block_of_fields_belongs_to_the_block_below_it(line: str) -> None:
    text = "".join(
        f"{line.format(n)}\nFrom: a{n}@example.org\nDate: {n}\nSubject: Mail {n}\n\nHello\n\n"
        for n in range(200)
    )
    row = {"From": "a7@example.org", "Date": 7, "Subject": "Mail 7", "text": "Hello"}
    assert value(text, "rows[7]") == {**row, "heading": line.format(7)}
    assert value(text, f"rows[?contains(text, '{line[:5]}')]") == []


def test_what_stands_indented_in_a_block_of_fields_keeps_its_indentation() -> None:
    text = "".join(
        f"Name: pod-{n}\nContainers:\n  main:\n    State:  Running\nNode: node-{n}\n\n"
        for n in range(99)
    )
    assert view(text, "rows[7].Containers").strip() == "main:\n  State:  Running"


def test_documents_of_yaml_are_rows_with_their_members() -> None:
    text = "---\n".join(
        f"kind: {('Pod', 'Service')[n % 2]}\nmetadata:\n  name: n{n}\nspec:\n  replicas: {n}\n"
        for n in range(99)
    )
    assert notes(first(text))["read_from"].startswith("YAML;")
    view = "rows[?kind=='Service' && spec.replicas > `95`].metadata.name"
    assert value(text, view) == value(f"{text}---\n", view) == ["n97"]


def test_a_comment_before_yaml_stays_before_its_rows() -> None:
    text = "# The events were:\n" + "".join(f"- name: n{n}\n  kind: Pod\n" for n in range(99))
    outcome = first(text)
    assert texts(outcome.raw)[0].startswith('# The events were:\n{"same":{"kind":"Pod"}')
    assert notes(outcome)["read_from"].startswith("YAML;")


def test_cases_of_junit_can_be_asked_for() -> None:
    cases = "".join(f'<testcase classname="a" name="t{n}" time="0.1"/>\n' for n in range(90))
    failed = '<testcase name="bad &gt; good"><failure message="no">Trace\n</failure></testcase>'
    text = f'<?xml version="1.0"?>\n<testsuite name="all">\n{cases}{failed}</testsuite>'
    assert value(text, "rows[?result=='failure'].[suite, name, text]") == [
        ["all", "bad > good", "Trace"]
    ]
    assert "chars" in notes(first(text))["text"]


def _feed(entry: str = "") -> str:
    entries = "".join(
        f'<entry n="{n}"><title>Title {n} &amp; more</title><author>A{n}</author></entry>'
        for n in range(90)
    )
    return f'<?xml version="1.0"?>\n<feed xmlns="http://a.example/">{entries}{entry}</feed>\n'


def test_elements_of_xml_that_repeat_are_rows() -> None:
    text = _feed("<entry n='90'><author>A90</author><author>B90</author><x:y a='1'>z</x:y></entry>")
    assert notes(first(text))["read_from"].startswith("XML;")
    assert value(text, "feed.entry[7].[n, title, author]") == ["7", "Title 7 & more", ["A7"]]
    assert value(text, "feed.entry[90].['author', \"x:y\"]") == ["author", {"a": "1", "text": "z"}]
    assert value(text, "feed.entry[90].author") == ["A90", "B90"]
    assert view(text, "text[0:21]") == text[:21]
    typed = text.replace(
        "<feed", '<!DOCTYPE feed PUBLIC "-//A//B" "https://a.example/feed.dtd"><feed'
    )
    assert value(typed, "feed.entry[7].author") == ["A7"]


@pytest.mark.parametrize("more", ["<!-- a comment -->", "<entry>text <b>in</b> between</entry>"])
def test_of_xml_that_says_more_than_its_members_the_text_is_shown(more: str) -> None:
    text = _feed(more)
    assert texts(first(text).raw)[0].startswith(text[:100])
    assert view(text, "feed.entry[7].title") == "Title 7 & more"


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE feed [<!ENTITY b "bbbb">]>' + _feed()[22:],
        '<!DOCTYPE feed SYSTEM "a.dtd">' + _feed("<entry>&b;</entry>")[22:],
        "<!DOCTYPE html>" + _feed()[22:],
        _feed("<entry n='1'><n>2</n></entry>"),
        "<a>" * 300 + _feed() + "</a>" * 300,
        _feed()[:-9],
        "<p>one <b>two</b> three</p>" * 90,
    ],
)
def test_xml_that_is_no_object_stays_a_text(text: str) -> None:
    document = Document(text)
    read_structure(document, Fuel())
    assert document.cell[0] == text


WORDS = st.text("ab1,;|:= \t\"'#-\n", max_size=6) | st.sampled_from(
    (
        "id",
        "name",
        "0644",
        "1.50",
        "NAME  ID",
        "a: b\n",
        "a,b\n",
        "- x: 1\n",
        "k=v k2=w\n",
        "| a | b |\n",
    )
)


def cells_of(value: Any) -> Iterator[str]:
    """Yield the names and the scalars of a value, numbers as they are spelled."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from cells_of(member)
    elif isinstance(value, list):
        for element in value:
            yield from cells_of(element)
    elif value is not None:
        yield value if isinstance(value, str) else json.dumps(value)


@given(st.lists(WORDS, min_size=1, max_size=12), st.integers(1, 6))
def test_structure_that_loses_nothing_has_each_cell_of_the_text(
    words: list[str], times: int
) -> None:
    text = "".join(words) * times
    document = Document(text)
    read_structure(document, Fuel())
    frames = [frame for closing in document.closers for _, _, frame in closing.sources]
    if not frames or frames[0].loses:
        return
    structure = json.loads(encode(document.cell[0]), parse_float=str, parse_int=str)
    cells = [*cells_of(structure)]
    plain = text.replace('""', '"').replace("''", "'")
    numbered = {str(number) for number in range(1, 30)}  # columns without a head
    assert all(cell in plain for cell in cells if cell not in numbered)
    every = "".join([*cells, frames[0].before, frames[0].after])
    assert Counter(re.findall(r"\w", every)) >= Counter(re.findall(r"\w", text))


@pytest.mark.parametrize("piece", ['<testsuite a="', '<testcase name="a">', "<testcase ><failure "])
def test_tags_of_junit_without_an_end_are_gone_through_once(piece: str) -> None:
    text = "<testsuite >" + piece * 40_000
    start = process_time()
    read_structure(Document(text), Fuel())
    assert process_time() - start < 2


@pytest.mark.parametrize("form", ["CSV", "words around", "bare fence"])
@pytest.mark.parametrize("first", [None, "[0:2]"])
def test_a_view_reads_the_structure_that_the_first_answer_found(
    form: str, first: str | None
) -> None:
    rows = [{"id": n, "name": f"name {n}"} for n in range(200)]
    raw = answer(tool_result(FORMS[form](rows)))
    assert RULE is not None
    whole = shape(job(RULE, raw, keep=True, view=first)).snapshot
    assert whole is not None
    assert whole.structure is not None
    # Another structure beside the text shows which of the two a view reads.
    other = replace(whole, structure=replace(whole.structure, value=Raw(b'[{"id":7}]')))
    views = [answered(snapshot, "[0].id") for snapshot in (whole, other)]
    assert views == [{"view": 0}, {"view": 7}]


def test_without_the_kept_structure_a_view_reads_the_text_again() -> None:
    raw = answer(tool_result(FORMS["CSV"]([{"id": n, "name": "x" * 20} for n in range(200)])))
    assert RULE is not None
    whole = shape(job(RULE, raw, keep=True)).snapshot
    assert whole is not None
    stored = unpack(pack(whole, ""))
    assert stored is not None
    assert stored.structure is None
    assert answered(stored, "sum([*].id)") == answered(whole, "sum([*].id)") == {"view": 19900}


def test_a_view_of_a_text_leaves_nothing_in_memory_until_garbage_is_collected() -> None:
    raw = answer(tool_result(FORMS["CSV"]([{"id": n, "name": "x" * 20} for n in range(200)])))
    assert RULE is not None
    gc.collect()
    gc.disable()
    try:
        others = documents()  # what earlier tests of this process still hold
        whole = shape(job(RULE, raw, keep=True)).snapshot
        assert whole is not None
        answered(whole, "sum([*].id)")
        assert [each for each in documents() if not any(each is other for other in others)] == []
    finally:
        gc.enable()


def documents() -> list[Document]:
    return [each for each in gc.get_objects() if type(each) is Document]


def answered(snapshot: Snapshot, expression: str) -> Any:
    assert RULE is not None
    later = job(RULE, answer({}), snapshot=snapshot, view=expression)
    return json.loads(texts(shape(later).raw)[0])


def test_rows_in_a_text_that_is_nearly_all_of_an_object_stand_beside_it() -> None:
    levels = ("INFO", "INFO", "WARN")
    lines = [
        f"2026-11-12T06:{n // 60:02}:{n % 60:02}Z {levels[n % 3]} [db] job {n} took {n} ms"
        for n in range(900)
    ]
    log = "\n".join(lines)
    text = dumped({"stdout": log, "exit_code": 0})
    note = notes(first(text))
    assert note["rows"].startswith("rows of time, level, source, text, read from a log: view='rows")
    assert note["stdout"].startswith("first ")
    assert value(text, "count_by(rows, &level)") == {"INFO": 600, "WARN": 300}
    assert value(text, "[exit_code, rows[4].text]") == [0, "job 4 took 4 ms"]
    assert value(text, "keys(@)") == ["stdout", "exit_code"]
    assert view(text, "stdout[0:10]").startswith(log[:10])
    assert "rows[?level==" in view(text, "help")
    own = dumped({"stdout": log, "rows": 900})
    assert "rows" not in notes(first(own))
    assert value(own, "rows") == 900
