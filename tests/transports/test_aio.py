"""Whose turn it is before and after a large message."""

import asyncio
import threading

import pytest

from proxy.session.outputs import LARGE
from proxy.transports.aio import others, threaded
from tests.threadless import threadless


@pytest.mark.parametrize(("size", "let_in"), [(0, False), (LARGE, False), (LARGE + 1, True)])
async def test_others_have_their_turn_only_where_much_is_looked_through(
    size: int, let_in: bool
) -> None:
    said: list[str] = []
    asyncio.get_running_loop().call_soon(said.append, "other")
    await others(size)

    assert bool(said) is let_in


async def test_what_takes_long_is_done_in_a_thread_or_here_where_there_is_none() -> None:
    elsewhere = await threaded(threading.get_ident)
    with threadless():
        # Two at once, since there may be a thread left for one.
        both = await asyncio.gather(threaded(threading.get_ident), threaded(threading.get_ident))

    assert elsewhere != threading.get_ident()
    assert threading.get_ident() in both


async def test_what_it_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await threaded(divmod, 1, 0)
