"""Searches as a model reads them: every match is counted, and text stands around each shown."""

import json
from typing import Any

import pytest
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.tree import Document, encode, plain
from mcp_abridge.errors import AbridgeError, Refusal
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.query.view import look
from mcp_abridge.summary.structure_in_text import read_structure

LOG = "".join(
    f"12:00:{n % 60:02} step {n} {'FAILED: no room' if n in (70, 199) else 'ok'}\n"
    for n in range(250)
)
LINES = LOG.splitlines(keepends=True)
DIFF = "".join(f"+ line {n}{' needle' if n == 388 else ''}\n" for n in range(1, 501))
SERVICES = {
    "services": [
        {
            "id": n,
            "metadata": {"name": f"web-{n}", "labels": {"tier": "front"}},
            "spec": {"containers": [{"env": [{"name": "MODE", "value": "needle" * (n == 3)}]}]},
            "diff": DIFF if n == 5 else "",
        }
        for n in range(30)
    ]
}


def ask(view: str, value: object) -> Any:
    document = Document(value) if isinstance(value, str) else Document.read(encode(value))
    return plain(look(document, view))


def with_remarks(view: str, value: object) -> tuple[Any, list[str]]:
    remarks: list[str] = []
    document = Document(value) if isinstance(value, str) else Document.read(encode(value))
    return plain(look(document, view, "text", None, remarks)), remarks


def ask_of_text(view: str, text: str) -> Any:
    document = Document(text)
    read_structure(document, Fuel())
    return plain(look(document, view))


@pytest.mark.parametrize(
    ("view", "lines"),
    [
        ("grep('FAILED')", [(71, "12:00:10 step 70 FAILED: no room"), (200, None)]),
        ("grep('(?i)failed: NO')", [(71, None), (200, None)]),
        ("grep('^12:00:59.*9 ok$')", [(60, None), (120, None), (180, None), (240, None)]),
        ("grep('step 199', 1)", [(200, "".join(LINES[198:201])[:-1])]),
        ("grep('nothing of it')", []),
    ],
)
def test_grep_of_a_text_has_the_lines_and_their_numbers(
    view: str, lines: list[tuple[int, str | None]]
) -> None:
    answer = ask(view, LOG)

    assert answer["matched_lines"] == len(lines)
    assert [each["line"] for each in answer["lines"]] == [number for number, _ in lines]
    for each, (number, text) in zip(answer["lines"], lines, strict=True):
        assert text is None or each["text"] == text
        assert LINES[number - 1][:-1] in each["text"]


def test_words_and_lines_are_counted_by_their_names() -> None:
    answer = ask("grep('a')", "a banana\nnone\nan a\n")

    assert answer["matches"] == 6
    assert answer["matched_lines"] == 2
    assert ask("grep('a', 1)", "one\ntwo a\n")["lines"] == [
        {"line": 2, "from": 1, "text": "one\ntwo a"}
    ]


def test_the_first_hits_have_text_however_many_there_are_and_the_others_are_counted() -> None:
    text = "".join(f"{'x' * 300} needle {n} {'y' * 300}\n" for n in range(500))
    answer = ask("grep('needle')", text)

    assert [each["line"] for each in answer["lines"]] == [*range(1, 21)]
    assert all(f" needle {n} " in each["text"] for n, each in enumerate(answer["lines"]))
    assert sum(answer["others"].values()) == answer["matched_lines"] - 20 == 480
    for view, count in answer["others"].items():
        assert ask(view, text).count("needle") == count
    assert [each["line"] for each in ask("grep('needle').lines[20:22]", text)] == [21, 22]


def test_a_hit_in_a_long_line_has_a_view_of_what_is_around_it() -> None:
    line = "x" * 5000 + "needle" + "y" * 5000
    (hit,) = ask("grep needle", f"{line}\n{line[:100]}")["lines"]

    assert len(hit["text"]) <= 300
    assert "needle" in hit["text"]
    assert hit["text"].strip("…") in line
    assert "needle" in ask(hit["more"], line)
    (hit,) = ask("a | grep('needle')", {"a": line})["lines"]
    assert "needle" in ask(hit["more"], {"a": line})


