r"""The path language: names joined by dots; a name steps into every element of an array.

>>> str(Path.parse('items.labels.*name')), Path.parse('').steps
('items.labels.*name', ())
>>> Path.parse('rows[-1]."app.kubernetes.io/name"').steps
(Name(text='rows', glob=False), Index(position=-1), Name(text='app.kubernetes.io/name', glob=False))
"""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import TypeGuard

from msgspec import Raw, Struct

from mcp_abridge.document.tree import Slot, Value
from mcp_abridge.errors import PathError


class Name(Struct, frozen=True):
    """A member of an object; a `*` in the text stands for any characters."""

    text: str
    glob: bool = False


class Index(Struct, frozen=True):
    """One element of an array, counted from the end if negative."""

    position: int


class Each(Struct, frozen=True):
    """`[]`: every element of an array, written out."""


class Deep(Struct, frozen=True):
    """`**`: this value and everything below it."""


Step = Name | Index | Each | Deep


class Path(Struct, frozen=True):
    """Names joined by dots; the empty path names the whole document."""

    text: str = ""
    steps: tuple[Step, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Path":
        """Parse `text`. Raises PathError with the mistake and its correction."""
        steps = list(_steps(text))
        if steps.count(DEEP) > _DEEPEST:
            raise PathError(
                f"'**' stands {steps.count(DEEP)} times in path {text!r}, and at most {_DEEPEST} "
                "may, since each goes through the whole document"
            )
        if len(steps) > _LONGEST:
            raise PathError(
                f"a path of {len(steps)} steps, {text[:40]!r}...: at most {_LONGEST} may be"
            )
        return cls(text, tuple(steps))

    def __str__(self) -> str:
        return self.text

    def then(self, other: "Path") -> "Path":
        """Return the path that continues with `other` at the end of this one."""
        dot = "." if self.text and other.text and not other.text.startswith("[") else ""
        return Path(f"{self.text}{dot}{other.text}", self.steps + other.steps)

    @property
    def plain(self) -> bool:
        return all(_plain(step) for step in self.steps)


ROOT = Path()
DEEP = Deep()
_DEEPEST = 2  # `**` steps in a path
_LONGEST = 100  # steps: each takes some frames of the stack, and no document is that deep


def bare(text: str) -> str:
    """Return the one name in `text`, with or without quotes. Raises PathError if it is not one."""
    steps = Path.parse(text).steps
    if len(steps) == 1 and _plain(steps[0]):
        return steps[0].text
    raise PathError(f"{text!r} is not one name; put odd names in double quotes")


def select(slot: Slot, path: Path) -> Iterator[Slot]:
    """Yield every place below `slot` that `path` names, once, in document order.

    Places may be set during the iteration; members of objects may be removed too. Raises
    DocumentError if a value on the way cannot be decoded.
    """
    return _walk(slot, _start(path))


@lru_cache(maxsize=256)
def _start(path: Path) -> "Paths":
    return Paths.of([path])


def _walk(slot: Slot, paths: "Paths") -> Iterator[Slot]:
    if paths.ends:
        yield slot
    if not paths.open:
        return
    value = slot.open()
    if isinstance(value, dict):
        for name, after in paths.members(value):
            yield from _walk(Slot(slot.document, value, name), after)
    elif isinstance(value, list):
        below: Paths | None = None
        for position in range(len(value)):
            if paths.indexed or not position:
                below = paths.element(position, len(value))
            if below is not None:
                yield from _walk(Slot(slot.document, value, position), below)


def find(slot: Slot, path: Path) -> Slot | None:
    """Return the first place that `path` names, or None."""
    return next(select(slot, path), None)


def places(slot: Slot, path: Path) -> list[Slot]:
    """Return every place below `slot` that `path` names, inner places before outer ones."""
    return list(select(slot, path))[::-1]


def blocked(slot: Slot, path: Path) -> bool:
    """Return True if `path`, which names nothing below `slot`, ends at an empty or null value.

    The document then has the expected shape, but no content.
    """
    value = slot.open()
    if value is None or value == [] or value == {}:
        return True
    first, rest = path.steps[0], Path(steps=path.steps[1:])
    if first == DEEP:
        return False
    if isinstance(first, Name) and isinstance(value, list):
        return any(blocked(child, path) for child in slot.children())
    return any(blocked(place, rest) for place in select(slot, Path(steps=(first,))))


class Paths:
    """Several paths followed at once, from a value to its members and elements.

    `ends` and `open` hold the numbers of the paths that end here and that continue. If all of these
    are `plain`, `names` has all continuations. `spelled` holds the next members that are named in
    full, not just by a pattern. `indexed`: an element is named by its position.
    """

    def __init__(self, branches: "_Branches", cache: "dict[_Branches, Paths]") -> None:
        self._branches = branches
        self._cache = cache
        self._next: dict[str, Paths | None] = {}
        self._each: list[Paths | None] = []
        self._marks = _marks(branches)
        self.ends = {number for number, steps in branches if not steps}
        self.open = {number for number, steps in branches if steps}
        self.plain = all(_plain(step) for _, steps in branches for step in steps)
        heads = [steps[0] for _, steps in branches if steps]
        self.spelled = {step.text for step in heads if _plain(step)}
        self.indexed = any(isinstance(step, Index) for step in heads)
        self.names: dict[str, Paths] = {}
        for step in heads if self.plain else ():
            if isinstance(step, Name) and (after := self._after(step.text)) is not None:
                self.names[step.text] = after

    @classmethod
    def of(cls, paths: Iterable[Path]) -> "Paths":
        """Return the start of all `paths`, which are numbered in the order given."""
        return _paths([(number, path.steps) for number, path in enumerate(paths)], {})

    def members(self, names: Collection[str]) -> list[tuple[str, "Paths"]]:
        """Return each of `names` that a path leads to and the paths after it, in their order."""
        if self.plain:
            return [(name, after) for name, after in self.names.items() if name in names]
        next_names: dict[str, None] = {}
        for _, steps in self._branches:
            step = steps[0] if steps else None
            if _plain(step):
                next_names.update({step.text: None} if step.text in names else {})
            elif isinstance(step, Name):
                next_names.update((name, None) for name in names if matches(step.text, name))
            elif step == DEEP:
                next_names.update(dict.fromkeys(names))
        return [(name, after) for name in next_names if (after := self.member(name)) is not None]

    def member(self, name: str) -> "Paths | None":
        """Follow the paths to the member `name` of an object; None if no path leads there."""
        if name not in self._next:
            if len(self._next) > 1000:  # names may be the keys of a map, without limit
                self._next.clear()
            self._next[name] = self._after(name)
        return self._next[name]

    def element(self, position: int, length: int) -> "Paths | None":
        """Follow the paths to an element of an array, into which a name steps; None if none do."""
        if self.plain and not self.ends:
            return self
        if self.indexed:
            return self._at((position, position - length))
        if not self._each:
            self._each.append(self._at(()))
        return self._each[0]

    def _at(self, positions: tuple[int, ...]) -> "Paths | None":
        branches: list[_Branch] = []
        for number, steps in self._branches:
            step = steps[0] if steps else None
            if isinstance(step, Name | Deep):
                branches.append((number, steps))
            elif isinstance(step, Each) or (isinstance(step, Index) and step.position in positions):
                branches.append((number, steps[1:]))
        return _paths(branches, self._cache) if branches else None

    def barred(self, value: Value) -> bool:
        """Return True if surely no path leads into the unopened `value`; False if uncertain.

        A quick search for the names in its bytes, which saves `**` most of the way.
        """
        if type(value) is not Raw:
            return False
        head = memoryview(value)[0]
        if head not in b"{[":
            return head != 0x6E and not self.ends  # null may excuse a path
        if not self._marks:
            return False
        content = bytes(value)
        return not any(mark in content for mark in self._marks)

    def _after(self, name: str) -> "Paths | None":
        branches: list[_Branch] = []
        for number, steps in self._branches:
            if steps and fits(steps[0], name):
                branches.append((number, steps[1:]))
            elif steps and steps[0] == DEEP:
                branches.append((number, steps))
        return _paths(branches, self._cache) if branches else None


class PathMatches(Struct):
    """The numbers of the paths that exist, and of the paths that end at null or an empty array."""

    present: set[int] = set()
    excused: set[int] = set()

    def note(self, paths: Paths) -> None:
        """Record the paths that end here as present, and with them those that continue inside."""
        if not paths.ends <= self.present:
            self.present |= paths.ends | paths.open

    def missing(self, paths: Iterable[Path]) -> list[Path]:
        matched = self.present | self.excused
        return [path for number, path in enumerate(paths) if number not in matched]


_Branch = tuple[int, tuple[Step, ...]]
_Branches = tuple[_Branch, ...]


def _paths(branches: list[_Branch], cache: dict[_Branches, Paths]) -> Paths:
    """Return the Paths of these branches; the same object for the same branches."""
    for number, steps in branches:
        if steps and steps[0] == DEEP and (number, steps[1:]) not in branches:
            branches.append((number, steps[1:]))  # `**` also matches zero steps
    key = tuple(sorted(branches, key=lambda branch: branch[0]))
    if key not in cache:
        cache[key] = Paths(key, cache)
    return cache[key]


def _marks(branches: _Branches) -> list[bytes]:
    """Return byte strings; all JSON in which these branches name something has at least one.

    Empty if that is unknown, or not worth the search. The last one is for names that are spelled
    with escapes.
    """
    if not any(DEEP in steps for _, steps in branches):
        return []
    marks = []
    for _, steps in branches:
        names = [step.text for step in steps if isinstance(step, Name)]
        longest = max(names[-1].split("*") if names else (), key=len, default="")
        if not longest or not longest.replace("_", "a").isalnum():
            return []
        marks.append(longest.encode())
    return [*marks, b"\\u"]


def _plain(step: Step | None) -> TypeGuard[Name]:
    return type(step) is Name and not step.glob


def fits(step: Step, name: str) -> bool:
    """Return True if a step leads to the member `name`."""
    return type(step) is Name and (matches(step.text, name) if step.glob else step.text == name)


def matches(pattern: str, name: str) -> bool:
    """Return True if `name` fits `pattern`, in which `*` stands for any characters."""
    head, *parts = pattern.split("*")
    if not parts:
        return name == pattern
    *middle, tail = parts
    if len(name) < len(head) + len(tail) or not (name.startswith(head) and name.endswith(tail)):
        return False
    position, end = len(head), len(name) - len(tail)
    for part in middle:
        position = name.find(part, position, end)
        if position < 0:
            return False
        position += len(part)
    return True


_TOKEN = re.compile(
    r'\[(?P<inside>[^\]]*)\]|"(?P<quoted>[^"]*)"|(?P<dot>\.)|(?P<open>[\["])|(?P<name>[^.\["]+)'
)


_HEAD = re.compile(r"\$?\.(?=[^.])")  # of jq and of JSONPath


def _steps(text: str) -> Iterator[Step]:
    if head := _HEAD.match(text):
        raise PathError(f"path {text!r} begins with {head[0]!r}; write {text[head.end() :]!r}")
    expects_name = True
    for token in _TOKEN.finditer(text):
        kind, part = token.lastgroup, token[token.lastgroup or 0]
        if kind == "inside":
            yield _element(part.strip(), text)
            expects_name = False
        elif part == "[":
            raise PathError(f"'[' without ']' in path {text!r}")
        elif not expects_name and kind != "dot":
            raise PathError(f"expected '.' before {text[token.start() :]!r} in path {text!r}")
        elif part == '"' and kind == "open":
            raise PathError(f"a quoted name in path {text!r} is not closed")
        elif kind == "dot":
            if expects_name:
                raise PathError(f"path {text!r} has an empty name before {text[token.start() :]!r}")
            expects_name = True
        else:
            yield Name(part) if kind == "quoted" else _name(part, text)
            expects_name = False
    if expects_name and text:
        raise PathError(f"path {text!r} ends in '.'; a name should follow")


def _element(inside: str, text: str) -> Step:
    if inside in ("", "*"):
        return Each()
    if inside.lstrip("-").isdecimal() and inside.count("-") < 2:
        return Index(int(inside))
    raise PathError(
        f"'[{inside}]' in path {text!r} is not '[]' or an index such as '[0]'; "
        "conditions and slices belong in a filter or a jmespath step"
    )


def _name(name: str, text: str) -> Step:
    if name != name.strip() or name.startswith("$") or any(sign in name for sign in "]|&()"):
        raise PathError(
            f"{name!r} in path {text!r} is not a plain name; "
            "put odd names in double quotes, write expressions in a jmespath step"
        )
    if "," in name:
        several = ", ".join(part.strip() for part in text.split(","))
        raise PathError(
            f"path {text!r} has a ','; write several as a list, [{several}], "
            "and a name with a comma in double quotes"
        )
    if name == "**":
        return DEEP
    if "**" in name:
        raise PathError(f"{name!r} in path {text!r}: '**' stands alone between dots")
    return Name(name, "*" in name)
