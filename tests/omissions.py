"""What a shortened document leaves out, counted anew, and held against what its notes say."""

import json
import re
from collections import Counter
from typing import Any

Amounts = Counter[tuple[str, str, str]]
"""Elements, members and characters by path, by unit, and `shown`, `total` or `places`."""

_AMOUNT = re.compile(r"(\d+) of (\d+)( members| chars)?(?: in (\d+) (?:arrays|objects|texts))?")
_SUMS = re.compile(r"(.+) at (\d+) paths?")


def left_out(before: Any, after: Any, path: str = "", *, blocks: bool = False) -> Amounts:
    """Count what `after`, which is `before` cut, shows of each array, object and text it cut."""
    amounts: Amounts = Counter()
    shown = characters(before, after) if isinstance(before, str) and before != after else None
    if isinstance(before, dict | list):
        shown = len(after)
    if shown is not None and shown < len(before):
        unit = " members" if isinstance(before, dict) else " chars" * isinstance(before, str)
        counts = {"shown": shown, "total": len(before), "places": 1}
        amounts += Counter({(path or "@", unit, kind): number for kind, number in counts.items()})
    if isinstance(before, dict):
        for name, value in after.items():
            amounts += left_out(before[name], value, _below(path, name))
    elif isinstance(before, list):
        for position, (one, other) in enumerate(zip(before, after, strict=False)):
            inner = f"{path}[{position}]" if blocks else f"{path}[]"
            amounts += left_out(one, other, inner)
    return amounts


def _below(path: str, name: str) -> str:
    while path.endswith("[]") and path != "[]":
        path = path.removesuffix("[]")
    plain = name.isascii() and name.isidentifier()
    spelled = name if plain else json.dumps(name, ensure_ascii=False)
    if len(spelled) > 100:
        spelled = "…"
    return f"{path}.{spelled}" if path else spelled


def check_notes(amounts: Amounts, notes: dict[str, str]) -> None:
    """Hold the notes `_abridged` to say all of `amounts`, and nothing else."""
    rest = Counter(amounts)
    for name, note in notes.items():
        if name in ("more", "others"):
            continue
        path = name.removeprefix("@.")
        for part in note.split("; "):
            shown, total, unit, places = _AMOUNT.fullmatch(part).groups()  # type: ignore[union-attr]
            told = {"shown": int(shown), "total": int(total), "places": int(places or 1)}
            for kind, number in told.items():
                assert rest.pop((path, unit or "", kind), 0) == number, (name, note)
    sums: Counter[tuple[str, str]] = Counter()
    for (_, unit, kind), number in rest.items():
        if kind != "places":
            sums[unit, kind] += number
    others: Counter[tuple[str, str]] = Counter()
    if "others" in notes:
        parts, paths = _SUMS.fullmatch(notes["others"]).groups()  # type: ignore[union-attr]
        assert int(paths) == len({path for path, _, _ in rest})
        for part in parts.split(", "):
            shown, total, unit, _ = _AMOUNT.fullmatch(part).groups()  # type: ignore[union-attr]
            others[unit or "", "shown"] += int(shown)
            others[unit or "", "total"] += int(total)
    assert +sums == +others, (rest, notes)


_ENDS = re.compile(r"first (\d+)(?: and last (\d+))? of (\d+) chars")
_OUTLINE = re.compile(r"(line \d+: .*\n)+(and \d+ more headings\n)?|and \d+ more headings\n")


def characters(before: str, after: str) -> int:
    """Count the characters that `after`, which is `before` cut, shows of it: of both ends."""
    for mark in re.finditer("…", after):
        first, last = after[: mark.start()], after[mark.end() :]
        if before.startswith(first) and (before.endswith(last) or _OUTLINE.fullmatch(last[1:])):
            return len(first) + len(last) * before.endswith(last)
    assert before.startswith(after), after
    return len(after)


def check_text(before: str, after: str, note: dict[str, str]) -> None:
    """Hold the note on a text to say how much of either end is shown, and of how much."""
    match = _ENDS.match(note["text"])
    assert match is not None, note
    first, last, total = (int(each or 0) for each in match.groups())
    assert (first + last, total) == (characters(before, after), len(before))
    assert after[:first] == before[:first]
    assert first + last < total
    if last:
        assert after[-last:] == before[-last:]
    if lines := re.search(r"; lines (\d+) to (\d+) are left out", note["text"]):
        omitted = before[first : len(before) - last]
        numbers = before.count("\n", 0, first) + 1, omitted.rstrip("\n").count("\n")
        assert tuple(map(int, lines.groups())) == (numbers[0], sum(numbers))
