import json
import random
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.tree import Document, encode
from mcp_abridge.query.call import Call
from mcp_abridge.query.view import look
from mcp_abridge.transforms.abridge import AbridgeStep, abridge

from tests.omissions import check_notes, check_text, left_out
from tests.summary.logs import BLOCKS, LOGS, blocks, log

LINE = "a line of a text that goes on for a while\n"


SECTIONS = "# Guide\n\n" + "".join(
    f"## Part {n}\n\n```sh\n# no heading\n```\n\n### Details of {n}\n\n{LINE * 20}\n"
    for n in range(1, 30)
)


def cut(text: str, bound: int, **options: Any) -> tuple[str, dict[str, str]]:
    """Return a text cut to `bound` bytes, its note included, and the note."""
    call = Call("t", viewable=True, notices=[], **options)
    document = Document(text)
    abridge(document, bound, call)
    [notice] = call.notices
    assert len(document.encode()) + len(encode({notice.name: notice.value})) <= bound
    assert len(json.dumps(notice.value.get("more", ""))) <= 250
    check_text(text, json.loads(document.encode()), notice.value)
    return json.loads(document.encode()), notice.value


def failing(*numbers: int, total: int = 1000) -> str:
    return "".join(f"step {n}: {'ERROR' if n in numbers else 'ok'}\n" for n in range(1, total + 1))


def test_the_lines_left_out_that_speak_of_failure_are_counted_and_the_first_are_listed() -> None:
    text = failing(300, 400, 402, 500, 501, 502, 503)
    _, note = cut(text, 4000)
    assert note["text"].endswith("; 7 lines there with a failure: 300, 400, 402, 500, 501, …")
    assert "view='lines(290, 310)' shows line 300" in note["more"]
    assert look(Document(text), "lines(300, 300)") == "step 300: ERROR\n"


def test_the_failure_at_the_end_of_a_log_of_2500_lines_is_shown() -> None:
    excerpt, _ = cut(failing(2500, total=2500), 10_000)
    assert excerpt.endswith("step 2500: ERROR\n")


def test_the_first_failures_between_the_ends_are_shown() -> None:
    excerpt, _ = cut(failing(300, 400, 500), 4000)
    assert "\n…\nline 300: step 300: ERROR\nline 400: step 400: ERROR\nline 500: " in excerpt
    long = f"{LINE * 200}{'word ' * 900} a failure {'word ' * 900}\n{LINE * 200}"
    quote = cut(long, 4000)[0].split("\nline 201: …")[1].partition("\n")[0]
    assert " a failure word " in quote
    assert len(quote) == 200


@pytest.mark.parametrize(
    "line",
    [
        "Error: no",
        "KeyError: 'x'",
        "2 tests failed",
        "FATAL",
        "panic: nil",
        "java.lang.RuntimeException: x",
        "Traceback (most recent call last):",
        "permission denied",
        "connect timeout",
        "é failure é",
        "3 passed, 1 failed, 0 skipped",
        "10.0.0.7 : ok=4 unreachable=0 failed=1",
        '<testsuite tests="3" failures="10" errors="0">',
        "[2026-01-02 10:11:12: ERROR/MainProcess] x",
        "not ok 3 - parses",
        "npm ERR! code ENOENT",
        "##[error]Process completed",
        '"GET / HTTP/1.1" 502 157',
        "Die Verbindung wurde verweigert",
        "数据库 连接 失败",
        "OOMKilled",
        "\x1b[1;31mERROR\x1b[0m x",
    ],
)
def test_words_for_failure(line: str) -> None:
    # What stands at an end is shown.
    _, note = cut(f"{LINE * 200}{line}\n{LINE * 200}Error\n", 3000)
    assert "; 1 line there with a failure: 201" in note["text"]


