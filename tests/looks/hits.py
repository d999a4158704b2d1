"""Falsehoods in what `grep` says of a document: how often a word is there, and where."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tests.looks.documents import Sample
from tests.looks.oracle import UNKNOWN, dumps, search, value_of
from tests.looks.reading import Conversation
from tests.looks.statements import Falsehood, with_marks

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def misses(sample: Sample, whole: Any, conversation: Conversation) -> Iterator[Falsehood]:
    """Yield what is false in the hits of a word that stands in the middle of a document."""
    words = re.findall(r"[A-Za-z]\w{2,9}", sample.texts[0]) or ["nothing"]
    word = words[len(words) // 2]
    for answer in conversation.ask(f"grep('{word}')"):
        hits = answer.value["view"]
        in_text = "matched_lines" in hits
        claims: Iterator[str] = iter(())
        if in_text:
            claims = _in_text(sample.texts[0], word, hits)
        elif whole is not UNKNOWN and not isinstance(sample.value, str):
            claims = _in_structure(whole, word, hits, cut=bool(answer.notes))
        yield from (
            Falsehood("hits", word, f"{claim} in {dumps(answer.value)[:300]}") for claim in claims
        )


def _in_text(text: str, word: str, hits: dict[str, Any]) -> Iterator[str]:
    text = _COLOUR.sub("", text)  # which no screen shows, and no hit
    lines = text.split("\n")
    count = sum(word in line for line in lines)
    if (hits["matches"], hits["matched_lines"]) != (text.count(word), count):
        yield f"{text.count(word)} in {count} lines"
    further = len(re.findall(word, text, re.IGNORECASE)) - text.count(word)
    if hits.get("ignoring_case", {}).get("matches", further) != further:
        yield f"{further} in other case"
    for hit in hits.get("lines", ()):
        if not all(part in lines[hit["line"] - 1] for part in hit["text"].split("…")):
            yield f"no {hit['text']!r} in line {hit['line']}"
        start = hit["line"] - 1
        before, after = lines[max(start - 3, 0) : start], lines[start + 1 : start + 17]
        beside = {"before": before, "after": after}
        for name, some in beside.items():
            if not all(part in "\n".join(some) for part in hit.get(name, "").split("…")):
                yield f"no {hit[name]!r} {name} line {hit['line']}"
        above = [line.strip() for line in lines[: hit["line"] - 1] if line.strip()]
        *_, last = hit.get("under", "").split(" > ")
        clip = last.endswith("…")
        ends = (last[:-1] in line if clip else line.endswith(last) for line in above)
        if last and not any(ends):
            yield f"no {hit['under']!r} above line {hit['line']}"


def _in_structure(whole: Any, word: str, hits: dict[str, Any], *, cut: bool) -> Iterator[str]:
    texts = [*_texts(whole, (None, True, False) if word in ("null", "true", "false") else ())]
    count = sum(word in each for each in texts)
    if hits["matched_values"] != count:
        yield f"{count} values"
    further = sum(bool(re.search(word, each, re.IGNORECASE)) for each in texts) - count
    if hits.get("ignoring_case", {}).get("matched_values", further) != further:
        yield f"{further} in other case"
    if bool(hits["matched_names"]) != any(word in each for each in _names(whole)):
        yield "other names"
    others = sum(hits.get("others", {}).values())
    in_values = [hit for hit in hits.get("at", ()) if hit.get("text") is not None]
    if not cut and len(in_values) + others != count:
        yield f"{len(in_values)} hits and {others} others"
    for each in hits.get("names", ()):
        if "path" not in each:  # a part of a hit, in little room
            continue
        # The library reads `a.*.b.c` as `(a.*.b).c`.
        flat = re.sub(r"^(.+?)\.\*\.", r"values(\1)[].", each["path"].replace("[*]", "[]"))
        values = search(flat, whole) if "values" in each else ()
        if values is UNKNOWN:  # a star after elements, which the library's function refuses
            continue
        every = Counter(value if isinstance(value, str) else dumps(value) for value in values)
        counts = with_marks(dict(every)) if cut else every  # an answer in full has no marks
        own = each.get("values", {})
        own.pop("null", None)  # which [] leaves out
        if not own.items() <= counts.items() or not (cut or own.keys() == counts.keys()):
            yield f"other values of {each['path']} than {own}"
    for hit in hits.get("at", ()):
        if hit["path"].endswith("…"):  # in little room
            continue
        value = search(hit["path"], whole)
        if hit.get("text") is None:
            name = re.split(r'\.(?=\w+$|"[^"]*"$)', hit["path"])[-1]
            if not cut and not (word in name and _shows(value, hit.get("value", value))):
                yield f"no member with such a name at {hit['path']}"
        elif word not in _text_of(value):
            yield f"no such word at {hit['path']}"
        elif not cut and (word not in hit["text"] or not _is_part(hit["text"], _text_of(value))):
            yield f"{hit['text']!r} of {value!r:.200}"
        if "more" in hit and not cut and word not in str(value_of(whole, "", hit["more"])):
            yield f"no such word in {hit['more']}"
        for each in filter(None, (hit.get("row"), hit.get("part"))):
            source = search(each["view"], whole)
            ways = (source, with_marks(source))
            members = ((name, value) for name, value in each.items() if name not in ("in", "view"))
            wrong = [
                name
                for name, value in members
                if not any(_shows(search(name, way), value) for way in ways)
            ]
            around = [
                str(name)
                for end in re.finditer(r"[.\[]|\Z", each["view"])
                for name in _plain(search(each["view"][: end.start()] or "@", whole))
            ]
            parts = each["in"].split(" / ") if "in" in each else []
            wrong += [part for part in parts if not any(_shows(name, part) for name in around)]
            if wrong or word not in dumps(source):
                yield f"{wrong} of {each}"


def _plain(value: Any) -> Iterable[Any]:
    """Return the members that may be the name of an object."""
    return [each for each in _inner(value) if isinstance(each, str | int)]


def _is_part(part: str, text: str) -> bool:
    return all(each in text for each in part.split("…"))


def _shows(source: Any, value: Any) -> bool:
    if isinstance(source, dict) and isinstance(value, dict):  # which may be cut
        return all(_shows(source.get(name), each) for name, each in value.items())
    if isinstance(source, list) and isinstance(value, list):
        return all(any(_shows(one, each) for one in source) for each in value)
    return bool(source == value) or (
        isinstance(value, str) and value.partition("…")[0] in str(source)
    )


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


def _texts(value: Any, others: Iterable[Any]) -> Iterator[str]:
    """Yield the texts in a value, and those of `others` in it as JSON writes them."""
    if isinstance(value, str) or any(value is each for each in others):
        yield _text_of(value)
    for each in _inner(value):
        yield from _texts(each, others)


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for each in _inner(value):
        yield from _names(each)


def _inner(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
