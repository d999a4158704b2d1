"""Statistics of the answers of a tool, by path: their share of the bytes, kinds, values, sizes."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from mcp_abridge.document.names import spelled
from mcp_abridge.document.tree import encode

_MOST_VALUES = 50
_MOST_ROWS = 300
_ID = re.compile(r"[\w:-]{1,64}")

MOST_MEMBERS = 60
"""The most members of an object; one with more is a map, whose members are alike."""

User = Callable[[str, Any], str]
"""Who used a value later, by the name of its member and the value; "" if nobody did."""


class MemberProfile:
    """The values at one path in all answers of a tool.

    Elements of an array count at `element`, and have its path. `size` is in bytes of JSON,
    `lengths` are those of arrays. `users` have used a value here or below.
    """

    def __init__(self, names: tuple[str, ...] = (), *, in_rows: bool = False) -> None:
        self.names = names
        self.in_rows = in_rows
        self.count = self.size = self.longest = 0
        self.kinds: set[type] = set()
        self.values: set[bytes] = set()
        self.lengths: list[int] = []
        self.rows: list[dict[str, Any]] = []
        self.members: dict[str, MemberProfile] = {}
        self.element: MemberProfile | None = None
        self.users: dict[str, None] = {}
        self.are_ids = True

    @property
    def path(self) -> str:
        return ".".join(self.names)

    @property
    def inner(self) -> "MemberProfile":
        """The elements if the values are arrays, else the values."""
        return self if self.element is None else self.element

    @property
    def constant(self) -> bool:
        return len(self.values) == 1 and not self.members and self.element is None

    def add(self, value: Any, user: User, name: str = "") -> int:
        self.count += 1
        self.kinds.add(type(value))
        if isinstance(value, dict) and value:
            size = self._add_members(value, user)
        elif isinstance(value, list) and value:
            size = self._add_elements(value, user, name)
        else:
            size = self._add_leaf(value, user, name)
        self.size += size
        return size

    def _add_members(self, value: dict[str, Any], user: User) -> int:
        if self.in_rows and len(self.rows) < _MOST_ROWS:
            self.rows.append(value)
        size = 1
        is_map = len(value) > MOST_MEMBERS
        for key, member in value.items():
            name = "*" if is_map else spelled(key)
            if "\\" in name:  # no path has it
                size += len(encode(member)) + len(key) + 4
                continue
            node = self.members.get(name)
            if node is None:
                names = (*self.names, name)
                node = self.members[name] = MemberProfile(names, in_rows=self.in_rows or is_map)
            size += node.add(member, user, key) + len(key) + 4
            self.users.update(node.users)
        return size

    def _add_elements(self, value: list[Any], user: User, name: str) -> int:
        self.lengths.append(len(value))
        if self.element is None:
            self.element = MemberProfile(self.names, in_rows=True)
        size = 1 + sum(self.element.add(each, user, name) + 1 for each in value)
        self.users.update(self.element.users)
        return size

    def _add_leaf(self, value: Any, user: User, name: str) -> int:
        raw = encode(value)
        if isinstance(value, list):
            self.lengths.append(0)
        if isinstance(value, str):
            self.longest = max(self.longest, len(value))
        is_id = isinstance(value, str | int) and _ID.fullmatch(str(value)) is not None
        self.are_ids = self.are_ids and is_id
        if len(self.values) < _MOST_VALUES:
            self.values.add(raw[:200])
        if used_by := user(name, value):
            self.users[used_by] = None
        return len(raw)

    def at(self, names: tuple[str, ...]) -> "MemberProfile | None":
        node: MemberProfile | None = self
        for name in map(spelled, names):
            node = None if node is None else node.inner.members.get(name)
        return node

    def walk(self) -> Iterator["MemberProfile"]:
        """Yield the nodes here and below, without the elements of arrays."""
        yield self
        for node in self.inner.members.values():
            yield from node.walk()
