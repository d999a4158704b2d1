"""The account of a call and its answer: without it, only a rule's last result could be seen."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec.structs import replace

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.paths import select
from mcp_abridge.document.tokens import tokens
from mcp_abridge.document.tree import Document, plain
from mcp_abridge.errors import AbridgeError
from mcp_abridge.query.call import Call, Warned
from mcp_abridge.query.lookups import Lookups
from mcp_abridge.query.patterns import truthy
from mcp_abridge.replay import answers
from mcp_abridge.replay.answers import ClientView
from mcp_abridge.replay.choice import choices
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.clients import CLIENTS, Shows
from mcp_abridge.ruleset.guard import Allow
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.shaping.job import ShapeJob
from mcp_abridge.shaping.pipeline import shape
from mcp_abridge.shaping.result.frame import Copy
from mcp_abridge.transforms.base import Transform
from mcp_abridge.transforms.filter import Filter
from mcp_abridge.transforms.jmespath import Jmespath
from mcp_abridge.transforms.recast import Recast

_MAX_LINES = 8
_MAX_WIDTH = 160


def account_of(replay: Replay, replay_for: Callable[[str], Replay] | None = None) -> dict[str, Any]:
    """Return the account of a call and its response; the keys are the same for every call.

    `replay_for` replays the call for a client of this name, whose budget may be another.
    """
    exchange, rule = replay.exchange, replay.applied
    notices: list[Any] = []
    steps = [] if rule is None else list(_accounts(_states(replay, rule, notices), replay.shows))
    of_guard = (each for decision in replay.decisions for each in decision.warnings)
    of_steps = (each for _, result in replay.shaped for each in result.warnings)
    every = choices(replay.rules, exchange.tool, exchange.arguments)
    return {
        "tool": exchange.tool,
        "arguments": exchange.arguments,
        "upstream": replay.calls[0] if replay.calls else None,
        "rule": None if rule is None else rule.name,
        "rules": [
            {"name": each.name, "place": each.place, "applies": not reason, "reason": reason}
            for each, reason in every
            if not reason or each is not replay.rules.otherwise
        ],
        "guard": _guard(replay),
        "document": None if rule is None else _document(replay, rule),
        "outcome": replay.kind,
        "steps": steps,
        "missing": list(dict.fromkeys(path for step in steps for path in step["missing"])),
        "notices": notices,
        "warnings": _warning_list(dict.fromkeys((*of_guard, *of_steps))),
        "vocabulary": {} if rule is None else _vocabulary(rule),
        "drawings": [each.name for each in replay.shaped[-1][1].drawings] if replay.shaped else [],
        "log": list(dict.fromkeys(replay.log)),
        "before": _sizes(replay.before, replay.shows),
        "after": _sizes(replay.answer, replay.shows),
        "shown": _for_models(replay.answer),
        "clients": list(_clients(replay_for or (lambda _: replay))),
    }


def _guard(replay: Replay) -> dict[str, Any] | None:
    """Return the query, the query result and the decision of the guard; None if none decided."""
    if not replay.decisions:
        return None
    last = replay.decisions[-1]
    allowed = isinstance(last.decision, Allow)
    failure = f"the guard {last.name!r} failed: "
    failed = any(failure in line for line in replay.log)
    account: dict[str, Any] = {
        "name": last.name,
        "asks": replay.queries[0] if replay.queries else None,
        "found": None,
        "decision": "failed" if failed else "forward" if allowed else "answer",
        "facts": last.decision.facts if isinstance(last.decision, Allow) else {},
    }
    if (result := last.result) is not None:
        document = {"document": result.document}
        account["found"] = document if result.failure is None else {"failure": result.failure}
    return account


def _document(replay: Replay, rule: Rule) -> dict[str, Any] | None:
    """Return the kind and the places of the document that the steps work on; None if none."""
    if not replay.calls:
        refusal = {"kind": "text", "copies": ["the refusal"]}
        return refusal if _runs_on_error(replay, rule) else None
    if replay.before.error is not None:
        message = {"kind": "text", "copies": ["the message of the error"]}
        return message if rule.errors else None
    located = replay.document(rule)
    if located is None:
        return None
    kind = "text" if located.document.textual else "JSON"
    return {"kind": kind, "copies": [_place(copy) for copy in located.frame.copies]}


def _place(copy: Copy) -> str:
    numbers = ", ".join(str(index + 1) for index in copy.blocks)
    match copy.where:
        case "structured":
            return "structuredContent"
        case "member":
            block = "the text block in " if copy.as_block else ""
            return f"{block}the member {copy.member!r} of structuredContent"
        case _ if len(copy.blocks) > 1:
            return f"content blocks {numbers}, an element each"
    return f"content block {numbers}{', as a JSON string' if copy.quoted else ''}"


def _runs_on_error(replay: Replay, rule: Rule) -> bool:
    error = replay.answer.failed and replay.outcome in ("error", "refused", "failed")
    return error and bool(rule.errors) and rule.mode == "active"


class _State(NamedTuple):
    """The answer if a step, of a `key` of the rule, were the last; the others are up to it."""

    step: str
    key: str | None
    answer: ClientView
    missing: Sequence[str] = ()
    warnings: Sequence[Warned] = ()
    message: str | None = None


def _accounts(states: Iterable[_State], shows: Shows) -> Iterator[dict[str, Any]]:
    key, missing, warnings = None, 0, 0
    for state in states:
        if state.key != key:
            key, missing, warnings = state.key, 0, 0
        yield {
            "step": state.step,
            "key": key,
            **_sizes(state.answer, shows),
            "missing": list(state.missing[missing:]),
            "warnings": _warning_list(state.warnings[warnings:]),
            "said": state.message,
        }
        missing, warnings = len(state.missing), len(state.warnings)


def _states(replay: Replay, rule: Rule, notices: list[Any]) -> Iterator[_State]:
    """Yield the response as received, and after each step; `notices` gets those of the last."""
    on_error = _runs_on_error(replay, rule)
    if replay.shaped:
        # The job for the whole response, even if the call is for a later page.
        first, last = replay.shaped[0][0], replay.shaped[-1][0]
        job = replace(first, arguments=last.arguments, names=last.names, view=last.view)
        assert job.raw is not None
        # `response` steps do not run on errors, and `errors` steps run only on errors.
        whole = shape(replace(job, rule=replace(rule, errors=(), mode="active")))
        on_response = replay.before.error is None and whole.outcome != "error"
        if on_response or on_error:
            yield _State("received", None, answers.read(job.raw))
        if on_response:
            yield from _after_response_steps(replay, rule, job, notices)
    elif on_error:
        yield _State("refused", None, replay.again(replace(rule, errors=())).answer)
    for count, step in enumerate(rule.errors if on_error else (), 1):
        again = replay.again(replace(rule, errors=rule.errors[:count]))
        state = _State(step.name, "errors", again.answer)
        if again.shaped:
            result = again.shaped[-1][1]
            state = _State(*state[:3], result.missing, result.warnings, result.log_line)
        yield state


def _after_response_steps(
    replay: Replay, rule: Rule, job: ShapeJob, notices: list[Any]
) -> Iterator[_State]:
    located = replay.document(rule)
    document = None if located is None else plain(located.document.cell[0])
    missing: list[str] = []

    def observe(step: str, after: Document, call: Call) -> None:
        nonlocal document
        document, missing[:] = plain(after.cell[0]), call.missing
        notices[:] = [{notice.name: plain(notice.value)} for notice in call.notices]

    for count, step in enumerate(rule.pipeline, 1):
        part = replace(rule, pipeline=rule.pipeline[:count], errors=(), mode="active")
        if count < len(rule.pipeline):
            part = replace(part, allow_growth=True)  # later steps may shrink it again
        missing.clear()
        mistakes = _mistakes(step, document, job.arguments)
        result = shape(replace(job, rule=part), observe)
        answer = answers.read(result.raw)
        message = answer.text if result.outcome == "refused" else result.log_line
        texts = "; ".join(filter(None, [message, *mistakes]))
        yield _State(step.name, "response", answer, missing, result.warnings, texts or None)


def _mistakes(step: Transform, document: Any, arguments: dict[str, Any]) -> list[str]:
    """Return a message for each member that a step's expression names and no value has."""
    if isinstance(step, Filter) and step.where is not None:
        key, expression = "where", step.where
    elif isinstance(step, Jmespath):
        key, expression = step.name, step.expression
    else:
        return []
    lookups, fuel, results = Lookups(expression, guess=False), Fuel(), list[Any]()
    evaluate = expression.bind(arguments, fuel, lookups)
    single = key != "where"
    with suppress(AbridgeError):  # the step itself reports this failure
        for slot in select(Document(document).root, step.at):
            values = [slot.get()] if single else slot.get()
            if isinstance(values, list):
                lookups.corrected(expression.tree, values, lambda each: each, fuel, single=single)
                results += map(evaluate, values)
    absences = [] if any(map(truthy, results)) else lookups.absences
    mistakes = [*(lookups.slips or absences), *lookups.remarks]
    return [f"{key}: {mistake}" for mistake in mistakes]


