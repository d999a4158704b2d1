"""Documents for tests: strategies for the JSON that servers send, and steps run over it."""

import json

from hypothesis import strategies as st
from mcp_abridge.document.tree import Document, Slot
from mcp_abridge.query.call import Call
from mcp_abridge.transforms.base import Transform

# What a decoder that is not careful would write differently.
SPELLINGS = [
    b"1.0",
    b"1e400",
    b"-0",
    b"1.10",
    b"12345678901234567890123",
    b'"\\/"',
    b'"caf\\u00e9 \\u0041"',
    b'"\\ud83d\\ude00"',
    b"null",
    b"true",
]
SURROGATES = [b'"\\ud800"', b'"x\\uDFFFy"', b'["\\udc00\\ud800"]']


def _object(members: dict[str, bytes]) -> bytes:
    inner = (json.dumps(name).encode() + b": " + value for name, value in members.items())
    return b"{" + b", ".join(inner) + b"}"


def _array(elements: list[bytes]) -> bytes:
    return b"[" + b",\n ".join(elements) + b"]"


SIGNS = st.characters(exclude_categories=["Cs"])
NAMES = st.sampled_from(["id", "body", "items", "more", "a.b", "", "text"]) | st.text(
    SIGNS, max_size=6
)
TEXTS = st.text(SIGNS, max_size=200) | st.text('ab "\\\n\té😀', max_size=4000)
WRITTEN_TEXTS = TEXTS.map(lambda text: json.dumps(text, ensure_ascii=False).encode())
SCALARS = (
    st.sampled_from(SPELLINGS) | st.integers().map(lambda number: b"%d" % number) | WRITTEN_TEXTS
)


def arrays(elements: st.SearchStrategy[bytes], most: int = 40) -> st.SearchStrategy[bytes]:
    return st.lists(elements, max_size=most).map(_array)


def objects(values: st.SearchStrategy[bytes], most: int = 8) -> st.SearchStrategy[bytes]:
    return st.dictionaries(NAMES, values, max_size=most).map(_object)


def values(
    scalars: st.SearchStrategy[bytes] = SCALARS, leaves: int = 60
) -> st.SearchStrategy[bytes]:
    """Any JSON value, as bytes with white space between its tokens."""
    return st.recursive(scalars, lambda inner: arrays(inner) | objects(inner), max_leaves=leaves)


def call(bound: int | None = None, structured: bool = False, **arguments: object) -> Call:
    """Make a call of its own; `bound` and `structured` are the Call's."""
    return Call("tool", arguments, bound=bound, structured=structured, notices=[], missing=[])


def shaped(raw: bytes, *steps: Transform, at: Call | None = None) -> bytes:
    """Run steps over a document and return it as it is written."""
    document = Document.read(raw)
    for step in steps:
        step(document.root, at or call())
    document.close()
    return document.encode()


def shaped_text(text: str, *steps: Transform, at: Call | None = None) -> str:
    """Run steps over a document that is a text and return the text."""
    return str(json.loads(shaped(json.dumps(text).encode(), *steps, at=at)))


def open_all(slot: Slot) -> None:
    """Have everything in a document decoded, as by earlier steps."""
    for child in slot.children():
        open_all(child)
