"""Rows as objects with fewer members: their form if a schema describes the result.

Arrays inside of rows stay arrays; a text in them is cut, and what loses nothing is told apart.
"""

from typing import Any

from msgspec import Raw

from mcp_abridge.document.tree import ARRAY, head, text
from mcp_abridge.summary.cells import Cells, Reading, Tree
from mcp_abridge.summary.columns import ColumnPath, elements_of, members_of, names_of

_CLIP = 40  # characters shown of a text in an array


class Objects:
    """Rows as objects with the members of some columns alone; `whole` has the paths of arrays
    that lost nothing by it."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._cut: set[ColumnPath] = set()
        self.arrays: set[ColumnPath] = set()

    @property
    def whole(self) -> set[ColumnPath]:
        return self.arrays - self._cut

    def rows(self, tree: Tree, values: Cells, at: ColumnPath = ()) -> list[Any]:
        """Return values with the members in `tree`; what is null or empty stays as it is."""
        if not tree:
            return self._reading.cells[at]
        if any(not isinstance(step, str) for step in tree):
            inner = {name: below for step in tree.values() for name, below in step.items()}
            self.arrays.add(at)
            return [self._array(inner, value, at) for value in values]
        opened = self._reading.opened.levels[at].rows
        members = {
            name: self.rows(tree[name], [each.get(name) for each in opened], (*at, name))
            for name in names_of((*tree,))
        }
        # An object of which nothing is shown must not look empty.
        nothing: dict[str, Any] | None = None if at else {}
        return [
            {name: member for name in members if (member := members[name][row]) is not None}
            or nothing
            if opened[row]
            else value
            for row, value in enumerate(values)
        ]

    def _array(self, tree: Tree, value: Raw | None, at: ColumnPath) -> Any:
        """Return an array with the members in `tree` alone of each of its elements."""
        if value is None or head(value) != ARRAY:
            return value
        return [self._element(tree, element, at) for element in elements_of(value)]

    def _element(self, tree: Tree, value: Raw, at: ColumnPath) -> Any:
        if not tree:
            content = text(value)
            if content is None or len(content) <= _CLIP:
                return value
            self._cut.add(at)
            return f"{content[:_CLIP]}…"
        if any(not isinstance(step, str) for step in tree):
            inner = {name: below for step in tree.values() for name, below in step.items()}
            return self._array(inner, value, at)
        [members] = members_of([value])
        part = {n: self._element(tree[n], members[n], at) for n in tree if n in members}
        if part and members.keys() - part.keys():
            self._cut.add(at)
        return part or value
