"""The account of one call that `explain` prints, as one JSON object."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from proxy.document.fuel import Fuel
from proxy.document.lookups import Lookups
from proxy.document.paths import select
from proxy.document.patterns import truthy
from proxy.document.tree import Document, plain
from proxy.errors import AbridgeError
from proxy.ruleset.clients import CLIENTS
from proxy.ruleset.guard import Allow, QueryResult
from proxy.ruleset.rule import Rule
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.shaping.pipeline import shape
from proxy.shaping.result.frame import Copy
from proxy.shaping.result.locate import LocatedDocument
from proxy.testing import answer as answers
from proxy.testing.answer import ClientView
from proxy.testing.choice import choices
from proxy.testing.decisions import Decided
from proxy.testing.play import Replay
from proxy.transforms.base import Call, Transform, Warned
from proxy.transforms.filter import Filter
from proxy.transforms.jmespath import Jmespath
from proxy.transforms.recast import Recast

_MOST_LINES = 8
_WIDEST = 160


def explained(play: Replay, name: str = "") -> dict[str, Any]:
    """Return the account of a call and its response; the keys are the same for every call."""
    exchange, rule, before = play.exchange, play.applied, play.before
    told = _Told()
    steps = [] if rule is None else list(_steps(play, rule, told))
    return {
        "file": name,
        "tool": exchange.tool,
        "arguments": exchange.arguments,
        "upstream": play.calls[0] if play.calls else None,
        "rule": None if rule is None else rule.name,
        "rules": [
            {
                "name": each.rule.name,
                "place": each.rule.place,
                "applies": each.applies,
                "reason": each.reason,
            }
            for each in choices(play.rules, exchange.tool, exchange.arguments)
        ],
        "guard": _guard(play),
        "document": None if rule is None else _document(play, rule),
        "outcome": _outcome(play),
        "steps": steps,
        "missing": list(dict.fromkeys(path for step in steps for path in step["missing"])),
        "notices": told.notices,
        "warnings": _warnings(play),
        "vocabulary": {} if rule is None else _vocabulary(rule),
        "log": list(dict.fromkeys(play.log)),
        "before": _sizes(before),
        "after": _sizes(play.answer),
        "shown": _shown(play.answer),
        "clients": list(_clients(before, play.answer)),
    }


def _outcome(play: Replay) -> str:
    """Return the outcome of the call; an error result is an error even if it passes unchanged."""
    return "error" if play.outcome == "untouched" and play.answer.failed else play.outcome


# Guards


def _guard(play: Replay) -> dict[str, Any] | None:
    """Return the query, the query result and the decision of the guard; None if none decided."""
    if not play.decisions:
        return None
    last = play.decisions[-1]
    return {
        "name": last.name,
        "asks": play.queries[0] if play.queries else None,
        "found": None if last.result is None else _found(last.result),
        "decision": _decision(play, last),
        "facts": last.decision.facts if isinstance(last.decision, Allow) else {},
    }


def _decision(play: Replay, last: Decided) -> str:
    said = f"the guard {last.name!r} failed: "
    if any(said in line for line in play.log):
        return "failed"
    return "forward" if isinstance(last.decision, Allow) else "answer"


def _found(found: QueryResult) -> dict[str, Any]:
    return {"document": found.document} if found.failure is None else {"failure": found.failure}


# Documents


def _document(play: Replay, rule: Rule) -> dict[str, Any] | None:
    """Return the kind and the places of the document that the steps work on; None if none."""
    if not play.calls:
        return {"kind": "text", "copies": ["the refusal"]} if _reshapes(play, rule) else None
    if play.before.error is not None:
        found = {"kind": "text", "copies": ["the message of the error"]}
        return found if rule.errors else None
    reading = play.document(rule)
    return None if reading is None else _read(reading)


def _read(reading: LocatedDocument) -> dict[str, Any]:
    copies = reading.frame.copies
    kind = "text" if reading.document.textual else "JSON"
    return {"kind": kind, "copies": [_place(copy) for copy in copies]}


def _place(copy: Copy) -> str:
    """Return the place of a copy of the document in words."""
    if copy.where == "structured":
        return "structuredContent"
    if copy.where == "member":
        return f"the member {copy.member!r} of structuredContent"
    numbers = ", ".join(str(at + 1) for at in copy.blocks)
    if len(copy.blocks) > 1:
        return f"content blocks {numbers}, an element each"
    return f"content block {numbers}{', as a JSON string' if copy.quoted else ''}"


# Steps


class _Told:
    """Collects the reports of the steps: paths that matched nothing, notices, and the document."""

    def __init__(self) -> None:
        self.missing: list[str] = []
        self.notices: list[Any] = []
        self.document: Any = None

    def observe(self, step: str, document: Document, call: Call) -> None:
        """Record the state after `step`; it includes the reports of earlier steps."""
        self.missing = list(call.missing)
        self.document = plain(document.cell[0])
        self.notices = [{each.name: plain(each.value)} for each in call.notices]


def _steps(play: Replay, rule: Rule, told: _Told) -> Iterator[dict[str, Any]]:
    """Yield the sizes of the response as received, and after each step as if it were the last."""
    if play.shaped:
        job = _at_once(play)
        assert job.raw is not None
        # `response` steps do not run on errors, and `errors` steps run only on errors.
        whole = shape(replace(job, rule=replace(rule, errors=(), mode="active")))
        if play.before.error is None and whole.word != "error":
            yield _step("received", None, answers.read(job.raw))
            reading = play.document(rule)
            told.document = None if reading is None else plain(reading.document.cell[0])
            yield from _of_response(job, rule, told)
        elif _reshapes(play, rule):
            yield _step("received", None, answers.read(job.raw))
    elif _reshapes(play, rule):
        yield _step("refused", None, play.again(replace(rule, errors=())).answer)
    if _reshapes(play, rule):
        yield from _of_error(play, rule)


def _at_once(play: Replay) -> ShapeJob:
    """Return the job that makes the answer from the whole response, even for a later page."""
    first, last = play.shaped[0][0], play.shaped[-1][0]
    return replace(first, arguments=last.arguments, names=last.names, view=last.view)


def _reshapes(play: Replay, rule: Rule) -> bool:
    """Return True if the answer is an error on which the rule's `errors` steps ran."""
    of_ours = play.answer.failed and play.outcome in ("error", "refused", "failed")
    return of_ours and bool(rule.errors) and rule.mode == "active"


