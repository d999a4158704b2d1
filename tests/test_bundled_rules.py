"""The bundled rule files against the running servers: they fit, and what a call needs stays."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import orjson
import pytest

from proxy.cli import main
from proxy.cli.explain import explained
from proxy.document.paths import matches
from proxy.ruleset import selection
from proxy.ruleset.rule import RuleSet
from proxy.testing.exchange import recorded
from proxy.testing.play import Replay
from tests import servers
from tests.servers import (
    atlassian_api,
    firecrawl_api,
    grafana_api,
    kubernetes_api,
    sentry_api,
    slack_api,
    supabase_api,
)
from tests.servers.install import has
from tests.servers.web_api import certificate, web_api
from tests.wire import Wire

pytestmark = pytest.mark.usefixtures("servers")

BUDGET = 8_000
SHOP = Path(__file__).parent / "servers" / "shop.html"
CHROMIUM = shutil.which("chromium") or ""


def needs(part: str) -> pytest.MarkDecorator:
    """Skip a test whose server is large and not installed."""
    return pytest.mark.skipif(not has(part), reason="`make rules` installs it")


class Answer(NamedTuple):
    """The text that a model reads, and how many times smaller it is than the server's."""

    text: str
    reduction: float


class Ruled:
    """A running server, called directly, and what a bundled file makes of its answers."""

    def __init__(self, wire: Wire, file: str, folder: Path) -> None:
        self._wire = wire
        self._folder = folder
        self._number = count(10)
        [self._file] = selection.load([file])
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

    def call(self, tool: str, **arguments: Any) -> Answer:
        """Call a tool, and return what a model gets of its answer under the rules."""
        replay = Replay(
            RuleSet((self._file,)), recorded(orjson.dumps(self.exchange(tool, **arguments)))
        )
        account = explained(replay)
        assert account["log"] == []
        assert account["rule"] is not None
        before, after = account["before"]["visible"], account["after"]["visible"]
        assert after <= BUDGET
        return Answer(replay.answer.text, before / after)

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
def ruled(file: str, command: list[str], env: Mapping[str, str] | None = None) -> Iterator[Ruled]:
    with TemporaryDirectory() as folder:
        with Wire(command, env) as wire:
            yield Ruled(wire, file, Path(folder))
        words = ["--rules", file, "--fail-on", "loss,rot,drift"]
        assert main(["replay", folder, *words]) == 0, "replay printed what has changed"


def shop(path: str) -> bytes:
    return b"" if path.endswith(".png") else SHOP.read_bytes()


@pytest.mark.skipif(not CHROMIUM, reason="no chromium")
def test_the_rules_for_playwright_keep_the_refs_of_clickable_elements(tmp_path: Path) -> None:
    with (
        web_api(shop) as url,
        ruled("playwright", servers.playwright(CHROMIUM, tmp_path)) as server,
    ):
        server.call("browser_navigate", url=f"{url}/")
        snapshot = server.call("browser_snapshot")
        assert snapshot.reduction > 5
        links = re.findall(r'link "Category \d+" \[ref=\w+\] /url: /c/\d+\n', snapshot.text)
        assert len(links) == 12
        assert re.search(r'textbox "Search" \[ref=\w+\]', snapshot.text)
        buttons = re.findall(r'button "Add to cart" \[ref=(\w+)\]', snapshot.text)
        clicked = server.call("browser_click", target=buttons[7])
        assert "- Page Title: Bought 7\n" in clicked.text
        for tool, arguments in (
            ("browser_console_messages", {"level": "debug"}),
            ("browser_network_requests", {"static": True}),
            ("browser_find", {"text": "lamp 3"}),
        ):
            assert "### Result" in server.call(tool, **arguments).text
        code = server.call("browser_evaluate", function="() => document.title")
        assert code.text == '### Result\n"Bought 7"'
        assert "Ref e99999 not found" in server.call("browser_click", target="e99999").text


@pytest.mark.skipif(not CHROMIUM, reason="no chromium")
def test_the_rules_for_chrome_devtools_keep_every_uid() -> None:
    with (
        web_api(shop) as url,
        ruled("chrome-devtools", servers.chrome_devtools(CHROMIUM)) as server,
    ):
        server.call("navigate_page", pageId=1, type="url", url=f"{url}/")
        snapshot = server.call("take_snapshot", pageId=1)
        assert snapshot.reduction > 4
        assert len(re.findall(r'uid=\w+ link "Category \d+" url=', snapshot.text)) == 12
        assert not re.search(r'image .* url=|"\s+"\n', snapshot.text)
        buttons = re.findall(r'uid=(\w+) button "Add to cart"', snapshot.text)
        clicked = server.call("click", pageId=1, uid=buttons[7], includeSnapshot=True)
        assert 'RootWebArea "Bought 7"' in clicked.text
        server.call("wait_for", pageId=1, text=["Lamp 3"])
        for tool in ("list_console_messages", "list_network_requests"):
            assert "Showing 1-5 of 6" in server.call(tool, pageId=1, pageSize=5).text
        error = server.call("click", pageId=1, uid="99_9999")
        assert error.text == 'Error: Element uid "99_9999" not found on page 1.'


