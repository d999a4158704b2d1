"""Shares of the room: without them a catalogue takes as much of it as what the call asked for."""

import re
from collections.abc import Sequence

_MAIN = 4.0  # shares of the member that the result is about, if another has one
HANDLE = re.compile("(?i)token|cursor")  # members that a later call may have to pass back
_BESIDE = re.compile(
    "(?i)schema|^.names|expand|prior|config|catalog|artifact|definition|facet|aggregat|meta|links"
    "|tool|driver|rules|variable|previous|warning"
)


def weights_of(names: dict[int, str], sizes: Sequence[int], tool: str) -> dict[int, float]:
    """Return the shares of members with `names`: the one that the tool names, or the largest.

    Catalogues, schemas and earlier states have the least.
    """
    weights = {index: 0.2 if _BESIDE.search(name) else 1.0 for index, name in names.items()}
    weights |= {index: _MAIN for index, name in names.items() if HANDLE.search(name)}
    half = sum(sizes[index] for index in names) / 2
    namesakes = [
        index for index, name in names.items() if name[1:-2].lower().rstrip("s") in tool.lower()
    ]
    large = [index for index in names if weights[index] == 1 and sizes[index] >= half]
    if namesakes or large:
        weights[max(namesakes or large, key=sizes.__getitem__)] = _MAIN
    return weights


def share(sizes: Sequence[int], room: int) -> int:
    """Return the most bytes that each may take if all together take at most `room`.

    >>> share([10, 100, 1000], 500), share([10, 20], 500)
    (390, 490)
    """
    for position, needed_size in enumerate(sorted(sizes)):
        least = room // (len(sizes) - position)
        if needed_size > least:
            return least
        room -= needed_size
    return room + max(sizes, default=0)
