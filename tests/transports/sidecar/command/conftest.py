"""Clients of a route to the talkative server."""

from collections.abc import AsyncIterator

import pytest

from tests.transports.http.route_server import Client, serve_command


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client with a session."""
    async with serve_command() as proxy:
        yield await proxy.client().initialize()


@pytest.fixture
async def caller() -> AsyncIterator[Client]:
    """A client without a session."""
    async with serve_command() as proxy:
        yield proxy.client()
