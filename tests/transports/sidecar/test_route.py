"""The bounds of a sidecar are what its help says they are, and its handlers are handlers."""

import re

import pytest

from proxy.cli.serve import OPTIONS
from proxy.document.sizes import size
from proxy.transports.sidecar.command.route_handler import CommandRoute
from proxy.transports.sidecar.route import Handler, RouteLimits
from proxy.transports.sidecar.url.route_handler import UrlRoute
from tests.transports.http.standing import route, shared

LIMITS = {
    "--max-body": "body",
    "--max-message": "message",
    "--concurrent": "concurrent",
    "--sessions": "sessions",
    "--children": "children",
    "--idle": "idle",
    "--drain": "drain",
}


@pytest.mark.parametrize(("flag", "name"), LIMITS.items())
def test_the_defaults_are_those_that_the_help_names(flag: str, name: str) -> None:
    [option] = [each for each in OPTIONS if each.flag == flag]
    found = re.search(r"\(default: (\S+)\)", option.help)
    assert found is not None
    assert size(found[1]) == getattr(RouteLimits(), name)


async def test_each_kind_of_upstream_has_a_handler() -> None:
    share = shared()
    handlers: list[Handler] = [
        UrlRoute(route("http://127.0.0.1:1/mcp"), lambda *_: None, share),  # type: ignore[arg-type]
        CommandRoute(route(("true",)), lambda *_: None, share),  # type: ignore[arg-type]
    ]
    for handler in handlers:
        await handler.open()
        assert handler.unready() is None or isinstance(handler.unready(), str)
        await handler.close()
    share.workers.close()
