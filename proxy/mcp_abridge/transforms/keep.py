"""Keeps the members that a rule names, and nothing else."""

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from msgspec import UNSET, Struct

from mcp_abridge.document.gather import row_type_for
from mcp_abridge.document.paths import ROOT, Path, PathMatches, Paths, blocked, places
from mcp_abridge.document.tree import Pieces, Slot, Value, one_row, opened, rows
from mcp_abridge.errors import ShapeMismatch
from mcp_abridge.query.call import Call
from mcp_abridge.transforms.base import Transform


class Keep(Transform, frozen=True, dict=True):
    """Keep `paths` of each object at `at`, in their order; everything else in it is dropped.

    The containers of a kept member stay: `labels.name` keeps an array of as many labels, each with
    its name alone. So does a value that is not an object although one was expected, such as null.
    If none of the paths exists, the document has another shape than the rule expects, and the step
    fails (ShapeMismatch).

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'{"size": 2, "items": [{"id": 1, "user": {"id": 7}}, {"x": 3}]}')
    >>> Keep((Path.parse("items.user.id"), Path.parse("size")))(document.root, Call("list"))
    >>> document.encode()
    b'{"items":[{"user":{"id":7}},{}],"size":2}'
    """

    name: ClassVar[str] = "keep"
    shorthand: ClassVar[str | None] = "paths"

    paths: tuple[Path, ...]
    """The members to keep of each object; the result has their order."""
    at: Path = ROOT
    """The objects to work on; an array means each of its elements."""

    def __post_init__(self) -> None:
        if not self.paths:
            raise ValueError("no path to keep")

    def __call__(self, root: Slot, call: Call) -> None:
        matches, slots = PathMatches(), places(root, self.at)
        if not slots and blocked(root, self.at):
            return
        for slot in slots:
            here, value = PathMatches(), slot.get()
            slot.set(self._plan.keep(value, here))
            if not here.present and opened(value) == {}:
                here.excused.update(range(len(self.paths)))
            matches.present |= here.present
            matches.excused |= here.excused
        if not (matches.present or matches.excused):
            names = ", ".join(map(str, self.paths))
            raise ShapeMismatch(f"no {names} in {self.at if self.at.steps else 'the document'}")
        call.missing += [str(self.at.then(path)) for path in matches.missing(self.paths)]

    @cached_property
    def _plan(self) -> "KeepPlan":
        return KeepPlan(Paths.of(self.paths), {})


class KeepPlan:
    """The parts to keep of a value that some paths lead to."""

    __slots__ = ("_all_plans", "_paths", "_plans", "row")

    def __init__(self, paths: Paths, plans: dict[Paths, "KeepPlan"]) -> None:
        self._paths = paths
        self._all_plans = plans
        self._plans = {name: self._after(after) for name, after in paths.names.items()}
        self.row = row_type_for(paths)

    def keep(self, value: Value, matches: PathMatches, *, typed: bool = True) -> Value:
        if self._paths.ends:
            matches.note(self._paths)
            return value
        if typed and self.row is not None:
            array, row = rows(value, self.row), one_row(value, self.row)
            if array is not None or row is not None:
                self._note([row] if array is None else array or [None], matches)
                return row if array is None else array
        inner = opened(value)
        if inner is None or inner == []:
            matches.excused |= self._paths.open
        elif isinstance(inner, dict):
            return self._members(inner, matches)
        elif isinstance(inner, list) and not isinstance(inner, Pieces):
            pairs = ((each, self._paths.element(at, len(inner))) for at, each in enumerate(inner))
            return [
                self._after(after).keep(element, matches, typed=False)
                for element, after in pairs
                if after is not None
            ]
        return value

    def _members(self, value: dict[str, Value], matches: PathMatches) -> dict[str, Value]:
        parts = {}
        for name, after in self._paths.members(value):
            member = value[name]
            if after.ends or name in self._paths.spelled:
                parts[name] = self._after(after).keep(member, matches)
            elif not after.barred(member):
                # Only a pattern leads here: a member that contains no named value is dropped.
                below = PathMatches()
                inner = self._after(after).keep(member, below)
                if below.present:
                    parts[name] = inner
                    matches.present |= below.present
        return parts

    def _note(self, objects: Sequence[Struct | None], matches: PathMatches) -> None:
        """Record which paths exist in rows; None represents null and an empty array."""
        present = [row for row in objects if row is not None]
        if len(present) < len(objects):
            matches.excused |= self._paths.open
        for at, plan in enumerate(self._plans.values()):
            field = f"f{at}"
            values = (value for row in present if (value := getattr(row, field)) is not UNSET)
            if plan.row is None:
                if any(True for _ in values):
                    matches.note(plan._paths)
                continue
            inner: list[Struct | None] = []
            for value in values:
                if isinstance(value, list):
                    inner += value or [None]
                else:
                    inner.append(value)
            if inner:
                plan._note(inner, matches)

    def _after(self, paths: Paths) -> "KeepPlan":
        if paths not in self._all_plans:
            self._all_plans[paths] = KeepPlan(paths, self._all_plans)
        return self._all_plans[paths]
