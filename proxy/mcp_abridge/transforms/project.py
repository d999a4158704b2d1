"""Builds new objects with exactly the keys that a rule lists."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import starmap, takewhile
from operator import attrgetter
from typing import Any, ClassVar

from msgspec import UNSET, Raw, Struct, defstruct, field
from msgspec.structs import astuple

from mcp_abridge.document.fuel import Fuel, charge
from mcp_abridge.document.gather import row_type_for, values_at
from mcp_abridge.document.paths import ROOT, Name, Path, Paths, bare, blocked, places
from mcp_abridge.document.rows import each_row
from mcp_abridge.document.tree import Pieces, Slot, Value, encode, one_row, opened, rows
from mcp_abridge.errors import ShapeMismatch
from mcp_abridge.query.call import Call
from mcp_abridge.query.patterns import Expression
from mcp_abridge.schema.derive import extended
from mcp_abridge.transforms.base import Schema, Transform, evaluator


class FromPath(Struct, frozen=True):
    """`{path, default, over_null}`: the path of a value, and the default if it is missing.

    With `over_null` the default replaces a null too.
    """

    path: Path
    """The path of the value in the object."""
    default: Any = UNSET
    """The value if nothing is at the path."""
    over_null: bool = False
    """`true`: the default replaces a null too."""

    def __post_init__(self) -> None:
        if self.over_null and self.default in (UNSET, None):
            raise ValueError("over_null: there is no default here to stand over a null")


class FromExpression(Struct, frozen=True):
    """`{jmespath, default}`: an expression over the object, and the default if it gives null."""

    jmespath: Expression
    """Evaluated over the object."""
    default: Any = UNSET
    """The value if the expression gives null."""


class Group(Struct, frozen=True):
    """`{from, default, fields}`: fields of an inner object, flattened into the new one."""

    source: Path = field(name="from")
    """The inner object."""
    fields: "tuple[Field, ...]"
    """Keys as above, with paths from the inner object on."""
    default: Any = UNSET
    """The value of a key of this group that has no other."""


Field = str | Group | dict[str, Path | FromPath | FromExpression]


class Project(Transform, frozen=True, dict=True):
    """Rebuild each object at `at` with exactly the keys of `fields`, in their order.

    A field is a name; `{out: path}`; `{out: {path, default}}`; `{out: {jmespath, default}}`; or a
    group. A missing value becomes its default: the nearest one, else null. A null is a value and
    stays, except in a field with `over_null: true`. A path through an array gives an array. Values
    other than objects, such as null, stay unchanged; `to` renames them all the same.
    If none of the sources exists, the document has another shape than the rule expects, and the
    step fails (ShapeMismatch).

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'{"run": {"id": 1.0, "steps": {"done": 7}, "log": ["..."]}}')
    >>> counters = Group(Path.parse("steps"), ("done", "failed"), default=0)
    >>> fields = ("id", {"first": Path.parse("log[0]")}, counters)
    >>> Project(fields, at=Path.parse("run"), to="summary")(document.root, Call("status"))
    >>> document.encode()
    b'{"summary":{"id":1.0,"first":"...","done":7,"failed":0}}'
    """

    name: ClassVar[str] = "project"
    shorthand: ClassVar[str | None] = "fields"
    burns: ClassVar[bool] = True

    fields: tuple[Field, ...]
    """The keys of the new object, and the sources of their values."""
    at: Path = ROOT
    """The objects to make anew; an array means each of its elements."""
    to: str | None = None
    """A new name for the member at `at`."""
    default: Any = None
    """The value of a key that has no other."""

    def __post_init__(self) -> None:
        names = [column.name for column in self._columns]
        if not names:
            raise ValueError("no fields")
        name, count = Counter(names).most_common(1)[0]
        if count > 1:
            raise ValueError(f"{name!r} stands twice")
        if self.to is not None:
            bare(self.to)
            last = self.at.steps[-1] if self.at.steps else None
            if not isinstance(last, Name) or last.glob:
                raise ValueError("'to' renames what 'at' names, and 'at' ends in no name")

    def __call__(self, root: Slot, call: Call) -> None:
        slots = places(root, self.at)
        if not slots and blocked(root, self.at):
            return
        builder = ObjectBuilder(self._plan, call)
        for slot in slots:
            value = slot.get()
            slot.set(builder.build(value))
            builder.excused |= not builder.matched and opened(value) == {}
            if self.to is not None:
                slot.rename(bare(self.to))
        if not (builder.matched or builder.excused):
            where = self.at if self.at.steps else "the document"
            raise ShapeMismatch(f"none of the fields to project is in {where}")
        if not builder.excused:
            call.missing += [str(self.at.then(path)) for path in builder.missing()]

    @property
    def repeats(self) -> bool:
        return any(column.expression is not None for column in self._columns)

    def reshape(self, schema: Schema) -> Schema | None:
        """The fields are declared beside the server's own members, since a rule may fail."""
        fields = {each.name: each.is_member for each in self._columns}
        reshaped = extended(schema, self.at, fields)
        if reshaped is None or self.to is None:
            return reshaped
        return extended(reshaped, Path(steps=self.at.steps[:-1]), {bare(self.to): False})

    @cached_property
    def _columns(self) -> tuple["NewMember", ...]:
        return tuple(_columns(self.fields, ROOT, self.default))

    @cached_property
    def _plan(self) -> "ProjectPlan":
        return ProjectPlan(self._columns)


