"""Shows a long text by its beginning and its end, or its headings, and describes what is between.

Invariant: the characters shown, plus those that the note counts as left out, are the whole.
"""

from itertools import accumulate, islice, takewhile

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.measure import chars_that_fit, encoded_size, ending
from mcp_abridge.query.call import Call
from mcp_abridge.query.headings import Heading, headings
from mcp_abridge.query.patterns import Pattern

MARK = "…"  # stands for the characters left out
NOTE_END = " left out]"  # the end of a note that stands for a whole string, and is never cut

_FAILURE = (
    r"(?im)^.*?(?:(?:\b|_)(?:errors?|exceptions?|failures?|timeouts?|timed out|fail(?:s|ed|ing)?"
    r"|fatal|panic(?:s|ked)?|traceback|denied)\b"
    r"|(?-i:[A-Za-z](?:Error|Exception|Failure|Timeout)s?\b))"  # names of classes
)
_LISTED = 5  # line numbers of failures in a note
_MOST_FAILURES = 1000  # lines that are counted; a text may have a million
_PART = 256 << 10  # characters that are searched at once
_QUOTED = 200  # characters of such a line that are shown
_AROUND = 10  # lines shown on either side of a failure
_FEWEST = 3  # headings of a text that has an outline
_HEADINGS = 2000  # headings that are read
_SCANNED = 512 << 10  # characters that are searched for headings
_LEAST = 400  # bytes for an outline; with less, the end of the text is shown
WINDOW = 150  # bytes of a view that are left for its notice
_REST = 45  # bytes for the number of headings that do not fit

_Span = tuple[int, int]
"""The offset of a line that speaks of failure, and the end of the first such word in it."""