def _of_response(job: ShapeJob, rule: Rule, told: _Told) -> Iterator[dict[str, Any]]:
    missing: list[str] = []
    warned: tuple[Warned, ...] = ()
    for count, step in enumerate(rule.pipeline, 1):
        part = replace(rule, pipeline=rule.pipeline[:count], errors=(), mode="active")
        if count < len(rule.pipeline):
            part = replace(part, allow_growth=True)  # later steps may shrink it again
        told.missing = []
        slips = _slips(step, told.document, job.arguments)
        outcome = shape(replace(job, rule=part), told.observe)
        answer = answers.read(outcome.raw)
        said = answer.text if outcome.word == "refused" else outcome.said
        yield _step(
            step.name,
            "response",
            answer,
            told.missing[len(missing) :],
            outcome.warnings[len(warned) :],
            "; ".join(filter(None, [said, *slips])) or None,
        )
        missing, warned = told.missing, outcome.warnings


def _slips(step: Transform, document: Any, arguments: dict[str, Any]) -> list[str]:
    """Return a message for each member that a step's expression names and no value has."""
    if isinstance(step, Filter) and step.where is not None:
        word, expression = "where", step.where
    elif isinstance(step, Jmespath):
        word, expression = step.name, step.expression
    else:
        return []
    lookups, fuel, found = Lookups(expression, guess=False), Fuel(), list[Any]()
    evaluate = expression.bind(arguments, fuel, lookups)
    of = {"type": "field", "value": step.at.text} if word == "where" else "the document"
    with suppress(AbridgeError):  # the step itself reports this failure
        for slot in select(Document(document).root, step.at):
            values = slot.get() if word == "where" else [slot.get()]
            if isinstance(values, list):
                lookups.corrected(expression.tree, values, lambda value: value, fuel, of)
                found += map(evaluate, values)
    absences = [] if any(map(truthy, found)) else lookups.absences
    return [f"{word}: {each}" for each in lookups.slips or absences]


