"""The place of a value in a document: without it a note could not say what it is about."""

from mcp_abridge.document.names import label, nameable

Place = tuple[str, str]
"""The path of a value, without positions, and the view expression of the value."""

UNSHOWN = "…"  # in an expression, replaces a name that no view may have


def element_place(at: Place, index: int, numbered: bool) -> Place:
    """Return the place of an element; `numbered`: it has a path of its own."""
    return f"{at[0]}[{index if numbered else ''}]", f"{at[1]}[{index}]"


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