def test_a_hit_says_which_row_it_is_in_however_deep_it_lies() -> None:
    (hit, other) = ask("grep('needle')", SERVICES)["at"]

    assert hit["path"] == "services[3].spec.containers[0].env[0].value"
    assert hit["row"] == {"view": "services[3]", "id": 3, "metadata.name": "web-3"}
    assert ask(hit["row"]["view"], SERVICES) == SERVICES["services"][3]
    assert other["line"] == 388
    assert other["text"] == "+ line 388 needle"
    assert other["more"] == "services[5].diff | lines(378, 398)"
    assert ask(other["more"], SERVICES).splitlines()[10] == "+ line 388 needle"


def test_the_views_of_a_search_in_a_part_lead_from_the_whole() -> None:
    answer = ask("services | grep('needle')", SERVICES)

    for hit in answer["at"]:
        assert "needle" in ask(hit["path"], SERVICES)
        assert ask(hit["row"]["view"], SERVICES)["id"] == hit["row"]["id"]


def test_grep_finds_the_names_of_members_with_how_many_there_are() -> None:
    answer = ask("grep('^(tier|diff)$')", SERVICES)

    assert answer["matched_names"] == 2
    assert {each["path"]: each["count"] for each in answer["names"]} == {
        "services[*].diff": 30,
        "services[*].metadata.labels.tier": 30,
    }
    for each in answer["names"]:
        assert len(ask(each["path"], SERVICES)) == each["count"]


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


def test_the_length_of_a_search_is_the_number_of_its_hits() -> None:
    assert (
        ask("grep('needle') | length(@)", SERVICES)
        == ask("grep('needle')", SERVICES)["matched_values"]
    )
    assert ask("length(grep('a'))", "a\nb\na a\n") == 2


def test_a_hit_that_names_a_value_in_most_rows_leads_to_all_of_these() -> None:
    hosts = [
        {"id": f"i-{n}", "tags": [{"Key": "team", "Value": f"t{n % 5}"}, {"Key": "n", "Value": n}]}
        for n in range(90)
    ]
    answer = ask("grep('team')", {"hosts": hosts})

    assert answer["matched_values"] == 90
    [hit] = answer["at"]
    assert answer["others"] == {"hosts[*].tags[*].Key": 89}
    assert (
        hit["more"] == "hosts[?tags[?Key=='team']].{id: id, team: tags[?Key=='team'].Value | [0]}"
    )
    values = ask(hit["more"], {"hosts": hosts})
    assert values == [{"id": f"i-{n}", "team": f"t{n % 5}"} for n in range(90)]
    labels = [{"n": n, "labels": [{"id": 7, "name": "bug"}]} for n in range(90)]
    assert "more" not in ask("grep('bug')", labels)["at"][0]  # an id is no value of a name


def test_the_row_of_a_hit_is_told_by_what_a_person_reads() -> None:
    rows = [
        {"active": "true", "number": {"display_value": f"INC{n}", "value": f"INC{n}"}}
        | {"short_description": {"display_value": f"Needle {n}"}, "note": "x" * 100}
        for n in range(40)
    ]
    [hit] = ask("grep('Needle 7')", {"result": rows})["at"]
    assert hit["row"] == {
        "view": "result[7]",
        "number.display_value": "INC7",
        "short_description.display_value": "Needle 7",
    }


def test_grep_without_a_hit_shows_those_in_other_case_beside_the_zero() -> None:
    none = {"matches": 0, "matched_lines": 0, "lines": []}
    one = {"matches": 1, "matched_lines": 1, "lines": [{"line": 2, "text": "A Crash"}]}
    assert ask("grep('crash')", "one\nA Crash\n") == {**none, "ignoring_case": one}
    assert ask("grep('nowhere')", LOG) == none