class NewMember(Struct, frozen=True):
    """One key of the new object: the path of its value, and an expression that computes it.

    `optional`: the rule has a default for a missing value; `over_null`: for a null too.
    """

    name: str
    source: Path
    expression: Expression | None
    default: Any
    optional: bool
    over_null: bool = False

    @property
    def path(self) -> Path | None:
        return self.source if self.expression is None else None

    @property
    def is_member(self) -> bool:
        """True if it is the member of that name, or null."""
        own = self.expression is None and self.source.steps == (Name(self.name),)
        return own and self.default is None


def _columns(
    fields: Sequence[Field], base: Path, default: Any, optional: bool = False
) -> Iterator[NewMember]:
    for each in fields:
        if isinstance(each, Group):
            own = each.default is not UNSET
            nearest = each.default if own else default
            yield from _columns(each.fields, base.then(each.source), nearest, optional or own)
        elif isinstance(each, str):
            path = Path.parse(each)
            if path.plain and len(path.steps) > 1:
                last = each.rpartition(".")[2]
                raise ValueError(f"{each!r} is a path: say what it becomes, {{{last}: {each}}}")
            yield NewMember(bare(each), base.then(path), None, default, optional)
        else:
            for word, source in each.items():
                column = FromPath(source) if isinstance(source, Path) else source
                own = column.default is not UNSET
                nearest = column.default if own else default
                if isinstance(column, FromPath):
                    place, over_null = base.then(column.path), column.over_null
                    yield NewMember(bare(word), place, None, nearest, optional or own, over_null)
                else:
                    yield NewMember(bare(word), base, column.jmespath, nearest, optional or own)


class ProjectPlan:
    """The way in which columns are read: `row` decodes the members that any column needs.

    `row` is None if an expression or a pattern needs the whole object. `fields` are the columns'
    places in the row, None if a column is not just a member of it.
    """

    def __init__(self, columns: tuple[NewMember, ...]) -> None:
        paths = Paths.of([path for column in columns for path in _source_paths(column)])
        self.columns = columns
        self.defaults = [Raw(encode(column.default)) for column in columns]
        self.row = row_type_for(paths)
        self.heads = list(paths.names)
        places: dict[Path, str] = {
            Path(steps=(Name(name),)): f"f{at}" for at, name in enumerate(self.heads)
        }
        self.fields = [
            None if column.path is None else places.get(Path(steps=column.path.steps))
            for column in columns
        ]
        names = {f"f{at}": column.name for at, column in enumerate(columns)}
        self.target = defstruct("Projected", [(at, Any) for at in names], rename=names, gc=False)


