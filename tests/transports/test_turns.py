"""Whose turn it is before and after a large message."""

import asyncio

import pytest

from proxy.transports.turns import LARGE, others


@pytest.mark.parametrize(("size", "let_in"), [(0, False), (LARGE, False), (LARGE + 1, True)])
async def test_others_have_their_turn_only_where_much_is_looked_through(
    size: int, let_in: bool
) -> None:
    said: list[str] = []
    asyncio.get_running_loop().call_soon(said.append, "other")
    await others(size)

    assert bool(said) is let_in