def test_a_number_of_hits_says_what_other_hits_are_beside_them() -> None:
    log = "an ERROR\n" * 3 + "2 ERRORS (#4)\n"
    case = "grep() alone shows {} more in another case"
    beside = "grep() alone shows 1 more of the pattern as a text"
    assert with_remarks("grep('error').matches", log) == (0, [case.format(4)])
    assert with_remarks("grep('error') | length(@)", [log, "none"]) == (0, [case.format(1)])
    assert with_remarks("grep('(#4)').matched_lines", log) == (1, [])
    assert with_remarks("grep('S (#4)').lines[0]", log)[1][-1] == beside
    assert with_remarks("grep('error')", log)[1] == []


def test_a_word_in_brackets_is_no_class_of_letters() -> None:
    log = "12:00 [error] no room\n12:01 [info] done\n12:02 [Error] lost\n"
    answer, remarks = with_remarks("grep('[error]')", log)
    assert [hit["line"] for hit in answer["lines"]] == [1]
    assert answer["ignoring_case"]["matches"] == 1
    as_it_is = "[error] is searched as it is; as a class of letters it is (?:[error])"
    assert remarks == [as_it_is]
    assert with_remarks("grep('(?i)[error]').matches", log)[0] == 2
    assert with_remarks("grep('(?:[error])').matched_lines", log)[0] == 3
    assert with_remarks("grep('[0-2]').matched_lines", log) == (3, [])


@pytest.mark.parametrize("name", ["Ana Garc\xeda", "Ana Garci\u0301a"])
def test_names_are_found_without_their_accents(name: str) -> None:
    rows = [{"id": 1, "by": "\xd8ystein"}, {"id": 2, "by": name, "mail": "garcia@a.io"}]
    for value in (rows, json.loads(json.dumps(rows, ensure_ascii=False))):
        hits = ask("grep('Garcia')", value)
        assert hits["matched_values"] == 0
        assert [hit["path"] for hit in hits["ignoring_accents"]["at"]] == ["[1].by"]
        assert [hit["path"] for hit in hits["ignoring_case"]["at"]] == ["[1].mail"]
        assert hits["ignoring_accents"]["matched_values"] == 1
        assert ask("grep('oystein')", value)["ignoring_accents"]["matched_values"] == 1
    text = f"one\n{name}\n"
    assert ask("grep('ANA G\xe2rcia')", text)["ignoring_accents"]["lines"][0]["line"] == 2
    accents = "grep() alone shows 1 more with other accents"
    assert with_remarks("grep('garcia').matches", text) == (0, [accents])
    assert "ignoring_accents" not in ask("grep('Garcio')", text)
    assert ask("grep('Garc\xeda')", "by Garcia\n")["ignoring_accents"]["matches"] == 1


def test_escaped_letters_are_found_without_their_accents() -> None:
    document = Document.read(rb'{"by": ["K\u00f6ln"]}')
    assert look(document, "grep('Koln').ignoring_accents.matched_values") == 1


@pytest.mark.parametrize("name", ["x[1", "C++", "a||b", "[pool-1]", "(?i)[POOL-1]"])
def test_what_can_be_no_pattern_is_searched_as_it_is(name: str) -> None:
    text = "one\n[pool-1] a C++ x[1 || a||b\nx1 b\nd 0\n"
    for value in (text, text.split("\n")):
        remark = f"{name} is searched as it is"
        assert with_remarks(f"grep('{name}') | length(@)", value) == (1, [remark])


def test_alternatives_as_basic_patterns_have_them_are_found() -> None:
    remark = r"\| is read as |, as basic patterns have it"
    for value in ("one\ntwo\nthree\n", ["one", "two", "three"]):
        assert with_remarks(r"grep('one\|two') | length(@)", value) == (2, [remark])
    assert with_remarks(r"grep('a\|b') | length(@)", "a|b\nb\n") == (1, [])


@pytest.mark.parametrize("name", ["Fix (#12)", "(?i)FIX (#12)", "v1.0 ^ $5"])
def test_grep_finds_what_is_written_as_no_pattern(name: str) -> None:
    in_rows = ask(f"grep('{name}')", [{"id": 1, "title": "other"}, {"id": 2, "title": name}])
    in_lines = ask(f"grep('{name}')", f"one\n{name}\n")
    assert [hit["path"] for hit in in_rows["as_text"]["at"]] == ["[1].title"]
    assert [hit["line"] for hit in in_lines["as_text"]["lines"]] == [2]