@pytest.mark.parametrize(
    "line",
    [
        "errorless, failsafe, terrors, hispanic",
        '<testsuite tests="3" failures="0" errors="0">',
        "12 passed, 0 failed, no errors",
        "10.0.0.7 : ok=4 unreachable=0 failed=0",
        "GET /static/errors.js HTTP/1.1 200",
        '    raise ValueError("no name")',
        "    except KeyError:",
        "import { TypeError } from './errors'",
        "level=info error=<nil>",
        "exited with code 0",
        "timeout: 30s",
        '    + timeout      = "30m"',
    ],
)
def test_counts_of_zero_and_names_are_no_failure(line: str) -> None:
    _, note = cut(f"{LINE * 200}{line}\n{LINE * 200}", 3000)
    assert "failure" not in note["text"]


@pytest.mark.parametrize(
    "line",
    [
        "without any warranty of merchantability, or\nthat a failure of the program is an error\n"
        "of the holder of the copyright, or of others",
        "    * This function returns, in particular in the case of an error",
        "    // returns an error to the caller",
        "    if (failed) return error;",
        "src/pay.py:303:    # align the error with the specification",
        "src/pay.py:12:    return 'permission denied'",
        "a.py:12:    def denied(self, error: str) -> None:",
    ],
)
def test_prose_and_source_code_that_name_failures_have_none(line: str) -> None:
    _, note = cut(f"{LINE * 200}{line}\n{LINE * 200}", 3000)
    assert "failure" not in note["text"]


def manual(line: str) -> str:
    """Return a manual that explains errors, wrapped at random, with a line in its middle."""
    dice, words = random.Random(7), [*"aeiouy", "an error", "fails", "the", "cannot", "of it"]
    lines = [" ".join(dice.choices(words, k=12)) for _ in range(400)]
    return "\n".join([*lines[:200], line, *lines[200:]])


@pytest.mark.parametrize(
    "text",
    [
        "".join(
            f"commit {n:040x}\nAuthor: A\n\n    pay: {'jobs failed' * (n in (9, 80))}\n\n"
            f" src/pay.py | {n} ++++++------\n 1 file changed, 1 insertion(+)\n\n"
            for n in range(99)
        ),
        "".join(
            f"- What was there before now is as with the {n} others: the job"
            f" {'failed' if n in (9, 80) else 'is done'}.\n"
            for n in range(99)
        ),
    ],
)
def test_what_commits_and_releases_changed_is_no_failure(text: str) -> None:
    assert "failure" not in cut(text, 3000)[1]["text"]


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("error codes such as ASN1_VALUE_NOT_FOUND are returned if it is not there", 0),
        ("| error desc: | return the error description |", 0),
        ("    an exit code 120: the program ends before it was read", 0),
        ("  KeyError: 'x'", 1),
        ("FAILED tests/test_it.py::test_9", 1),
    ],
)
def test_in_prose_only_a_line_that_begins_as_a_message_is_a_failure(line: str, count: int) -> None:
    _, note = cut(manual(line), 3000)
    assert ("1 line there with a failure: 201" in note["text"]) == bool(count)
    assert ("failure" in note["text"]) == bool(count)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("DEBUG", "ERROR"),
        ("[info]", "[error]"),
        ("- INFO:", "- FATAL:"),
        ('level="debug"', 'level="error"'),
    ],
)
def test_if_a_log_has_levels_no_line_below_a_warning_is_a_failure(low: str, high: str) -> None:
    lines = [f"10:12:{n % 60:02} {low} pool-{n % 7} error: tries again" for n in range(900)]
    lines[300:300] = [f"10:12:59 {high} it is over", "a.b.IllegalStateException: it is over"]
    _, note = cut("\n".join(lines), 3000)
    assert "; 2 lines there with a failure: 301, 302" in note["text"]


