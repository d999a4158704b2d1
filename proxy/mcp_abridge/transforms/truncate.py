"""Returns one window of a long text; later calls get the others."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, field

from mcp_abridge.document.measure import chars_that_fit, member, size
from mcp_abridge.document.own_names import claim
from mcp_abridge.document.paths import ROOT, Path
from mcp_abridge.document.tree import Document, Pieces, Slot, encode
from mcp_abridge.query.call import Call, Notice
from mcp_abridge.transforms.base import Parameter, WindowTransform


class Truncate(WindowTransform, frozen=True):
    """Return `max_length` characters of the text at `at` from `startIndex` on, with a notice.

    Characters are Unicode code points. A text that is no longer than the window stays unchanged. A
    longer text, or any text if `startIndex` is not 0, gets a member beside it: `truncation:
    {truncated, totalLength, startIndex, endIndex, nextIndex, hasMore}`, `nextIndex` only while
    there is more. If the text has a fence, later windows have the server's words outside of it as
    `around`. If the whole document is the text, the notice is sent beside the document. Without
    `at`, a document that is an object or array stays unchanged.

    `endIndex` is `min(startIndex + max_length, totalLength)`, or less if the rule's bound in bytes
    requires it. With `boundary: word` it is the end of a line, else of a word, in the last tenth of
    the window. `nextIndex` is always `endIndex`, so that the windows join to exactly the text.

    `from: end` counts from the end: `startIndex` 0 is the window with the last character, and
    `nextIndex` is the number of characters at the end that were already returned. `hint: inline`
    also adds to the text itself how to get more.

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'{"path": "a.md", "content": "one two three"}')
    >>> Truncate(at=Path.parse("content"), max_length=7)(document.root, Call("read"))
    >>> document.encode().decode()
    '{"path":"a.md","content":"one two","truncation":{"truncated":true,"totalLength":13,...}}'
    """

    name: ClassVar[str] = "truncate"
    shorthand: ClassVar[str | None] = "max_length"
    words: ClassVar[tuple[str, str]] = ("maxLength", "startIndex")

    at: Path = ROOT
    """The text, at one place."""
    max_length: Annotated[int, Meta(ge=1)] = 10_000
    """The number of characters of a window if the call does not ask for another."""
    from_: Literal["start", "end"] = field(default="start", name="from")
    """The end that windows are counted from."""
    boundary: Literal["none", "word"] = "none"
    """`word`: a window ends at the end of a line or word; `none`: anywhere."""
    arguments: Mapping[Literal["maxLength", "startIndex"], str] = {}
    """Other names for the arguments; a name here wins over an argument of the server."""
    hint: Literal["notice", "inline"] = "notice"
    """`inline`: the text itself also says how to get the next window."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        what = f"`{self.at}`" if self.at.steps else "the text"
        side = " from its end" if self.from_ == "end" else ""
        return self.integers(
            (1, self.max_length, None, f"How many characters of {what} to return"),
            (0, 0, None, f"At which character of {what} to start, counted{side} from 0"),
        )

    def sentence(self, display: Callable[[str], str]) -> str:
        length, start = map(display, self.names)
        what = f"`{self.at}`" if self.at.steps else "a long text"
        end = " from its end" if self.from_ == "end" else ""
        return (
            f"Returns {what} in windows of {self.max_length} characters{end} (`{length}`); "
            f"while `hasMore` is true, call again with `{start}` = `nextIndex`."
        )

    def __call__(self, root: Slot, call: Call) -> None:
        document = root.document
        if not (self.at.steps or document.textual):
            return
        if isinstance(root.get(), Pieces):
            document.close()
        slot = member(root, self.at)
        text = None if slot is None else slot.open()
        if slot is None or not isinstance(text, str):
            call.missing.append(str(self.at))
            return
        length, start = self.span(call, (self.max_length, 0))
        start = min(start, len(text))
        exceeds = call.bound is not None and size(document) > call.bound
        if start == 0 and len(text) <= length and not exceeds:
            return
        if self.at.steps:
            slot.key = claim(slot.parent, "truncation", slot.key)
        around = _around(text, call) if start else {}
        window = self._window(slot, call, text, start, length, around)
        end = start + len(window)
        more = end < len(text)
        notice = _notice(len(text), start, end, more) | around
        slot.set(self._hinted(window, end, call) if more else window)
        if self.at.steps:
            slot.parent["truncation"] = notice
        else:
            call.notices.append(Notice("truncation", notice, bare=True))

    def _window(
        self, slot: Slot, call: Call, text: str, start: int, length: int, around: dict[str, Any]
    ) -> str:
        """Return the characters to show: at least one while there are any."""
        backwards = self.from_ == "end"
        # Seen from its end, a text is its mirror image.
        rest = text[: len(text) - start][::-1] if backwards else text[start:]
        window = rest[:length]
        if call.bound is not None:
            # The room that everything else leaves for the characters.
            slot.set(self._hinted("", len(text), call))
            widest = len(encode(_notice(len(text), len(text), len(text), True) | around)) + 1
            widest += len(',"truncation":') if self.at.steps else 0
            room = call.bound - size(slot.document) - widest
            window = window[: max(chars_that_fit(window, room), 1)]
        if self.boundary == "word" and len(window) < len(rest):
            window = window[: _boundary(rest, len(window), backwards)]
        return window[::-1] if backwards else window

    def _hinted(self, window: str, start: int, call: Call) -> str:
        if self.hint != "inline":
            return window
        name = call.advertised_name(self.names[1])
        hint = f"<error>Content truncated. Call with {name} of {start} to get more.</error>"
        return f"{hint}\n\n{window}" if self.from_ == "end" else f"{window}\n\n{hint}"


def _around(text: str, call: Call) -> dict[str, Any]:
    """Return the part of the notice of a later window with the server's words around the text."""
    from mcp_abridge.document.fences import words_around  # for later windows alone

    words = words_around(Document(text), call.bound)
    return {"around": words} if words else {}


def _notice(total: int, start: int, end: int, more: bool) -> dict[str, Any]:
    notice = {"truncated": True, "totalLength": total, "startIndex": start, "endIndex": end}
    return {**notice, **({"nextIndex": end} if more else {}), "hasMore": more}


def _boundary(rest: str, length: int, backwards: bool) -> int:
    """Return the position of a cut after at most `length` characters: at a line, a word, or there.

    The character that ends a line or a word belongs to the text before it; in a text that is read
    backwards, to the next window.
    """
    least = length - length // 10
    for sign in ("\n", " "):
        # Backwards, the character is right after the cut: it may be the first one left out.
        at = rest.rfind(sign, least, length + backwards)
        if at >= 0:
            return at if backwards else at + 1
    return length