def test_grep_shows_what_a_pattern_is_as_a_text_only_if_it_is_there_and_no_hit() -> None:
    assert "as_text" not in ask("grep('a.b')", "a.b\naxb\n")
    assert "as_text" not in ask("grep('a(b)')", "c\n")
    with pytest.raises(AbridgeError, match="matches the empty text"):
        ask("grep('a||b')", "a or b\n")
    with pytest.raises(AbridgeError, match="is not a regular expression"):
        ask("grep('x[1')", "x1\n")


def test_the_names_in_a_map_have_a_path_each() -> None:
    packages = {f"left-pad-{number}": {"version": f"1.{number}"} for number in range(61)}
    answer = ask("grep('pad-(7|1)$|^1.60$')", {"packages": packages})

    assert [(each["path"], each.get("value")) for each in answer["at"]] == [
        ('packages."left-pad-1"', {"version": "1.1"}),
        ('packages."left-pad-7"', {"version": "1.7"}),
        ('packages."left-pad-60".version', None),
    ]
    assert ask(answer["at"][1]["path"], {"packages": packages}) == {"version": "1.7"}
    assert answer["at"][2]["row"]["view"] == 'packages."left-pad-60"'


def test_a_hit_says_what_stands_above_it_and_shows_what_stands_indented_below() -> None:
    scans = "\n\n".join(
        f"Report for host{n}\nNot seen: 9\nPORT  STATE\n22/tcp open\n80/tcp open\n{n}3/tcp open"
        for n in range(9)
    )
    manual = "".join(
        f"  OPTION{n}=\n" + "".join(f"      Line {m} of option {n}.\n" for m in range(9))
        for n in range(40)
    )
    [hit] = ask("grep('43/tcp')", scans)["lines"]
    assert hit["under"] == "Report for host4"
    assert "under" not in ask("grep('22/tcp')", scans)["lines"][0]  # the lines before it are shown
    [hit] = plain(look(Document(manual), "grep('OPTION7=')", room=2000))["lines"]
    assert hit["after"].splitlines() == [f"      Line {m} of option 7." for m in range(9)]
    [hit] = ask("grep('ine 8 of option 7')", manual)["lines"]
    assert hit["under"] == "OPTION7="


def test_the_first_of_several_lines_that_begin_alike_is_none_that_a_hit_stands_under() -> None:
    lines = "".join(f"[LOG] tick {n} {'FAILED' if n in (0, 17) else 'ok'}\n" for n in range(40))
    hits = ask("grep('FAILED')", f"Total messages: 40\n\n{lines}")["lines"]
    assert [hit.get("under") for hit in hits] == [None, None]


def test_a_hit_in_markdown_says_its_heading_and_the_bullet_that_it_is_indented_below() -> None:
    table = "| name | value |\n| --- | --- |\n" + "".join(f"| n{n} | v{n} |\n" for n in range(9))
    parts = [
        f"## Release {n}\n\n* Add a-{n}\n* Fix b-{n}\n* Add c-{n}\n* Fix d-{n}\n  * of e-{n}\n\n"
        for n in range(9)
    ]
    text = f"# Changes\n\n{''.join(parts)}## Table\n\n{table}"
    for part, under in [
        ("d-7", "## Release 7"),
        ("e-7", "## Release 7 > * Fix d-7"),
        ("v8", "## Table"),
        ("Release 7", "# Changes"),
    ]:
        [hit] = ask(f"grep('{part}')", text)["lines"]
        assert hit["under"] == under


def test_a_hit_in_an_indented_text_says_what_it_stands_under() -> None:
    blocks = "".join(
        f"part{n}:\n  auth:\n    # on or off\n    enabled: {'false' if n == 7 else 'true'}\n"
        for n in range(20)
    )
    [hit] = ask("grep('false')", blocks)["lines"]
    assert hit["under"] == "part7: > auth:"
    assert all("under" not in hit for hit in ask("grep('part')", blocks)["lines"])


