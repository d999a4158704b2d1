"""A look at a document: what it states is so for the whole, each view that it offers works."""

import json
import re
import subprocess
from collections.abc import Hashable, Iterator
from typing import Any

import pytest
from hypothesis import example, given

from tests.answers.server import RESULTS as ANSWERS
from tests.faults.scale import scaled
from tests.looks.documents import BUDGETS, RESULTS, Sample, dumps, tree
from tests.looks.hits import misses
from tests.looks.offers import SLIPS, breaches, offers, whole_of
from tests.looks.reading import Conversation, Look, document, inner_member, with_inner
from tests.looks.statements import Falsehood, falsehoods
from tests.omissions import check_voice, strings
from tests.platforms import on_posix
from tests.wrapped import ROOT

NO_CUTS = {"read_from", "same", "counts"}

KNOWN: frozenset[str] = frozenset()
"""Kinds of falsehoods that are told now: wide columns without a view."""


def findings(
    sample: Sample, budget: int, states: set[Hashable] | None = None, exempt: frozenset[str] = KNOWN
) -> Iterator[Falsehood]:
    """Yield what is false in the looks at a result and at the views that they offer."""
    conversation = Conversation(sample.result, budget)
    for look in conversation.first():
        if states is not None:
            labels = tuple(offer.label for offer in offers(look))
            states.add((type(sample.value), type(look.value), len(look.notes), *labels[:2]))
        if look.size > budget:
            yield Falsehood("size", "@", f"{look.size} of {budget}")
        cuts = (str(each) for name, each in look.notes.items() if name not in NO_CUTS)
        cut = any(not each.startswith("0 of") for each in cuts)  # data is for no reader
        cut = cut and look.whole != sample.value
        if cut and "more" not in look.notes and "no way" not in exempt:
            yield Falsehood("no way", "@", str(look.notes))
        read_by_us = isinstance(document(sample.texts[0]), str) and not isinstance(look.value, str)
        if read_by_us and "read_from" not in look.notes:
            yield Falsehood("origin", "@", str(look.notes))
        yield from _voice(sample, look)
        every = [*breaches(sample, conversation, look)]
        if not sample.read_by_us(look.value):
            every += falsehoods(sample.source(look.value), look, lossy=sample.lossy)
        yield from (each for each in every if each.kind not in exempt)
        yield from misses(sample, whole_of(sample, look), conversation)


def _voice(sample: Sample, look: Look) -> Iterator[Falsehood]:
    """Yield a note that quotes more than a name of the result, or does so on several lines."""
    theirs = {*strings(sample.value), *sample.texts}
    try:
        check_voice(look.notes if look.whole != sample.value else {}, theirs)
    except AssertionError as error:
        yield Falsehood("voice", "@", str(error))


@given(RESULTS, BUDGETS)
def test_what_a_look_states_is_so_for_the_whole_and_what_it_offers_shows_what_it_says(
    sample: Sample, budget: int
) -> None:
    assert [*findings(sample, budget)] == []


FIXTURES = ROOT / "rules" / "fixtures"


def first_text(name: str) -> str | None:
    """Return the first text of a result, None if it has none or is an error.

    It is that of a server that bundled rules are for, or of a tool of the questions.
    """
    if name in ANSWERS:
        result = ANSWERS[name]()
    else:
        response = json.loads((FIXTURES / name).read_text())["response"]
        response = json.loads(response) if isinstance(response, str) else response
        result = response.get("result", {})
    texts = (block["text"] for block in result.get("content", ()) if "text" in block)
    return None if result.get("isError") else next(texts, None)


RECORDED = [str(file.relative_to(FIXTURES)) for file in sorted(FIXTURES.rglob("*.json"))]
# The answers of the tools are made in their tests: each worker of a run would make them.
SAMPLES = [*(name for name in RECORDED if first_text(name) is not None), *ANSWERS]
SAMPLES.remove("migrate")  # an error


EMPTY_FIRST = {"errors": [], "items": [{"id": 1}]}


@example(Sample((json.dumps(EMPTY_FIRST),), EMPTY_FIRST))
@given(RESULTS)
def test_each_view_that_an_answer_to_a_slip_advises_shows_something(sample: Sample) -> None:
    conversation = Conversation(sample.result, 3_000)
    for slip in SLIPS:
        for look in conversation.ask(slip):
            for offer in offers(look):
                for answer in conversation.ask(offer.view):
                    assert not answer.failed, (slip, offer, answer.text)
                    assert answer.value not in ({"view": None}, {"view": []}), (slip, offer)


@on_posix("no /bin/sh")
@given(RESULTS, BUDGETS)
def test_a_shell_takes_each_view_on_offer_for_one_word(sample: Sample, budget: int) -> None:
    conversation = Conversation(sample.result, budget)
    views = {offer.view for look in conversation.first() for offer in offers(look)}
    words = {word for sentence in conversation.in_shell() for word in in_shell(sentence)}
    assert bool(views) == bool(words)
    for view in words - views:  # where there is room for more, or less
        assert not any(look.failed for look in conversation.ask(view)), view