def _of_error(play: Replay, rule: Rule) -> Iterator[dict[str, Any]]:
    """Yield the error after each of the rule's `errors` steps."""
    before: ShapeResult | None = None
    for count, step in enumerate(rule.errors, 1):
        again = play.again(replace(rule, errors=rule.errors[:count]))
        after = again.shaped[-1][1] if again.shaped else None
        yield _step(
            step.name,
            "errors",
            again.answer,
            () if after is None else after.missing[len(before.missing if before else ()) :],
            () if after is None else after.warnings[len(before.warnings if before else ()) :],
            None if after is None else after.said,
        )
        before = after


def _step(
    name: str,
    key: str | None,
    answer: ClientView,
    missing: Iterable[str] = (),
    warnings: Iterable[Warned] = (),
    said: str | None = None,
) -> dict[str, Any]:
    """Return the account of one step; `key` is the rule's key that lists the step."""
    return {
        "step": name,
        "key": key,
        **_sizes(answer),
        "missing": list(missing),
        "warnings": list(map(_warning, warnings)),
        "said": said,
    }


def _warning(warned: Warned) -> dict[str, Any]:
    return {"kind": warned.kind, "said": warned.said}


def _warnings(play: Replay) -> list[dict[str, Any]]:
    """Return the distinct warnings of the guard and of the steps."""
    of_guard = (each for decided in play.decisions for each in decided.warnings)
    of_steps = (each for _, outcome in play.shaped for each in outcome.warnings)
    return list(map(_warning, dict.fromkeys((*of_guard, *of_steps))))


def _vocabulary(rule: Rule) -> dict[str, list[str]]:
    """Return the permitted words at each path of the shapes that the rule's `recast` makes."""
    found: dict[str, list[str]] = {}
    for step in (*rule.pipeline, *rule.errors):
        for path, words in step.vocabulary.items() if isinstance(step, Recast) else ():
            held = found.setdefault(path.text, [])
            held += [word for word in words if word not in held]
    return found


# Sizes


def _sizes(answer: ClientView) -> dict[str, int | None]:
    return {
        "wire": len(answer.line),
        "visible": answer.visible_size.most,
        "structured": answer.visible_size.structured,
        "text": answer.visible_size.text,
    }


def _shown(answer: ClientView) -> dict[str, Any]:
    """Return the bytes and first lines that a model reads, as structuredContent and as text."""
    structured = answer.text if answer.structured is None else bytes(answer.structured).decode()
    sizes = answer.visible_size
    return {
        "structured": {"bytes": sizes.to("structured"), "lines": _first_lines(structured)},
        "text": {"bytes": sizes.to("text"), "lines": _first_lines(answer.text)},
    }


def _first_lines(said: str) -> list[str]:
    lines = [
        line if len(line) <= _WIDEST else f"{line[:_WIDEST]}… (+{len(line) - _WIDEST} chars)"
        for line in said.split("\n")
    ]
    if len(lines) > _MOST_LINES:
        return [*lines[:_MOST_LINES], f"… (+{len(lines) - _MOST_LINES} lines)"]
    return lines


def _clients(before: ClientView, after: ClientView) -> Iterator[dict[str, Any]]:
    """Yield each client with a known limit, with a flag if the answer exceeds that limit."""
    for client in CLIENTS:
        limit = client.limit_bytes
        if limit is not None:
            was, is_ = before.visible_size.to(client.shows), after.visible_size.to(client.shows)
            yield {
                "client": client.name,
                "limit": limit,
                "beyond": client.beyond,
                "before": was,
                "after": is_,
                "over_before": was > limit,
                "over_after": is_ > limit,
            }
