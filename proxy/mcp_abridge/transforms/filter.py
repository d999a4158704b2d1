"""Keeps the elements of an array that meet a condition."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar

from mcp_abridge.document.gather import column_values
from mcp_abridge.document.paths import ROOT, Path
from mcp_abridge.document.tree import Slot, Value, opened
from mcp_abridge.errors import OutOfFuel, Refusal
from mcp_abridge.query.call import Call
from mcp_abridge.query.patterns import Expression, Pattern, PatternError, truthy
from mcp_abridge.transforms.base import Argument, Transform, arrays, constant, evaluator


class Filter(Transform, frozen=True):
    """Keep the elements of the array at `at` that meet one condition, unchanged.

    `where` is a JMESPath over the element. `glob` (`*` and `?` stop at `/`, `**` does not), `match`
    (a regular expression found anywhere) and `prefix` test the string at `field`, or the element
    itself; an array of strings fits if any of its strings does. Values other than strings never
    fit; `invert` keeps the elements that do not fit. If the condition is an argument that the call
    does not have, nothing is filtered.

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'["a.md", "b.png", "sub/c.md"]')
    >>> Filter(glob=Argument("pattern"))(document.root, Call("list", {"pattern": "*.md"}))
    >>> document.encode()
    b'["a.md"]'
    >>> document = Document.read(b'{"items": [{"id": 1.0}, {"id": 2, "gone": true}]}')
    >>> Filter(at=Path.parse("items"), where=Expression("!gone"))(document.root, Call("list"))
    >>> document.encode()
    b'{"items":[{"id":1.0}]}'
    """

    name: ClassVar[str] = "filter"
    shorthand: ClassVar[str | None] = "where"
    burns: ClassVar[bool] = True

    at: Path = ROOT
    """The array."""
    where: Expression | None = None
    """A condition over the element."""
    glob: str | Argument | None = None
    """A glob on the whole text; `*` and `?` stop at `/`, `**` does not."""
    match: Pattern | Argument | None = None
    """A regular expression that matches anywhere in the text."""
    prefix: str | Argument | None = None
    """The start of the text."""
    field: Path = ROOT
    """The path of the text for `glob`, `match` or `prefix`, from the element on."""
    invert: bool = False
    """Keep the elements that do not match."""

    def __post_init__(self) -> None:
        conditions = [name for name in _CONDITIONS if getattr(self, name) is not None]
        if len(conditions) != 1:
            names = " and ".join(conditions) or "none"
            raise ValueError(f"expected one of {', '.join(_CONDITIONS)}, found {names}")
        if self.where is not None and self.field.steps:
            raise ValueError("'field' goes with glob, match or prefix; name it in 'where' itself")
        if isinstance(self.glob, str) and len(self.glob) > _LONGEST:
            raise ValueError(f"glob: more than {_LONGEST} characters")

    def __call__(self, root: Slot, call: Call) -> None:
        pattern = self.match if self.glob is None else self.glob
        try:
            self._filter(root, call)
        except OutOfFuel as error:
            if isinstance(pattern, Argument):
                message = f"{pattern.argument}: {error}; ask for something simpler"
                raise Refusal(message) from error
            raise

    def _filter(self, root: Slot, call: Call) -> None:
        fits = self._test(call)
        if fits is None:
            return
        for slot, unopened, value in arrays(root, self.at, call):
            tested = value if self.where is not None else column_values(unopened, self.field)
            matches = [
                element
                for element, part in zip(value, tested, strict=True)
                if fits(part) != self.invert
            ]
            if len(matches) < len(value):
                value[:] = matches
                slot.set(value)

    def _test(self, call: Call) -> Callable[[Value], bool] | None:
        if self.where is not None:
            evaluate = evaluator(self.name, self.where, call)
            return lambda element: truthy(evaluate(element))
        look: Callable[[str], object] | None
        if self.prefix is not None:
            start = constant(self.prefix, call)
            look = None if start is None else lambda text: text.startswith(start)
        else:
            pattern = self._pattern(call)
            look = None if pattern is None else partial(pattern.search, fuel=call.fuel)
        if look is None:
            return None
        return lambda value: any(map(look, _texts(value)))

    def _pattern(self, call: Call) -> Pattern | None:
        if isinstance(self.match, Pattern):
            return self.match
        if isinstance(self.glob, str):
            return Pattern(_regular(self.glob))
        source = self.match or self.glob
        assert isinstance(source, Argument)
        text = constant(source, call)
        if text is None:
            return None
        if len(text) > _LONGEST:
            raise Refusal(f"{source.argument}: more than {_LONGEST} characters")
        try:
            return Pattern(text if self.glob is None else _regular(text), modest=True)
        except PatternError as error:
            raise Refusal(f"{source.argument}: {error}") from error


_CONDITIONS = ("where", "glob", "match", "prefix")
_LONGEST = 1000  # characters of a glob, and of an expression that the model wrote


def _texts(value: Value) -> Iterator[str]:
    inner = opened(value)
    if isinstance(inner, str):
        yield inner
    elif isinstance(inner, list):
        for element in inner:
            yield from _texts(element)


def _regular(glob: str) -> str:
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return rf"\A(?s:{''.join(_WILD.get(part) or re.escape(part) for part in parts)})\z"


# `**/` is any number of folders, including none.
_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
