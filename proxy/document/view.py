"""Evaluation of views: the part of a document that a model requests by the argument `view`.

A view is a JMESPath expression in which strings can be sliced too. It opens just the parts of the
document that it reads: values in its result keep the spelling of the upstream.
"""

import re
from functools import lru_cache
from typing import Any

from msgspec import Raw, Struct

from proxy.document.fuel import Fuel, charge
from proxy.document.lookups import Lookups
from proxy.document.measure import exceeds, growth_limit, size, writeback_at
from proxy.document.paths import ROOT
from proxy.document.patterns import Expression, PatternError
from proxy.document.tree import Document, Value, encode, level, loads, raw
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
    holds it: `text[10000:20000]` counts characters, as does any slice of a string
    (`items[3].body[0:500]`). A document that is an array is also named `items`. A slice of an array
    at the end of the expression keeps nulls, so that slices can be joined.

    A name in double quotes in a comparison is a text if no element has a member of that name.
    `remarks` receives the messages for the model on members that no element has.

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
    interpreter = _interpreter()(fuel, document, lookups)
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
    if isinstance(whole, list) and _names_items(expression.text):
        root = {"items": whole}
    parsed = lookups.corrected(expression.tree, [root], open, fuel)
    result = visit(parsed, root)
    return visit(parsed, whole) if result is None and isinstance(whole, str) else result


def _names_items(expression: str) -> bool:
    """Return True if an expression calls an array `items`, its name in a shortened result."""
    return re.match(r"\s*[^\[@]*\bitems\b[^@]*$", expression) is not None


@lru_cache(maxsize=1)
def _interpreter() -> type[Any]:
    """Make the interpreter class; its imports are loaded with the first view."""
    from proxy.document.jmespath import Interpreter

    class Lazy(Interpreter):
        """An interpreter over unopened values; it decodes just the values that it computes with."""

        element = 2 * _UNOPENED
        whole = (str, list)

        def __init__(self, fuel: Fuel, document: Document, lookups: Lookups) -> None:
            super().__init__(fuel, lookups=lookups)
            self._computing = Interpreter(fuel, lookups=lookups)
            self._document = document
            self._room: int | None = None

        def visit(self, node: Any, value: Any) -> Any:
            kind = node["type"]
            if kind in _COMPUTING:
                return self._computed(node, value)
            if kind not in _PASSING:
                value = self.open(value)
            self.fuel.burn(_UNOPENED - 1)
            result = super().visit(node, value)
            return None if _null(result) else result

        def _computed(self, node: Any, value: Any) -> Any:
            charge(value, self.fuel)
            output = encode(value)
            result = self._computing.visit(node, loads(output))
            if isinstance(result, dict | list):
                # The result may keep all values decoded for it. The size of the whole document is
                # free once.
                if self._room is None:
                    self._room = len(encode(self._document.cell[0]))
                self._room -= len(output)
                self.fuel.burn(max(0, min(len(output), -self._room)) >> 2)
            return result

        def open(self, value: Any) -> Any:
            length = len(memoryview(value)) if type(value) is Raw else 0
            if length < _LARGE:
                return _open_level(value)
            textual = memoryview(value)[0] == 0x22
            self.fuel.burn(length >> (4 if textual else 9))
            content = _open_level(value)
            if not textual:
                self.fuel.burn(_UNOPENED * len(content))
            return content

        def _is_false(self, value: Any) -> bool:
            return super()._is_false(self.open(value))

    return Lazy


_UNOPENED = 4  # units for a value that stays unopened: it takes some 64 bytes in memory
_LARGE = 1024  # bytes: to open a smaller value is included in its step

# Kinds of nodes that get plain values; all others work on values opened by one level.
_COMPUTING = {"and_expression", "comparator", "expref"}
_COMPUTING |= {"function_expression", "not_expression", "or_expression"}
_PASSING = {"current", "identity", "literal"}


def _null(value: Value) -> bool:
    return type(value) is Raw and len(memoryview(value)) == 4 and bytes(value) == b"null"


def _open_level(value: Value) -> Value:
    if isinstance(value, Struct):
        value = raw(value)
    return level(value) if type(value) is Raw else value


def _shortened(message: str) -> str:
    """Return the start of a message of the jmespath library, which quotes the whole value."""
    words = " ".join(message[: 2 * _TOLD].split())
    return words if len(words) <= _TOLD else f"{words[: _TOLD - 1]}…"


def advice(document: Document) -> str:
    """Return an example of a valid view of this document, as the end of a sentence."""
    value = _open_level(document.cell[0])
    if document.textual:
        example = "text[0:2000]"
    elif isinstance(value, list):
        example = "[0:20]"
    else:
        members = value if isinstance(value, dict) else {}
        arrays = [
            name for name, value_of in members.items() if isinstance(_open_level(value_of), list)
        ]
        name = next((name for name in arrays if name.isidentifier() and name.isascii()), None)
        example = f"{name}[0:20]" if name is not None else "keys(@)"
    return f"write a JMESPath such as {example}"
