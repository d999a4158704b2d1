"""Random rules over random responses: the results of `pipeline.shape`, and later pages of them."""

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any, get_args

from mcp_abridge.errors import Refusal
from mcp_abridge.ruleset.clients import Shows
from mcp_abridge.ruleset.loading import rulefile
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.session.tools import arguments as argument
from mcp_abridge.shaping import pipeline
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from msgspec import Struct
from msgspec.structs import replace

from tests.fuzz import results, rules, verdicts
from tests.fuzz.fuzzer import Wrong
from tests.fuzz.grammar import Dice, grow

EACH = 5
"""How many documents each rule is tried on."""

FUEL = 2_000_000
SHOWS: tuple[Shows, ...] = get_args(Shows)


class Pair(Struct, frozen=True):
    """A rule file with one rule, a response, and the call."""

    rule: bytes
    line: bytes
    id: bytes
    arguments: dict[str, Any] = {}
    view: str | None = None
    shows: Shows = "either"
    modern: bool = False
    viewable: bool = True


def check_one(seed: int, index: int) -> Iterator[Hashable]:
    random_pair = pair(seed, index)
    try:
        yield from check(random_pair)
    except Exception as error:
        error.add_note(repr(random_pair))
        raise


def pair(seed: int, index: int) -> Pair:
    dice = Dice.of(seed, "pair", index)
    id = dice.pick(results.IDS)
    return Pair(
        rule=rule_text(seed, index // EACH),
        line=results.response(dice, id),
        id=id.encode(),
        arguments=dice.pick_options(ARGUMENTS),
        view=grow(dice, "<view>") if dice.one_in(4) else None,
        shows=dice.pick(SHOWS),
        modern=dice.one_in(2),
        viewable=not dice.one_in(8),
    )


# Windows and what rules look at, within bounds and outside, each with its odds.
ARGUMENTS: dict[str, tuple[int, tuple[Any, ...]]] = {
    "limit": (5, (1, 2, 3, 5, 5, 50, 0, -1, "5", True, 1e9)),
    "offset": (5, (0, 1, 1, 2, 5, 1000, -1, None, "0")),
    "startIndex": (5, (0, 1, 7, 10_000)),
    "maxLength": (5, (1, 3, 100, 0)),
    "most": (6, (1, 3)),
    "from": (6, (0, 2)),
    "wanted": (3, ("a", "", "*.md", "(", "é", 5, None)),
    "filter": (8, ({"name": "open"}, {}, "x")),
    "action": (8, ("x", "y")),
}


@lru_cache(maxsize=4)
def rule_text(seed: int, number: int) -> bytes:
    """Return the file of this number; some have a problem, such as a step that fits no other."""
    dice = Dice.of(seed, "rule", number)
    text = rules.text(dice)
    while not dice.one_in(4) and loaded(text.encode()) is None:
        text = rules.text(dice)
    return text.encode()


@lru_cache(maxsize=4)
def loaded(text: bytes) -> Rule | None:
    reading = rulefile.read("rules.yaml", text)
    if (reading.rules is None) != bool(reading.problems):
        raise Wrong("a file has rules or problems", f"{reading}")
    return None if reading.rules is None else next(iter(reading.rules.rules), None)


def check(pair: Pair) -> Iterator[Hashable]:
    rule = loaded(pair.rule)
    job = None if rule is None else job_for(pair, rule)
    if job is None:
        yield rule is None
        return
    outcome = pipeline.shape(job)
    verdicts.judge(job, outcome)
    verdicts.travels(job, outcome)
    yield _state(job, outcome)
    later = replace(job, raw=None, snapshot=outcome.snapshot)
    if outcome.snapshot is not None and pair.view is None and outcome.outcome != "error":
        page = pipeline.shape(later)
        verdicts.judge_later(later, page)
        if outcome.log_line is None and (outcome.outcome, page.outcome) != ("shaped", "page"):
            raise Wrong("an answer with a snapshot is one of a rule that fits", page.log_line)
        yield _state(later, page)
    if outcome.snapshot is not None and rule is not None and rule.snapshot_step.viewable:
        looking = replace(later, view=pair.view or "items[0:2]")
        view = pipeline.shape(looking)
        verdicts.judge_later(looking, view)
        verdicts.travels(looking, view)
        yield _state(looking, view)


def job_for(pair: Pair, rule: Rule) -> ShapeJob | None:
    """Return the job for a call; None if it is refused, or if the rule does not apply to it."""
    plan = argument.plan(rule, ())
    try:
        if not rule.applies(pair.arguments):
            return None
        completed = argument.complete(plan, (), pair.arguments)
    except Refusal:
        return None
    return ShapeJob(
        rule=rule,
        tool="get",
        id=pair.id,
        raw=pair.line,
        arguments=completed.arguments,
        names=plan.names,
        view=pair.view if rule.snapshot_step.viewable else None,
        viewable=pair.viewable,
        keep=pair.viewable and rule.snapshot_step.is_used,
        shows=pair.shows,
        modern=pair.modern,
        fuel=FUEL,
    )


def _state(job: ShapeJob, outcome: ShapeResult) -> Hashable:
    return (
        *(step.name for step in job.rule.pipeline),
        outcome.outcome,
        outcome.snapshot is not None,
        job.view is not None,
        bool(outcome.missing),
        job.rule.document,
        (outcome.log_line or "")[:30],
    )
