"""The place of a value in a document: without it a note could not say what it is about."""

import re

from msgspec import Raw

from mcp_abridge.document.names import label, nameable

Place = tuple[str, str]
"""The path of a value, without positions, and the view expression of the value."""

UNSHOWN = "…"  # in an expression, replaces a name that no view may have
_NAME = re.compile(r"[A-Za-z_]\w*")


def last_name(place: str) -> str:
    """Return the last name in the view expression of a value: what it is called; "" without one.

    >>> last_name("runs[0].steps"), last_name("@")
    ('steps', '')
    """
    names: list[str] = _NAME.findall(place)
    return names[-1] if names else ""


def element_place(at: Place, index: int, numbered: bool) -> Place:
    """Return the place of an element; `numbered`: it has a path of its own."""
    return f"{at[0]}[{index if numbered else ''}]", f"{at[1]}[{index}]"


def elements(value: list[Raw], at: Place, numbered: bool) -> list[tuple[bytes, Raw, Place]]:
    """Return elements, which have no name, and their places."""
    return [(b"", raw, element_place(at, index, numbered)) for index, raw in enumerate(value)]


def member_place(at: Place, name: str) -> Place:
    """Return the place of a member, spelled as in JMESPath.

    In paths, a name after an array applies to each element (`items.title`).
    """
    path, place = at
    while path.endswith("[]") and path != "[]":
        path = path.removesuffix("[]")
    member = label(name)
    way = member if nameable(name) else UNSHOWN
    return (f"{path}.{member}" if path else member, f"{place}.{way}" if place else way)
