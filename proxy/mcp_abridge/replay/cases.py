"""Run the cases of a rule file: the tests written beside its rules."""

import difflib
import itertools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from mcp_abridge.document.paths import Path, select
from mcp_abridge.document.tree import Document, loads, plain
from mcp_abridge.errors import AbridgeError
from mcp_abridge.replay import answers, exchanges, walk
from mcp_abridge.replay.choice import choices
from mcp_abridge.replay.differences import abbreviated, differences, same, to_json
from mcp_abridge.replay.exchanges import RecordedExchange
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.rule_set import RuleFile, RuleSet
from mcp_abridge.ruleset.selection import content

MAX_TIMES = 1_000_000
_MAX_GIVEN = 256_000_000  # bytes of a file: a longer message would not be shaped
_MAX_LINES = 12

Case = dict[str, Any]


class CaseResult(Struct, frozen=True):
    """The result of one case; `message` lists the differences from the expectation, a line each."""

    rule: str
    case: str
    place: str
    ok: bool
    message: str
    seconds: float


def run(file: RuleFile, part: str = "") -> Iterator[CaseResult]:
    """Run the cases of `file` whose `rule: name` contains `part`, ignoring letter case."""
    for rule, number, case in cases(file):
        name = name_of(case, number)
        if part.lower() in f"{rule.name}: {name}".lower():
            start = time.perf_counter()
            message = "\n".join(check_case(file, rule, case))
            seconds = time.perf_counter() - start
            yield CaseResult(rule.name, name, location(rule, number), not message, message, seconds)


def cases(file: RuleFile) -> Iterator[tuple[Rule, int, Case]]:
    """Yield every case of a file, with its rule and its number there, from 1."""
    for rule in file.rules:
        for number, case in enumerate(rule.tests, 1):
            yield rule, number, case


def name_of(case: Case, number: int) -> str:
    """Return the name of a case; one without a name is named by its `number`."""
    return str(case.get("name", f"case {number}"))


def location(rule: Rule, number: int) -> str:
    """Return `file:line` of a case."""
    return f"{rule.place.rpartition(':')[0]}:{rule.test_lines[number - 1]}"


def absent_files(file: RuleFile) -> Iterator[str]:
    """Yield a message for each case whose `given_file` is not there."""
    for rule, number, case in cases(file):
        if "given_file" in case and not os.path.isfile(path := _given_path(file, case)):
            yield f"{location(rule, number)}: given_file: there is no file {path!r}"


def _given_path(file: RuleFile, case: Case) -> str:
    return os.path.join(os.path.dirname(file.name), case["given_file"])


def check_case(file: RuleFile, rule: Rule, case: Case) -> list[str]:
    """Run one case of `rule`; return the differences from the expectation, empty if it passes."""
    notes: list[str] = []
    try:
        trial = play_case(file, rule, case)
        notes = trial.play.log
        messages = [line for always in _ALWAYS for line in always(trial)]
        for key, check in CHECKS.items():
            if not messages and case.get(key, False) is not False:
                messages = list(check(trial, expand(case[key])))
        notes = [*notes, *_explanations(trial, messages)] if messages else []
    except (AbridgeError, OSError, RecursionError) as error:
        messages = [str(error)]
    return messages + [f"note: {line}" for line in dict.fromkeys(notes) if line not in messages]


def _explanations(trial: "PlayedCase", messages: list[str]) -> Iterator[str]:
    play, limit = trial.play, trial.rule.max_bytes
    if any(line.endswith("found nothing") for line in messages):
        for _, result in play.shaped:
            yield from (f"matched nothing: {path}" for path in result.missing)
    if limit is not None and play.applied is trial.rule:
        whole = play.again(msgspec.structs.replace(trial.rule, max_bytes=None))
        if whole.answer.line != play.answer.line:
            yield f"cut by max_bytes: {limit}"


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


def play_case(file: RuleFile, rule: Rule, case: Case) -> PlayedCase:
    """Run `case`. Raises AbridgeError or OSError if it cannot be run."""
    exchange = exchange_of(file, rule, case)
    active = {id(each): msgspec.structs.replace(each, mode="active") for each in file.rules}
    rules = RuleSet((msgspec.structs.replace(file, rules=tuple(active.values())),))
    result = next((_FOUND[key](expand(case[key])) for key in _FOUND if key in case), None)
    play = Replay(rules, exchange, first_call="refused" not in case, query_result=result)
    return PlayedCase(active[id(rule)], case, play)


