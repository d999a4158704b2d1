r"""The path language: names joined by dots, which step into every element of an array on their way.

>>> str(Path.parse('items.labels.*name')), Path.parse('').steps
('items.labels.*name', ())
>>> Path.parse('rows[-1]."app.kubernetes.io/name"').steps
(Name(text='rows', glob=False), Index(position=-1), Name(text='app.kubernetes.io/name', glob=False))
"""

from collections.abc import Iterator

from msgspec import Struct

from proxy.document import Slot
from proxy.errors import PathError


class Name(Struct, frozen=True):
    """A member of an object; a `*` in the text stands for any characters."""

    text: str
    glob: bool = False


class Index(Struct, frozen=True):
    """One element of an array, counted from the end where negative."""

    position: int


class Each(Struct, frozen=True):
    """`[]`: every element of an array, written out."""


class Deep(Struct, frozen=True):
    """`**`: this value and everything below it."""


Step = Name | Index | Each | Deep


class Path(Struct, frozen=True):
    """A parsed path; the empty one names the whole document."""

    text: str = ""
    steps: tuple[Step, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Path":
        """Read `text`, or raise PathError with what was found and what would be right."""
        return cls(text, tuple(_steps(text)))

    def __str__(self) -> str:
        return self.text

    @property
    def plain(self) -> bool:
        """True where every step is a name without a glob."""
        return all(type(step) is Name and not step.glob for step in self.steps)


ROOT = Path()


def select(slot: Slot, path: Path) -> Iterator[Slot]:
    """Yield every place below `slot` that `path` names, in document order.

    Places may be set while iterating; removing one is safe too for members of objects.
    Raises DocumentError where a value on the way cannot be decoded.
    """
    return _select(slot, path.steps, 0)


def find(slot: Slot, path: Path) -> Slot | None:
    """Return the first place that `path` names, or None."""
    return next(_select(slot, path.steps, 0), None)


def matches(pattern: str, name: str) -> bool:
    """Say whether `name` fits `pattern`, where `*` stands for any characters.

    >>> matches("*Ids", "folderIds"), matches("a*b*c", "abc"), matches("a*a", "a")
    (True, True, False)
    """
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


def _select(slot: Slot, steps: tuple[Step, ...], at: int) -> Iterator[Slot]:
    if at == len(steps):
        yield slot
        return
    step = steps[at]
    value = slot.open()
    if isinstance(step, Name):
        if isinstance(value, list):
            for position in range(len(value)):
                yield from _select(slot.child(position), steps, at)
        elif isinstance(value, dict):
            if step.glob:
                for name in [name for name in value if matches(step.text, name)]:
                    yield from _select(slot.child(name), steps, at + 1)
            elif step.text in value:
                yield from _select(slot.child(step.text), steps, at + 1)
    elif isinstance(step, Deep):
        yield from _select(slot, steps, at + 1)
        for child in slot.children():
            yield from _select(child, steps, at)
    elif isinstance(value, list):
        if isinstance(step, Each):
            for position in range(len(value)):
                yield from _select(slot.child(position), steps, at + 1)
        elif -len(value) <= step.position < len(value):
            yield from _select(slot.child(step.position), steps, at + 1)


def _steps(text: str) -> Iterator[Step]:
    position, expects_name = 0, True
    while position < len(text):
        if text[position] == "[":
            end = text.find("]", position)
            if end < 0:
                raise PathError(f"'[' without ']' in path {text!r}")
            inside = text[position + 1 : end].strip()
            if inside in ("", "*"):
                yield Each()
            elif inside.lstrip("-").isdecimal() and inside.count("-") < 2:
                yield Index(int(inside))
            else:
                raise PathError(
                    f"'[{inside}]' in path {text!r} is not '[]' or an index such as '[0]'; "
                    "conditions and slices belong in a filter or a jmespath step"
                )
            position, expects_name = end + 1, False
        elif text[position] == "." and not expects_name:
            position, expects_name = position + 1, True
        elif not expects_name:
            raise PathError(f"expected '.' before {text[position:]!r} in path {text!r}")
        else:
            step, position = _name(text, position)
            yield step
            expects_name = False
    if expects_name and text:
        raise PathError(f"path {text!r} ends in '.'; a name should follow")


def _name(text: str, start: int) -> tuple[Step, int]:
    if text[start] == '"':
        end = text.find('"', start + 1)
        if end < 0:
            raise PathError(f"a quoted name in path {text!r} is not closed")
        return Name(text[start + 1 : end]), end + 1
    end = start
    while end < len(text) and text[end] not in '.["':
        end += 1
    name = text[start:end]
    if not name:
        raise PathError(f"path {text!r} has an empty name before {text[start:]!r}")
    if name != name.strip() or name.startswith("$") or any(sign in name for sign in "]|&()"):
        raise PathError(
            f"{name!r} in path {text!r} is not a plain name; "
            "put odd names in double quotes, write expressions in a jmespath step"
        )
    if name == "**":
        return Deep(), end
    if "**" in name:
        raise PathError(f"{name!r} in path {text!r}: '**' stands alone between dots")
    return Name(name, "*" in name), end
