"""The size of a result as a model sees it, which depends on the client."""

from msgspec import Raw, Struct

from proxy.ruleset.clients import Shows
from proxy.shaping.result.blocks import text_of


class VisibleSize(Struct, frozen=True):
    """Bytes of a result that a model sees, for clients that show one copy or the other."""

    structured: int | None
    text: int

    def to(self, shows: Shows) -> int:
        """Return the bytes that a client of this kind shows."""
        structured = self.structured or 0
        if shows == "structured":
            return structured or self.text
        if shows == "text":
            return self.text
        return structured + self.text if shows == "both" else max(structured, self.text)

    @property
    def most(self) -> int:
        """The bytes of the larger copy."""
        return self.to("either")


def visible(raw: dict[str, Raw], blocks: list[Raw]) -> VisibleSize:
    """Return the size of a result as a model sees it."""
    structured = raw.get("structuredContent")
    return VisibleSize(
        None if structured is None else len(memoryview(structured)),
        sum(len(found.encode()) for block in blocks if (found := text_of(block)) is not None),
    )
