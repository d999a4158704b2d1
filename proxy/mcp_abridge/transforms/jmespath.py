"""Replaces a value by the result of a JMESPath expression."""

from typing import ClassVar

from msgspec import Raw

from mcp_abridge.document.measure import exceeds, growth_limit
from mcp_abridge.document.paths import ROOT, Path, find, select
from mcp_abridge.document.tree import Pieces, Slot, raw
from mcp_abridge.errors import AbridgeError
from mcp_abridge.query.call import Call
from mcp_abridge.query.patterns import Expression
from mcp_abridge.transforms.base import Transform, evaluator


class Jmespath(Transform, frozen=True):
    """Replace each value at `at` by the result of `expression`; null if it gives nothing.

    Numbers that the expression only passes on keep their spelling; `argument('name')` in it is an
    argument of the call. A result that takes more than four times the value and a megabyte is
    refused, since an expression can repeat parts without end; so is one that takes more work than
    the budget of a rule.

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'{"items": [{"id": 1.50}, {"id": 2}], "page": 1}')
    >>> Jmespath(Expression("items[*].id"))(document.root, Call("list"))
    >>> document.encode()
    b'[1.50,2]'
    """

    name: ClassVar[str] = "jmespath"
    shorthand: ClassVar[str | None] = "expression"
    burns: ClassVar[bool] = True
    retypes: ClassVar[bool] = True

    expression: Expression
    """Evaluated over each value at `at`."""
    at: Path = ROOT
    """The values."""

    def __call__(self, root: Slot, call: Call) -> None:
        evaluate = evaluator(self.name, self.expression, call)
        if find(root, self.at) is None:
            call.missing.append(str(self.at))
        for slot in select(root, self.at):
            value = slot.get()
            before = value if type(value) is Raw else raw(value)
            result = evaluate(before)
            most = growth_limit(len(memoryview(before)))
            if exceeds(result, most, call.fuel):
                raise AbridgeError(f"{self.expression.text!r} gives more than {most} bytes")
            lines = isinstance(value, Pieces) and isinstance(result, list)
            slot.set(Pieces(result) if lines else result)
