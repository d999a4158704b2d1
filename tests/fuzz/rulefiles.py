"""Random rule files: one rule in YAML, mostly right, with any words of the language."""

import json
from typing import Any

import yaml

from tests.fuzz import expressions, steps
from tests.fuzz.dice import Dice

SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "integer", "maximum": 100}, "items": {"type": "array"}},
    "required": ["total"],
}


def text(dice: Dice) -> str:
    return written(dice, {"version": 1, "rules": [rule(dice)]})


def rule(dice: Dice) -> dict[str, Any]:
    made: dict[str, Any] = {"tools": dice.pick(("get", "*", ["get", "list_*"]))}
    if dice.one_in(12):
        made["max_bytes"] = dice.pick((300, 500, 1000))
    else:
        made["response"] = steps.steps(dice)
    chances: dict[str, tuple[int, Any]] = {
        "name": (4, dice.pick(("pages", "é", "a rule"))),
        "max_bytes": (3, dice.pick((300, 500, 1000, 5000, 20_000))),
        "errors": (6, steps.steps(dice, windows=False)),
        "document": (6, dice.pick(("structured", "text", "blocks", "auto"))),
        "blocks": (10, {"drop": dice.some(("image", "resource", "text", "audio"), 2)}),
        "layout": (10, "as_sent"),
        "error_if": (10, _error_if(dice)),
        "copies": (8, dice.pick(("text", "structured", "both"))),
        "on_failure": (8, dice.pick(("pass", "refuse"))),
        "mode": (15, "shadow"),
        "view": (8, False),
        "breadth": (8, False),
        "output_schema": (10, SCHEMA),
        "arguments": (5, _arguments(dice)),
        "allow_growth": (8, dice.one_in(2)),
        "when": (15, "action != 'x'"),
    }
    for word, (count, value) in chances.items():
        if dice.one_in(count):
            made[word] = value
    if "output_schema" in made and dice.one_in(2):
        made["validate"] = dice.pick(("warn", "refuse"))
    return made


def written(dice: Dice, held: dict[str, Any]) -> str:
    """Return a file in one of the styles of YAML."""
    if dice.one_in(3):
        return json.dumps(held, ensure_ascii=dice.one_in(2))
    return str(yaml.safe_dump(held, allow_unicode=True, default_flow_style=None, sort_keys=False))


def _error_if(dice: Dice) -> Any:
    if dice.one_in(3):
        return {"match": dice.pick(steps.REGULAR)}
    return expressions.condition(dice)


def _arguments(dice: Dice) -> dict[str, Any]:
    bounds: dict[str, Any] = {"wanted": {"type": "string", "max_length": 40, "upstream": False}}
    if dice.one_in(3):
        bounds["filter.name"] = {"default": "open"}
    if dice.one_in(3):
        bounds["limit"] = {"maximum": 50, "clamp": True}
    if dice.one_in(4):
        bounds["most_wanted"] = {"alias_of": "wanted"}
    return bounds
