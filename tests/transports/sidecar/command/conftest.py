"""Clients of a route to the talkative server."""

from collections.abc import AsyncIterator

import pytest

from tests.transports.http.hosting import Client, hosting


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client with a session."""
    async with hosting() as made:
        yield await made.client().begin()


@pytest.fixture
async def caller() -> AsyncIterator[Client]:
    """A client without a session."""
    async with hosting() as made:
        yield made.client()
