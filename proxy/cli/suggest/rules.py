"""Writes drafted rules as YAML, with their evidence as comments, and runs them on the recordings."""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from proxy.cli.suggest.draft import FIRST_LOOK, LIMITS, MAX_BYTES, SMALL, Draft
from proxy.cli.suggest.sample import case_of
from proxy.document.notations import scalar_kind
from proxy.document.tokens import tokens
from proxy.document.tree import encode
from proxy.errors import AbridgeError, RuleErrors
from proxy.ruleset.loading import rulefile
from proxy.ruleset.rule import RuleFile, RuleSet
from proxy.testing import answer
from proxy.testing.cases import check_case, play_case
from proxy.testing.play import Replay

_NAME_OF_CASE = "a recorded answer, shortened"
_SHORT_PAGE = 3_000  # bytes
_WIDTH = 110
_PLAIN = re.compile(r"[A-Za-z_][\w.-]*")
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_UNPRINTABLE = re.compile(
    r"[^ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


class DraftedRule(Struct):
    """A rule with its tests as YAML, and the bytes of the recorded answers without and with it.

    `misfits` counts answers that it leaves as they are.
    """

    drafts: list[Draft]
    text: str
    before: int
    after: int
    misfits: int

    @property
    def tools(self) -> list[str]:
        """The tools of the rule."""
        return [tool for each in self.drafts for tool in each.tools]


def drafted(drafts: Iterable[Draft]) -> Iterator[DraftedRule]:
    """Yield a rule for the tools whose drafts have the same steps, with limits that fit."""
    alike: dict[str, list[Draft]] = {}
    for each in drafts:
        _fit_limit(each)
        alike.setdefault(json.dumps([each.form == "text", _steps(each)]), []).append(each)
    for group in alike.values():
        spec = _spec(group)
        sizes = [_sizes(_file(spec), each) for each in group]
        spec["tests"] = [
            _complete(spec, {"name": _NAME_OF_CASE, **case_of(each)}) for each in group
        ]
        text = _rule_text(spec, group, sizes)
        file = _load(_page(None, [text]))
        for case in file.rules[0].tests:
            for problem in check_case(file, file.rules[0], case):
                raise DraftError(f"the test of {spec['tools']} does not pass: {problem}")
        rows = [row for each in sizes for row in each]
        before, after = (sum(row[number] for row in rows) for number in (0, 1))
        yield DraftedRule(group, text, before, after, sum(row[2] for row in rows))


class DraftError(AbridgeError):
    """A draft that does not pass its own test: a fault of `suggest`."""


def page(server: str | None, rules: Iterable[DraftedRule], small: list[str]) -> str:
    """Return the rule file, with a line for editors at its head."""
    head = [
        "# yaml-language-server: $schema=rules.schema.json",
        "# Drafted by `mcp-abridge suggest`. Read each rule: what it drops, no view brings back.",
    ]
    if small:
        head += _comment("", f"No rule: no answer above {SMALL:,} bytes: {', '.join(small)}")
    return "\n".join(head) + "\n" + _page(server, [each.text for each in rules])


def _page(server: str | None, rules: list[str]) -> str:
    name = [f"server: {{name: {_scalar(server)}}}"] if server else []
    return "\n".join(["version: 1", *name, "rules:", *rules, ""])


def _load(text: str) -> RuleFile:
    loaded = rulefile.read("the draft", text.encode())
    if loaded.rules is None:
        raise RuleErrors(loaded.problems)
    return loaded.rules


def _file(spec: dict[str, Any]) -> RuleFile:
    return _load(json.dumps({"version": 1, "rules": [spec]}))


def _sizes(file: RuleFile, draft: Draft) -> list[tuple[int, int, bool]]:
    """Return for each answer its bytes, those with the rule, and whether the rule fits."""
    sizes = []
    for each in draft.answers:
        replay = Replay(RuleSet((file,)), each.exchange)
        misfit = any(result.outcome == "failed" for _, result in replay.shaped)
        sizes.append((each.size, replay.answer.visible_size.most, misfit))
    return sizes


def _fit_limit(draft: Draft) -> None:
    """Choose the greatest limit of a page with which the largest answer is short."""
    options = next((step["paginate"] for _, step in draft.steps if "paginate" in step), None)
    for limit in LIMITS if options is not None else ():
        options["limit"] = limit
        file = _file({**_spec([draft]), "max_bytes": 1 << 40})
        replay = Replay(RuleSet((file,)), draft.largest().exchange)
        if replay.answer.visible_size.most <= _SHORT_PAGE:
            break


def _steps(draft: Draft) -> list[dict[str, Any]]:
    return [step for _, step in draft.steps]


def _spec(drafts: list[Draft]) -> dict[str, Any]:
    steps = _steps(drafts[0])
    if drafts[0].form == "text":
        steps = [{"abridge": {"max_bytes": MAX_BYTES, "first_look": FIRST_LOOK}}]
    response = {"response": steps} if steps else {}
    tools = [tool for each in drafts for tool in each.tools]
    return {"tools": tools if len(tools) > 1 else tools[0], **response, "max_bytes": MAX_BYTES}


def _complete(spec: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """Return a case with the actual result as its expectation."""
    file = _file({**spec, "tests": [case]})
    played = play_case(file, file.rules[0], file.rules[0].tests[0])
    after, before = played.play.answer, played.play.before
    given = case.get("given", case.get("given_text"))
    if isinstance(given, dict) and "$repeat" in given:
        size = after.visible_size.most
        reduction = int(10 * before.visible_size.most / size) / 10
        return {**case, "max_bytes": size, "min_reduction": reduction}
    if isinstance(played.document, str):
        texts = list(after.texts)
        return {**case, "expect_text": texts if len(texts) > 1 else texts[0]}
    return {**case, "expect": played.document}


def _rule_text(
    spec: dict[str, Any], drafts: list[Draft], sizes: list[list[tuple[int, int, bool]]]
) -> str:
    lines: list[str] = []
    for each, rows in zip(drafts, sizes, strict=True):
        for tool in each.tools:
            largest = each.largest(tool)
            after = rows[each.answers.index(largest)][1]
            view = answer.read(largest.exchange.response)
            about = tokens(view.text or bytes(view.structured or b"").decode())
            count = len(each.of(tool))
            lines += _comment(
                "  ",
                f"{tool}: {count} answer{'s' * (count > 1)}, the largest {largest.size:,} bytes,"
                f" about {about:,} tokens; {after:,} bytes with this rule",
            )
        for line in dict.fromkeys([*each.evidence, *each.users]):
            lines += _comment("  ", f"  {line}")
    lines.append(f"  - tools: {_scalar(spec['tools'])}")
    if "response" in spec:
        lines.append("    response:")
    for number, step in enumerate(spec.get("response", ())):
        reasons = drafts[0].steps[number][0] if drafts[0].steps else ["its beginning and its end"]
        for reason in reasons:
            lines += _comment("      ", reason)
        lines.append(f"      - {_block(step, 8).lstrip()}")
    lines.append(f"    max_bytes: {spec['max_bytes']}")
    lines.append("    tests:")
    for case in spec["tests"]:
        if not isinstance(spec["tools"], list):
            case.pop("tool")
        lines.append(f"      - {_block(case, 8).lstrip()}")
    return "\n".join(lines)


def _comment(indent: str, text: str) -> list[str]:
    first, rest = f"{indent}# ", f"{indent}#   "
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def _block(value: Any, indent: int) -> str:
    """Write a value as YAML: on one line if it is short, else a line for each member."""
    short = _scalar(value)
    if not isinstance(value, dict | list) or not value or len(short) + indent <= _WIDTH:
        return short
    margin = "\n" + " " * indent
    if isinstance(value, list) and all(isinstance(v, str) and _PLAIN.fullmatch(v) for v in value):
        return margin + margin.join(textwrap.wrap(short, _WIDTH, break_on_hyphens=False))
    if isinstance(value, list):
        return margin + margin.join(f"- {_block(each, indent + 2).lstrip()}" for each in value)
    lines = []
    for name, member in value.items():
        text = _block(member, indent + 2)
        lines.append(f"{_key(name)}:{'' if text.startswith(chr(10)) else ' '}{text}")
    return margin + margin.join(lines)


def _key(name: str) -> str:
    plain = _NAME.fullmatch(name) and scalar_kind(name) == "text"
    return name if plain else _scalar(name)


def _scalar(value: Any) -> str:
    """Return a value as JSON that is YAML too, names without quotes if they need none."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)}: {_scalar(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_scalar, value)) + "]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and scalar_kind(value) == "text":
        return value
    text = encode(value).decode()
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
