"""The tables: for each group of questions and arm, what was answered, with how much."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import orjson

from tests.answers.arm import Call, Look, Reply
from tests.answers.question import Question
from tests.answers.session import Attempt

HEAD = ("", "answered", "never", "calls", "each", "bytes read", "each", "of direct")
_BEGINNING = 1500  # characters of an answer that --verbose shows


def summary(
    questions: Sequence[Question],
    results: Mapping[str, Sequence[Attempt]],
    failures: Mapping[str, str],
) -> str:
    """Return a Markdown table for each group of questions; `failures` are arms that did not run."""
    parts = []
    for (kind, group), members in groupby(questions, key=lambda each: (each.set, each.group)):
        names = {question.name for question in members}
        rows = [HEAD, ("---", *("---:",) * (len(HEAD) - 1))]
        whole = 0
        for arm, attempts in results.items():
            own = [attempt for attempt in attempts if attempt.question in names]
            whole = whole or sum(attempt.read for attempt in own)
            rows += [_row(arm, own, whole)] if own else []
        rows += [
            (arm, f"not measured: {why}", *("",) * (len(HEAD) - 2)) for arm, why in failures.items()
        ]
        lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        own_set = "" if kind == "first" else f", {kind} set"
        title = f"{len(names)} questions on {group} results"
        parts.append(f"{title}{own_set}\n\n{lines}\n")
    return "\n".join(parts)


def _row(arm: str, attempts: Sequence[Attempt], whole: int) -> tuple[str, ...]:
    """Return the figures of an arm; calls and bytes without an answer count, too."""
    count = len(attempts)
    never = [attempt.never for attempt in attempts if attempt.never]
    reasons = ", ".join(f"{never.count(reason)} {reason}" for reason in sorted(set(never)))
    calls = sum(attempt.calls for attempt in attempts)
    read = sum(attempt.read for attempt in attempts)
    return (
        arm,
        str(count - len(never)),
        reasons or "0",
        str(calls),
        f"{calls / count:.1f}",
        f"{read:,}",
        f"{read / count:,.0f}",
        f"{100 * read / whole:.1f} %",
    )


def trace(step: Call | Look, reply: Reply) -> None:
    request = "(file)"
    if isinstance(step, Call):
        request = f"{step.tool} {orjson.dumps(step.arguments).decode()}"
    print(f"> {request}\n{reply.text[:_BEGINNING]}")
