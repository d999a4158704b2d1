"""Asks for one page after the other, as each says, and puts them together again."""

import json
from collections.abc import Hashable, Iterator
from typing import Any

from msgspec.structs import replace

from proxy.document.paths import Name, Path
from proxy.document.surrogates import replace_lone
from proxy.ruleset.rule import Rule
from proxy.shaping import pipeline
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.transforms.base import Transform
from proxy.transforms.paginate import Paginate
from proxy.transforms.truncate import Truncate
from tests.fuzz.fuzzer import Wrong
from tests.fuzz.reading import Response, bare, elements, members, replaced, valid, value

MOST = 40  # pages that are asked for


def rejoined(job: ShapeJob, outcome: ShapeResult) -> Iterator[Hashable]:
    """Hold the pages of an answer against the document that its rule makes without windows.

    Only where one window is the last step of the rule, and the document stands in one text.
    """
    window = _window(job.rule)
    assert job.raw is not None
    before = Response.of(job.raw)
    if window is None or len(before.texts) != 1:
        return
    if before.structured is not None and bare(before.structured) != bare(before.texts[0]):
        return
    steps = tuple(
        step for step in job.rule.pipeline if step is not window and step.name != "abridge"
    )
    # The whole may be more than came, where a page is not.
    plain = replace(job.rule, pipeline=steps, max_bytes=None, output_schema=None, allow_growth=True)
    whole = pipeline.shape(replace(job, rule=plain))
    if whole.outcome == "failed":
        return
    reads = _elements if isinstance(window, Paginate) else _characters
    texts = [
        replaced(text) if valid(text) else text
        for text in Response.of(replace_lone(whole.raw)).texts
    ]
    expected = reads(texts, window, first=False)
    if expected is None:
        return
    found: list[Any] = []
    at: int | None = 0
    for number in range(MOST):
        came = pipeline.shape(_asking(job, outcome, window, at))
        page = Response.of(came.raw)
        if came.outcome != "page" or b'"_abridged' in came.raw:
            yield ("page", came.outcome)
            return
        part = reads(page.texts, window, first=True)
        if part is None:
            raise Wrong("a page holds what it is a page of", page.line)
        found = part + found if getattr(window, "from_", "") == "end" else found + part
        following = _following(page.texts, window)
        if following is None:
            if found != expected:
                raise Wrong("pages rejoin", f"expected {expected!r}\nand found {found!r}")
            yield ("rejoined", window.name, number > 0)
            return
        if following <= (at or 0):
            raise Wrong("each page leads on", f"from {at} to {following}")
        at = following


def _window(rule: Rule) -> Any:
    if not all(step.name != "parse" for step in rule.pipeline) or rule.copies != "both":
        return None
    if rule.document != "auto":
        return None
    steps: list[Transform] = [step for step in rule.pipeline if step.name != "contract"]
    if steps and steps[-1].name == "abridge":
        steps.pop()
    if any(step.name == "abridge" for step in steps):
        return None
    last = steps[-1] if steps else None
    if isinstance(last, Paginate) and (last.page_info is not None or len(last.paths) > 1):
        return None
    if isinstance(last, Truncate) and last.hint == "inline":
        return None
    single = len(rule.snapshot_step.windows) == 1
    return last if last is not None and last.window and single else None


def _asking(job: ShapeJob, outcome: ShapeResult, window: Any, at: int | None) -> ShapeJob:
    name = "offset" if isinstance(window, Paginate) else "startIndex"
    asked = {**job.arguments, window.arguments.get(name, name): at}
    if not isinstance(window, Paginate):
        # The rest in a few pages, however short the first one is.
        asked[window.arguments.get("maxLength", "maxLength")] = max(
            window.max_length, 2 + (at or 0)
        )
    return replace(job, raw=None, snapshot=outcome.snapshot, arguments=asked)


def _names(path: Path) -> list[str]:
    return [step.text for step in path.steps if isinstance(step, Name)]


def _held(texts: list[str], path: Path) -> str | None:
    """Return what stands at a path of the document, spelled."""
    value: str | None = texts[0] if texts else None
    for name in _names(path):
        value = members(value).get(name) if value is not None else None
    return value


def _elements(texts: list[str], window: Any, *, first: bool) -> list[Any] | None:
    path = window.paths[0]
    held = _held(texts, path) if texts and valid(texts[0]) else None
    if first and not path.steps and held is not None:
        held = members(held).get(window.as_)
    return (
        [value(each) for each in elements(held)] if held is not None and held[:1] == "[" else None
    )


def _characters(texts: list[str], window: Any, *, first: bool) -> list[str] | None:
    held = _held(texts, window.at)
    if held is None:
        return None
    if window.at.steps:
        return list(json.loads(held)) if held[:1] == '"' else None
    # Of a text that is JSON the document is no text.
    return list(held) if first or held.lstrip()[:1] not in tuple('[{"') else None


def _following(texts: list[str], window: Any) -> int | None:
    """Return where a page says that the next one begins; None where there is none."""
    pages = isinstance(window, Paginate)
    path = window.paths[0] if pages else window.at
    word, key = ("pagination", "nextOffset") if pages else ("truncation", "nextIndex")
    if path.steps or pages:
        holder = members(_held(texts, Path("", path.steps[:-1])) or "")
        names = [name for name in holder if name.rstrip("_") == word]
        said = members(holder[max(names, key=len)]) if names else {}
    else:
        said = members(texts[1]) if len(texts) > 1 else {}
    following = said.get(key, "null")
    return None if following == "null" else int(following)
