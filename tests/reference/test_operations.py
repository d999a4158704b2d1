"""What the page says of paths, statuses, metrics and log lines, held against what they are."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.cli import serve
from proxy.ruleset.loading.config_model import RESERVED
from proxy.transports.sidecar import sidecar as served
from tests.reference import sidecar_page as sidecar
from tests.reference.operations import LABELS, LINES, OPENING, PATHS, STATUSES
from tests.transports.http.listening import LISTEN, route, serving

TRANSPORTS = Path(served.__file__).parents[1]
REFUSALS = {"AccessRefused", "RequestRefused"}
LOGGED_ONLY = {499}


def test_its_own_paths_are_those_that_it_answers_and_that_no_route_may_have() -> None:
    assert list(PATHS) == list(served._OWN) == list(RESERVED)


def test_statuses_are_those_that_the_code_answers_with() -> None:
    files = [file for part in ("sidecar", "http") for file in (TRANSPORTS / part).rglob("*.py")]
    answered = {status for file in files for status in statuses(file)}
    assert set(STATUSES) - LOGGED_ONLY == answered
    assert served._GONE in LOGGED_ONLY


def statuses(file: Path) -> Iterator[int]:
    """Yield each status that stands in a refusal or a response."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call):
            named = [each.value for each in node.keywords if each.arg == "status"]
            first = node.args[:1] if ast.unparse(node.func) in REFUSALS else []
            for each in (*named, *first):
                if isinstance(each, ast.Constant) and isinstance(each.value, int):
                    yield each.value


def test_every_label_of_a_metric_is_explained() -> None:
    assert {label for _, _, labels, _ in sidecar.figures() for label in labels} == set(LABELS)


@pytest.mark.parametrize(
    ("event", "absent"),
    [("request", set()), ("call", {"failure"})],  # the calls here do not fail
)
async def test_fields_of_a_line_are_those_that_are_logged(event: str, absent: set[str]) -> None:
    async with serving() as running:
        await running.posted("/mcp", b"call")
        await running.posted("/mcp", b"fail")
        found = {name for line in running.said(event) for name in line}
    assert found - {"time", "level", "event"} == LINES[event].keys() - absent


async def test_fields_of_the_line_on_a_route_are_those_that_are_logged() -> None:
    given = route(tools=("list_*",))
    async with serving(given) as running:
        said = dict(serve._described(running.sidecar, given))
    assert said.keys() == LINES["serving"].keys()
    assert said["url"].startswith("http://" + LISTEN.partition(":")[0])


def test_the_variable_of_the_token_is_named_as_it_is_read() -> None:
    assert f"`{serve._TOKEN}`" in OPENING