def in_shell(sentence: str) -> list[str]:
    """Return the words that a shell makes of those in quotes in a sentence."""
    quotes = re.findall(r"""(?:^|; |FILE )('[^']*'|"(?:[^"\\]|\\.)*")""", sentence)
    script = "".join(f"printf '%s\\0' {quote}\n" for quote in quotes)
    run = subprocess.run(["/bin/sh"], input=script.encode(), capture_output=True, check=True)
    assert run.stderr == b""
    return run.stdout.decode().split("\0")[:-1]


# Each fourth sample with one budget, or each with both.
@pytest.mark.parametrize(
    ("name", "budget"),
    [
        (name, budget)
        for number, name in enumerate(SAMPLES)
        for budget in (600, 4_000)[number % scaled(8, 1) :: scaled(8, 1)]
    ],
)
def test_a_real_result_is_looked_at_truly(name: str, budget: int) -> None:
    text = first_text(name)
    assert text is not None
    value = document(text)
    sample = Sample((text,), with_inner(value, inner_member(value)))
    assert [*findings(sample, budget)] == []


def as_json(value: Any) -> Sample:
    return Sample((dumps(value),), value)


def in_fence(value: Any) -> Sample:
    return Sample((f"Found:\n```json\n{dumps(value)}\n```",), value)


# The first row is shown in part, and is then like the last one.
LIKE_THE_LAST = {f"k{n}": [{"a": 0, "b": "x" * 99}, {"a": 1}, {"a": 0}] for n in range(9)}

# The last row is shown, and has none of the columns, or another value than an object.
SPARSE: list[Any] = [{"items": ""} if n % 7 else {"created_at": n, "items": ""} for n in range(254)]
SPARSE[1:3] = [{"items": 1e9}, {"items": [{"a": 1}]}]
TIMES = [f"2026-01-01T{n // 60:02}:{n % 60:02}:00Z" for n in range(162)]
MIXED = {
    str(n): {"id": n + 1, "value": (n, str(n), None, [n], {"n": n})[n % 5], "a.b": time}
    for n, time in enumerate(TIMES)
}
# Trees in arrays of arrays.
TREES = [[{"id": n, "title": "x" * 370, "view": [{"c": "y" * 40}] * n}] for n in range(3)]
FIELDS = [[{"field": name, "value": n} for name in ("id", "name", "_abridged")] for n in range(5)]
ALIKE = [[{"field": "_abridged", "value": each}] for each in ("many", *range(6))]
# The value of one row is shown whole, that of another one is left out.
LARGE = {f"field_{n}": n % 3 or None for n in range(35)}
DEEP = {"a": {"b": {"c": {"d": 0, "e": "x" * 30}}}, "f": 0}
KINDS = {"value": DEEP, "text": LARGE, "x": 3, "id": 4, "same": 5, "y": 6}
WIDE = {f"{name}_{n}": each for n in range(11) for name, each in KINDS.items()}


@pytest.mark.parametrize(
    ("sample", "budget", "kind"),
    [
        (as_json({f"key{n}": {"name": "x" * n, "empty": {}} for n in range(40)}), 600, "empty"),
        (as_json({f"key{n}": n for n in range(100)}), 300, "remark"),
        (as_json({"a": ["name", ["x" * 50] * 8, 0], "b": "z" * 9000}), 2_000, "amounts"),
        (in_fence({f"text{n or ''}": {} for n in range(30)}), 300, "refused"),
        # What is said of the rows around is said of rows inside of them.
        (as_json(tree(4, 3)), 2_374, "columns"),
        (in_fence({f"{n}.ts": {"name": "x" * (2_000 >> 9 * n)} for n in range(8)}), 352, "gap"),
        (in_fence({"rows": [{"f": [{"v": "some words " * n}]} for n in range(9)]}), 600, "no way"),
        (as_json(LIKE_THE_LAST), 350, "amounts"),
        (in_fence(TREES), 324, "amounts"),
        (as_json(SPARSE), 572, "amounts"),
        (in_fence({"ids": [*map(str, range(9))], **MIXED}), 2200, "amounts"),
        (in_fence({"results": FIELDS}), 700, "hits"),
        (as_json({"results": ALIKE}), 300, "hits"),
        (Sample((dumps(WIDE),), WIDE, WIDE), 2040, "amounts"),
        (as_json([{"id": n, "status": n % 3 + 0.5} for n in range(320)]), 1_500, "refused"),
    ],
)
def test_a_falsehood_is_told_no_more(sample: Sample, budget: int, kind: str) -> None:
    every = findings(sample, budget, exempt=frozenset())
    assert [each for each in every if each.kind == kind] == []


@pytest.mark.parametrize("word", ["open", "geöffnet é", 'say "so"', "🙂"])
@pytest.mark.parametrize("budget", [1_300, 1_800, 2_500])
def test_the_beginning_of_a_text_is_offered_as_far_as_a_view_shows_it(
    word: str, budget: int
) -> None:
    rows = "".join(f"{n}\t{word} {n}\t{n * 37 % 101}\n" for n in range(900))
    text = f"id\tname\tsize\n{rows}"
    conversation = Conversation(Sample((text,), text).result, budget)
    [origin] = [look.notes["read_from"] for look in conversation.first()]
    if match := re.search(r"view='text\[0:(\d+)\]' shows it", origin):
        [answer] = conversation.ask(f"text[0:{match[1]}]")
        assert answer.text == text[: int(match[1])]
    assert match or budget < 1_800
