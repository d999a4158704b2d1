"""The table of rules/README.md: what one answer of each bundled file takes, as it came and after.

Without it each change of what an answer shows would have somebody copy its figures by hand.
"""

from collections.abc import Iterator
from pathlib import Path

from mcp_abridge.document.tokens import tokens
from mcp_abridge.replay.answers import ClientView
from mcp_abridge.replay.exchanges import recorded
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.ruleset.selection import budget_rule, load, with_budget

FIXTURES = Path(__file__).resolve().parents[2] / "rules" / "fixtures"
_LEAST = 1_000  # bytes of an answer that is worth a row
_VIEWS = ("bytes before", "by the budget", "with rules")
_HEAD = f"""\
| command, in this folder | {" | ".join(f"{view} | about tokens" for view in _VIEWS)} |
| --- |{" ---: |" * 6}"""


def blocks() -> dict[str, str]:
    return {"figures": "\n".join((_HEAD, *_rows()))}


def _rows() -> Iterator[str]:
    for path in sorted(FIXTURES.rglob("*.json")):
        name, exchange = path.parent.name, recorded(path.read_bytes())
        ruled, alone = (Replay(each, exchange) for each in (bundled(name), bundled()))
        applies = ruled.applied is not None and ruled.applied is not ruled.rules.otherwise
        if applies and ruled.outcome == "shaped" and ruled.before.visible_size.most >= _LEAST:
            views = (ruled.before, alone.answer, ruled.answer)
            figures = " | ".join(f"{each:,}" for view in views for each in size(view))
            file = f"fixtures/{name}/{path.name}"
            yield f"| `mcp-abridge explain {name} {file}` | {figures} |"


def bundled(*names: str) -> RuleSet:
    """Return the rules of bundled files and the budget, for a client that nobody knows."""
    budget = budget_rule("auto", None)
    return RuleSet(tuple(with_budget(file, budget) for file in load(names)), budget)


def size(view: ClientView) -> tuple[int, int]:
    """Return the bytes that a model reads, and about how many tokens: of the longer copy."""
    structured = "" if view.structured is None else bytes(view.structured).decode()
    return view.visible_size.most, tokens(max(view.text, structured, key=len))
