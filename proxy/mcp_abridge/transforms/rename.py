"""Renames members in place."""

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from mcp_abridge.document.paths import Name, Path, PathMatches, Paths, bare
from mcp_abridge.document.tree import Slot, Value
from mcp_abridge.query.call import Call
from mcp_abridge.schema.derive import extended
from mcp_abridge.transforms.base import Schema, Transform, edited


class Rename(Transform, frozen=True, dict=True):
    """Rename each member at a path to the name to its right; its position stays.

    All renames happen at once, so names can be swapped. A member that already has a new name, and
    is not renamed itself, is dropped.

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'{"items": [{"full_name": "a/b", "id": 1}], "total_count": 1}')
    >>> names = {Path.parse("items.full_name"): "name", Path.parse("total_count"): "total"}
    >>> Rename(names)(document.root, Call("list"))
    >>> document.encode()
    b'{"items":[{"name":"a/b","id":1}],"total":1}'
    """

    name: ClassVar[str] = "rename"
    shorthand: ClassVar[str | None] = "names"

    names: Mapping[Path, str]
    """The path of each member, and its new name."""

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("no path to rename")
        sources: dict[Path, Path] = {}
        for path, name in self.names.items():
            last = path.steps[-1] if path.steps else None
            if not isinstance(last, Name) or last.glob:
                raise ValueError(f"{path.text!r} ends in no name of its own to replace")
            other = sources.setdefault(Path(steps=(*path.steps[:-1], Name(bare(name)))), path)
            if other is not path:
                raise ValueError(f"{other.text!r} and {path.text!r} cannot both become {name!r}")

    def __call__(self, root: Slot, call: Call) -> None:
        names, matches = [bare(name) for name in self.names.values()], PathMatches()

        def rename(objects: list[dict[str, Value]], paths: dict[str, Paths]) -> None:
            # Several patterns may match one member: then the later path wins.
            renames = [(name, names[max(after.ends)]) for name, after in paths.items()]
            for members in objects:
                moves = {name: new for name, new in renames if name in members}
                last = {new: old for old, new in moves.items()}
                renamed = {
                    new: value
                    for name, value in members.items()
                    if last.get(new := moves.get(name, name), name) == name
                }
                members.clear()
                members.update(renamed)

        value = edited(root.get(), self._start, matches, rename)
        if matches.present:
            root.set(value)
        call.missing += map(str, matches.missing(self.names))

    def reshape(self, schema: Schema) -> Schema | None:
        """The new names are declared beside the old ones, since a rule may fail."""
        reshaped: Schema | None = schema
        for path, name in self.names.items():
            if reshaped is not None:
                reshaped = extended(reshaped, Path(steps=path.steps[:-1]), {bare(name): False})
        return reshaped

    @cached_property
    def _start(self) -> Paths:
        return Paths.of(self.names)
