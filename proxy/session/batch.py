"""A batch, processed message by message (MCP 2025-03-26, Base Protocol, Batching)."""

from collections.abc import Callable

from msgspec import Raw

from proxy.document.tree import encode
from proxy.session.outputs import Forward, Noise, Output


def one_by_one(
    raw: bytes, elements: list[Raw], take: Callable[[bytes], tuple[Output, ...]]
) -> tuple[Output, ...]:
    """Process each message of the batch `raw` with `take`; forwarded messages stay one batch.

    If every message is forwarded unchanged, the output is `raw` itself.
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
