"""The names of a server's members in what a model reads, and in the views that it writes.

Without it, a name could end a sentence of ours, or a view by it would not parse.
"""

from mcp_abridge.document.printable import quoted
from mcp_abridge.document.tree import encode

LONGEST_LABEL = 40
"""The most characters of a server's name in a sentence of ours."""

_SPECIAL = frozenset("\"'`\\")  # in one form of a view or another


def spelled(name: str) -> str:
    """Return the name of a member as paths and JMESPath spell it.

    >>> spelled("title"), spelled("app.kubernetes.io/name")
    ('title', '"app.kubernetes.io/name"')
    """
    return name if name.isascii() and name.isidentifier() else encode(name).decode()


def nameable(name: str) -> bool:
    """Return True if a sentence of ours may hold a server's name as it is, and a view by it.

    >>> nameable("app.kubernetes.io/name"), nameable("a\\u202eb"), nameable("'" * 9)
    (True, False, False)
    """
    return len(name) <= LONGEST_LABEL and name.isprintable() and _SPECIAL.isdisjoint(name)


def label(name: str) -> str:
    """Return a name of a server as a sentence of ours shows it: cut and in quotes if need be.

    >>> print(label("title"), label("two\\nlines"))
    title "two\\nlines"
    """
    return spelled(name) if nameable(name) else quoted(name, LONGEST_LABEL)