def _source_paths(column: NewMember) -> list[Path]:
    """Return the paths to all values that `column` reads, as far as they are explicit."""
    steps = column.source.steps
    if column.expression is not None and not steps:
        names = column.expression.names
        return [ROOT] if names is None else [Path(steps=(Name(name),)) for name in names]
    return [Path(steps=tuple(takewhile(lambda step: Path(steps=(step,)).plain, steps)))]


class ObjectBuilder:
    """Builds the new objects of one document, and records which of the sources exist."""

    def __init__(self, plan: ProjectPlan, call: Call) -> None:
        self._plan = plan
        self._evaluate = [
            None if column.expression is None else evaluator("project", column.expression, call)
            for column in plan.columns
        ]
        self._fuel = call.fuel
        self._present: set[int] = set()
        self.matched = False
        self.excused = False

    def missing(self) -> list[Path]:
        return [
            column.path
            for at, column in enumerate(self._plan.columns)
            if at not in self._present and not column.optional and column.path is not None
        ]

    def build(self, value: Value) -> Value:
        row = self._plan.row
        array = None if row is None else rows(value, row)
        if array is not None:
            return self._rows(array)
        one = None if row is None else one_row(value, row)
        if one is not None:
            return self._object(one)
        inner = opened(value)
        if isinstance(inner, dict):
            return self._object(inner)
        if isinstance(inner, list) and inner and not isinstance(inner, Pieces):
            unopened = all(type(each) is Raw for each in inner)
            array = each_row(inner, row) if unopened else None  # faster than one by one
            return [self.build(each) for each in inner] if array is None else self._rows(array)
        self.excused |= inner is None or inner == []
        return value

    def _rows(self, array: list[Struct | None]) -> list[Any]:
        present = [row for row in array if row is not None]
        objects = starmap(self._plan.target, zip(*self._values(present), strict=True))
        if len(present) == len(array):
            self.excused |= not array
            return list(objects)
        self.excused = True
        return [None if row is None else next(objects) for row in array]

    def _object(self, value: Value) -> dict[str, Value]:
        names = [column.name for column in self._plan.columns]
        return {name: each for name, (each,) in zip(names, self._values([value]), strict=True)}

    def _values(self, objects: Sequence[Value]) -> list[list[Value]]:
        columns = []
        for at, column in enumerate(self._plan.columns):
            field, steps, evaluate = self._plan.fields[at], column.source.steps, self._evaluate[at]
            if field is not None and objects and isinstance(objects[0], Struct):
                values = list(map(attrgetter(field), objects))
            else:
                values = [values_at(each, steps) for each in objects]
            if evaluate is not None:
                values = [_computed(evaluate, value, self._fuel) for value in values]
            if any(value is not UNSET for value in values):
                self._present.add(at)
            default, absent = self._plan.defaults[at], (UNSET, None, _NULL)
            if column.over_null:
                columns.append([default if value in absent else value for value in values])
            else:
                columns.append([default if value is UNSET else value for value in values])
        self.matched |= bool(self._present) or any(map(self._touched, objects))
        return columns

    def _touched(self, value: Value) -> bool:
        if isinstance(value, Struct):
            return any(member is not UNSET for member in astuple(value))
        return isinstance(value, dict) and any(name in value for name in self._plan.heads)


_NULL = Raw(b"null")


def _computed(evaluate: Callable[[Value], Any], value: Value, fuel: Fuel) -> Value:
    result = evaluate(None if value is UNSET else value)
    if isinstance(result, dict | list):
        charge(result, fuel)  # an expression can repeat parts without end
    return UNSET if result is None else result
