"""Makes the test of a drafted rule from a recorded answer: shortened, with secrets masked."""

import json
import re
from typing import Any

import yaml

from proxy.cli.suggest.draft import CLIP, FEW, MAX_BYTES, Draft, structure
from proxy.document.paths import spelled
from proxy.document.tree import encode

_LONGEST = 80  # characters of a text that no step shortens
_MEMBERS = 40  # of an object
_DEEPEST = 8
_SECRET = re.compile(
    r"""\b(?:gh[pousr]_|github_pat_|glpat-|sk-|xox[a-z]-|AKIA|AIza|ya29\.)[\w.-]{8,}
    |\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*|\b(?i:bearer|basic)\s+[\w.~+/=-]{8,}
    |-----BEGIN[^-]*PRIVATE\ KEY-----[^-]*""",
    re.VERBOSE,
)
_SECRET_NAME = re.compile(
    r"(?i)(?:^|_|-)(?:pass(?:word|wd)?|secret|token|credential|authorization|cookie"
    r"|(?:api|private|access)[_-]?key)s?$|[a-z](?:Token|Secret|Password|ApiKey)$"
)
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_HOME = re.compile(r"(?<=/home/)[^/\s]+|(?<=/Users/)[^/\s]+")


def shortened(draft: Draft, value: Any, names: tuple[str, ...] = ()) -> Any:
    """Return a part of an answer that is small, and still shows each step at work."""
    path = ".".join(names)
    if isinstance(value, str):
        return masked(value[: CLIP + 20 if path in draft.clips else _LONGEST])
    if isinstance(value, list):
        objects = bool(value) and isinstance(value[0], dict)
        few = FEW + 1 if path in draft.elides else FEW - objects
        return [shortened(draft, each, names) for each in value[:few]]
    if not isinstance(value, dict):
        return value
    if len(names) > _DEEPEST:
        return {}
    shown = list(value.items())[:_MEMBERS]
    return {
        name: "***"
        if _SECRET_NAME.search(name) and isinstance(member, str)
        else shortened(draft, member, (*names, spelled(name)))
        for name, member in shown
    }


def masked(text: str) -> str:
    """Return a text without tokens, keys, addresses of people and names of home folders.

    >>> masked("ann@corp.example wrote ghp_0123456789abcdef to /home/ann/x")
    'someone@example.org wrote *** to /home/user/x'
    """
    return _HOME.sub("user", _MAIL.sub("someone@example.org", _SECRET.sub("***", text)))


def case_of(draft: Draft) -> dict[str, Any]:
    """Return a test without its expectation: the call, and the answer that it gives."""
    largest = draft.largest()
    call: dict[str, Any] = {"tool": largest.exchange.tool}
    if draft.window:
        call["arguments"] = draft.window
    if draft.form == "value" and draft.steps:
        return {**call, "given": shortened(draft, largest.value)}
    if draft.form == "value":
        row = shortened(draft, largest.value)
        return {**call, "given": {"$repeat": row, "times": 3 * MAX_BYTES // len(encode(row)) + 1}}
    return {**call, "given_text": _text(draft, largest.value)}


def _text(draft: Draft, text: str) -> Any:
    if draft.form in ("lines", "records"):
        split = draft.steps[0][1]["parse"].get("split", "(?m)^")
        return "".join(re.split(split, masked(text))[: FEW + 1])
    if draft.form in ("rows", "text"):
        part = masked(text)[:200].rpartition("\n")[0] or masked(text)[:200]
        return {"$repeat": f"{part}\n", "times": 3 * MAX_BYTES // len(part) + 1}
    inner, _, before = structure(text)
    short = shortened(draft, inner)
    match draft.form:
        case "python":
            return repr(short)
        case "yaml":
            return str(yaml.safe_dump(short, allow_unicode=True, sort_keys=False))
    end = "\n```" if "```" in before else ""
    return f"{masked(before)}{json.dumps(short, ensure_ascii=False)}{end}"