def test_the_lines_around_a_few_hits_in_a_text_are_shown_if_there_is_room() -> None:
    [hit] = plain(look(Document(LOG), "grep('step 70')", room=2000))["lines"]
    assert hit["before"] == "".join(LINES[67:70]).removesuffix("\n")
    assert hit["after"] == "".join(LINES[71:74]).removesuffix("\n")
    assert "before" not in plain(look(Document(LOG), "grep('step 70')", room=100))["lines"][0]


def test_a_hit_in_a_map_of_a_few_objects_alike_says_which_member_it_is() -> None:
    papers = {f"38{n}": {"uid": f"38{n}", "title": f"Trial {n} of zinc"} for n in range(9)}
    [hit] = ask("grep('Trial 7')", {"result": {"papers": papers}})["at"]
    assert hit["row"] == {"view": 'result.papers."387"', "title": "Trial 7 of zinc"}


@pytest.mark.parametrize("value", ["ok ok\n" * 60_000, ["ok"] * 110_000])
def test_a_count_that_is_not_the_whole_says_so(value: object) -> None:
    answer = ask("grep('k')", value)

    name = "matches_at_least" if isinstance(value, str) else "matched_values_at_least"
    assert answer[name] == 100_000


@pytest.mark.parametrize(
    "pattern",
    ["b", "^b$", "(?i)B|\u00e9", "b[^x]*", "[^b]b", r"\s|c$", r"\Ab", r"x\.c|bb", "7", "(?-m)^b"],
)
def test_a_hit_does_not_depend_on_the_texts_beside_it(pattern: str) -> None:
    texts = ["b", "\u00e9\u00e9 b", "", "cb", "d\nb", "x.c", "\u00e9 x", "bbb", "x"]
    value = [texts[n * n % 11 % 9] for n in range(2200)]

    answer = ask(f"grep('{pattern}')", value)
    listed = ask(f"grep('{pattern}').at[*].path", value) or []

    exact = Pattern(f"(?m){pattern}")
    paths = [f"[{n}]" for n, text in enumerate(value) if exact.search(text)]
    assert answer["matched_values"] == len(paths)
    assert sorted(listed, key=lambda path: int(path[1:-1])) == paths[:1000]  # whole words first


def test_the_rows_of_a_name_come_before_what_speaks_of_it_and_whole_words_before_parts() -> None:
    notes = [{"id": n, "about": {"card": "Renew the licence"}} for n in range(30)]
    cards = [{"id": 7, "title": "Renew the licence"}, {"id": 8, "title": "Licences"}]
    hits = ask("grep('licence')", {"notes": notes, "cards": cards})
    assert [each["path"] for each in hits["at"][:2]] == ["cards[0].title", "notes[0].about.card"]
    assert hits["others"] == {"notes[*].about.card": 11}

    hits = ask("grep('60')", {"rows": [{"sha": f"a60{n}"} for n in range(25)] + [{"ttl": "60"}]})
    assert hits["at"][0]["path"] == "rows[25].ttl"


@pytest.mark.parametrize("count", [34, 3000])
@pytest.mark.parametrize("nested", [False, True])
def test_the_hit_of_a_rare_place_is_among_the_first_ones(count: int, nested: bool) -> None:
    rows: list[Any] = [{"name": f"g{n}", "in": "::", "out": "any"} for n in range(count)]
    rows[count - 3]["in"] = "any"
    rows = [{**row, "out": [row["out"]]} for row in rows] if nested else rows
    whole = Document.read(encode(rows))
    hits = plain(look(whole, "grep('any')"))
    rare = {"view": f"[{count - 3}]", "name": f"g{count - 3}"}
    assert [hit["row"] for hit in hits["at"] if hit["path"].endswith(".in")] == [rare]
    assert len(hits["at"]) == 20
    assert hits["others"] == {"[*].out[*]" if nested else "[*].out": count - 19}
    every = plain(look(whole, "grep('any').at[*].path"))
    assert every[:20] == [hit["path"] for hit in hits["at"]]
    assert len({*every}) == len(every) == min(count, 1000) + 1


