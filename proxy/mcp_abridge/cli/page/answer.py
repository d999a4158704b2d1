"""One answer of the page: without its tree, nobody sees what of an answer a rule leaves out.

A tree is written for the page's script: a leaf is its JSON, an array `["[", element…]`, an object
`["{", name, member…]`; a text is an array of its lines. Marks are in the order of the leaves.
"""

from itertools import chain
from typing import Any

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.own_names import OWN_NAMES
from mcp_abridge.document.printable import printable
from mcp_abridge.document.tree import Document, encode, plain
from mcp_abridge.replay import answers
from mcp_abridge.replay.account import account_of
from mcp_abridge.replay.coverage import marks
from mcp_abridge.replay.play import Replay
from mcp_abridge.summary.structure_in_text import read_structure

_LONGEST_LEAF = 2_000  # characters
_LONGEST_TEXT = 200_000  # of what a model reads, which a budget keeps far below
_ACCOUNT = ("rule", "rules", "outcome", "warnings", "log", "steps")


def detail(replay: Replay) -> dict[str, Any]:
    """Return an answer as one client shows it: JSON that the script of the page reads."""
    account = account_of(replay)
    _, texts = replay.texts
    documents = [value for text in texts if not _is_notice(value := _value(text))]
    source, form = _source(replay, documents)
    try:
        tree, signs = _tree(source), marks(source, documents)
    except RecursionError:  # nested deeper than a person would read
        source, form = bytes(encode(source)).decode(), "JSON, nested too deeply for a tree"
        tree, signs = _tree(source), marks(source, texts)
    return {
        **{key: _printable(account[key]) for key in _ACCOUNT},
        "form": form,
        "tree": tree,
        "marks": signs,
        "texts": [_cut(printable(text, lines=True), _LONGEST_TEXT) for text in texts],
    }


def _source(replay: Replay, documents: list[Any]) -> tuple[Any, str]:
    """Return the server's answer as the steps get it, and the notation of a text that was read."""
    before = replay.before
    if before.error is not None:
        return before.error, "the message of an error"
    rule = replay.applied
    located = None if rule is None else replay.document(rule)
    if located is None:
        if before.structured is not None:
            return plain(before.structured), "structuredContent"
        values = [answers.value(text) for text in before.texts]
        return (values[0] if len(values) == 1 else values), ""
    form = ""
    if not all(isinstance(each, str) for each in documents):
        structure = read_structure(located.document, Fuel())
        form = f"read from {structure.frame.form}" if structure and structure.frame.form else ""
    return plain(located.document.cell[0]), form


def _value(text: str) -> Any:
    """Return the document that a text is, or nearly is, as when words stand before its JSON."""
    value = answers.value(text)
    if isinstance(value, str):
        document = Document(value)
        structure = read_structure(document, Fuel())
        if structure is not None and structure.frame.form.startswith("JSON"):
            return plain(document.cell[0])
    return value


def _is_notice(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(name in OWN_NAMES for name in value)


def _tree(value: Any) -> Any:
    if isinstance(value, str):
        return [_cut(printable(line), _LONGEST_LEAF) for line in value.split("\n")]
    return _node(value)


def _node(value: Any) -> Any:
    if isinstance(value, dict) and value:
        pairs = ((printable(name), _node(each)) for name, each in value.items())
        return ["{", *chain.from_iterable(pairs)]
    if isinstance(value, list) and value:
        return ["[", *map(_node, value)]
    return _cut(printable(encode(value).decode(), json=True), _LONGEST_LEAF)


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value, lines=True)
    if isinstance(value, dict):
        return {printable(name): _printable(each) for name, each in value.items()}
    return [*map(_printable, value)] if isinstance(value, list) else value


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… (+{len(text) - most:,} characters)"