@pytest.mark.parametrize("before", ["", "web-1  | "])
def test_a_traceback_is_one_failure_by_the_line_that_ends_it(before: str) -> None:
    trace = ["Traceback (most recent call last):", '  File "a.py", line 8, in pay', "    pay(card)"]
    lines = [f"10:12:{n % 60:02} job {n} is done" for n in range(900)]
    lines[300:300] = [*trace, "shop.CardDeclined: no", *trace, "TimeoutError: it took long"]
    excerpt, note = cut("".join(f"{before}{line}\n" for line in lines), 3000)
    assert "; 2 lines there with a failure: 304, 308" in note["text"]
    assert f"line 304: {before}shop.CardDeclined: no\n" in excerpt


def test_a_few_failures_are_all_shown_in_place_of_lines_that_are_alike() -> None:
    lines = [f"ok: [web{n}.example.net]" for n in range(900)]
    numbers = [100, 200, 300, 400, 500, 600, 700, 800]
    for number in numbers:
        lines[number - 1] = f"fatal: [web{number}.example.net]: FAILED! {'because of it ' * 20}"
    excerpt, _ = cut("\n".join(lines), 2000)
    fatal = "line {0}: fatal: [web{0}.example.net]: FAILED! because".format
    assert all(fatal(number) in excerpt for number in numbers)


def test_of_many_failures_one_of_each_kind_is_shown() -> None:
    lines = [f"{n} ERROR job {n} has no end" for n in range(900)]
    lines[700] = "700 ERROR the disk is full"
    excerpt, note = cut("\n".join(lines), 2000)
    assert "\n…\nline 701: 700 ERROR the disk is full\n…\n" in excerpt
    assert "shows line 701" in note["more"]


def test_a_million_failures_are_not_counted_to_the_end() -> None:
    _, note = cut("FAILED\n" * 100_000, 3000)
    assert re.search("; at least [23][0-9]{2} lines there with a failure: ", note["text"])


def test_a_word_that_is_common_in_a_text_tells_nothing() -> None:
    _, note = cut("ok 7 - the list of errors\n" * 1000, 3000)
    assert "failure" not in note["text"]


@pytest.mark.parametrize("row", LOGS, ids=lambda row: row["name"])
def test_the_one_failure_among_a_thousand_lines_of_a_log_is_shown(row: dict[str, str]) -> None:
    excerpt, note = cut(log(row), 2000)
    line = row.get("shown", row["failure"].partition("\n")[0])
    number = log(row).partition(row["failure"])[0].count("\n") + 1
    assert f"line {number}: {line}"[:100] in excerpt
    assert f"shows line {number}" in note["more"]


@pytest.mark.parametrize("row", BLOCKS, ids=lambda row: row["name"])
def test_what_one_of_many_blocks_has_is_shown_and_what_all_have_is_no_failure(
    row: dict[str, Any],
) -> None:
    excerpt, note = cut(blocks(row), 2000)
    middle = excerpt.split("\n…")[1]
    for line in row.get("shown", []):
        assert f": {line}" in middle
    if "shown" not in row:
        assert "failure" not in note["text"]


def test_names_that_recur_in_many_lines_of_a_log_hide_no_failure() -> None:
    row = next(row for row in LOGS if row["name"] == "Helm and a rollout")
    assert row["failure"].partition("\n")[0] in cut(log(row, 15_000), 2000)[0]


def test_the_way_leads_to_what_failed_and_not_to_the_line_that_says_only_that_it_did() -> None:
    passing = "".join(f"PASS src/part{n}.test.ts ({n % 7}.2 s)\n" for n in range(900))
    failed = "FAIL src/stock.test.ts (3.1 s)\n  voucher: the second one is capped\n"
    end = "##[error]Process completed with exit code 1.\n"
    text = f"{passing[:9000]}\n{failed}{passing}{end}{passing[:3000]}"
    line = text[: text.index("FAIL")].count("\n") + 1
    _, note = cut(text, 4000)
    assert f"shows line {line}" in note["more"]
    assert f"with a failure: {line}, {text[: text.index(end)].count(chr(10)) + 1}" in note["text"]


