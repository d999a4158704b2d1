"""Evaluation of views: the part of a document that a model requests by the argument `view`.

A view is a JMESPath expression in which strings can be sliced too. It opens just the parts of the
document that it reads: values in its result keep the spelling of the upstream.
"""

import re

from proxy.document.fuel import Fuel
from proxy.document.lookups import Lookups
from proxy.document.measure import exceeds, growth_limit, size, writeback_at
from proxy.document.paths import ROOT
from proxy.document.patterns import Expression, PatternError
from proxy.document.tree import Document, Value, opened
from proxy.errors import DocumentError, OutOfFuel, Refusal

_LONGEST = 4000  # characters of an expression
_TOLD = 200  # characters of the library's error message


def look(
    document: Document,
    expression: str,
    name: str = "text",
    fuel: Fuel | None = None,
    remarks: list[str] | None = None,
) -> Value:
    """Return the result of `expression` over `document`; null if there is none.

    A document that is a text is named `text`, and also `name`, the member of structuredContent that
    holds it; one that is an array is also named `items`. A slice of an array at the end of the
    expression keeps nulls, so that slices can be joined. `remarks` receives the messages for the
    model on members that no element has.

    >>> from proxy.document.tree import encode
    >>> document = Document.read(b'{"items": [{"id": 1.50, "body": "abcdef"}, null, {"id": 2}]}')
    >>> look(document, "items[0].body[2:4]"), encode(look(document, "items[*].id"))
    ('cd', b'[1.50,2]')

    Raises Refusal if the expression is wrong or does not fit the document, if it finds nothing
    since no element has a member that it requires, if it takes more fuel than there is, or if the
    value outgrows the document.
    """
    if len(expression) > _LONGEST:
        raise Refusal(f"view: more than {_LONGEST} characters; {advice(document)}")
    fuel = fuel or Fuel()
    lookups = None
    try:
        parsed = Expression(expression)
        lookups = Lookups(parsed)
        result = _evaluate(document, parsed, name, fuel, lookups)
        if exceeds(result, growth_limit(0), fuel) and exceeds(
            result, growth_limit(size(document)), fuel
        ):
            raise Refusal(f"view: {expression!r} gives far more than the whole document; narrow it")
        _remark(result, lookups, remarks)
        return result
    except DocumentError:
        raise
    except OutOfFuel as error:
        raise Refusal(f"view: {expression!r} takes too much work; narrow it") from error
    except PatternError as error:
        raise Refusal(f"view: {error}; {advice(document)}") from error
    except RecursionError as error:
        raise Refusal(f"view: nested too deeply; {advice(document)}") from error
    except (ValueError, TypeError, ArithmeticError) as error:
        # Errors that the jmespath library raises, its own classes included.
        reason = _shortened(str(error))
        missing = [*lookups.slips, *lookups.absences] if lookups is not None else []
        cause = missing[0] if missing else advice(document)
        raise Refusal(f"view: {expression!r} fails: {reason}; {cause}") from error


def _remark(result: Value, lookups: Lookups, remarks: list[str] | None) -> None:
    """Keep a slip from reading as "none": raise Refusal if a slip is why nothing was found."""
    nothing = result is None or result == []
    slips = lookups.slips
    if slips and nothing:
        raise Refusal(f"view: {slips[0]}")
    if remarks is not None:
        remarks += slips or (lookups.absences if nothing else [])


def _evaluate(
    document: Document, expression: Expression, name: str, fuel: Fuel, lookups: Lookups
) -> Value:
    from proxy.document.jmespath import LazyInterpreter  # loads the jmespath library

    interpreter = LazyInterpreter(fuel, document, lookups)
    visit, open = interpreter.visit, interpreter.open
    whole = open(document.cell[0])
    # A view can also read a text that was parsed as structure as the text.
    as_text = (
        expression.text.lstrip().startswith("text") and writeback_at(document, ROOT) is not None
    )
    if as_text and not (isinstance(whole, dict) and "text" in whole):
        document.close()
        whole = open(document.cell[0])
    root = {"text": whole, name: whole} if isinstance(whole, str) else whole
    # An array has the name `items` in a shortened result.
    if isinstance(whole, list) and re.match(r"\s*[^\[@]*\bitems\b[^@]*$", expression.text):
        root = {"items": whole}
    parsed = lookups.corrected(expression.tree, [root], open, fuel)
    result = visit(parsed, root)
    return visit(parsed, whole) if result is None and isinstance(whole, str) else result


def _shortened(message: str) -> str:
    """Return the start of a message of the jmespath library, which quotes the whole value."""
    words = " ".join(message[: 2 * _TOLD].split())
    return words if len(words) <= _TOLD else f"{words[: _TOLD - 1]}…"


def advice(document: Document) -> str:
    """Return an example of a valid view of this document, as the end of a sentence."""
    value = opened(document.cell[0])
    if document.textual:
        example = "text[0:2000]"
    elif isinstance(value, list):
        example = "[0:20]"
    else:
        members = value if isinstance(value, dict) else {}
        arrays = (name for name, value in members.items() if isinstance(opened(value), list))
        plain = (f"{name}[0:20]" for name in arrays if name.isidentifier() and name.isascii())
        example = next(plain, "keys(@)")
    return f"write a JMESPath such as {example}"
