"""Run the cases of a rule file: the tests written beside its rules."""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from mcp_abridge.document.message import READ
from mcp_abridge.document.tree import loads
from mcp_abridge.errors import AbridgeError
from mcp_abridge.replay import exchanges
from mcp_abridge.replay.checks import ALWAYS, CHECKS, Case, PlayedCase
from mcp_abridge.replay.choice import covers
from mcp_abridge.replay.differences import to_json
from mcp_abridge.replay.exchanges import RecordedExchange
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.rule_set import RuleFile, RuleSet
from mcp_abridge.ruleset.selection import budget_rule, content, with_budget

MAX_TIMES = 1_000_000
_MAX_GIVEN = 256_000_000  # bytes of a file: a longer message would not be shaped


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
        messages = [line for always in ALWAYS for line in always(trial)]
        for key, check in CHECKS.items():
            if not messages and case.get(key, False) is not False:
                messages = list(check(trial, expand(case[key])))
        notes = [*notes, *_explanations(trial, messages)] if messages else []
    except (AbridgeError, OSError, RecursionError) as error:
        messages = [str(error)]
    return messages + [f"note: {line}" for line in dict.fromkeys(notes) if line not in messages]


def _explanations(trial: PlayedCase, messages: list[str]) -> Iterator[str]:
    play, limit = trial.play, trial.rule.max_bytes
    if any(line.endswith("found nothing") for line in messages):
        for _, result in play.shaped:
            yield from (f"matched nothing: {path}" for path in result.missing)
    if limit is not None and play.applied is trial.rule:
        whole = play.again(msgspec.structs.replace(trial.rule, max_bytes=None))
        if whole.answer.line != play.answer.line:
            yield f"cut by max_bytes: {limit}"


def play_case(file: RuleFile, rule: Rule, case: Case) -> PlayedCase:
    """Run `case`. Raises AbridgeError or OSError if it cannot be run."""
    exchange = exchange_of(file, rule, case)
    bounded = zip(file.rules, with_budget(file, budget_rule("auto", None)).rules, strict=True)
    active = {id(own): msgspec.structs.replace(each, mode="active") for own, each in bounded}
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
    key, names = ("resource", rule.resources) if rule.resources else ("tool", rule.tools)
    if rule.resources and (uri := case.get(key) or _only(names)):
        tool, arguments = READ, {"uri": uri}
    if ways == ["given_file"]:
        path = _given_path(file, case)
        try:
            raw = content(path, _MAX_GIVEN + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise AbridgeError(f"given_file: {path!r}: {reason}") from None
        if len(raw) > _MAX_GIVEN:
            raise AbridgeError(f"given_file: {path!r}: more than {_MAX_GIVEN} bytes")
        exchange = exchanges.recorded(raw, tool, arguments, _only(rule.tools))
    else:
        tool = tool or _only(rule.tools)
        if tool is None:
            raise AbridgeError(f"{key}: which one? The rule is for {', '.join(names)}")
        results = [_GIVEN[way](expand(case[way])) for way in ways] or [Raw(b'{"content":[]}')]
        exchange = exchanges.make(tool, arguments or {}, results[0])
    if not covers(rule, exchange.tool, exchange.arguments):
        raise AbridgeError(f"{key}: {exchange.tool!r} is none of the rule's: {', '.join(names)}")
    return exchange


def _only(patterns: tuple[str, ...]) -> str | None:
    return patterns[0] if len(patterns) == 1 and "*" not in patterns[0] else None