def test_the_lines_unlike_the_others_are_shown_and_listed_whatever_they_say() -> None:
    lines = [f"2026-01-02T10:{n % 60:02}:00 job {n} took {n % 9} ms" for n in range(2000)]
    lines[1200] = "2026-01-02T10:00:00 a ghost came by"
    lines[1500:1500] = ["who", "goes", "there"]
    excerpt, note = cut("\n".join(lines), 2000)
    assert note["text"].endswith("; unlike the others: 1201, 1501")
    assert "\nline 1201: 2026-01-02T10:00:00 a ghost came by\nline 1501: who\n" in excerpt
    assert "view='lines(1191, 1211)' shows line 1201" in note["more"]


@pytest.mark.parametrize("text", [SECTIONS.replace("#", ""), Path(__file__).read_text() * 2])
def test_nothing_is_unlike_the_others_where_nothing_is_regular(text: str) -> None:
    assert "unlike" not in cut(text, 2000, error=True)[1]["text"]


def test_the_log_of_failed_tests_that_quotes_code_shows_its_end_and_no_outline_of_the_code() -> (
    None
):
    quoted = "".join(
        f"def test_{n}() -> None:\n    one = 1\n>   assert one == {n}\nE   assert 1 == {n}\n\n"
        f"tests/test_it.py:{n}: AssertionError\n{'_' * 30} test_{n} {'_' * 30}\n"
        for n in range(2, 60)
    )
    excerpt, note = cut(f"{quoted}FAILED tests/test_it.py::test_9\n58 failed in 3.1s\n", 2000)
    assert excerpt.endswith("FAILED tests/test_it.py::test_9\n58 failed in 3.1s\n")
    assert " lines there with a failure: " in note["text"]


def test_the_escape_codes_of_a_terminal_are_not_shown_and_the_views_are_of_the_whole_text() -> None:
    text = "".join(f"\x1b[32mok\x1b[0m {n} \x1b]0;title\x07{LINE}" for n in range(500))
    excerpt, note = cut(text, 3000)
    assert "\x1b" not in excerpt
    assert excerpt.count("\nok ") > 40
    assert note["text"].endswith("; escape codes are not shown")
    [start] = re.findall(r"text\[(\d+):", note["more"])
    beginning = excerpt.partition("…")[0]
    assert text[: int(start)].replace("\x1b[32m", "").count("ok") == beginning.count("ok")
    short = "\x1b[32mok\x1b[0m\n" * 150
    assert cut(short, 2000) == ("ok\n" * 150, {"text": cut(short, 2000)[1]["text"]})


def test_a_text_with_headings_has_an_outline_of_two_levels_in_place_of_its_end() -> None:
    excerpt, note = cut(SECTIONS, 8000)
    first, outline = excerpt.split("…\n")
    assert SECTIONS.startswith(first)
    *headings, last = outline.splitlines()
    assert headings[-1].endswith(": ## Part 29")
    assert last == f"and {outlined(SECTIONS[len(first) :])['### ']} more headings"
    assert "; view='outline()' lists 59 headings" in note["more"]
    assert outlined(SECTIONS).total() == 59
    assert not any("Details" in line or "no heading" in line for line in headings)
    lines = SECTIONS.splitlines()
    for heading in headings:
        number, _, words = heading.removeprefix("line ").partition(": ")
        assert lines[int(number) - 1] == words
    assert f" to {len(lines)} are left out" in note["text"]


@pytest.mark.parametrize(
    ("count", "times", "what"),
    [(40, 1, "40 files"), (40, 2, "80 headings"), (300, 1, "200 of 300 files")],
)
def test_the_files_of_a_diff_are_counted_unless_one_is_changed_twice(
    count: int, times: int, what: str
) -> None:
    diff = "".join(
        f"diff --git a/{n}.py b/{n}.py\n--- a/{n}.py\n+++ b/{n}.py\n@@ -1 +1 @@\n-a\n+b\n"
        for n in range(count)
    )
    _, note = cut(diff * times, 1800)
    assert f"; view='outline()' lists {what}; " in note["more"]
    listed = look(Document(diff * times), "outline()")["headings"]
    assert len(listed) == int(what.split()[0])


