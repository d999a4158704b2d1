"""Checks of what a case expects of an answer, one for each key."""

import difflib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from mcp_abridge.document.paths import Path, select
from mcp_abridge.document.tree import Document, loads, plain
from mcp_abridge.errors import AbridgeError
from mcp_abridge.replay import answers, walk
from mcp_abridge.replay.choice import choices
from mcp_abridge.replay.differences import abbreviated, differences, to_json
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.rule import Rule

_MAX_LINES = 12

Case = dict[str, Any]


class PlayedCase(Struct, frozen=True):
    """A case that was run, with its rule."""

    rule: Rule
    case: Case
    play: Replay

    @property
    def document(self) -> Any:
        """The document that the client got, as a plain value. Raises AbridgeError without one."""
        play = self.play
        if play.answer.failed:
            raise AbridgeError(f"the answer is an error: {play.answer.text}")
        # A guard may have answered in place of the server.
        return answers.document(play.answer, play.document(self.rule) if play.calls else None)

    @property
    def root(self) -> Document:
        return Document.read(to_json(self.document))


def _the_rule_applies(trial: PlayedCase) -> Iterator[str]:
    if not CHECKS.keys() & trial.case.keys():
        yield f"nothing is expected: write one of {', '.join(CHECKS)}"
    play, applied = trial.play, trial.play.applied
    if applied is not None and applied is not trial.rule:
        yield f"the rule {applied.name!r} ({applied.place}) takes this call"
    elif applied is None and not {"untouched", "refused"} & trial.case.keys():
        tool, arguments = play.exchange.tool, play.exchange.arguments
        every = choices(play.rules, tool, arguments)
        reason = next(reason for rule, reason in every if rule is trial.rule)
        reason += f"; the arguments are {abbreviated(arguments)}"
        yield f"the rule does not apply to this call: {reason}"


def _nothing_fails(trial: PlayedCase) -> Iterator[str]:
    for _, outcome in trial.play.shaped:
        if outcome.outcome == "failed":
            yield outcome.log_line or "the rule failed"
    if trial.rule.guard is not None and trial.play.calls:
        # If the guard withholds the call, that is a normal answer, and may be expected.
        failed = f"the guard {trial.rule.guard.name!r} failed: "
        yield from (line for line in trial.play.log if failed in line)
    if len(trial.play.calls) > 1:
        yield f"the server was called {len(trial.play.calls)} times for one answer"
    if not {"refused", "upstream", "asks"} & trial.case.keys() and not trial.play.calls:
        reason = f"nothing reached the server: {trial.play.answer.text}"
        yield f"{reason}; where that is meant, write `refused` or `upstream: null`"


ALWAYS = (_the_rule_applies, _nothing_fails)


def _refuses(trial: PlayedCase, expected: Any) -> Iterator[str]:
    play = trial.play
    if play.calls:
        yield f"refused: the call reached the server, with {abbreviated(play.calls[0])}"
    elif not play.answer.failed:
        yield "refused: the call was answered without an error"
    else:
        yield from _some(differences(expected, _as(expected, play.answer.text), "refused"))


def _expect_error(trial: PlayedCase, expected: Any) -> Iterator[str]:
    answer = trial.play.answer
    if not answer.failed:
        yield "expect_error: the answer is not an error"
    elif answer.error is None and answer.structured is not None:
        yield "expect_error: the error has a structuredContent"
    else:
        yield from _some(differences(expected, _as(expected, answer.text)))


def _as(expected: Any, text: str) -> Any:
    return text if isinstance(expected, str) else answers.value(text)


def _asks(trial: PlayedCase, expected: dict[str, Any]) -> Iterator[str]:
    if trial.play.queries:
        yield from _some(differences(expected, trial.play.queries[0], "asks"))
    else:
        yield "asks: nothing was asked"


def _warns(trial: PlayedCase, expected: list[str]) -> Iterator[str]:
    actual = sorted(trial.play.warnings)
    if actual != sorted(expected):
        yield f"warns: expected {abbreviated(sorted(expected))}, found {abbreviated(actual)}"


def _upstream(trial: PlayedCase, expected: dict[str, Any] | None) -> Iterator[str]:
    calls = trial.play.calls
    if expected is None and calls:
        yield f"upstream: the call reached the server, with {abbreviated(calls[0])}"
    elif expected is not None and calls:
        yield from _some(differences(expected, calls[0], "upstream"))
    elif expected is not None:
        yield "upstream: nothing reached the server"


