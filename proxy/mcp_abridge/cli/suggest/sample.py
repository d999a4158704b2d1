"""Makes the test of a drafted rule from a recorded answer: shortened, with secrets masked."""

import json  # orjson rounds long integers
from typing import Any

import yaml

from mcp_abridge.cli.suggest.draft import CLIP, FEW, MAX_BYTES, Draft, structure
from mcp_abridge.cli.terminal import json_text
from mcp_abridge.document.names import spelled
from mcp_abridge.document.tree import encode
from mcp_abridge.storage.redaction import SECRETS, Redaction

_LONGEST = 80  # characters of a text that no step shortens
_MEMBERS = 40  # of an object
_DEEPEST = 8
_SECRETS = Redaction([*SECRETS, "email", "phone", r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"])


def shortened(draft: Draft, value: Any, most: int = _MEMBERS) -> Any:
    """Return a part of an answer that is small, and still shows each step at work, masked.

    An object keeps at most so many members.
    """
    shortening = {name: {step["at"] for step in draft.options(name)} for name in ("clip", "elide")}

    def part(value: Any, names: tuple[str, ...]) -> Any:
        path = ".".join(names)
        if isinstance(value, str):
            return value[: CLIP + 20 if path in shortening["clip"] else _LONGEST]
        if isinstance(value, list):
            objects = bool(value) and isinstance(value[0], dict)
            few = FEW + 1 if path in shortening["elide"] else FEW - objects
            return [part(each, names) for each in value[:few]]
        if not isinstance(value, dict):
            return value
        if len(names) > _DEEPEST:
            return {}
        members = [each for each in value.items() if each[0] != "$repeat"][:most]
        return {name: part(member, (*names, spelled(name))) for name, member in members}

    return json.loads(_SECRETS.text(encode(part(value, ())).decode()))


def case_of(draft: Draft) -> dict[str, Any]:
    """Return a test without its expectation: the call, and the answer that it gives."""
    largest = draft.largest
    call: dict[str, Any] = {"tool": draft.tool}
    if draft.options("paginate"):
        call["arguments"] = {"limit": 1}
    if draft.form == "value":
        row = shortened(draft, largest.value)
        if draft.steps:
            return {**call, "given": row}
        return {**call, "given": {"$repeat": row, "times": 3 * MAX_BYTES // len(encode(row)) + 1}}
    return {**call, "given_text": _text(draft, largest.value)}


def _text(draft: Draft, text: str) -> Any:
    if draft.form in ("rows", "text"):
        part = _SECRETS.text(text)[:200].rpartition("\n")[0] or _SECRETS.text(text)[:200]
        return {"$repeat": f"{part}\n", "times": 3 * MAX_BYTES // len(part) + 1}
    inner, _, before = structure(text)
    short = shortened(draft, inner)
    if draft.form == "python":
        return repr(short)
    if draft.form == "yaml":
        return str(yaml.safe_dump(short, allow_unicode=True, sort_keys=False))
    end = "\n```" if "```" in before else ""
    return f"{_SECRETS.text(before)}{json_text(short)}{end}"
