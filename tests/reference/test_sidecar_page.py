"""The reference page of the sidecar: that it is current, whole, and true of what `serve` does."""

import re
from pathlib import Path

import pytest
from msgspec import Struct

from proxy.cli import options, serve
from proxy.cli.options import Option
from proxy.document.sizes import size
from proxy.ruleset.loading import config
from proxy.ruleset.loading import config_model as configkeys
from proxy.ruleset.loading.config_model import ConfigSpec, RoutePath, RouteSpec, Url
from proxy.ruleset.loading.convert import fields
from proxy.transports.sidecar.route import Route, RouteLimits
from tests.reference import rules_page as reference
from tests.reference import sidecar_page as sidecar

ROOT = Path(__file__).resolve().parents[2]
PAGE = sidecar.page()
FLAGS = {option.name: option for option in serve.OPTIONS}


def rows(title: str) -> list[str]:
    """Return what the first cells under a title hold."""
    _, _, rest = PAGE.partition(f" {title}\n")
    return re.findall(r"^\| `(.+?)` \|", re.split(r"\n##+ ", rest)[0], re.MULTILINE)


def test_the_page_in_the_repository_is_the_one_that_the_code_prints() -> None:
    kept = (ROOT / "examples" / "sidecar" / "REFERENCE.md").read_text()
    remedy = "write it anew: mcp-abridge schema --sidecar > examples/sidecar/REFERENCE.md"
    assert kept == PAGE, remedy


def test_the_sample_is_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("version: 1\nrules: []")
    found = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    variables = {"SIDECAR_TOKEN": "one", "UPSTREAM_TOKEN": "two"}
    reading = config.read(str(tmp_path / "serve.yaml"), found[1].encode(), variables)
    assert reading.problems == ()
    assert reading.config is not None
    assert [route.path for route in reading.config.routes] == ["/mcp", "/mcp-readonly"]


@pytest.mark.parametrize(
    ("title", "flags"), [("Flags of `serve`", serve.OPTIONS), ("Flags of `run`", options.OPTIONS)]
)
def test_every_flag_stands_there_with_its_variable(title: str, flags: tuple[Option, ...]) -> None:
    _, _, rest = PAGE.partition(f"## {title}\n")
    found = re.findall(
        r"^\| .*?(--[\w-]+).*?` \| `(\w+)`", rest.partition("\n## ")[0], re.MULTILINE
    )
    assert found == [(option.flag, option.variable) for option in flags]


@pytest.mark.parametrize(
    ("title", "kind"),
    [("The top", ConfigSpec), ("A route", RouteSpec), ("Limits", configkeys.LimitsSpec)],
)
def test_every_key_stands_there(title: str, kind: type[Struct]) -> None:
    assert rows(title) == list(fields(kind))


def test_the_defaults_that_are_said_are_those_that_hold() -> None:
    limits = RouteLimits()
    for name, (_, own) in serve.LIMITS.items():
        said = sidecar.default(FLAGS[name])
        assert (size(said) if name.startswith("max_") else float(said)) == getattr(limits, own)
    route = serve._route(RouteSpec(path=RoutePath("/mcp"), upstream=Url("http://a")))
    for name in ("listen", "auth"):
        assert sidecar.default(FLAGS[name]) == getattr(route, name) == fields(Route)[name].default


def test_each_default_of_a_flag_that_its_help_says_is_the_one_of_its_table() -> None:
    for option in options.OPTIONS:
        if isinstance(option.default, str):
            assert sidecar.default(option) == option.default
        if type(option.default) is int:
            assert size(sidecar.default(option)) == option.default


def test_every_link_leads_to_a_title() -> None:
    titles = {reference.anchor(title) for title in re.findall(r"^##+ (.+)$", PAGE, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= titles


def test_lines_are_short_but_for_tables_and_code() -> None:
    prose = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL).splitlines()
    assert [line for line in prose if len(line) > 120 and not line.startswith("|")] == []
