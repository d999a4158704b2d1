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
    if not isinstance(result, Mapping) and not hasattr(result, "content"):
        kinds = "a text, a dict or an object of the MCP SDK"
        raise TypeError(f"{kinds} is expected here, not {type(result).__name__}")
    if isinstance(result, Mapping) and not {"content", "structuredContent"} & result.keys():
        raise TypeError(f"a result has `content`; this one has {list(result)}: pass its JSON text")
    return dumped(result)


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
    """Return a value, or an object of an SDK, as it stands in a message of the SDK's servers."""
    try:
        return to_json(value, exclude_none=True)
    except PydanticSerializationError:  # half of a surrogate pair
        return json.dumps(value, separators=(",", ":")).encode()
