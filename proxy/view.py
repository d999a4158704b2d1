"""Evaluates what a model asks to see of a document: the argument `view`.

A view is a JMESPath expression in which strings can be sliced too. It opens the document only
where it leads: what it passes on stays as upstream spelled it.
"""

from functools import lru_cache
from typing import Any

from msgspec import Raw, Struct

from proxy.document import Document, Value, level, plain, raw
from proxy.errors import DocumentError, Refusal
from proxy.paths import ROOT
from proxy.patterns import Expression, PatternError
from proxy.written import outgrows, reading, size

_LONGEST = 4000  # characters of an expression
_TOLD = 200  # characters of what an expression failed at
_GROWTH = 4
_ROOM = 1 << 20


def look(document: Document, expression: str, name: str = "text") -> Value:
    """Return what `expression` gives over `document`; null where it gives nothing.

    A document that is a text is `text`, and `name` too, the member of structuredContent that holds
    it: `text[10000:20000]` counts characters, as does any slice of a string
    (`items[3].body[0:500]`). A slice of an array that ends the expression keeps nulls,
    so that slices rejoin. The value belongs to a document that is masked as this one is.

    >>> from proxy.document import encode
    >>> document = Document.read(b'{"items": [{"id": 1.50, "body": "abcdef"}, null, {"id": 2}]}')
    >>> look(document, "items[0].body[2:4]"), encode(look(document, "items[*].id"))
    ('cd', b'[1.50,2]')

    Raises Refusal for an expression that is wrong or does not fit the document, and for a value
    that outgrows it.
    """
    if len(expression) > _LONGEST:
        raise Refusal(f"view: more than {_LONGEST} characters; {advice(document)}")
    try:
        parsed = Expression(expression).tree
        found = _evaluate(document, expression, parsed, name)
        if outgrows(found, _ROOM) and outgrows(found, _GROWTH * size(document) + _ROOM):
            raise Refusal(f"view: {expression!r} gives far more than the whole document; narrow it")
        return found
    except DocumentError:
        raise
    except PatternError as error:
        raise Refusal(f"view: {error}; {advice(document)}") from error
    except RecursionError as error:
        raise Refusal(f"view: nested too deeply; {advice(document)}") from error
    except (ValueError, TypeError, ArithmeticError) as error:
        # What the jmespath library raises, its own errors included.
        reason = _shortened(str(error))
        raise Refusal(f"view: {expression!r} fails: {reason}; {advice(document)}") from error


def _evaluate(document: Document, expression: str, parsed: dict[str, Any], name: str) -> Value:
    visit = _interpreter()().visit
    whole = _opened(document.cell[0])
    # A text that was read as structure can be looked at as a text too.
    asked = expression.lstrip().startswith("text") and reading(document, ROOT) is not None
    if asked and not (isinstance(whole, dict) and "text" in whole):
        document.close()
        whole = _opened(document.cell[0])
    if not isinstance(whole, str):
        return visit(parsed, whole)
    found = visit(parsed, {"text": whole, name: whole})
    return visit(parsed, whole) if found is None else found


@lru_cache(maxsize=1)
def _interpreter() -> type[Any]:
    """Make the interpreter; what it needs is loaded with the first view."""
    from jmespath.visitor import TreeInterpreter

    class Interpreter(TreeInterpreter):
        """Follows an expression into unopened values; decodes what it computes with."""

        plainly = False

        def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
            [value] = args
            if self.plainly:
                return super().visit(node, value)
            kind = node["type"]
            if kind in _PASSING:
                return None if _null(value) else value
            if kind in _LAZY:
                return _opened(super().visit(node, _opened(value)))
            self.plainly = True
            try:
                return super().visit(node, plain(value))
            finally:
                self.plainly = False

        def visit_slice(self, node: Any, value: Any) -> Any:
            if not isinstance(value, str | list):
                return None
            return value[slice(*node["children"])]

        def visit_projection(self, node: Any, value: Any) -> Any:
            left, right = node["children"]
            base = self.visit(left, value)
            if right["type"] == "identity" and _slices(left) and isinstance(base, str | list):
                return base
            if not isinstance(base, list):
                return None
            found = (self.visit(right, element) for element in base)
            return [each for each in found if each is not None]

        def visit_flatten(self, node: Any, value: Any) -> Any:
            base = self.visit(node["children"][0], value)
            if not isinstance(base, list):
                return None
            merged: list[Value] = []
            for element in base:
                inner = _opened(element)
                merged.extend(inner if isinstance(inner, list) else [element])
            return merged

    return Interpreter


# Kinds of nodes that work on what is opened by one level; all others get plain values.
_LAZY = {
    "field",
    "filter_projection",
    "flatten",
    "index",
    "index_expression",
    "key_val_pair",
    "multi_select_dict",
    "multi_select_list",
    "pipe",
    "projection",
    "slice",
    "subexpression",
    "value_projection",
}
_PASSING = {"current", "identity"}


def _slices(node: Any) -> bool:
    return bool(node["type"] == "index_expression" and node["children"][-1]["type"] == "slice")


def _null(value: Value) -> bool:
    return type(value) is Raw and len(memoryview(value)) == 4 and bytes(value) == b"null"


def _opened(value: Value) -> Value:
    if isinstance(value, Struct):
        value = raw(value)
    return level(value) if type(value) is Raw else value


def _shortened(said: str) -> str:
    """Return the start of what the jmespath library says: it quotes the whole value."""
    words = " ".join(said[: 2 * _TOLD].split())
    return words if len(words) <= _TOLD else f"{words[: _TOLD - 1]}…"


def advice(document: Document) -> str:
    """Say a view of this document that works, as the end of a sentence."""
    value = _opened(document.cell[0])
    if document.textual:
        example = "text[0:2000]"
    elif isinstance(value, list):
        example = "[0:20]"
    else:
        members = value if isinstance(value, dict) else {}
        arrays = [name for name, held in members.items() if isinstance(_opened(held), list)]
        name = next((name for name in arrays if name.isidentifier() and name.isascii()), None)
        example = f"{name}[0:20]" if name is not None else "keys(@)"
    return f"write a JMESPath such as {example}"
