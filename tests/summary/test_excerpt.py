import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.tree import Document, encode
from mcp_abridge.query.call import Call
from mcp_abridge.query.view import look
from mcp_abridge.transforms.abridge import Abridge, abridge

from tests.omissions import check_text

LINE = "a line of a text that goes on for a while\n"


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
    ],
)
def test_words_for_failure(line: str) -> None:
    # Words that only look alike are none, and what stands at an end is shown.
    _, note = cut(
        f"{LINE * 200}{line}\nerrorless, failsafe, terrors, hispanic\n{LINE * 200}Error\n", 3000
    )
    assert note["text"].endswith("; 1 line there with a failure: 201")


def test_a_million_failures_are_not_counted_to_the_end() -> None:
    _, note = cut("no error\n" * 100_000, 3000)
    assert "; at least 1000 lines there with a failure: " in note["text"]


SECTIONS = "# Guide\n\n" + "".join(
    f"## Part {n}\n\n```sh\n# no heading\n```\n\n### Details of {n}\n\n{LINE * 20}\n"
    for n in range(1, 30)
)


def test_a_text_with_headings_has_an_outline_of_two_levels_in_place_of_its_end() -> None:
    excerpt, note = cut(SECTIONS, 8000)
    first, outline = excerpt.split("…\n")
    assert SECTIONS.startswith(first)
    headings = outline.splitlines()
    assert headings[-1].endswith(": ## Part 29")
    assert not any("Details" in line or "no heading" in line for line in headings)
    lines = SECTIONS.splitlines()
    for heading in headings:
        number, _, words = heading.removeprefix("line ").partition(": ")
        assert lines[int(number) - 1] == words
    assert f" to {len(lines)} are left out" in note["text"]


def test_headings_that_do_not_fit_are_counted() -> None:
    excerpt, _ = cut(SECTIONS, 1800)
    *headings, more = excerpt.split("…\n")[1].splitlines()
    first = int(headings[0].split("Part ")[1])
    assert more == f"and {29 - first + 1 - len(headings)} more headings"


def test_a_million_headings_or_fences_are_not_read_to_the_end() -> None:
    excerpt, _ = cut("# heading\n\nsome text\n\n" * 100_000, 8000)
    assert re.search("\nand at least [0-9]+ more headings\n$", excerpt)
    excerpt, _ = cut("```\n# no heading\n" * 400_000, 8000)
    assert "line " not in excerpt


def test_html_has_an_outline_too() -> None:
    text = "<html>\n" + "".join(f"<h2 id='a'>Part {n}</h2>\n{LINE * 60}" for n in range(9))
    assert cut(text, 6000)[0].endswith(": Part 8\n")


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"# comment {n}\nstep {n}\n" for n in range(900)),
        "# one\n\ntwo\n\n# three\n\n" + LINE * 300,
        SECTIONS.replace("\n\n", "\n"),
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


def test_a_first_look_at_a_far_longer_text_is_short_and_its_views_are_not() -> None:
    call, document = Call("run", viewable=True, notices=[]), Document(LINE * 4000)
    Abridge(max_bytes=10_000, first_look=2000)(document.root, call)
    [notice] = call.notices
    assert len(document.encode()) + len(encode({notice.name: notice.value})) <= 2000
    [(start, end)] = re.findall(r"text\[(\d+):(\d+)\]", notice.value["more"])
    assert int(end) - int(start) > 9000