def test_a_hit_in_a_row_that_is_an_array_says_which_row_it_is() -> None:
    rows = [[n, 20261101, "rg-web", f"Storage {n}", None] for n in range(40)]
    whole = Document.read(encode({"columns": ["cost", "day"], "rows": rows}))
    [hit] = plain(look(whole, "grep('Storage 7')", room=2000))["at"]
    cells = {"[0]": 7, "[1]": 20261101, "[2]": "rg-web", "[3]": "Storage 7", "[4]": None}
    assert hit["row"] == {"view": "rows[7]", **cells}
    assert plain(look(whole, "rows[7].[[0], [3]]")) == [7, "Storage 7"]
    many = plain(look(whole, "grep('Storage')"))["at"]
    assert many[4]["row"] == {"view": "rows[4]", "[0]": 4, "[1]": 20261101}
    assert "row" not in plain(look(whole, "grep('cost')"))["at"][0]


def test_a_hit_that_is_a_name_beside_a_value_has_that_value() -> None:
    names = ("Protein", "Iron", "Sodium")
    foods = [
        {"food": f"food {n}", "in": [{"of": each, "no": 7, "value": n + 0.5} for each in names]}
        for n in range(40)
    ]
    hits = ask("grep('Iron')", {"foods": foods})["at"]
    assert [hit["value"] for hit in hits] == [n + 0.5 for n in range(20)]
    assert "value" not in ask("grep('food 7')", {"foods": foods})["at"][0]


def test_a_hit_in_arrays_side_by_side_says_which_row_it_is() -> None:
    hours = [f"2026-11-{1 + n // 24:02}T{n % 24:02}:00" for n in range(300)]
    hourly = {"time": hours, "temp": [n % 9 for n in range(300)], "snow": [None] * 300}
    row = {"time": "2026-11-11T06:00", "temp": 3, "snow": None}
    for around, value in (("hourly.", {"hourly": hourly}), ("", hourly)):
        whole = Document.read(encode(value))
        [hit] = plain(look(whole, "grep('2026-11-11T06')", room=2000))["at"]
        assert hit["path"] == f"{around}time[246]"
        assert hit["row"] == {"view": f"{around}rows[246]", **row}
        assert plain(look(whole, hit["row"]["view"])) == row
        hits = plain(look(whole, "grep('2026-11-11')"))["at"]
        assert hits[9]["row"] == {"view": f"{around}rows[249]", "time": hours[249], "temp": 6}
    cities = [{"id": n, "hourly": hourly} for n in range(2)]
    whole = Document.read(encode(cities))
    _, hit = plain(look(whole, "grep('2026-11-11T06')", room=2000))["at"]
    assert hit["row"] == {"view": "[1]", "id": 1}
    assert hit["part"] == {"view": "[1].hourly.rows[246]", **row}
    uneven = hourly | {"temp": [1]}
    assert "row" not in ask("grep('2026-11-11T06')", uneven)["at"][0]


@pytest.mark.parametrize("nested", [False, True])
def test_the_rows_of_a_few_hits_are_shown_once_each_if_there_is_room(nested: bool) -> None:
    rows = [{"id": n, "name": f"pod {n}", "note": f"runs pod {n}"} for n in range(40)]
    whole = Document.read(encode([row | {"labels": ["a"]} for row in rows] if nested else rows))
    first, second = plain(look(whole, "grep('pod 7')", room=2000))["at"]
    assert first["row"] == {"view": "[7]", **rows[7], **({"labels": ["a"]} if nested else {})}
    assert second["row"] == {"view": "[7]", "id": 7, "name": "pod 7"}
    assert plain(look(whole, "grep('pod 7')", room=200))["at"][0]["row"] == second["row"]


