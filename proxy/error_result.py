"""Runs a rule's `errors` over an error: a result marked so, a JSON-RPC error, our own refusal.

Invariant: an error stays one, of its kind; and what goes wrong on the way never costs it.
"""

from msgspec import Raw, Struct
from msgspec.structs import replace

from proxy import message, result
from proxy.document import Document, text
from proxy.errors import DocumentError
from proxy.fuel import LITTLE, Fuel
from proxy.message import members
from proxy.result import Reading, Shown
from proxy.rule import Rule
from proxy.surrogates import mask
from proxy.transforms.base import Call

_TRUE = Raw(b"true")


class Shaped(Struct, frozen=True):
    """An error after its steps: the members of a result, and what a model sees of it."""

    written: dict[str, Raw]
    shown: Shown
    masked: bool


def of_result(rule: Rule, call: Call, reading: Reading) -> Shaped:
    """Return an error result after the rule's steps, marked as an error.

    Raises whatever a step does.
    """
    document = reading.document
    _run(rule, document, call)
    # Some clients hold the structuredContent of an error to the schema of what it is not.
    frame = result.as_text(reading.frame)
    written, shown = result.write(frame, document, call.notices)
    written["isError"] = _TRUE
    return Shaped(written, shown, frame.masked or document.masked)


def of_response(rule: Rule, call: Call, raw: bytes) -> bytes | None:
    """Return a JSON-RPC error whose message went through the rule's steps; None for what is none.

    Its code and its data stay. Raises whatever a step does.
    """
    try:
        masked = message.masked(raw)
        error = members(members(mask(raw) if masked else raw).get("error", Raw(b"null")))
    except DocumentError:
        return None
    said = text(error.get("message"))
    if said is None:
        return None
    shaped = _said(rule, call, said, masked=masked)
    return message.replaced(raw, error={**error, "message": shaped})


def of_refusal(rule: Rule, call: Call, said: str) -> str:
    """Return the text of a refusal of the proxy's own, as the rule has its errors."""
    try:
        # That no case knows our own words is not worth a warning; they are short, and others wait.
        return _said(rule, replace(call, warnings=[], fuel=Fuel(LITTLE)), said)
    except (Exception, SystemExit) as error:  # the reason why it is refused must never be lost
        call.warn("errors: a step failed", f"a refusal went out as it is: {error}")
        return said


def _said(rule: Rule, call: Call, said: str, *, masked: bool = False) -> str:
    document = Document(said, masked=masked)
    _run(rule, document, call)
    shaped = text(document.cell[0])
    return document.encode().decode() if shaped is None else shaped


def _run(rule: Rule, document: Document, call: Call) -> None:
    for step in rule.errors:
        step(document.root, call)
    document.close()
