"""How a rule fits recorded answers: without it, nobody sees that a server has changed.

Rot are paths that match nothing any more; drift are members that a rule and its tests do not know.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from mcp_abridge.document.paths import Name, Path, matches
from mcp_abridge.document.tree import plain
from mcp_abridge.replay import answers, cases
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.rule_set import RuleFile

Member = tuple[str, ...]


class RuleFit(Struct):
    """How a rule fits the answers that it was added to.

    `missing` are the paths that match in none of them, None before the first that it fits; `misfit`
    is why it does not fit one. `members` are those of the answers, each with a file that has it.
    """

    rule: Rule
    file: RuleFile
    answers: int = 0
    missing: set[str] | None = None
    misfit: str | None = None
    members: dict[Member, str] = {}

    def add(self, name: str, replay: Replay) -> None:
        """Add the answer in the file `name`; errors do not count."""
        if not replay.shaped or replay.before.failed:
            return
        result = replay.shaped[0][1]
        for member in _members(_document(replay.exchange.response, self.rule)):
            self.members.setdefault(member, name)
        self.answers += 1
        if result.log_line is not None:
            self.misfit = self.misfit or result.log_line
        else:
            missing = set(result.missing)
            self.missing = missing if self.missing is None else self.missing & missing

    def rot(self) -> Iterator[dict[str, Any]]:
        """Yield the paths that match in no answer; if the rule fits none, why."""
        reasons = [f"{path} matches nothing" for path in sorted(self.missing or ())]
        if self.missing is None and self.misfit is not None:
            reasons = [self.misfit]
        rule = {"rule": self.rule.name, "place": self.rule.place}
        for reason in reasons:
            yield {**rule, "answers": self.answers, "reason": reason}

    def drift(self) -> Iterator[dict[str, Any]]:
        """Yield the members of answers that neither the rule nor its tests name. AbridgeError."""
        tested: set[Member] = set()
        for case in self.rule.tests if self.members else ():
            exchange = cases.exchange_of(self.file, self.rule, case)
            tested |= _members(_document(exchange.response, self.rule))
        names = set(_names(self.rule.pipeline))
        rule = {"rule": self.rule.name, "place": self.rule.place}
        for member, file in sorted(self.members.items()) if tested else ():
            is_new = member not in tested and (member[:-1] in tested or not member[:-1])
            if is_new and not any(matches(name, member[-1]) for name in names):
                yield {**rule, "member": ".".join(member), "file": file}


def _document(response: bytes, rule: Rule) -> Any:
    located = answers.located(response, rule)
    return None if located is None else plain(located.document.cell[0])


def _members(value: Any, path: Member = ()) -> set[Member]:
    """Return the paths of all members; the names of a map, such as ids, are `*`."""
    if isinstance(value, list):
        return {member for element in value for member in _members(element, path)}
    members: set[Member] = set()
    for name, inner in value.items() if isinstance(value, dict) else ():
        below = (*path, name if name.replace("_", "").replace("-", "").isalpha() else "*")
        members |= {below} | _members(inner, below)
    return members


def _names(part: Any) -> Iterator[str]:
    if isinstance(part, Path):
        yield from (step.text for step in part.steps if isinstance(step, Name))
    elif isinstance(part, Struct):
        yield from _names(astuple(part))
    elif isinstance(part, dict):
        yield from _names((*part, *part.values()))
    elif isinstance(part, tuple | list):
        for each in part:
            yield from _names(each)
