"""Views of one value: without it, each test module would ask in a way of its own."""

from collections.abc import Callable
from typing import Any

import pytest
from mcp_abridge.document.tree import Document, encode, plain
from mcp_abridge.errors import Refusal
from mcp_abridge.query.view import look

Ask = Callable[..., tuple[Any, list[str]]]


def asking(whole: object) -> tuple[Ask, Callable[..., str]]:
    """Return a function for the answer to a view with its remarks, and one for its refusal.

    Both take the view, and a value if it is another one than `whole`.
    """

    def ask(view: str, value: object = whole) -> tuple[Any, list[str]]:
        remarks: list[str] = []
        return plain(look(Document.read(encode(value)), view, "text", None, remarks)), remarks

    def refusal(view: str, value: object = whole) -> str:
        with pytest.raises(Refusal) as error:
            ask(view, value)
        return str(error.value).removeprefix("view: ")

    return ask, refusal
