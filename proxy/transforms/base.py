"""What every transform is, and what it may know of the call it works for."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from msgspec import Struct, field

from proxy.document.fuel import Fuel
from proxy.document.tree import Slot, Value
from proxy.errors import ShapeMismatch

Schema = dict[str, Any]


class Parameter(Struct, frozen=True):
    """An argument that a transform or a rule adds to a tool.

    `schema` is what `inputSchema` shows and what a call is checked against (`type`, `minimum`,
    `maximum`, `default`, `enum`, `maxLength`, `pattern`, `description`). `message` replaces the
    refusal's own words.
    """

    schema: Schema
    message: str | None = None


class Notice(Struct, frozen=True):
    """What the model must be told about something that was left out.

    `value` holds numbers and argument names, never upstream text. In a structuredContent it stands
    under `name`; as a text block it is written as JSON, under its name unless it is `bare`.
    """

    name: str
    value: Value
    bare: bool = False


class Warned(Struct, frozen=True):
    """Something that whoever runs the proxy should know of; the answer goes out all the same.

    Warnings of one `kind` are counted together and logged once. A kind is a few plain words, of
    which a rule has a few, never text of the upstream's; `said` is one case of it in full.
    """

    kind: str
    said: str


class Call(Struct):
    """One shaping: the call's facts, and what the steps have to say about it.

    `arguments` are complete and plain: the client's, defaults filled in, the rule's own included,
    each under the name that the rule file gives it. `bound` is the most bytes the document may
    take, where the rule has a bound. `structured` is true where clients may be shown a
    structuredContent. `blocks`: the document is an array of the texts of several blocks. `names`
    maps the rule's argument names to the advertised ones where they differ. `member` is the one of
    structuredContent that holds the document, if it is a text. `fuel` is what the steps may cost
    together. `error`: the document is an error, whose end says more than its middle.
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

    def warn(self, kind: str, said: str) -> None:
        """Have something counted and logged; see Warned."""
        self.warnings.append(Warned(kind, said))

    def argument(self, name: str) -> Any:
        """Return the argument at the dotted `name`, or None."""
        value: Any = self.arguments
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def shown(self, name: str) -> str:
        """Return the name under which the client knows the rule's argument `name`."""
        return self.names.get(name, name)


class Transform(Protocol):
    """One step of a pipeline: a frozen Struct whose fields are its options in YAML.

    A transform changes nothing that it was not asked to change. It may raise anything: the rule's
    `on_failure` decides what then goes out.
    """

    name: ClassVar[str]
    shorthand: ClassVar[str | None]
    """The option that is meant where the YAML value is not a mapping of options."""

    window: ClassVar[bool]
    """True where it answers a part of something that later calls ask the rest of."""

    cuts: ClassVar[bool]
    """True where it leaves something out that a view could still show."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The arguments it adds to the tool, by dotted name."""

    def __call__(self, root: Slot, call: Call) -> None:
        """Change the document at `root`."""

    def reshape(self, schema: Schema) -> Schema | None:
        """Return what it makes of a document that fits `schema`; None where it cannot say."""


class Argument(Struct, frozen=True):
    """`{argument: name}`: a constant that comes from the call."""

    argument: str


def constant(value: "str | Argument", call: Call) -> str | None:
    """Return a constant, or the argument it names; None where the call does not carry it.

    Raises Mismatch for an argument that is not a string.
    """
    if isinstance(value, str):
        return value
    found = call.argument(value.argument)
    if found is not None and not isinstance(found, str):
        raise ShapeMismatch(f"{value.argument}: {found!r} is not a string")
    return found