def expand(value: Any) -> Any:
    """Return a value of a case with every `{$repeat: value, times: 3}` written out.

    `{n}` in the texts of the repeated value is the number of the repetition, from 0. Raises
    AbridgeError.

    >>> expand({"ids": {"$repeat": {"id": "f-{n}"}, "times": 2}})
    {'ids': [{'id': 'f-0'}, {'id': 'f-1'}]}
    """
    if isinstance(value, list):
        return [expand(element) for element in value]
    if not isinstance(value, dict):
        return value
    if "$repeat" not in value:
        return {name: expand(member) for name, member in value.items()}
    times = value.get("times")
    if set(value) != {"$repeat", "times"} or type(times) is not int:
        raise AbridgeError("write {$repeat: value, times: number}, and no other key beside it")
    if not 0 <= times <= MAX_TIMES:
        raise AbridgeError(f"$repeat: times: {times} is not between 0 and {MAX_TIMES}")
    raw = to_json(expand(value["$repeat"]))
    return [loads(raw.replace(b"{n}", b"%d" % n)) for n in range(times)]


_GIVEN: dict[str, Callable[[Any], Raw]] = {
    "given": lambda value: exchanges.text_result(to_json(value).decode()),
    "given_text": lambda text: exchanges.text_result("".join(text)),  # a list if repeated
    "given_result": lambda value: Raw(to_json(value)),
    "given_error": lambda value: exchanges.text_result(_text(value), isError=True),
}
# The answer to the query of a guard.
_FOUND: dict[str, Callable[[Any], Raw | None]] = {
    "found": lambda value: exchanges.text_result(_text(value)),
    "found_error": lambda text: exchanges.text_result(text, isError=True),
    "found_nothing": lambda value: None,
}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value).decode()


def exchange_of(file: RuleFile, rule: Rule, case: Case) -> RecordedExchange:
    """Return the call and the answer that a case gives. Raises AbridgeError."""
    ways = [key for key in (*_GIVEN, "given_file") if key in case]
    tool, arguments = case.get("tool"), case.get("arguments")
    if ways == ["given_file"]:
        path = _given_path(file, case)
        try:
            raw = content(path, _MAX_GIVEN + 1)
        except (OSError, ValueError, AbridgeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise AbridgeError(f"given_file: {path!r}: {reason}") from None
        if len(raw) > _MAX_GIVEN:
            raise AbridgeError(f"given_file: {path!r}: more than {_MAX_GIVEN} bytes")
        exchange = exchanges.recorded(raw, tool, arguments, _only_tool(rule))
    else:
        tool = tool or _only_tool(rule)
        if tool is None:
            raise AbridgeError(f"tool: which one? The rule is for {', '.join(rule.tools)}")
        results = [_GIVEN[way](expand(case[way])) for way in ways] or [Raw(b'{"content":[]}')]
        exchange = exchanges.make(tool, arguments or {}, results[0])
    if not rule.covers(exchange.tool):
        names = ", ".join(rule.tools)
        raise AbridgeError(f"tool: {exchange.tool!r} is none of the rule's: {names}")
    return exchange


def _only_tool(rule: Rule) -> str | None:
    return rule.tools[0] if len(rule.tools) == 1 and "*" not in rule.tools[0] else None


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


def _both_copies_agree(trial: PlayedCase) -> Iterator[str]:
    play, before = trial.play, trial.play.document(trial.rule)
    if before is None or not play.calls or play.answer.failed or play.answer.structured is None:
        return
    copies = answers.copies(play.answer, before)
    if len(copies) == 2 and not same(*copies):
        yield "structuredContent and the text disagree:"
        yield from _some(differences(*copies))


_ALWAYS = (_the_rule_applies, _nothing_fails, _both_copies_agree)


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
            one = one and not same(value, actual)
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
    play = trial.play
    yield from _some(walk.mismatches(trial.rule, play.exchange, play.opening, play.ask))
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
