"""Writes drafted rules as YAML, with their evidence, and tries them on the recordings."""

import json  # orjson rounds long integers
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import yaml
from msgspec import Struct

from mcp_abridge.cli import PROGRAM
from mcp_abridge.cli.suggest.draft import FIRST_LOOK, MAX_BYTES, SMALL, Draft
from mcp_abridge.cli.suggest.sample import case_of
from mcp_abridge.cli.terminal import count_text
from mcp_abridge.document.printable import printable
from mcp_abridge.document.tokens import tokens
from mcp_abridge.document.tree import encode
from mcp_abridge.errors import AbridgeError, RuleErrors
from mcp_abridge.replay import answers
from mcp_abridge.replay.cases import check_case, play_case
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.loading import rulefile
from mcp_abridge.ruleset.rule_set import RuleFile, RuleSet

NAME_OF_CASE = "a recorded answer, shortened"
_WIDTH = 110
_MOST_USERS = 10


class Suggestion(Struct):
    """The rules that recordings suggest, as a file; the evidence as `rows` of JSON, and `lines`.

    `unusable` are the tools whose answers show nothing, with the reason.
    """

    text: str = ""
    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    unusable: dict[str, str] = {}


class DraftedRule(Struct):
    """A rule with its tests as YAML, and the bytes of the recorded answers without and with it."""

    drafts: list[Draft]
    text: str
    before: int
    after: int
    misfits: int

    @property
    def steps(self) -> list[dict[str, Any]]:
        return self.drafts[0].steps

    @property
    def tools(self) -> list[str]:
        return [each.tool for each in self.drafts]


def rules_of(drafts: Iterable[Draft]) -> Iterator[DraftedRule]:
    """Yield a rule for the tools whose drafts have the same steps."""
    alike: dict[bytes, list[Draft]] = {}
    for each in drafts:
        alike.setdefault(encode([each.form == "text", each.steps]), []).append(each)
    for group in alike.values():
        spec = _spec(group)
        sizes = [_sizes(_file(spec), each) for each in group]
        cases = ({"name": NAME_OF_CASE, **case_of(each)} for each in group)
        spec["tests"] = [_complete(spec, case) for case in cases]
        text = try_out(_rule_text(spec, group, sizes))
        sums = map(sum, zip(*(row for each in sizes for row in each), strict=True))
        yield DraftedRule(group, text, *sums)


def page(server: str | None, rules: Iterable[DraftedRule], small: list[str]) -> str:
    """Return the rule file, with a line for editors at its head."""
    head = [
        "# yaml-language-server: $schema=rules.schema.json",
        f"# `{PROGRAM} schema > rules.schema.json` writes that file, for completion in an editor.",
        "# Drafted by `mcp-abridge suggest`. Read each rule: what it drops, no view brings back.",
    ]
    if small:
        head += comment("", f"No rule: no answer above {SMALL:,} bytes: {', '.join(small)}")
    return "\n".join(head) + "\n" + file_text(server, [each.text for each in rules])


def file_text(server: str | None, rules: list[str]) -> str:
    """Return a rule file with the texts of its rules."""
    name = [yaml_text({"server": {"name": server}}, 0)] if server else []
    return "\n".join(["version: 1", *name, "rules:", *rules, ""])


def try_out(rule: str) -> str:
    """Return the text of a rule. Raises AbridgeError if one of its tests does not pass."""
    file = _load(file_text(None, [rule]).encode())
    for case in file.rules[0].tests:
        for problem in check_case(file, file.rules[0], case):
            raise AbridgeError(f"the test of {file.rules[0].name} does not pass: {problem}")
    return rule


def _load(raw: bytes) -> RuleFile:
    loaded = rulefile.read("the draft", raw)
    if loaded.rules is None:
        raise RuleErrors(list(loaded.problems))
    return loaded.rules


def _file(spec: dict[str, Any]) -> RuleFile:
    # YAML refuses some characters that JSON permits.
    text = printable(encode({"version": 1, "rules": [spec]}).decode(), json=True)
    return _load(text.encode())


def _sizes(file: RuleFile, draft: Draft) -> list[tuple[int, int, bool]]:
    """Return for each answer its bytes, those with the rule, and whether the rule fits."""
    sizes = []
    for each in draft.answers:
        replay = Replay(RuleSet((file,)), each.exchange)
        misfit = any(result.outcome == "failed" for _, result in replay.shaped)
        sizes.append((each.size, replay.answer.visible_size.most, misfit))
    return sizes


