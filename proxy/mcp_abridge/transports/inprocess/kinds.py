"""Results in the kinds that programs have: a text, a CallToolResult as a dict, an object of an SDK.

What comes out has the kind of what went in.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic_core import PydanticSerializationError, from_json, to_json

Result = TypeVar("Result")


def encoded(result: object) -> bytes:
    """Return a result of a tool as JSON; a text is its only block. Raises TypeError."""
    if isinstance(result, str):
        return dumped({"content": [{"type": "text", "text": result}]})
    if isinstance(result, Mapping):
        if "content" in result or "structuredContent" in result:
            return dumped(result)
        raise TypeError(f"a result has `content`; this one has {list(result)}: pass its JSON text")
    return definition(result)


def definition(value: object) -> bytes:
    """Return a dict, or an object of an SDK, as it stands in a message. Raises TypeError."""
    if isinstance(value, Mapping):
        return dumped(value)
    dump: Any = getattr(value, "model_dump_json", None)
    if dump is None:
        kinds = "a text, a dict or an object of the MCP SDK"
        raise TypeError(f"{kinds} is expected here, not {type(value).__name__}")
    text: str = dump(by_alias=True, exclude_none=True)
    return text.encode()


def like(example: Result, raw: bytes) -> Result:
    """Return JSON in the kind of `example`."""
    value: Any
    if isinstance(example, str):
        value = text_of(from_json(raw))
    elif isinstance(example, Mapping):
        value = from_json(raw)
    else:
        model: Any = type(example)
        value = model.model_validate_json(raw)
    return value  # type: ignore[no-any-return]


def failure(text: str) -> dict[str, Any]:
    """Return an error result (MCP: Tools, Error Handling)."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def text_of(result: Mapping[str, Any]) -> str:
    """Return the texts of a result, as most clients show them to a model."""
    blocks = result.get("content", ())
    return "\n".join(block["text"] for block in blocks if block.get("type") == "text")


def request(number: int, method: str, params: Mapping[str, Any] | None) -> bytes:
    """Return a request as its line. Raises TypeError for what is not JSON."""
    own = {} if params is None else {"params": params}
    return dumped({"jsonrpc": "2.0", "id": number, "method": method, **own})


def dumped(value: object) -> bytes:
    """Return a value as JSON, its floats spelled as the SDK's servers spell them."""
    try:
        return to_json(value)
    except PydanticSerializationError:  # half of a surrogate pair
        return json.dumps(value, separators=(",", ":")).encode()
