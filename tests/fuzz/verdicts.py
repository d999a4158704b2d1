"""The oracle of `pairs`: checks that every shaping passes, with any rule and response."""

import json
import pickle
import re
from collections import Counter
from collections.abc import Iterator

from mcp_abridge.document.javascript import spelled
from mcp_abridge.document.surrogates import replace_lone
from mcp_abridge.ruleset.clients import Shows
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.shaping import pipeline
from mcp_abridge.shaping.job import ShapeJob, ShapeResult

from tests.fuzz.fuzzer import Wrong
from tests.fuzz.reading import Response, bare, members, numbers, valid
from tests.omissions import check_voice, strings

# Steps that make no value of their own, but for notices.
SPELLING = {
    *("keep", "drop", "rename", "filter", "sort", "elide", "paginate", "table", "abridge"),
    *("contract", "truncate", "clip", "prune"),
}
_LEAST = 300
_BLOCK = len('{"type":"text","text":},')
_RESULT = len('{"content":[],"structuredContent":,"isError":false,"resultType":"complete"}')
_BOTH = ("both", "once", "once_in_javascript", "result")
_COMPARED = 64 << 10  # bytes of a copy; of longer ones, which no client shows whole, the lengths
_NUMBER = re.compile(r"-?\d[\d.eE+-]*")
_DEEP = ("RecursionError", "nested too deeply")
AS_CAME = ("untouched", "shadow", "error", "failed")


def travels(job: ShapeJob, outcome: ShapeResult) -> None:
    """Hold what a worker process makes of a job against what this one has made of it."""
    there = pickle.loads(pickle.dumps(job))
    back = pickle.loads(pickle.dumps(pipeline.shape(there)))
    if any(word in (each.log_line or "") for word in _DEEP for each in (outcome, back)):
        return  # how deep is too deep depends on where it is done
    for name in outcome.__struct_fields__:
        here, other = getattr(outcome, name), getattr(back, name)
        if here != other:
            raise Wrong("a worker gives the same", f"{name}: {here!r}\nand {other!r}")


def judge(job: ShapeJob, outcome: ShapeResult) -> None:
    assert job.raw is not None
    before, after = Response.of(replace_lone(job.raw)), _line(job, outcome)
    if valid(before.line) is not False and valid(after.line) is False:
        raise Wrong("what is sent is JSON", after.line)
    rule = job.rule
    if outcome.outcome in AS_CAME and not (rule.structures or (rule.errors and before.failed)):
        withheld = outcome.outcome == "failed" and rule.failure_policy.withholds
        marked = outcome.outcome == "error" and (rule.errors or rule.structures)
        long = outcome.outcome == "error" and len(job.raw) > (rule.max_bytes or len(job.raw))
        if outcome.raw != job.raw and not withheld and not marked and not long:
            raise Wrong(f"what is {outcome.outcome} goes out as it came", after.line)
    if outcome.outcome == "error" and outcome.raw != job.raw:
        if before.failed and not after.failed:
            raise Wrong("an error stays one", after.line)
        if "result" in after.envelope and outcome.log_line is None:
            _sized(job, outcome, after)
    if outcome.outcome not in ("shaped", "view"):
        return
    for name, value in before.envelope.items():
        if name not in ("id", "result") and after.envelope.get(name) != value:
            raise Wrong("the envelope stays", f"{name}: {after.envelope.get(name)}")
    for name, value in before.result.items():
        is_other = name not in ("content", "structuredContent")
        if is_other and bare(after.result.get(name, "")) != bare(value):
            raise Wrong("other members of a result stay", f"{name}: {after.result.get(name)}")
    others = [each for each in before.others if not _dropped(each, rule)]
    # A rule that does not fit only bounds what came.
    if after.others != others and (outcome.log_line is None or after.others != before.others):
        raise Wrong("other blocks stay, in order", f"{after.others}")
    _sized(job, outcome, after)
    _speaks(after, before.line)
    if rule.copies == "both" and rule.document == "auto" and _mirrored(before):
        _agrees(after)
    # What the server itself sends as no object stays none: the schema is a mistake of the rule.
    objects = rule.structures and (before.structured or "{")[:1] == "{"
    if objects and (after.structured or "")[:1] != "{":
        raise Wrong("what is promised is there", after.line)
    if job.view is None:
        _spelled(rule, before, after)


def judge_later(job: ShapeJob, outcome: ShapeResult) -> None:
    after = _line(job, outcome)
    if valid(after.line) is False:
        raise Wrong("what is sent is JSON", after.line)
    assert job.snapshot is not None
    allowed = ("page", "view", "refused", "failed", "untouched")
    if outcome.outcome not in allowed:
        raise Wrong("what comes of a snapshot is a page or a view", outcome.outcome)
    if outcome.outcome in ("page", "view"):
        _sized(job, outcome, after)
        _speaks(after, job.snapshot.raw.decode("utf-8", "surrogatepass"))


def _line(job: ShapeJob, outcome: ShapeResult) -> Response:
    if b"\n" in outcome.raw:
        raise Wrong("what is sent is one line", repr(outcome.raw))
    after = Response.of(outcome.raw)
    if "id" in after.envelope and after.envelope["id"].encode() != job.id:
        raise Wrong("the id keeps its spelling", after.envelope["id"])
    if after.envelope.get("jsonrpc") != '"2.0"' or "id" not in after.envelope:
        raise Wrong("what is sent is a response", after.line)
    return after


