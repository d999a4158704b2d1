"""The defaults of a sidecar's limits are those of their descriptions; handlers are handlers."""

import re

import pytest
from mcp_abridge.document.sizes import size
from mcp_abridge.ruleset.loading.config_model import LimitsSpec

from tests.reference.schemas import descriptions

LIMITS = (
    *("body", "message", "concurrent", "sessions", "idle_seconds", "children", "drain_seconds"),
    *("snapshots", "snapshot_seconds"),
)


@pytest.mark.parametrize("key", LIMITS)
def test_the_defaults_are_those_that_the_descriptions_name(key: str) -> None:
    match = re.search(r"(\S+) by default", descriptions(LimitsSpec)[key])
    assert match is not None
    assert size(match[1]) == getattr(LimitsSpec(), key)
