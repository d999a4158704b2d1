"""Random rules over random responses: what `pipeline.shape` makes of them, and of later pages."""

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from proxy.errors import Refusal
from proxy.ruleset.clients import Shows
from proxy.ruleset.loading import rulefile
from proxy.ruleset.rule import Rule
from proxy.session.tools import arguments as argument
from proxy.shaping import pipeline
from proxy.shaping.job import ShapeJob, ShapeResult
from tests.fuzz import expressions, results, rulefiles, verdicts
from tests.fuzz.dice import Dice
from tests.fuzz.fuzzer import Wrong, noted

EACH = 5
"""How many documents each rule is tried on."""

FUEL = 2_000_000
SHOWS: tuple[Shows, ...] = get_args(Shows)


class Pair(Struct, frozen=True):
    """A rule file with one rule, a response, and what was asked for."""

    rule: bytes
    line: bytes
    id: bytes
    arguments: dict[str, Any] = {}
    view: str | None = None
    shows: Shows = "either"
    modern: bool = False
    viewable: bool = True


def check_one(seed: int, index: int) -> Iterator[Hashable]:
    return noted(pair(seed, index), check)


def pair(seed: int, index: int) -> Pair:
    dice = Dice.of(seed, "pair", index)
    given = results.given(dice)
    return Pair(
        rule=rule_text(seed, index // EACH),
        line=given.line,
        id=given.id,
        arguments=_arguments(dice),
        view=expressions.view(dice) if dice.one_in(4) else None,
        shows=dice.pick(SHOWS),
        modern=dice.one_in(2),
        viewable=not dice.one_in(8),
    )


@lru_cache(maxsize=4)
def rule_text(seed: int, number: int) -> bytes:
    """Return the file of this number; some have a problem, as a step that does not fit another."""
    dice = Dice.of(seed, "rule", number)
    text = rulefiles.text(dice)
    while dice.one_in(2) and loaded(text.encode()) is None:
        text = rulefiles.text(dice)
    return text.encode()


def _arguments(dice: Dice) -> dict[str, Any]:
    """Return what a client sends: windows and what rules look at, in and out of bounds."""
    chances: dict[str, tuple[int, tuple[Any, ...]]] = {
        "limit": (5, (1, 2, 3, 5, 5, 50, 0, -1, "5", True, 1e9)),
        "offset": (5, (0, 1, 1, 2, 5, 1000, -1, None, "0")),
        "startIndex": (5, (0, 1, 7, 10_000)),
        "maxLength": (5, (1, 3, 100, 0)),
        "rows": (6, (1, 3)),
        "row": (6, (0, 2)),
        "wanted": (3, ("a", "", "*.md", "(", "é", 5, None)),
        "filter": (8, ({"name": "open"}, {}, "x")),
        "action": (8, ("x", "y")),
    }
    return {name: dice.pick(among) for name, (odds, among) in chances.items() if dice.one_in(odds)}


@lru_cache(maxsize=4)
def loaded(text: bytes) -> Rule | None:
    """Return the rule of a file, None where there are problems in it."""
    reading = rulefile.read("rules.yaml", text)
    if (reading.rules is None) != bool(reading.problems):
        raise Wrong("a file has rules or problems", f"{reading}")
    made = reading.rules
    return None if made is None or not made.rules else made.rules[0]


def check(made: Pair) -> Iterator[Hashable]:
    """Yield what the pair reaches. Raises Wrong if an invariant does not hold."""
    rule = loaded(made.rule)
    if rule is None:
        yield "problems"
        return
    job = asked(made, rule, made.arguments)
    if job is None:
        yield "refused"
        return
    outcome = pipeline.shape(job)
    verdicts.judge(job, outcome)
    verdicts.same(outcome, pipeline.shape(job), "the same job gives the same")
    verdicts.travels(job, outcome)
    yield _state(job, outcome)
    if outcome.snapshot is not None:
        yield from _looked(made, job, outcome)


def asked(made: Pair, rule: Rule, arguments: dict[str, Any]) -> ShapeJob | None:
    """Return the job for a call with these arguments, None where it is refused or another's."""
    plan = argument.plan(rule, ())
    try:
        if not rule.applies(arguments):
            return None
        completed = argument.complete(plan, (), arguments)
    except Refusal:
        return None
    return ShapeJob(
        rule=rule,
        tool="get",
        id=made.id,
        raw=made.line,
        arguments=completed.arguments,
        names=plan.names,
        view=made.view if rule.snapshot_step.viewable else None,
        viewable=made.viewable,
        keep=made.viewable and rule.snapshot_step.is_used,
        shows=made.shows,
        modern=made.modern,
        fuel=FUEL,
    )


def _looked(made: Pair, job: ShapeJob, outcome: ShapeResult) -> Iterator[Hashable]:
    """Ask for later pages and views of an answer."""
    kept = replace(job, raw=None, snapshot=outcome.snapshot)
    if made.view is None and outcome.outcome != "error":
        again = pipeline.shape(kept)
        verdicts.judge_later(kept, again)
        if outcome.log_line is None:
            verdicts.first_page(job, outcome, again)
        yield _state(kept, again)
    if job.rule.snapshot_step.viewable:
        looking = replace(kept, view=made.view or "items[0:2]")
        seen = pipeline.shape(looking)
        verdicts.judge_later(looking, seen)
        verdicts.travels(looking, seen)
        yield _state(looking, seen)


def _state(job: ShapeJob, outcome: ShapeResult) -> Hashable:
    """Return what tells this from what was tried before: the steps, and what came of them."""
    rule = job.rule
    return (
        tuple(step.name for step in rule.pipeline),
        outcome.outcome,
        outcome.snapshot is not None,
        job.view is not None,
        job.snapshot is not None,
        bool(outcome.missing),
        tuple(sorted({each.kind for each in outcome.warnings})),
        rule.document,
        rule.copies,
        bool(rule.errors),
        rule.structures,
        (outcome.log_line or "")[:30],
    )