def excerpt(
    text: str, room: int, notes: int, call: Call, bound: int = 0
) -> tuple[str, dict[str, str]]:
    """Return `text` cut to `room` bytes as JSON, and the note on it in `notes` bytes.

    Views of it may take `bound` bytes. 60 of 100 bytes are for the beginning, the others for the
    headings, if it has any and is no error, else for the end. Between the two stand the first lines
    left out that speak of failure.
    """
    room = max(room - len(f'"{MARK}\n{MARK}"'.encode()), 0)
    head, tail = both_ends(text, room)
    between = "" if call.error else _outline(text, head, room * 2 // 5)
    if between:
        head, tail = ending(text, chars_that_fit(text, room - encoded_size(between))), len(text)
    failures = _failures(text, head, tail)
    if failures and not between and room >= _LEAST:
        between = _quoted(text, failures, room // 6)
        searched = head, tail
        head, tail = both_ends(text, room - encoded_size(between))
        failures = _more_failures(text, head, tail, failures, searched)
        between = _quoted(text, failures, encoded_size(between))
    # As much as a view may show, its notice included.
    window = text[head : head + max(max(bound, room + notes) - WINDOW, WINDOW)]
    end = min(head + ending(window, chars_that_fit(window, len(window) - 1)), tail)
    facts, ways = _facts(text, head, tail, failures, f"text[{head}:{end}]", call)
    middle = f"{MARK}\n{between}{MARK * (tail < len(text))}" if between else MARK
    note = _fitting(facts, ways if call.viewable else [], notes)
    return text[:head] + middle + text[tail:], note


def both_ends(text: str, room: int) -> tuple[int, int]:
    """Return where the beginning ends and the end begins, at lines if possible, in `room` bytes."""
    head = ending(text, chars_that_fit(text, room * 3 // 5))
    last = max(len(text) - room * 2 // 5, head)
    tail = len(text) - chars_that_fit(text[last:][::-1], room * 2 // 5)
    line = text.find("\n", tail, (tail + len(text)) // 2)
    return head, tail if line < 0 else line


def calls_for_more(call: Call, view: str) -> list[str]:
    """Return the calls that notices name: `view` for what is next, all if it fits, a search."""
    search = call.question("grep('word')")
    whole = [call.all_question] if call.all_question else []
    return [call.next_question(view), *whole, f"{search} searches"]


def _facts(
    text: str, head: int, tail: int, failures: list[_Span], window: str, call: Call
) -> tuple[list[str], list[str]]:
    last = f" and last {len(text) - tail}" if tail < len(text) else ""
    facts = [f"first {head}{last} of {len(text)} chars"]
    ways = calls_for_more(call, window)
    first_line = text.count("\n", 0, head) + 1
    last_line = first_line + text.count("\n", head, tail - 1)
    if first_line < last_line:
        at_ends = text[head - 1 : head] in ("", "\n") and text[tail : tail + 1] in ("", "\n")
        parts = "" if at_ends else "parts of "
        facts.append(f"{parts}lines {first_line} to {last_line} are left out")
    if failures and first_line < last_line:
        numbers = [first_line + text.count("\n", head, start) for start, _ in failures[:_LISTED]]
        first = numbers[0]
        least = "at least " * (len(failures) == _MOST_FAILURES)
        noun = "line" if len(failures) == 1 else "lines"
        listed = ", ".join(map(str, numbers)) + ", …" * (len(failures) > _LISTED)
        facts.append(f"{least}{len(failures)} {noun} there with a failure: {listed}")
        around = call.question(f"lines({max(first - _AROUND, 1)}, {first + _AROUND})")
        ways.insert(1, f"{around} shows line {first}")
    return facts, ways


def _quoted(text: str, places: list[_Span], room: int) -> str:
    quoted = ""
    for start, word_end in places[:_LISTED]:
        number = text.count("\n", 0, start) + 1
        begin = max(start, word_end - _QUOTED // 2)
        line = text[begin : begin + _QUOTED].partition("\n")[0]
        quote = f"line {number}: {MARK * (begin > start)}{line}\n"
        room -= encoded_size(quote) - len('""')
        if room < 0:
            break
        quoted += quote
    return quoted


def _more_failures(
    text: str, start: int, end: int, failures: list[_Span], searched: tuple[int, int]
) -> list[_Span]:
    first, last = searched
    if not text[first - 1] == "\n" == text[last : last + 1]:
        return _failures(text, start, end)
    before, after = _failures(text, start, first), _failures(text, last, end)
    return [*before, *failures, *after][:_MOST_FAILURES]


def _failures(text: str, start: int, end: int) -> list[_Span]:
    pattern, fuel, spans = Pattern(_FAILURE), Fuel(), list[_Span]()
    while start < end and len(spans) < _MOST_FAILURES:
        stop = text.rfind("\n", start, min(start + _PART, end)) + 1
        if not stop or start + _PART >= end:
            stop = min(start + _PART, end)
        part = islice(pattern.spans(text[start:stop], fuel), _MOST_FAILURES - len(spans))
        spans += [(start + first, start + last) for first, last in part]
        start = stop
    return spans


def _outline(text: str, start: int, room: int) -> str:
    """Return the headings after `start` of one or two levels that fit; empty if there are few."""
    if room < _LEAST:
        return ""
    every = list(islice(headings(text[:_SCANNED], Fuel()), _HEADINGS))
    least = "at least " * (len(every) == _HEADINGS or len(text) > _SCANNED)
    every = [heading for heading in every if _is_real(text, heading)]
    levels = sorted({heading.level for heading in every})[:2]
    if sum(heading.level in levels for heading in every) < _FEWEST:
        return ""
    every = [heading for heading in every if heading.offset >= start]
    lines: list[str] = []
    for level in levels:
        outline = [f"line {each.line}: {each.text}\n" for each in every if each.level <= level]
        if len(lines) < _FEWEST or encoded_size("".join(outline)) <= room:
            lines = outline
    if encoded_size("".join(lines)) <= room and not least:
        return "".join(lines)
    ends = accumulate(map(encoded_size, lines))
    count = sum(1 for _ in takewhile((room - _REST).__ge__, ends))
    return f"{''.join(lines[:count])}and {least}{len(lines) - count} more headings\n"


def _is_real(text: str, heading: Heading) -> bool:
    """Return True unless a heading is a comment in code: in Markdown an empty line is before it."""
    before = text[max(heading.offset - 4, 0) : heading.offset].replace("\r", "")
    return text[heading.offset] != "#" or before[-2:] in ("", "\n", "\n\n")


def _fitting(facts: list[str], ways: list[str], room: int) -> dict[str, str]:
    """Return a note with as many of the facts and ways as fit in `room`, but the first of each."""
    note = {"text": facts[0]} | ({"more": ways[0]} if ways else {})
    for name, others in (("text", facts[1:]), ("more", ways[1:])):
        for sentence in others:
            longer = {**note, name: f"{note[name]}; {sentence}"}
            if encoded_size(longer) <= room:
                note = longer
    return note
