"""The bundled rule files against the running servers: they fit, and what a call needs stays.

`make rules` installs the servers, and runs these tests.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import orjson
import pytest
from mcp_abridge.cli import main
from mcp_abridge.document.paths import matches
from mcp_abridge.replay.account import account_of
from mcp_abridge.replay.exchanges import recorded
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset import selection
from mcp_abridge.ruleset.rule_set import RuleSet

from tests import servers
from tests.servers import (
    atlassian_api,
    firecrawl_api,
    grafana_api,
    kubernetes_api,
    sentry_api,
    supabase_api,
)
from tests.servers.install import needs
from tests.servers.web_api import web_api
from tests.wire import Wire

pytestmark = [pytest.mark.usefixtures("servers"), pytest.mark.long]

BUDGET = 8_000
SHOP = Path(__file__).parent / "servers" / "shop.html"
CHROMIUM = shutil.which("chromium") or ""


class Ruled:
    """A running server, called directly, and what a bundled file makes of its answers."""

    def __init__(self, wire: Wire, file: str, folder: Path) -> None:
        self._wire = wire
        self._folder = folder
        self._number = count(10)
        self.before = self.after = 0  # bytes that a model sees of all answers
        budget = selection.budget_rule("auto", None)
        [self._file] = selection.load([file])
        self._rules = RuleSet((selection.with_budget(self._file, budget),), budget)
        info = {"name": "wire", "version": "1.0.0"}
        version = {"protocolVersion": "2025-11-25", "capabilities": {}}
        response = orjson.loads(wire.send("initialize", 1, clientInfo=info, **version)[-1])
        wire.send("notifications/initialized")
        listed = orjson.loads(wire.send("tools/list", 2)[-1])
        tools = {tool["name"] for tool in listed["result"]["tools"]}
        assert self._file.server is not None
        name = response["result"]["serverInfo"]["name"]
        assert self._file.server.name == name
        self._save("session", {"server": name})
        self._save("0000-tools", {"request": {}, "response": listed})
        for pattern in {tool for rule in self._file.rules for tool in rule.tools}:
            assert any(matches(pattern, tool) for tool in tools), pattern

    def call(self, tool: str, **arguments: Any) -> str:
        """Call a tool, and return what a model gets of its answer, or of a `view` of it."""
        view = arguments.pop("view", None)
        replay = Replay(self._rules, recorded(orjson.dumps(self.exchange(tool, **arguments))))
        account = account_of(replay)
        assert account["log"] == []
        before, after = account["before"]["visible"], account["after"]["visible"]
        assert after <= BUDGET
        self.before += before
        self.after += after
        return replay.answer.text if view is None else replay.ask({**arguments, "view": view}).text

    def exchange(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return the call with the server's own answer."""
        request = {"jsonrpc": "2.0", "id": next(self._number), "method": "tools/call"}
        request["params"] = {"name": tool, "arguments": arguments}
        [*_, answer] = self._wire.answer(orjson.dumps(request) + b"\n")
        exchange = {"request": request, "response": orjson.loads(answer)}
        self._save(f"{request['id']:04}-{tool}", exchange)
        return exchange

    def _save(self, name: str, content: dict[str, Any]) -> None:
        """Write a file of a recording."""
        (self._folder / f"{name}.json").write_bytes(orjson.dumps(content))


@contextmanager
def ruled(file: str, command: list[str]) -> Iterator[Ruled]:
    with TemporaryDirectory() as folder:
        with Wire(command) as wire:
            yield Ruled(wire, file, Path(folder))
        words = ["--rules", file, "--fail-on", "loss,rot,drift"]
        assert main(["replay", folder, *words]) == 0, "replay printed what has changed"


def shop(path: str) -> bytes:
    return b"" if path.endswith(".png") else SHOP.read_bytes()