@needs("atlassian")
def test_the_rules_for_atlassian_keep_keys_and_addresses() -> None:
    with (
        web_api(atlassian_api.answer) as url,
        ruled("atlassian", servers.atlassian(url)) as server,
    ):
        answer = server.call("jira_search", jql="project = PRO", limit=50)
        assert answer.reduction > 4
        assert [f'"PRO-{n}"' in answer.text for n in range(30)] == [True] * 30
        server.call("jira_search", jql="project = PRO", fields="*all", limit=3)
        server.call("jira_get_issue", issue_key="PRO-1", fields="*all")
        server.call("confluence_search", query="lamps")
        server.call("confluence_get_page", page_id="77")
        server.call("confluence_get_page_children", parent_id="77")
        server.call("jira_get_all_projects")


@needs("sentry")
def test_the_rules_for_sentry_keep_ids_and_addresses() -> None:
    shop = {"organizationSlug": "shop"}
    with web_api(sentry_api.answer) as url, ruled("sentry", servers.sentry(url)) as server:
        issues = server.call("search_issues", query="is:unresolved", limit=40, **shop)
        assert f"[SHOP-7]({url}/organizations/shop/issues/SHOP-7)" in issues.text
        assert "Status: unresolved; Users: 31; Events: 4812; " in issues.text
        events = server.call("search_events", query="level:error", limit=60, **shop)
        assert events.reduction > 3
        assert f"Issue URL: {url}/organizations/shop/issues/SHOP-7\n" in events.text
        for answer in (issues, events):
            assert "Next Steps" not in answer.text
            assert "Suggested presentation" not in answer.text
        issue = server.call(
            "get_sentry_resource", resourceType="issue", resourceId="SHOP-7", **shop
        )
        assert "KeyError: price of lamp 7" in issue.text
        server.call("search_issues", query="zebra", **shop)
        arguments = {"issueId": "SHOP-7", "query": "level:error", **shop}
        answer = server.call("execute_sentry_tool", name="search_issue_events", arguments=arguments)
        assert "eventID: 0f1e2d3c4b5a69788796a5b4c3d2e1f0\n" in answer.text
        tools = server.call("search_sentry_tools", query="events of an issue")
        assert '"search_issue_events"' in tools.text


def test_the_rules_for_kubernetes_keep_every_name_and_state(tmp_path: Path) -> None:
    pod = {"namespace": "shop", "name": "shop-007-7d9c"}
    with web_api(kubernetes_api.answer) as url:
        command = servers.kubernetes(url, tmp_path)
        with ruled("kubernetes", command) as server:
            for tool, arguments in (
                ("pods_list_in_namespace", {"namespace": "shop"}),
                ("resources_list", {"apiVersion": "v1", "kind": "Pod", "namespace": "shop"}),
            ):
                pods = server.call(tool, **arguments)
                assert pods.reduction > 3
                assert [f"shop-{n:03}-7d9c" in pods.text for n in range(120)] == [True] * 120
                assert "CrashLoopBackOff" in pods.text
            assert server.call("pods_list_in_namespace", namespace="none").text == "[]"
            for account in (
                server.call("pods_get", **pod),
                server.call("resources_get", apiVersion="v1", kind="Pod", **pod),
            ):
                assert "shop-007-7d9c" in account.text
            assert server.call("events_list", namespace="shop").reduction > 1.5
            assert server.call("events_list", namespace="none").text == "# No events found"
            assert server.call("pods_log", **pod).reduction > 2
            error = server.call("pods_get", namespace="nowhere", name="x")
            assert "could not find the requested resource" in error.text


@needs("apis")
def test_the_rules_for_firecrawl_keep_every_address_and_id() -> None:
    site = "https://docs.example.org"
    pages = {"formats": ["markdown"]}
    with web_api(firecrawl_api.ANSWERS) as url:
        env = os.environ | {"FIRECRAWL_API_URL": url, "FIRECRAWL_API_KEY": "fc-test"}
        with ruled("firecrawl", servers.firecrawl(), env) as server:
            page = orjson.loads(server.call("firecrawl_scrape", url=site).text)
            assert page["metadata"]["scrapeId"] == "0199-0001"
            assert page["truncation"]["hasMore"]
            results = server.call("firecrawl_search", query="limits", scrapeOptions=pages)
            assert results.reduction > 4
            document = orjson.loads(results.text)
            assert document["id"] == "0199-search"
            assert [each["metadata"]["scrapeId"] for each in document["data"]["web"]] == [
                f"0199-{number:04}" for number in range(5)
            ]
            server.call("firecrawl_search", query="limits")
            links = orjson.loads(server.call("firecrawl_map", url=site).text)
            assert links["links"]["columns"] == ["url", "title", "description"]
            assert links["pagination"]["total"] == 150
            crawl = server.call("firecrawl_check_crawl_status", id="0199-crawl")
            assert crawl.reduction > 6
            assert len(orjson.loads(crawl.text)["data"]) == 12
            error = server.call("firecrawl_check_crawl_status", id="gone")
            assert "Request failed with status code 404" in error.text


