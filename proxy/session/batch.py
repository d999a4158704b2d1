"""A batch of messages, one by one (MCP 2025-03-26, Base Protocol, Batching)."""

from collections.abc import Callable

from msgspec import Raw

from proxy.document.tree import encode
from proxy.session.outputs import Forward, Noise, Output


def one_by_one(
    raw: bytes, elements: list[Raw], take: Callable[[bytes], tuple[Output, ...]]
) -> tuple[Output, ...]:
    """Take the messages of the batch `raw` with `take`; what goes on stays together.

    Where all of it goes on as it came, that is `raw`.
    """
    forwarded: list[Raw] = []
    rest: list[Output] = []
    changed = False
    for element in elements:
        single = bytes(element)
        outputs = take(single) if single[:1] == b"{" else (Forward(single),)
        changed |= not outputs
        for output in outputs:
            if isinstance(output, Forward | Noise):
                changed |= output.raw != single
                forwarded.append(Raw(output.raw))
            else:
                changed = True
                rest.append(output)
    if not changed:
        return (Forward(raw),)
    return (*((Forward(encode(forwarded)),) if forwarded else ()), *rest)