def _dropped(block: str, rule: Rule) -> bool:
    return any(f'"type":"{kind}"' in block for kind in rule.drop_blocks)


def _sized(job: ShapeJob, outcome: ShapeResult, after: Response) -> None:
    """Hold the sizes against what a model sees, and against the bound."""
    size = visible(after, job.shows)
    if outcome.visible_after != size:
        raise Wrong("what the model sees is counted", f"{outcome.visible_after}, {size}")
    most = job.rule.max_bytes
    if most is None or size <= most or _rigid(after):
        return
    # Nothing is made smaller than this for the sake of what is shown beside it, and texts that take
    # up to three quarters stay.
    copies = 2 if after.structured is not None and after.texts and job.shows in _BOTH else 1
    escapes = size - visible(after, "both") if job.shows in ("blocks", "result") else 0
    if size > max(most, _LEAST * copies + max(_LEAST, most * 3 // 4) + max(escapes, 0)):
        raise Wrong("what the model sees is within max_bytes", f"{size} of {most}")


def _speaks(after: Response, source: str) -> None:
    """Hold notices to be ours, and to quote of the source little and on one line."""
    theirs = {*_every(source)}
    for place in filter(None, [after.structured, *after.texts]):
        if "_abridged" not in place or place[:1] != "{" or not valid(place):
            continue
        notice = json.loads(place).get("_abridged")
        if theirs.issuperset(strings(notice)):
            continue  # a server's, in an answer without one of ours
        try:
            check_voice(notice, theirs)
        except AssertionError as error:
            raise Wrong("a notice quotes little, on one line", str(error)) from error


def _every(text: str) -> Iterator[str]:
    """Yield the names and the texts in JSON, those in JSON inside of a text too."""
    for each in strings(json.loads(text)) if valid(text) else ():
        yield from _every(each) if each[:1] in ("{", "[") and valid(each) else (each,)


def _rigid(after: Response) -> bool:
    return _NUMBER.fullmatch(after.structured or (after.texts or [""])[0]) is not None


def visible(after: Response, shows: Shows) -> int:
    text = sum(len(block.encode("utf-8", "surrogatepass")) for block in after.texts)
    content = after.result.get("structuredContent")
    structured = 0 if content in (None, "null") else len(content.encode())  # null is none
    if shows == "structured":
        return structured or text
    if shows == "text":
        return text
    if shows in ("blocks", "result"):
        texts = (json.dumps(block, ensure_ascii=False) for block in after.texts)
        escaped = 2 + sum(len(block.encode("utf-8", "surrogatepass")) + _BLOCK for block in texts)
        return escaped if shows == "blocks" else structured + escaped + _RESULT
    once = shows in ("once", "once_in_javascript")
    together = shows == "both" or (once and structured != text)
    if shows == "once_in_javascript" and structured <= _COMPARED:
        together = _in_javascript(after) not in after.texts
    return structured + text if together else max(structured, text)


def _mirrored(before: Response) -> bool:
    content = before.structured
    return content is not None and bare(content) in map(bare, before.texts)


def _agrees(after: Response) -> None:
    if after.structured is None or not after.texts:
        raise Wrong("both copies are sent", after.line)
    texts, content = _unquoted(after.texts), bare(after.structured)
    alike = set(map(bare, texts))
    if content[:1] != "{" or content in alike or _in_javascript(after) in texts:
        return
    # Beside what is no object, there may be notices.
    wrapped = members(content)
    text = wrapped.get("text", "")
    if wrapped.get("items") not in alike and not (text[:1] == '"' and json.loads(text) in texts):
        raise Wrong("the copies of a document agree", after.line)


def _in_javascript(after: Response) -> str | None:
    return spelled((after.structured or "").encode("utf-8", "surrogatepass"))


def _unquoted(texts: list[str]) -> list[str]:
    return [*texts, *(json.loads(each) for each in texts if each[:1] == '"' and valid(each))]


def _spelled(rule: Rule, before: Response, after: Response) -> None:
    """Hold the numbers that are sent against those that came."""
    if not all(step.name in SPELLING for step in rule.pipeline) or rule.structures:
        return
    expected = Counter(_numbers(before))
    for place in filter(None, [after.structured, *after.texts]):
        if place[:1] not in "{[" or not valid(place) or place == _in_javascript(after):
            continue
        odd = [each for each in numbers(place) if not each.isdigit() and each not in expected]
        if odd:
            raise Wrong("a value that is kept is spelled as it came", f"{odd[:3]}")


def _numbers(before: Response) -> Iterator[str]:
    """Yield the numbers of JSON, and those of texts in which rows are read (Python, CSV, YAML).

    Such a text may be a member of an object.
    """
    content = before.structured
    inside = strings(json.loads(content)) if content and valid(content) else ()
    for place in filter(None, [content, *inside, *_unquoted(before.texts)]):
        yield from numbers(place) if valid(place) else _NUMBER.findall(place)