def test_headings_of_which_not_all_were_searched_have_no_number() -> None:
    text = "".join(f"# Part {n}\n\n{LINE * 90}\n" for n in range(99))
    assert "; view='outline()' lists headings; " in cut(text, 1800)[1]["more"]


def outlined(text: str) -> Counter[str]:
    return Counter(re.findall(r"^#+ (?!no heading)", text, re.MULTILINE))


def test_headings_that_do_not_fit_are_counted() -> None:
    for bound in range(1500, 4000, 100):
        first, outline = cut(SECTIONS, bound)[0].split("…\n")
        *headings, last = outline.splitlines()
        if more := re.fullmatch(r"and (?:at least )?(\d+) more headings", last):
            assert int(more[1]) == outlined(SECTIONS[len(first) :]).total() - len(headings)
        else:
            assert last.endswith(": ### Details of 29")


def test_headings_that_do_not_fit_are_shown_from_the_first_to_the_last_one() -> None:
    text = "# Log of changes\n\n" + "".join(f"## Release {n}\n\n{LINE}\n" for n in range(300))
    outline = cut(text, 2000)[0].split("…\n")[1]
    numbers = [*map(int, re.findall(r"## Release (\d+)\n", outline))]
    assert numbers[-1] == 299
    steps = {after - before for before, after in pairwise(numbers[:-1])}
    assert len(steps) == 1


def test_a_title_or_two_above_the_headings_are_no_outline_of_their_own() -> None:
    text = "# Reference\n\n## Files\n\n" + "".join(
        f"### Part {n}\n\n{LINE * 9}\n" for n in range(9)
    )
    assert re.search(r": ### Part 8\n\Z", cut(text, 3000)[0])


def test_a_million_headings_or_fences_are_not_read_to_the_end() -> None:
    excerpt, _ = cut("# heading\n\nsome text\n\n" * 100_000, 8000)
    assert re.search("\nand at least [0-9]+ more headings\n$", excerpt)
    excerpt, _ = cut("```\n# no heading\n" * 400_000, 8000)
    assert "line " not in excerpt


def test_html_has_an_outline_too() -> None:
    text = "<html>\n" + "".join(f"<h2 id='a'>Part {n}</h2>\n{LINE * 60}" for n in range(9))
    assert cut(text, 6000)[0].endswith(": Part 8\n")


def test_the_outline_of_minified_html_says_at_which_character_a_part_begins() -> None:
    text = "<html>" + "".join(f"<h2>Part {n}</h2>{'word ' * 60}" for n in range(30))
    excerpt, _ = cut(text, 2000)
    places = re.findall(r"^char (\d+): (Part \d+)$", excerpt, re.MULTILINE)
    assert len(places) > 5
    assert all(text[int(at) :].startswith(f"<h2>{part}<") for at, part in places)


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"# comment {n}\nstep {n}\n" for n in range(900)),
        "# one\n\ntwo\n\n# three\n\n" + LINE * 300,
    ],
)
def test_comments_and_few_headings_are_no_outline(text: str) -> None:
    excerpt, _ = cut(text, 3000)
    assert text.endswith(excerpt.split("…")[1])


def test_an_error_shows_its_end_though_it_has_headings() -> None:
    assert cut(SECTIONS, 8000, error=True)[0].endswith(LINE + "\n")


PROSE = st.sampled_from(["# A\n\n", "## b\n", "\n", "an error\n", LINE, 'é"😀', "…", " ", "x" * 90])


@given(st.lists(PROSE, min_size=60, max_size=400).map("".join), st.integers(300, 4000))
def test_the_note_counts_all_that_is_left_out(text: str, bound: int) -> None:
    if len(encode(text)) > bound:
        cut(text, bound)