@needs("rules")
@pytest.mark.skipif(not CHROMIUM, reason="no chromium")
def test_the_rules_for_playwright_keep_the_refs_of_clickable_elements(tmp_path: Path) -> None:
    with (
        web_api(shop) as url,
        ruled("playwright", servers.playwright(CHROMIUM, tmp_path)) as server,
    ):
        server.call("browser_navigate", url=f"{url}/")
        snapshot = server.call("browser_snapshot")
        links = re.findall(r'link "Category \d+" \[ref=\w+\] /url: /c/\d+\n', snapshot)
        assert len(links) == 12
        assert re.search(r'textbox "Search" \[ref=\w+\]', snapshot)
        hits = server.call("browser_snapshot", view="grep('Add to cart').lines[].text")
        buttons = re.findall(r'button \\"Add to cart\\" \[ref=(\w+)\]', hits)
        clicked = server.call("browser_click", target=buttons[7])
        assert "- Page Title: Bought 7\n" in clicked
        for tool, arguments in (
            ("browser_console_messages", {"level": "debug"}),
            ("browser_network_requests", {"static": True}),
            ("browser_find", {"text": "lamp 3"}),
        ):
            assert "### Result" in server.call(tool, **arguments)
        assert "Ref e99999 not found" in server.call("browser_click", target="e99999")


@needs("rules")
@pytest.mark.skipif(not CHROMIUM, reason="no chromium")
def test_the_rules_for_chrome_devtools_keep_every_uid() -> None:
    with (
        web_api(shop) as url,
        ruled("chrome-devtools", servers.chrome_devtools(CHROMIUM)) as server,
    ):
        server.call("navigate_page", pageId=1, type="url", url=f"{url}/")
        links = server.call("take_snapshot", pageId=1, view="grep('Category').lines[].text")
        assert len(re.findall(r'uid=\w+ link \\"Category \d+\\" url=', links)) == 12
        hits = server.call("take_snapshot", pageId=1, view="grep('Add to cart').lines[].text")
        buttons = re.findall(r'uid=(\w+) button \\"Add to cart\\"', hits)
        clicked = server.call("click", pageId=1, uid=buttons[7], includeSnapshot=True)
        assert 'RootWebArea "Bought 7"' in clicked
        for tool in ("list_console_messages", "list_network_requests"):
            assert "Showing 1-5 of 6" in server.call(tool, pageId=1, pageSize=5)
        error = server.call("click", pageId=1, uid="99_9999")
        assert error == 'Error: Element uid "99_9999" not found on page 1.'


class Api(NamedTuple):
    """A server before a made-up API: how it starts, and calls.

    Each of `excerpts` must be in an answer. `part` is that of tests.servers.install.
    """

    answers: Any
    command: Callable[[str, Path], list[str]]
    excerpts: list[str]
    calls: list[tuple[str, dict[str, Any]]]
    part: str


