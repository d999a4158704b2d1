"""The defaults of a sidecar's limits are those of their descriptions; handlers are handlers."""

import re

import pytest

from proxy.cli.schema import descriptions
from proxy.document.sizes import size
from proxy.ruleset.loading.config_model import LimitsSpec
from proxy.transports.sidecar.command.route_handler import CommandRoute
from proxy.transports.sidecar.route import Handler, RouteLimits
from proxy.transports.sidecar.url.route_handler import UrlRoute
from tests.transports.http.standing import route, shared

LIMITS = {
    "body": "body",
    "message": "message",
    "concurrent": "concurrent",
    "sessions": "sessions",
    "children": "children",
    "idle_seconds": "idle",
    "drain_seconds": "drain",
}


@pytest.mark.parametrize(("key", "name"), LIMITS.items())
def test_the_defaults_are_those_that_the_descriptions_name(key: str, name: str) -> None:
    match = re.search(r"(\S+) by default", descriptions(LimitsSpec)[key])
    assert match is not None
    assert size(match[1]) == getattr(RouteLimits(), name)


async def test_each_kind_of_upstream_has_a_handler() -> None:
    share = shared()
    handlers: list[Handler] = [
        UrlRoute(route("http://127.0.0.1:1/mcp"), lambda *_: None, share),  # type: ignore[arg-type]
        CommandRoute(route(("true",)), lambda *_: None, share),  # type: ignore[arg-type]
    ]
    for handler in handlers:
        await handler.open()
        assert handler.not_ready_reason() is None or isinstance(handler.not_ready_reason(), str)
        await handler.close()
    share.workers.close()
