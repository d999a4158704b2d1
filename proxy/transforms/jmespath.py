"""Replaces a value by the result of a JMESPath expression."""

from typing import ClassVar

from msgspec import Raw

from proxy.document.measure import exceeds, growth_limit
from proxy.document.paths import ROOT, Path, select
from proxy.document.patterns import Expression
from proxy.document.tree import Pieces, Slot, plain, raw
from proxy.errors import AbridgeError, Refusal, TransformError
from proxy.transforms.base import BaseTransform, Call, Schema


class Jmespath(BaseTransform, frozen=True):
    """Replace each value at `at` by the result of `expression`; null if it gives nothing.

    Numbers that the expression only passes on keep their spelling; `argument('name')` in it is an
    argument of the call. A result that takes more than four times the value and a megabyte is
    refused, since an expression can repeat parts without end; so is one that takes more work than
    the budget of a rule.

    >>> from proxy.document.tree import Document
    >>> document = Document.read(b'{"items": [{"id": 1.50}, {"id": 2}], "page": 1}')
    >>> Jmespath(Expression("items[*].id"))(document.root, Call("list"))
    >>> document.encode()
    b'[1.50,2]'
    """

    name: ClassVar[str] = "jmespath"
    shorthand: ClassVar[str | None] = "expression"

    expression: Expression
    """Evaluated over each value at `at`."""
    at: Path = ROOT
    """The values."""

    def __call__(self, root: Slot, call: Call) -> None:
        """Evaluate, and replace the values."""
        evaluate = self.expression.bind(call.arguments, call.fuel)
        any_place = False
        for slot in select(root, self.at):
            any_place = True
            value = slot.get()
            before = value if type(value) is Raw else raw(value)
            try:
                result = evaluate(plain(before, fuel=call.fuel))
            except Refusal as cause:
                # The rule's own expression does not fit: the call is not at fault.
                raise TransformError(self.name, cause) from cause
            most = growth_limit(len(memoryview(before)))
            if exceeds(result, most, call.fuel):
                raise AbridgeError(f"{self.expression.text!r} gives more than {most} bytes")
            slot.set(Pieces(result) if _pieces(value, result) else result)
        if not any_place:
            call.missing.append(str(self.at))

    def reshape(self, schema: Schema) -> Schema | None:
        """The schema of the result is unknown."""
        return None


def _pieces(value: object, result: object) -> bool:
    return isinstance(value, Pieces) and isinstance(result, list)