IN_SHOP = {"organizationSlug": "shop"}
ISSUE = {"issueId": "SHOP-7", "query": "level:error", **IN_SHOP}
POD = {"namespace": "shop", "name": "shop-007-7d9c"}
METRICS = {"datasourceUid": "prom1", "expr": "rate(http_requests_total[5m])", "stepSeconds": 60}
SITE = "https://docs.example.org"
APIS = {
    "atlassian": Api(
        atlassian_api.answer,
        lambda url, _: servers.atlassian(url),
        [f'"PRO-{n}"' for n in range(30)],
        [
            ("jira_search", {"jql": "project = PRO", "limit": 50}),
            ("jira_search", {"jql": "project = PRO", "fields": "*all", "limit": 3}),
            ("jira_get_issue", {"issue_key": "PRO-1", "fields": "*all"}),
            ("confluence_search", {"query": "lamps"}),
            ("confluence_get_page", {"page_id": "77"}),
            ("confluence_get_page_children", {"parent_id": "77"}),
            ("jira_get_all_projects", {}),
        ],
        "atlassian",
    ),
    "sentry": Api(
        sentry_api.answer,
        lambda url, _: servers.sentry(url),
        ["/issues/SHOP-7)", "**Users**: 31", "/issues/SHOP-7\n", "KeyError: price of lamp 7"],
        [
            ("search_issues", {"query": "is:unresolved", "limit": 40, **IN_SHOP}),
            ("search_events", {"query": "level:error", "limit": 60, **IN_SHOP}),
            ("get_sentry_resource", {"resourceType": "issue", "resourceId": "SHOP-7", **IN_SHOP}),
            ("search_issues", {"query": "zebra", **IN_SHOP}),
            ("execute_sentry_tool", {"name": "search_issue_events", "arguments": ISSUE}),
            ("search_sentry_tools", {"query": "events of an issue"}),
        ],
        "sentry",
    ),
    "kubernetes": Api(
        kubernetes_api.answer,
        servers.kubernetes,
        [*(f"shop-{n:03}-7d9c" for n in range(120)), "CrashLoopBackOff", "# No events found"],
        [
            ("pods_list_in_namespace", {"namespace": "shop", "view": "[*].NAME"}),
            ("resources_list", {"apiVersion": "v1", "kind": "Pod", "namespace": "shop"}),
            ("pods_list_in_namespace", {"namespace": "none"}),
            ("pods_get", POD),
            ("resources_get", {"apiVersion": "v1", "kind": "Pod", **POD}),
            ("events_list", {"namespace": "shop"}),
            ("events_list", {"namespace": "none"}),
            ("pods_log", POD),
            ("pods_get", {"namespace": "nowhere", "name": "x"}),
        ],
        "rules",
    ),
    "firecrawl": Api(
        firecrawl_api.ANSWERS,
        lambda url, _: servers.firecrawl(url),
        ["0199-search", *(f"0199-{number:04}" for number in range(5)), f"{SITE}/limits/39"],
        [
            ("firecrawl_scrape", {"url": SITE}),
            ("firecrawl_search", {"query": "a", "scrapeOptions": {"formats": ["markdown"]}}),
            ("firecrawl_search", {"query": "limits"}),
            ("firecrawl_map", {"url": SITE}),
            ("firecrawl_check_crawl_status", {"id": "0199-crawl"}),
            ("firecrawl_check_crawl_status", {"id": "gone"}),
        ],
        "apis",
    ),
    "grafana": Api(
        grafana_api.ANSWERS,
        lambda url, _: servers.grafana(url),
        ['"greatest":178.5', '"columns":["line"', "dash7"],
        [
            ("query_prometheus", {"startTime": "now-2h", "endTime": "now", **METRICS}),
            ("query_loki_logs", {"datasourceUid": "loki1", "logql": "{}", "limit": 100}),
            ("search_dashboards", {"query": "requests"}),
            ("list_datasources", {}),
            ("get_dashboard_by_uid", {"uid": "dash1"}),
            ("get_dashboard_by_uid", {"uid": "gone"}),
        ],
        "grafana",
    ),
    "supabase": Api(
        supabase_api.ANSWERS,
        lambda url, _: servers.supabase(url),
        ["SO-000007", "</untrusted-data-", "0199a1b2-0007", "own rows 23"],
        [
            ("execute_sql", {"query": "select * from orders"}),
            ("query_logs", {"sql": "select * from postgres_logs"}),
            ("get_advisors", {"type": "performance"}),
            ("get_advisors", {"type": "security"}),
        ],
        "apis",
    ),
    "serena": Api(
        {},
        lambda _, folder: servers.serena(lamps(folder / "project"), folder),
        [f"Lamp{n}/price" for n in range(20)] + [f"lamp_{n}.py" for n in range(20)],
        [
            ("find_symbol", {"name_path_pattern": "price", "include_body": False}),
            ("find_symbol", {"name_path_pattern": "Lamp", "substring_matching": True, "depth": 1}),
            ("find_referencing_symbols", {"name_path": "Lamp", "relative_path": "base.py"}),
            ("search_for_pattern", {"substring_pattern": "class Lamp"}),
            ("list_dir", {"relative_path": ".", "recursive": True}),
            ("find_symbol", {"name_path_pattern": "zebra"}),
        ],
        "serena",
    ),
}


def lamps(project: Path) -> Path:
    """Write a project of a class and twenty of its subclasses."""
    project.mkdir()
    method = "    def price(self) -> int:\n        return 1\n"
    (project / "base.py").write_text(f"class Lamp:\n{method}")
    for number in range(20):
        lamp = f"class Lamp{number}(Lamp):\n    watts = {number}\n\n{method}"
        (project / f"lamp_{number}.py").write_text(f"from base import Lamp\n\n\n{lamp}")
    return project


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs(api.part)) for name, api in APIS.items()]
)
def test_the_rules_for_a_server_fit_it_and_keep_ids_names_and_states(
    name: str, tmp_path: Path
) -> None:
    api = APIS[name]
    with web_api(api.answers) as url, ruled(name, api.command(url, tmp_path)) as server:
        answers = "\n".join(server.call(tool, **arguments) for tool, arguments in api.calls)
    assert [each for each in api.excerpts if each not in answers] == []
    assert server.before > 1.4 * server.after
