"""The facts of a call beside its result: without them, all that it has is as good as any other."""

from collections.abc import Collection

from msgspec import Raw, Struct

from mcp_abridge.document.tokens import density


class Lookout(Struct, frozen=True):
    """The facts beside a result: the tool, the words it looks for, whether a rule has put the
    members in order, and the bytes that a view may take.

    `light`: what takes more tokens than plain JSON gets fewer bytes. `lone` are the views of
    elements that are the only one of their array.
    """

    tool: str = ""
    bound: int = 0
    sought: Collection[str] = ()
    ordered: bool = False
    light: bool = False
    lone: set[str] = set()

    def cost(self, part: bytes | Raw) -> int:
        """Return the bytes of plain JSON that take as many tokens as a part does."""
        part = bytes(part)
        return int(len(part) * density(part)) if self.light else len(part)