def test_of_a_large_row_the_part_around_one_of_a_few_hits_is_shown() -> None:
    comment = {"by": "ann", "body": {"content": [{"text": "off on 9 January"}]}}
    issue = {"key": "PLAN-7", "history": ["moved"] * 2000, "comments": [{"by": "bob"}, comment]}
    whole = Document.read(encode({"issues": [issue, {"key": "PLAN-8"}]}))
    [hit] = plain(look(whole, "grep('January')", room=2000))["at"]
    assert hit["row"] == {"view": "issues[0]", "key": "PLAN-7"}
    assert hit["part"] == {"view": "issues[0].comments[1]", **comment}


def test_the_row_of_a_hit_is_none_that_is_the_only_one_of_its_array() -> None:
    items = [
        {"name": f"item {n}", "cells": [{"text": ("Done", "Stuck")[n % 3 == 1], "value": "{}"}]}
        for n in range(9)
    ]
    answer = ask("grep('Stuck')", {"boards": [{"name": "Work", "items": items}]})
    assert [hit["row"]["name"] for hit in answer["at"]] == ["item 1", "item 4", "item 7"]
    assert not [hit for hit in answer["at"] if "value" in hit]  # the text is what the value says
    lone = ask("grep('Stuck')", [{"id": 7, "url": "https://x.example", "message": "Stuck"}])
    assert lone["at"][0]["row"] == {"view": "[0]", "id": 7, "message": "Stuck"}


def test_of_members_with_a_name_the_values_are_counted_and_the_rare_ones_have_their_row() -> None:
    rows: list[dict[str, Any]] = [{"id": n, "killed": n == 5} for n in range(12)]
    for place, message in ((3, "loses jobs"), (8, ["old"])):
        rows[place]["deprecated"] = message
    nested = [{**row, "labels": []} for row in rows]
    for table in (rows, nested):
        answer = ask("grep('killed')", table)
        assert answer["names"] == [
            {"path": "[*].killed", "count": 12, "values": {"false": 11, "true": 1}}
        ]
        assert answer["at"] == [
            {"path": "[5].killed", "value": True, "row": {"view": "[5]", "id": 5}}
        ]
        answer = ask("grep('deprecated')", table)
        assert "names" not in answer
        assert [(each["path"], each["value"]) for each in answer["at"]] == [
            ("[3].deprecated", "loses jobs"),
            ("[8].deprecated", ["old"]),
        ]


def test_beside_a_few_hits_stand_those_in_other_case() -> None:
    answer = ask("grep('firmware')", [{"tag": "firmware"}, {"note": "Firmware 8.2"}, {"n": "x"}])
    [hit], [other] = answer["at"], answer["ignoring_case"]["at"]
    assert (hit["path"], other["path"]) == ("[0].tag", "[1].note")
    assert answer["ignoring_case"]["matched_values"] == 1

    answer = ask("grep('crash')", "a crash\n" + 300 * "CRASH\n")
    assert answer["ignoring_case"] == {"matches": 300, "matched_lines": 300}


def test_lines_around_a_few_hits_in_a_text_are_shown_once_each() -> None:
    text = "\n".join("hit" if line in (6, 8, 30) else f"line {line}" for line in range(1, 40))
    first, second, third = plain(look(Document.read(encode(text)), "grep('hit')", room=900))[
        "lines"
    ]
    assert first["before"] == "line 3\nline 4\nline 5"
    assert (first["after"], "before" in second) == ("line 7", False)
    assert second["after"] == "line 9\nline 10\nline 11"
    assert third["before"].startswith("line 27")


@pytest.mark.parametrize(
    ("view", "line"), [("grep('image: ng')", "    image: nginx"), ("grep('^  db:')", "  db:")]
)
def test_a_text_that_was_read_as_structure_is_searched_as_a_text_too(view: str, line: str) -> None:
    text = "services:\n  web:\n    image: nginx\n  db:\n    image: pg\n"
    answer = ask_of_text(view, text)

    assert answer["at"] == []
    assert [each["text"] for each in answer["text"]["lines"]] == [line]
    assert "text" not in ask_of_text("grep('nginx')", text)
    (hit,) = ask_of_text("grep('keep')", f"{text}# keep this\n")["lines"]
    assert hit["text"] == "# keep this"