def _spec(drafts: list[Draft]) -> dict[str, Any]:
    steps = drafts[0].steps
    if drafts[0].form == "text":
        steps = [{"abridge": {"max_bytes": MAX_BYTES, "first_look": FIRST_LOOK}}]
    response = {"response": steps} if steps else {}
    tools = [each.tool for each in drafts]
    return {"tools": tools if len(tools) > 1 else tools[0], **response, "max_bytes": MAX_BYTES}


def _complete(spec: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    file = _file({**spec, "tests": [case]})
    trial = play_case(file, file.rules[0], file.rules[0].tests[0])
    after, before = trial.play.answer, trial.play.before
    answer_of_case = case.get("given", case.get("given_text"))
    if isinstance(answer_of_case, dict) and "$repeat" in answer_of_case:
        size = -(-after.visible_size.most // 100) * 100
        return {**case, "max_bytes": size, "min_reduction": before.visible_size.most // size}
    if isinstance(trial.document, str):
        return {**case, "expect_text": after.texts[0]}
    return {**case, "expect": trial.document}


def _rule_text(
    spec: dict[str, Any], drafts: list[Draft], sizes: list[list[tuple[int, int, bool]]]
) -> str:
    lines: list[str] = []
    for each, rows in zip(drafts, sizes, strict=True):
        largest = each.largest
        after = rows[each.answers.index(largest)][1]
        view = answers.read(largest.exchange.response)
        about = tokens(view.text or bytes(view.structured or b"").decode())
        amount = f"{largest.size:,} bytes, about {about:,} tokens; {after:,} bytes with this rule"
        many = count_text(len(each.answers), "answer")
        users = list(dict.fromkeys(each.users))
        more = [f"and {len(users) - _MOST_USERS} more"] if len(users) > _MOST_USERS else []
        lines += comment("  ", f"{each.tool}: {many}, the largest {amount}")
        for line in (*each.evidence, *users[:_MOST_USERS], *more):
            lines += comment("  ", f"  {line}")
    lines.append("  - tools: " + yaml_text(spec["tools"], 6))
    if "response" in spec:
        lines.append("    response:")
    for number, step in enumerate(spec.get("response", ())):
        reasons = drafts[0].reasons[number] if drafts[0].steps else ["its beginning and its end"]
        for reason in reasons:
            lines += comment("      ", reason)
        lines.append("      - " + yaml_text(step, 8))
    lines += [f"    max_bytes: {spec['max_bytes']}", "    tests:"]
    return "\n".join([*lines, *("      - " + yaml_text(case, 8) for case in spec["tests"])])


def comment(indent: str, text: str) -> list[str]:
    """Return the lines of a comment that is no wider than a page."""
    first, rest = f"{indent}# ", f"{indent}#     "
    line = printable(text)  # YAML ends a line, and so a comment, at some of these characters
    return textwrap.wrap(
        line, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


class _Dumper(yaml.SafeDumper):
    """Quotes the texts that YAML 1.2 reads as numbers; PyYAML knows YAML 1.1 alone."""


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+.]?[0-9][-+.0-9eEoxa-fA-F]*"), list("-+.0123456789")
)


def _style(text: str) -> str | None:
    """Return the style of a block for lines; blank lines at its end would be the next member's."""
    if printable(text, lines=True) != text:
        return '"'
    if "\n" not in text:
        return None
    return '"' if text.endswith(("\n\n", " \n")) else "|"


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text)),
)


def yaml_text(value: Any, indent: int) -> str:
    """Return a value as YAML, indented but for its first line."""
    form: dict[str, Any] = {"default_flow_style": None, "allow_unicode": True, "sort_keys": False}
    plain = json.loads(encode(value))
    dumped: str = yaml.dump(plain, Dumper=_Dumper, width=_WIDTH - indent, **form)
    # The library writes marks of direction as they are; all stand in double quotes.
    text = printable(dumped, lines=True)
    text = text.removesuffix("\n...\n").removesuffix("\n")
    return textwrap.indent(text, " " * indent, lambda line: line.strip() != "").lstrip()
