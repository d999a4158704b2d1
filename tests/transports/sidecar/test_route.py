"""The defaults of a sidecar's limits are those of their descriptions; handlers are handlers."""

import re

import pytest

from proxy.cli.schema import descriptions
from proxy.document.sizes import size
from proxy.ruleset.loading.config_model import LimitsSpec
from proxy.transports.sidecar.route import RouteLimits

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
