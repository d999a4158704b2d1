"""The reference of the sidecar is true of what `serve` does."""

import re
from pathlib import Path
from typing import get_args

import pytest
from mcp_abridge.cli import options, serve
from mcp_abridge.document.sizes import size
from mcp_abridge.ruleset.loading import config
from mcp_abridge.ruleset.loading.config_model import RESERVED, LimitsSpec, RoutePath, RouteSpec, Url
from mcp_abridge.ruleset.loading.convert import fields
from mcp_abridge.storage.meter import OutcomeKind
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.sidecar import sidecar as served
from mcp_abridge.transports.sidecar.access import Access
from mcp_abridge.transports.sidecar.metrics import Metrics
from mcp_abridge.transports.sidecar.route import Route

from tests.reference import sidecar_page as sidecar
from tests.reference.__main__ import SIDECAR
from tests.transports.http.route_server import tokens
from tests.transports.http.sidecar_server import LISTEN, serve_sidecar, sidecar_route

PAGE = SIDECAR.read_text(encoding="utf-8")
TRANSPORTS = Path(served.__file__).parents[1]
STATUS = re.compile(r"(?:status=|RequestRefused\(\s*)(\d{3})\b")
LOGGED_ONLY = {499}


def rows(head: str) -> dict[str, str]:
    """Return the rows of the table with this head: what the first cell names, and the others."""
    text = PAGE.partition(f"\n| {head} |")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `(.+?)` \| (.*) \|$", text, re.MULTILINE))


def test_the_sample_is_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("version: 1\nrules: []")
    match = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert match is not None
    variables = {"SIDECAR_TOKEN": "one", "UPSTREAM_TOKEN": "two"}
    whole, problems = config.read(str(tmp_path / "serve.yaml"), match[1].encode(), variables)
    assert problems == ()
    assert whole is not None
    assert [route.path for route in whole.routes] == ["/mcp", "/mcp-readonly"]


def test_the_defaults_of_flags_are_those_that_hold() -> None:
    for option in options.OPTIONS:
        if isinstance(option.default, str):
            assert sidecar.default(option) == option.default
        if type(option.default) is int:
            assert size(sidecar.default(option)) == option.default
    route = serve._route(RouteSpec(path=RoutePath("/mcp"), upstream=Url("http://a")), Log("error"))
    [listen] = [option for option in serve.OPTIONS if option.name == "listen"]
    assert sidecar.default(listen) == route.listen == fields(Route)["listen"].default


def test_its_own_paths_are_those_that_it_answers_and_that_no_route_may_have() -> None:
    sidecar = served.Sidecar((), LimitsSpec(), Log("error"), Metrics())
    assert list(rows("path")) == list(sidecar._own) == list(RESERVED)


def test_statuses_are_those_that_the_code_answers_with() -> None:
    files = [file for part in ("sidecar", "http") for file in (TRANSPORTS / part).rglob("*.py")]
    answered = {int(status) for file in files for status in STATUS.findall(file.read_text())}
    assert set(map(int, rows("status"))) - LOGGED_ONLY == answered - {200}
    assert served._GONE in LOGGED_ONLY


def test_every_label_of_a_metric_and_every_outcome_is_explained() -> None:
    labels = rows("label")
    assert {label for _, _, names, _ in sidecar.figures() for label in names} == set(labels)
    assert re.findall(r"`(\w+)`", labels["outcome"]) == list(get_args(OutcomeKind))


@pytest.mark.parametrize(
    ("event", "absent"),
    [("request", set()), ("call", {"failure"})],  # the calls here do not fail
)
async def test_fields_of_a_line_are_those_that_are_logged(event: str, absent: set[str]) -> None:
    async with serve_sidecar(sidecar_route(access=Access(tokens=tokens("right")))) as server:
        for body in (b"call", b"fail"):
            await server.post("/mcp", body, "Authorization: Bearer right")
        logged = {name for line in server.events(event) for name in line}
    fields = {
        field
        for field, rest in rows("field of `request`").items()
        if event == "request" or not rest.startswith("no ")
    }
    assert logged - {"time", "level", "event"} == fields - absent


async def test_fields_of_the_line_on_a_route_are_those_that_are_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "proxy:3128")
    limited = sidecar_route(spec=RouteSpec(path=RoutePath("/mcp"), tools=("list_*",)))
    async with serve_sidecar(limited) as server:
        facts = dict(serve._described(server.sidecar, limited))
    assert facts.keys() == rows("field of `serving`").keys()
    assert facts["url"].startswith("http://" + LISTEN.partition(":")[0])


def test_the_variable_of_the_token_is_named_as_it_is_read() -> None:
    assert f"`{serve.TOKEN_VARIABLE}`" in PAGE