@needs("grafana")
def test_the_rules_for_grafana_keep_the_course_of_series_and_every_line() -> None:
    prometheus = {"datasourceUid": "prom1", "expr": "rate(http_requests_total[5m])"}
    prometheus |= {"startTime": "now-2h", "endTime": "now"}
    with ExitStack() as stack:
        env = os.environ | {"GRAFANA_URL": stack.enter_context(web_api(grafana_api.ANSWERS))}
        server = stack.enter_context(ruled("grafana", servers.grafana(), env))
        series = server.call("query_prometheus", stepSeconds=60, **prometheus)
        assert series.reduction > 2.5
        for each in orjson.loads(series.text)["data"]:
            assert (each["least"], each["greatest"], each["points"]) == (0, 178.5, 120)
        logs = server.call("query_loki_logs", datasourceUid="loki1", logql="{}", limit=100)
        assert logs.reduction > 1.8
        assert orjson.loads(logs.text)["data"]["columns"] == ["timestamp", "line", "labels"]
        document = orjson.loads(server.call("search_dashboards", query="requests").text)
        assert document["dashboards"]["rows"][7][0] == "dash7"
        server.call("list_datasources")
        board = orjson.loads(server.call("get_dashboard_by_uid", uid="dash1").text)
        assert "canEdit" not in board["meta"]
        assert "404" in server.call("get_dashboard_by_uid", uid="gone").text


@needs("apis")
def test_the_rules_for_slack_keep_every_message_and_its_ids(tmp_path: Path) -> None:
    own = certificate(tmp_path, "slack.com", "shop.slack.com")
    team = {"channel_id": "#team-1"}
    with (
        web_api(slack_api.answer, own) as url,
        ruled("slack", servers.slack(url, own, tmp_path)) as server,
    ):
        channels = server.call("channels_list", channel_types="public_channel")
        assert channels.reduction > 2
        assert orjson.loads(channels.text)["pagination"]["total"] == 60
        assert "C00000059" in channels.text
        history = server.call("conversations_history", limit="45", **team)
        assert history.reduction > 1.5
        messages = orjson.loads(history.text)
        assert messages["pagination"]["total"] == 45
        assert messages["cursor"] == "bmV4dF90czoxNzYwNDAwMDAw"
        assert "MsgID" in messages["messages"]["columns"]
        assert messages["messages"]["rows"][1][-1] == "F00001 (a.log)"
        replies = server.call("conversations_replies", thread_ts="1760400000.000000", **team)
        assert "Message 2: the build of release 2 is green" in replies.text
        assert "xoxp token: scanned" in server.call("conversations_unreads").text
        matches = server.call("conversations_search_messages", search_query="green", limit=45)
        assert orjson.loads(matches.text)["pagination"]["total"] == 45
        assert "ann@example.org" in server.call("users_search", query="ann").text
        assert "No users found" in server.call("users_search", query="zebra").text
        assert '"S01"' in server.call("usergroups_list").text
        error = server.call("conversations_history", channel_id="#gone")
        assert error.text == 'channel "#gone" not found'


@needs("apis")
def test_the_rules_for_supabase_keep_every_row_inside_the_boundaries() -> None:
    boundary = re.compile(r"<untrusted-data-[0-9a-f-]+>")
    with web_api(supabase_api.ANSWERS) as url, ruled("supabase", servers.supabase(url)) as server:
        rows = server.call("execute_sql", query="select * from orders")
        assert rows.reduction > 1.7
        assert len(boundary.findall(rows.text)) == 3
        assert "SO-000007" in rows.text
        lines = server.call("query_logs", sql="select * from postgres_logs")
        assert lines.reduction > 1.4
        assert "0199a1b2-0007" in lines.text
        advice = server.call("get_advisors", type="performance")
        assert advice.reduction > 1.2
        assert "own rows 23" in advice.text
        server.call("get_advisors", type="security")


@needs("apis")
@needs("serena")
def test_the_rules_for_serena_keep_every_place_of_a_symbol(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    method = "    def price(self) -> int:\n        return 1\n"
    (project / "base.py").write_text(f"class Lamp:\n{method}")
    for number in range(20):
        lamp = f"class Lamp{number}(Lamp):\n    watts = {number}\n\n{method}"
        (project / f"lamp_{number}.py").write_text(f"from base import Lamp\n\n\n{lamp}")
    with ruled("serena", servers.serena(project, tmp_path)) as server:
        symbols = server.call("find_symbol", name_path_pattern="price", include_body=False)
        assert symbols.reduction > 1.5
        assert [f"Lamp{n}/price" in symbols.text for n in range(20)] == [True] * 20
        server.call("find_symbol", name_path_pattern="Lamp", substring_matching=True, depth=1)
        base = {"relative_path": "base.py"}
        users = server.call("find_referencing_symbols", name_path="Lamp", **base)
        assert users.reduction > 1.4
        assert [f"lamp_{n}.py" in users.text for n in range(20)] == [True] * 20
        server.call("search_for_pattern", substring_pattern="class Lamp")
        server.call("list_dir", relative_path=".", recursive=True)
        assert '"symbols":[]' in server.call("find_symbol", name_path_pattern="zebra").text
