"""The interface of transforms, and the parts that they share."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from mcp_abridge.document.paths import Path, PathMatches, Paths, blocked, places
from mcp_abridge.document.rows import objects, row_type
from mcp_abridge.document.tree import Slot, Value, opened, plain
from mcp_abridge.errors import Refusal, ShapeMismatch, TransformError
from mcp_abridge.query.call import Call
from mcp_abridge.query.patterns import Expression
from mcp_abridge.schema.derive import relaxed

Schema = dict[str, Any]


class Parameter(Struct, frozen=True):
    """An argument that a transform or a rule adds to a tool.

    `schema` is shown in `inputSchema`, and calls are checked against it (`type`, `minimum`,
    `maximum`, `default`, `enum`, `maxLength`, `pattern`, `description`). `message` replaces the
    default text of a refusal.
    """

    schema: Schema
    message: str | None = None


class Transform(Struct, frozen=True):
    """One step of a pipeline, whose fields are its options in YAML.

    A transform changes only the parts that its options name. It may raise any exception: the
    rule's `on_failure` then decides which response is sent. Python beside a rule file need not
    derive from it: a frozen Struct with the members up to `cuts`, `parameters` and `__call__` will
    do.
    """

    name: ClassVar[str]
    shorthand: ClassVar[str | None] = None
    """The option that is meant if the YAML value is not a mapping of options."""

    window: ClassVar[bool] = False
    """True if it returns one part of a value, and later calls get the other parts."""

    cuts: ClassVar[bool] = False
    """True if it leaves out content that a view could still show."""

    works_on_pages: ClassVar[bool] = False
    """True if it gives the same for a page as for the whole: it may follow a window."""

    burns: ClassVar[bool] = False
    """True if its work is paid for in fuel: the size of the document does not bound it."""

    retypes: ClassVar[bool] = False
    """True if values may get another type: then nobody knows the schema of the result."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The arguments that it adds to the tool, by dotted name."""
        return {}

    def __call__(self, root: Slot, call: Call) -> None:
        """Change the document at `root`."""

    def reshape(self, schema: Schema) -> Schema | None:
        """Members may be missing, arrays shorter, texts other texts; what stays keeps its type."""
        # For documents that fit `schema`; None if the schema of the output is unknown.
        return None if self.retypes else relaxed(schema)


class WindowTransform(Transform, frozen=True, kw_only=True):
    """A step that returns one part of a value; two arguments of the call ask for the others."""

    refetch: bool = False
    """Call the server again if no snapshot is left, even if the tool may have side effects."""
    drop_on: tuple[str, ...] = ()
    """Tools whose calls make the snapshots of this rule stale."""
    max_age_seconds: Annotated[int, Meta(ge=5)] | None = None
    """The greatest age of a snapshot for the first part: without it, the tool runs for each."""

    window: ClassVar[bool] = True
    cuts: ClassVar[bool] = True
    words: ClassVar[tuple[str, str]]
    """The default names of the arguments: of the length of a part, and of its start."""

    @property
    def names(self) -> tuple[str, str]:
        length, start = self.words
        renamed: Mapping[str, str] = self.arguments  # type: ignore[attr-defined]
        return renamed.get(length, length), renamed.get(start, start)

    def __post_init__(self) -> None:
        (length, start), (name, other) = self.words, self.names
        if name == other:
            raise ValueError(f"{length!r} and {start!r} cannot both be the argument {name!r}")

    def integers(self, *bounds: tuple[int, int, int | None, str]) -> Mapping[str, Parameter]:
        parameters = {}
        for name, (minimum, default, maximum, description) in zip(self.names, bounds, strict=True):
            most = {} if maximum is None else {"maximum": maximum}
            schema: Schema = {"type": "integer", "minimum": minimum, **most, "default": default}
            parameters[name] = Parameter({**schema, "description": description})
        return parameters

    def span(self, call: Call, defaults: tuple[int, int]) -> tuple[int, int]:
        values = (call.argument(name) for name in self.names)
        length, start = (
            value if isinstance(value, int) else default
            for value, default in zip(values, defaults, strict=True)
        )
        return length, start


def arrays(root: Slot, at: Path, call: Call) -> Iterator[tuple[Slot, Value, list[Value]]]:
    """Yield each array at `at`: its place, the array before it was opened, and its elements.

    What is no array, or is not there, is recorded as missing; a null is not.
    """
    slots = places(root, at)
    for slot in slots:
        unopened, value = slot.get(), slot.open()
        if isinstance(value, list):
            yield slot, unopened, value
        elif value is not None:
            call.missing.append(str(at) or "[]")
    if not slots and not blocked(root, at):
        call.missing.append(str(at))


Rename = Callable[[list[dict[str, Value]], dict[str, Paths]], None]
"""A function that renames members of objects, in place; each has the paths that end at it."""


def edited(value: Value, paths: Paths, matches: PathMatches, rename: Rename | None = None) -> Value:
    """Return `value` without the members that paths end at, or with these renamed by `rename`.

    Elements of arrays that paths end at are removed. `matches` records which paths exist.
    """
    members: dict[str, Paths] = {}
    rows = objects(value) if paths.plain else None
    if rows:
        present = [row for row in rows if row is not None]
        if len(present) < len(rows):
            matches.excused |= paths.open
        for name, after in paths.names.items():
            holders = [row for row in present if name in row]
            for row in holders if after.open else ():
                row[name] = edited(row[name], after, matches, rename)
            if after.ends and holders:
                matches.note(after)
                members[name] = after
                for row in holders if rename is None else ():
                    del row[name]
        if rename is not None and members:
            rename(present, members)
        return rows
    inner = opened(value)
    if isinstance(inner, dict):
        for name, after in paths.members(inner):
            if after.ends:
                matches.note(after)
                if rename is None:
                    del inner[name]
                    continue
                members[name] = after
            if after.open and not after.barred(inner[name]):
                inner[name] = edited(inner[name], after, matches, rename)
        if rename is not None and members:
            rename([inner], members)
    elif inner is None or inner == []:
        matches.excused |= paths.open
    elif isinstance(inner, list):
        inner[:] = _remaining(inner, paths, matches, rename)
    else:
        return value
    return inner


def _remaining(
    elements: list[Value], paths: Paths, matches: PathMatches, rename: Rename | None
) -> Iterator[Value]:
    for at, element in enumerate(elements):
        after = paths.element(at, len(elements))
        if after is None or (not after.ends and after.barred(element)):
            yield element
        elif after.ends:
            matches.note(after)
        else:
            yield edited(element, after, matches, rename)


def evaluator(step: str, expression: Expression, call: Call) -> Callable[[Value], Any]:
    """Return the function that evaluates an expression of the rule. It raises TransformError."""
    evaluate = expression.bind(call.arguments, call.fuel)
    row = None if expression.names is None else _row(expression.names)

    def over(value: Value) -> Any:
        try:
            return evaluate(plain(value, row, call.fuel))
        except Refusal as error:
            raise TransformError(step, error) from error

    return over


@lru_cache(maxsize=256)
def _row(names: tuple[str, ...]) -> type[Struct] | None:
    return row_type(names)


class Argument(Struct, frozen=True):
    """`{argument: name}`: a constant from the arguments of the call."""

    argument: str
    """The name of the argument whose value to use."""


def constant(value: "str | Argument", call: Call) -> str | None:
    """Return a constant, or the argument that it names, or None. Raises ShapeMismatch."""
    if isinstance(value, str):
        return value
    argument = call.argument(value.argument)
    if argument is not None and not isinstance(argument, str):
        raise ShapeMismatch(f"{value.argument}: {argument!r} is not a string")
    return argument