def _warning_list(warnings: Iterable[Warned]) -> list[dict[str, str]]:
    return [{"kind": each.kind, "said": each.text} for each in warnings]


def _vocabulary(rule: Rule) -> dict[str, list[str]]:
    """Return the permitted words at each path of the shapes that the rule's `recast` makes."""
    words: dict[str, dict[str, None]] = {}
    for step in (*rule.pipeline, *rule.errors):
        for path, permitted in step.vocabulary.items() if isinstance(step, Recast) else ():
            words.setdefault(path.text, {}).update(dict.fromkeys(permitted))
    return {path: list(permitted) for path, permitted in words.items()}


def _sizes(answer: ClientView, shows: Shows) -> dict[str, int | None]:
    return {
        "wire": len(answer.line),
        "visible": answer.visible_size.to(shows),
        "structured": answer.visible_size.structured,
        "text": answer.visible_size.text,
    }


def _for_models(answer: ClientView) -> dict[str, Any]:
    sizes, raw = answer.visible_size, answer.structured
    structured = answer.text if raw is None else bytes(raw).decode()
    return {
        kind: {"bytes": size, "tokens": tokens(text), "lines": _first_lines(text)}
        for kind, size, text in (
            ("structured", sizes.to("structured"), structured),
            ("text", sizes.to("text"), answer.text),
        )
    }


def _first_lines(text: str) -> list[str]:
    lines = text.split("\n")
    first = [
        line[:_MAX_WIDTH] + f"… (+{len(line) - _MAX_WIDTH} chars)" * (len(line) > _MAX_WIDTH)
        for line in lines[:_MAX_LINES]
    ]
    return first if len(lines) <= _MAX_LINES else [*first, f"… (+{len(lines) - _MAX_LINES} lines)"]


def _clients(replay_for: Callable[[str], Replay]) -> Iterator[dict[str, Any]]:
    for client in (each.within(os.environ) for each in CLIENTS):
        limit = client.limit_bytes
        if limit is not None:
            before, after = replay_for(client.name.rstrip("*")).sizes
            yield {
                "client": client.name,
                "limit": limit,
                "beyond": client.beyond,
                "before": before,
                "after": after,
                "over_before": before > limit,
                "over_after": after > limit,
            }
