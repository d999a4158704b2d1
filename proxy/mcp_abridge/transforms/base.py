"""The interface of transforms, and the facts of the call that they may use."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from msgspec import Struct, field

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.paths import Path, PathMatches, Paths, blocked, places
from mcp_abridge.document.patterns import Expression
from mcp_abridge.document.tree import Slot, Value, objects, opened, plain, row_type
from mcp_abridge.errors import Refusal, ShapeMismatch, TransformError
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


class Notice(Struct, frozen=True):
    """A message to the model about content that was left out.

    `value` holds numbers and argument names, and of a server's text no more than names, as
    `paths.label` gives them. In a structuredContent it is the member `name`; as a text block it is
    written as JSON, under its name unless it is `bare`.
    """

    name: str
    value: Value
    bare: bool = False


_SPECIAL, _ESCAPED = re.compile(r'["$`\\]'), r"\\\g<0>"  # between double quotes, in a shell
_QUOTE = re.compile(r'["\\]')

DROPPED = "_dropped"  # the notice on how many blocks of each type a rule dropped


class Warned(Struct, frozen=True):
    """A warning to the operator of the proxy; the response is sent all the same.

    Warnings of one `kind` are counted together and logged once. A kind is a few plain words, never
    upstream text, and a rule has few kinds; `text` is one case of it in full.
    """

    kind: str
    text: str


class Call(Struct):
    """The shaping of one response: the facts of the call, and the messages of the steps.

    `arguments` are complete and plain: the client's, defaults filled in, the rule's own included,
    each under the name that the rule file gives it. `bound` is the most bytes that the document may
    take, if the rule has a bound. `structured`: clients may get a structuredContent. `blocks`: the
    document is an array of the texts of several blocks. `names` maps the rule's argument names to
    the advertised names if they differ. `member` is the member of structuredContent that holds the
    document, if the document is a text. `viewable`: notices may offer views. `breadth`: a
    size budget shows all rows in brief, not the first rows whole. `fuel` is the budget of all steps
    together. `error`: the document is an error, whose end matters more than its middle. `reader` is
    the shell command that answers views if no call of the tool can; "" otherwise.
    """

    tool: str
    arguments: dict[str, Any] = {}
    bound: int | None = None
    structured: bool = False
    blocks: bool = False
    names: dict[str, str] = {}
    member: str = ""
    viewable: bool = False
    notices: list[Notice] = []
    missing: list[str] = []
    warnings: list[Warned] = []
    fuel: Fuel = field(default_factory=Fuel)
    error: bool = False
    breadth: bool = True
    reader: str = ""

    def warn(self, kind: str, text: str) -> None:
        self.warnings.append(Warned(kind, text))

    def argument(self, name: str) -> Any:
        value: Any = self.arguments
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def advertised_name(self, name: str) -> str:
        return self.names.get(name, name)

    def question(self, view: str) -> str:
        """Return a view as the model writes it: an argument of the tool, or a word for a shell.

        >>> print(Call("t").question("items[0:9]"), Call("t").question("grep('a')"))
        view='items[0:9]' view="grep('a')"
        >>> print(Call("t", reader="mcp-abridge view F").question("grep('a')"))
        "grep('a')"
        """
        if self.reader:
            # As one word of a shell's command line.
            return f"'{view}'" if "'" not in view else f'"{_SPECIAL.sub(_ESCAPED, view)}"'
        word = f"'{view}'" if "'" not in view else f'"{_QUOTE.sub(_ESCAPED, view)}"'
        return f"{self.advertised_name('view')}={word}"

    def next_question(self, view: str) -> str:
        """Return how to ask for a view: the first sentence of a notice."""
        command = f"run {self.reader} " if self.reader else "call again with "
        return f"{command}{self.question(view)}"


class Transform(Struct, frozen=True):
    """One step of a pipeline, whose fields are its options in YAML.

    A transform changes only the parts that its options name. It may raise any exception: the
    rule's `on_failure` then decides which response is sent. Python beside a rule file need not
    derive from it: a frozen Struct with these members will do.
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

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The arguments that it adds to the tool, by dotted name."""
        return {}

    def __call__(self, root: Slot, call: Call) -> None:
        """Change the document at `root`."""

    def reshape(self, schema: Schema) -> Schema | None:
        """Members may be missing, arrays shorter, texts other texts; what stays keeps its type."""
        # For documents that fit `schema`; None if the schema of the output is unknown.
        return relaxed(schema)


class WindowTransform(Transform, frozen=True):
    """A step that returns one part of a value; two arguments of the call ask for the others."""

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
def _row(names: tuple[str, ...]) -> type[Struct]:
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