def _untouched(trial: PlayedCase, expected: bool) -> Iterator[str]:
    before, after = trial.play.exchange.response, trial.play.answer.line
    if before != after:
        yield "untouched: the response was changed:"
        lines = list(_some(differences(loads(before), loads(after))))
        yield from lines or [f"{before[:200]!r} became {after[:200]!r}"]


def _expect(trial: PlayedCase, expected: Any) -> Iterator[str]:
    yield from _some(differences(expected, trial.document))


def _expect_text(trial: PlayedCase, expected: str | list[str]) -> Iterator[str]:
    texts = list(trial.play.answer.texts)
    if isinstance(expected, list):
        yield from _some(differences(expected, texts))
    elif not texts:
        yield "expect_text: the answer has no text"
    elif texts[0] != expected:
        yield "expect_text: the text is another one (- expected, + found):"
        lines = difflib.unified_diff(_lines(expected), _lines(texts[0]), n=1, lineterm="")
        yield from _some(line for line in lines if line[:3] not in ("---", "+++"))


def _expect_at(trial: PlayedCase, expected: dict[str, Any]) -> Iterator[str]:
    document = trial.root
    for text, value in expected.items():
        path = Path.parse(text)
        actual = [plain(slot.get()) for slot in select(document.root, path)]
        if not actual:
            yield f"{text}: expected {abbreviated(value)}, found nothing"
        else:
            # A path that could name several places may be compared with a list of one, too.
            one = len(actual) == 1 and isinstance(value, list) <= isinstance(actual[0], list)
            one = one and any(differences(value, actual))
            yield from _some(differences(value, actual[0] if one else actual, text))


def _expect_keys(trial: PlayedCase, expected: dict[str, int]) -> Iterator[str]:
    document = trial.root
    for text, number in expected.items():
        slots = list(select(document.root, Path.parse(text)))
        if not slots:
            yield f"{text}: expected {number} keys, found nothing"
        for slot in slots:
            value = slot.open()
            if not isinstance(value, dict):
                yield f"{text}: expected {number} keys, found {abbreviated(plain(value))}"
            elif len(value) != number:
                yield f"{text}: expected {number} keys, found {len(value)}: {', '.join(value)}"


def _absent(trial: PlayedCase, paths: str | list[str]) -> Iterator[str]:
    document = trial.root
    for text in [paths] if isinstance(paths, str) else paths:
        if slots := list(select(document.root, Path.parse(text))):
            more = f" and in {len(slots) - 1} more places" if len(slots) > 1 else ""
            yield f"{text}: expected nothing, found {abbreviated(plain(slots[0].get()))}{more}"


def _max_bytes(trial: PlayedCase, limit: int) -> Iterator[str]:
    if (size := trial.play.answer.visible_size.most) > limit:
        yield f"max_bytes: {size} visible bytes are more than {limit}"


def _min_reduction(trial: PlayedCase, factor: float) -> Iterator[str]:
    before, after = trial.play.before.visible_size.most, trial.play.answer.visible_size.most
    if before < factor * after:
        times = f"{before / after:.1f}"
        yield f"min_reduction: {before} visible bytes to {after} is {times} times, not {factor:g}"


def _rejoins(trial: PlayedCase, expected: bool) -> Iterator[str]:
    yield from _some(walk.mismatches(trial.rule, trial.play))
    yield from _nothing_fails(trial)


CHECKS: dict[str, Callable[[PlayedCase, Any], Iterator[str]]] = {
    "refused": _refuses,
    "expect_error": _expect_error,
    "asks": _asks,
    "upstream": _upstream,
    "untouched": _untouched,
    "expect": _expect,
    "expect_text": _expect_text,
    "expect_at": _expect_at,
    "expect_keys": _expect_keys,
    "absent": _absent,
    "max_bytes": _max_bytes,
    "min_reduction": _min_reduction,
    "rejoins": _rejoins,
    "warns": _warns,
}


def _lines(text: str) -> list[str]:
    return [repr(line)[1:-1] for line in text.splitlines(keepends=True)]


def _some(lines: Iterator[str]) -> Iterator[str]:
    yield from itertools.islice(lines, _MAX_LINES)
    rest = sum(1 for _ in lines)
    if rest:
        yield f"… and {rest} more"