REGULAR = [f"job {n} is done" for n in range(20)]
LOG_LINE = st.sampled_from(
    [*REGULAR, *REGULAR, "0 errors", "FAILED", "job 7 failed", "a ghost", "x" * 300, ""]
)


COLOURS = st.sampled_from(["", "", "", "\x1b[31m", "\x1b[1;32m"])


@given(st.lists(st.tuples(LOG_LINE, COLOURS), min_size=60, max_size=400), st.integers(600, 4000))
def test_what_the_note_says_of_a_log_is_so_for_all_lines_left_out(
    coloured: list[tuple[str, str]], bound: int
) -> None:
    lines = [line for line, _ in coloured]
    text = "\n".join(f"{colour}{line}\x1b[0m" if colour else line for line, colour in coloured)
    if len(encode(text)) <= bound:
        return
    excerpt, note = cut(text, bound)
    first, last = re.findall(r"first (\d+)(?: and last (\d+))? of", note["text"])[0]
    start, stop = int(first), len(text) - int(last or 0)
    if stop <= start:  # only escape codes are left out
        assert excerpt == "\n".join(lines)
        return
    before, after = text[:start].count("\n"), text[:stop].count("\n")
    assert excerpt.split("\n")[:before] == lines[:before]
    assert after == len(lines) - 1 or excerpt.endswith("\n".join(lines[after + 1 :]))
    if fact := re.search(r"; (?:parts of )?lines (\d+) to (\d+) are left out", note["text"]):
        assert [*map(int, fact.groups())] == [before + 1, text[: stop - 1].count("\n") + 1]
    doubtful = lines.count("job 7 failed")
    common = doubtful > max(20, (len(lines) - 1) // 20)
    sure = [number for number, line in enumerate(lines, 1) if line == "FAILED"]
    both = [n for n, line in enumerate(lines, 1) if line in ("FAILED", "job 7 failed")]
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    ends = [at + len(colour + line) for at, (line, colour) in zip(starts, coloured, strict=True)]
    sure, both = (
        [n for n in some if ends[n - 1] > start and starts[n - 1] < stop] for some in (sure, both)
    )
    fact = re.search(r"; (\d+) lines? there with a failure: ([\d, ]+)(…?)", note["text"])
    assert fact or not sure or bound < 1500  # else there may be no room for it
    if fact:
        # What is common, or stands at like distances, does not count beside others.
        assert int(fact[1]) in (len(sure), len(sure if common else both))
        listed = [*map(int, fact[2].strip(", ").split(", "))]
        assert {*listed} <= {*(sure if int(fact[1]) == len(sure) else both)}
        assert len({*listed}) == min(int(fact[1]), 5)
        assert bool(fact[3]) == (int(fact[1]) > 5)
    if fact := re.search(r"unlike the others: ([\d, ]+)", note["text"]):
        forms = [re.sub("[0-9a-fA-F]", "", line) for line in lines]
        for number in map(int, fact[1].strip(", ").split(", ")):
            assert before <= number - 1 <= after
            assert forms.count(forms[number - 1]) <= 2
    if way := re.search(r"view='(lines\(\d+, \d+\))' shows line (\d+)", note.get("more", "")):
        view = look(Document(text), way[1]).split("\n")
        assert text.split("\n")[int(way[2]) - 1] in view


def test_a_first_look_at_a_far_longer_text_is_short_and_its_views_are_not() -> None:
    call, document = Call("run", viewable=True, notices=[]), Document(LINE * 4000)
    AbridgeStep(max_bytes=10_000, first_look=2000)(document.root, call)
    [notice] = call.notices
    assert len(document.encode()) + len(encode({notice.name: notice.value})) <= 2000
    [(start, end)] = re.findall(r"text\[(\d+):(\d+)\]", notice.value["more"])
    assert int(end) - int(start) > 9000


def beside(text: str) -> dict[str, Any]:
    return {"run": {"log": text, "code": 1}, "host": "ci-4"}


def test_a_text_in_an_object_is_shown_as_one_alone_with_what_stands_out_in_it() -> None:
    document, call = Document(beside(failing(700))), Call("t", viewable=True, notices=[])
    abridge(document, 4000, call, first_look=1500)
    after = json.loads(document.encode())
    assert len(document.encode()) < 1700
    assert "…\nline 700: step 700: ERROR\n…" in after["run"]["log"]
    check_text(failing(700), after["run"]["log"], {"text": after["_abridged"]["run.log"]})
    assert after["_abridged"]["run.log"].endswith("; 1 line there with a failure: 700")
    assert "view='run.log | lines(690, 710)' shows line 700" in after["_abridged"]["more"]
    lines = look(Document(beside(failing(700))), "run.log | lines(700, 700)")
    assert lines == "step 700: ERROR\n"


def test_a_text_in_an_object_has_an_outline_and_no_escape_codes() -> None:
    document, call = Document(beside(SECTIONS * 3)), Call("t", viewable=True, notices=[])
    abridge(document, 4000, call)
    after = json.loads(document.encode())
    assert ": ## Part 2\n" in after["run"]["log"]
    assert "view='run.log | outline()' lists 177 headings" in after["_abridged"]["more"]
    outline = look(Document(beside(SECTIONS * 3)), "run.log | outline()")
    assert isinstance(outline, dict)
    assert len(outline["headings"]) == 177
    coloured = failing(7, total=400).replace("ok", "\x1b[32mok\x1b[0m")
    document = Document(beside(coloured))
    abridge(document, 3000, call)
    after = json.loads(document.encode())
    assert "\x1b" not in after["run"]["log"]
    assert "; escape codes are not shown" in after["_abridged"]["run.log"]


def test_the_logs_of_a_few_pods_show_the_failure_in_the_middle_of_one() -> None:
    pods = [{"pod": f"api-{n}", "log": failing(*[500] * (n == 1))} for n in range(3)]
    document, call = Document({"pods": pods}), Call("t", viewable=True, notices=[])
    abridge(document, 10_000, call, first_look=2000)
    after, notes = (json.loads(document.encode())[name] for name in ("pods", "_abridged"))
    assert [pod["pod"] for pod in after] == ["api-0", "api-1", "api-2"]
    assert ["line 500: step 500: ERROR" in pod["log"] for pod in after] == [False, True, False]
    assert notes["pods.log"].endswith("; pods[1].log: 1 line there with a failure: 500")
    assert "view='pods[1].log | lines(490, 510)' shows line 500" in notes["more"]


@given(st.lists(LOG_LINE, min_size=60, max_size=400), st.integers(1500, 4000))
def test_what_the_notes_say_of_a_text_in_an_object_is_so(lines: list[str], bound: int) -> None:
    before = beside("\n".join(lines))
    document, call = Document(before), Call("t", viewable=True, notices=[])
    abridge(document, bound, call)
    after = json.loads(document.encode())
    notes = after.pop("_abridged", {})
    assert len(document.encode()) <= max(bound, len(encode(before)))
    check_notes(left_out(before, after), notes)


def test_a_report_on_each_host_has_its_heads_unless_something_has_failed() -> None:
    report = "".join(
        f"Scan report for host-{n}.example (192.0.2.{n})\n22/tcp  open ssh OpenSSH 9.{n}\n\n"
        for n in range(90)
    )
    excerpt, note = cut(report, 3000)
    assert "\nline 268: Scan report for host-89.example (192.0.2.89)\n" in excerpt
    assert "view='outline()' lists 90 headings" in note["more"]
    failed = report.replace("OpenSSH 9.70\n", "OpenSSH 9.70\nERROR: host-70 reset the connection\n")
    excerpt, note = cut(failed, 3000)
    assert "ERROR: host-70 reset" in excerpt
    assert "1 line there with a failure: 213" in note["text"]
