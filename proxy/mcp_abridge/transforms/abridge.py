"""Cuts any document to a number of bytes, with notes on what is left out and how to see it."""

from typing import Annotated, ClassVar

from msgspec import Meta

from mcp_abridge.document.own_names import ABRIDGED
from mcp_abridge.document.sizes import LEAST_BOUND, Size
from mcp_abridge.document.tree import Document, Slot
from mcp_abridge.query.call import Call
from mcp_abridge.transforms.base import Transform

NAME = ABRIDGED


class AbridgeStep(Transform, frozen=True):
    """Cut the document to `max_bytes`, and to the rule's own bound if it has one.

    The size is that of the encoded document with its notes. An array of objects shows all its rows
    in brief, those members first that tell most: as a table `{columns, rows}`, or as objects with
    fewer members if the result has structuredContent. What is the same in all rows stands once in
    `same`, and in how many rows each value of a member with few occurs, in `counts`: both are of
    all rows, shown or not. Other arrays keep their first elements,
    and the last plain value, huge maps their first members. Long strings keep their beginning, with
    1,000 bytes or more also their end; those of more than eight lines are shown as a document that
    is a text. Strings of at most 40 characters are cut in
    rows alone, to 24. A string of 512 characters or more that is base64 or a data URI becomes a
    note (`[PNG image, 120 x 80 pixels, 34,567 bytes of base64 data left out]`), except members
    called token or cursor.

    If an object is nearly all a log or another text with rows, `rows[0:20]` reads these.

    A document that is a text keeps its beginning and its end, 60 to 40, or in place of the end an
    outline if it has three headings or more and is no error: those of the first two levels, with
    their lines, or if they are too many, some from the first to the last one. Headings are those of
    Markdown, HTML, reStructuredText, AsciiDoc, LaTeX, manual pages, INI and TOML, numbered ones
    (`2.1 Storage`), those of laws (`Article 5`), the files of a diff, the objects of manifests of
    Kubernetes, and functions and classes of source code, also with a number before each line.
    Without an outline, lines that stand out are shown between the two ends with their numbers, in
    up to half of the room. First come those that are rare: whose form, without digits and
    hexadecimal letters, occurs once or twice in a text that is regular otherwise, or that differ in
    a word from lines that are alike. Then come those that speak of failure (error, failed,
    exception, denied, timeout ...), which the notes count: up to eight are all shown, of more one
    of each kind. `0 errors`, names such as `errors.js`, lines of a low level in a log that has
    lines with that of an error, and words in prose or in source code are none. Escape codes of
    terminals are not shown.

    `_abridged` states for each path how much of how much is shown (`lines[]`: of the elements of
    `lines`; `others`: at all other paths together), and how to see the rest if the tool takes a
    `view`. `3+` columns are at least three: rows that are not shown may have others. Of a column
    that is named as `parts of labels`, some is shown.

    >>> rows = [{"id": n, "name": f"name {n}", "text": "x" * 90} for n in range(500)]
    >>> document = Document({"items": rows})
    >>> AbridgeStep(max_bytes=1000)(document.root, Call("list", viewable=True, structured=True))
    >>> notes = document.root.open()["_abridged"]
    >>> print(notes["items"], notes["more"].split(";")[0], sep="\\n")
    27 of 500; 2 of 3+ columns, without text
    call again with view='items[27:54].{id, name}'
    """

    name: ClassVar[str] = "abridge"
    shorthand: ClassVar[str | None] = "max_bytes"
    cuts: ClassVar[bool] = True

    max_bytes: Annotated[Size, Meta(ge=LEAST_BOUND)] | None = None
    """The most bytes of the document; without it, the rule's `max_bytes` applies."""
    first_look: Annotated[Size, Meta(ge=LEAST_BOUND)] | None = None
    """The most bytes of a text that takes twice the bound or more, and 4/9 of those of structure:
    a model has to ask for the rest anyway. With it, content that takes more tokens than plain JSON
    does (digits, hashes, times) gets fewer bytes."""

    def __call__(self, root: Slot, call: Call) -> None:
        bounds = [bound for bound in (self.max_bytes, call.bound) if bound is not None]
        if bounds:
            abridge(root.document, min(bounds), call, first_look=self.first_look)


def abridge(
    document: Document, bound: int, call: Call, viewed: str = "", first_look: int | None = None
) -> None:
    """Cut `document`, see `summary.abridgement`, which is loaded for the first one to cut."""
    from mcp_abridge.summary import abridgement

    abridgement.abridge(document, bound, call, viewed, first_look)