@pytest.mark.parametrize("pattern", ["", "x*", "^$", "a?|b"])
def test_a_pattern_that_matches_everywhere_is_refused(pattern: str) -> None:
    with pytest.raises(Refusal, match=r"matches the empty text.*write one that needs a character"):
        ask(f"grep('{pattern}')", LOG)


def test_an_invalid_pattern_is_refused_with_the_reason() -> None:
    with pytest.raises(Refusal, match=r"is not a regular expression RE2 takes: missing \)"):
        ask("grep('(')", LOG)


def test_only_a_newline_ends_a_line_of_a_hit() -> None:
    assert ask("grep('d')", "a\x0cb\r\nc\u2028d\n")["lines"] == [{"line": 2, "text": "c\u2028d"}]


def test_a_search_answers_with_less_than_the_text_that_it_goes_through() -> None:
    value = [{"id": n, "body": f"needle {'word ' * 400}"} for n in range(300)]

    assert len(json.dumps(ask("grep('needle')", value))) < 8000


def test_a_row_whose_hits_differ_in_case_is_shown_once() -> None:
    rows = [{"id": n, "subject": f"Item {n}", "body": f"of item {n}"} for n in range(9)]
    document = Document.read(encode({"rows": rows}))
    answer = plain(look(document, "grep('item 7')", room=9000))
    [hit], [other] = answer["at"], answer["ignoring_case"]["at"]
    assert hit["row"] == {"view": "rows[7]", **rows[7]}
    assert other["row"] == {"view": "rows[7]", "id": 7, "subject": "Item 7"}


@pytest.mark.parametrize("end", ["[-2:].line", "[-2:] | [*].line", "[?line > `8`].line"])
def test_brackets_after_a_search_are_of_its_hits(end: str) -> None:
    text = "\n".join(f"step {n} {'failed' * (n % 3 == 0)}" for n in range(12))
    assert plain(look(Document(text), f"grep('failed') | {end}"))[-1] == 10
    assert plain(look(Document(text), "grep('failed')[0].line")) == 1
    assert plain(look(Document.read(b'{"a": ["x", "y", "x"]}'), "grep('x')[1].path")) == "a[2]"


def test_the_row_of_a_hit_in_a_tree_is_the_innermost_object_with_what_it_is_in() -> None:
    base = {"name": "base.py"}
    client = {"name": "client", "files": [{"name": "http", "files": [base]}, {"name": "a.py"}]}
    tree = [client, {"name": "server", "files": [base]}]
    for value, start in ((tree, ""), ({"files": tree}, "files")):
        assert [hit["row"] for hit in ask("grep('base')", value)["at"]] == [
            {"view": f"{start}[0].files[0].files[0]", "name": "base.py", "in": "client / http"},
            {"view": f"{start}[1].files[0]", "name": "base.py", "in": "server"},
        ]
    orders = [{"id": n, "lines": [{"name": f"part {m}"} for m in range(3)]} for n in range(3)]
    assert ask("grep('part 1')", orders)["at"][1]["row"]["view"] == "[1]"


def test_a_name_and_a_value_in_a_tree_or_a_map_come_with_the_view_that_finds_them() -> None:
    leaf = {"hidden": True, "kids": []}
    tree = {"kids": [{"hidden": False, "kids": [{"hidden": False, "kids": [leaf]}, leaf]}]}
    paths = {f"/{n}": {way: {"id": n, "old": n == 3}} for n, way in enumerate(("get", "put") * 3)}
    for value, view, count in (
        (tree, "nodes(kids, &kids)[?hidden==`true`]", 2),
        ({"paths": paths}, "paths.*.*[] | [?old==`true`]", 1),
    ):
        name = "hidden" if value is tree else "old"
        with pytest.raises(Refusal) as error:
            ask(f"grep('\"{name}\": true')", value)
        assert str(error.value).partition(": write ")[2] == view
        assert len(ask(view, value)) == count
