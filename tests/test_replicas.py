"""Two replicas behind nginx, as in examples/sidecar, that share their snapshots in a real Redis."""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import orjson
import pytest
from mcp_types import ElicitRequestParams, ElicitResult

from tests.conformance.suite import free_port, serving
from tests.python_client import Mode, PythonClient, reaching
from tests.redis_server import RedisServer, redis_server

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples" / "sidecar"
MODES: tuple[Mode, ...] = ("legacy", "2026-07-28")
ORDERS = 2000
SECONDS = 60


class Deployment:
    """Replicas at `replicas`, and nginx in front of them at `url`."""

    def __init__(self, redis: RedisServer, folder: Path) -> None:
        self.redis = redis
        self.folder = folder
        self.ports = free_port(), free_port()
        self.url = f"http://127.0.0.1:{free_port()}/mcp"
        self.server = free_port()

    @property
    def replicas(self) -> list[str]:
        return [f"http://127.0.0.1:{port}/mcp" for port in self.ports]

    def calls(self) -> list[dict[str, Any]]:
        """Return the calls that reached the server."""
        log = self.folder / "calls"
        return [orjson.loads(line) for line in log.read_text().splitlines()]

    def answered_by(self, at_least: int) -> list[int]:
        """Return which replica answered each request to nginx, once so many are in its log."""
        until = time.monotonic() + SECONDS
        while True:
            lines = (self.folder / "access.log").read_text().splitlines()
            if len(lines) >= at_least:
                return [self.ports.index(int(line.rpartition(":")[2])) for line in lines]
            assert time.monotonic() < until, lines

    def configured(self) -> Path:
        """Write the example's nginx.conf with the ports and folders of this run."""
        text = (FOLDER / "nginx.conf").read_text()
        replacements = {
            "replica-1:8808": f"127.0.0.1:{self.ports[0]}",
            "replica-2:8808": f"127.0.0.1:{self.ports[1]}",
            "listen 8080": f"listen {self.url.split('/')[2]}",
            "/tmp/": f"{self.folder}/",
            "/dev/stdout": f"{self.folder}/access.log",
            "/dev/stderr": "stderr",
        }
        for there, here in replacements.items():
            assert there in text
            text = text.replace(there, here)
        file = self.folder / "nginx.conf"
        file.write_text(text)
        return file


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        pytest.skip("nginx is not installed (on Debian and Ubuntu: apt install nginx-light)")
    folder = tmp_path_factory.mktemp("replicas")
    # If the tests run as root, so do the workers of nginx: nobody else may enter the folder.
    alone = "daemon off;" + (" user root;" if os.getuid() == 0 else "")
    with redis_server() as redis, ExitStack() as stack:

        def start(name: str, port: int, *command: str) -> None:
            log = folder / f"{name}.log"
            stack.enter_context(serving(command, port, log, os.environ | {"HOME": str(folder)}))

        current = Deployment(redis, folder)
        (folder / "calls").touch()
        server = [
            str(FOLDER / "server.py"),
            "--orders",
            str(ORDERS),
            "--log",
            str(folder / "calls"),
        ]
        start("server", current.server, sys.executable, *server, "--port", str(current.server))
        for port in current.ports:
            listen, rules = f"127.0.0.1:{port}", str(FOLDER / "rules.yaml")
            options = ["--listen", listen, "--rules", rules, "--store", redis.url]
            upstream = f"http://127.0.0.1:{current.server}/mcp"
            start(listen, port, sys.executable, "-m", "mcp_abridge", "serve", *options, upstream)
        here = ["-p", str(folder), "-c", str(current.configured()), "-e", "stderr", "-g", alone]
        start("nginx", int(current.url.split(":")[2].partition("/")[0]), nginx, *here)
        yield current


def page(client: PythonClient, month: str, offset: int, **more: Any) -> dict[str, Any]:
    """Return one page of a month that is closed, as text and structured content have it."""
    result = client.call("close_month", {"month": month, "offset": offset, **more})
    assert not result["isError"], result
    document: dict[str, Any] = result["structuredContent"]
    assert orjson.loads(result["content"][0]["text"]) == document
    assert document["pagination"]["offset"] == offset
    return document


def booked(month: str, run: int) -> list[dict[str, Any]]:
    """Return the bookings of a month by the n-th run of the tool."""
    return [
        {"id": f"{month}-{n:05}", "booking": f"{run}/{n}", "cents": n * 37 % 9901}
        for n in range(ORDERS)
    ]


def text_of(result: dict[str, Any]) -> str:
    text: str = result["content"][0]["text"]
    return text


@pytest.mark.parametrize("mode", MODES)
def test_pages_read_alternately_through_both_rejoin_exactly(
    mode: Mode, deployment: Deployment
) -> None:
    month = f"2026-01-{mode}"
    ran = len(deployment.calls())
    with reaching(deployment.url, mode=mode) as client:
        client.tools()
        first = page(client, month, 0)
        before = len(deployment.answered_by(1))
        pages = [first]
        while pages[-1]["pagination"]["hasMore"]:
            pages.append(page(client, month, pages[-1]["pagination"]["nextOffset"]))
        replicas = deployment.answered_by(before + len(pages) - 1)

    assert [order for each in pages for order in each["booked"]] == booked(month, first["run"])
    assert [len(each["booked"]) for each in pages] == [100] * (ORDERS // 100)
    # One call has reached the server, and the pages of it came from one replica and the other.
    assert deployment.calls()[ran:] == [{"tool": "close_month", "arguments": {"month": month}}]
    assert {replicas[at] for at in range(-10, 0)} == {0, 1}
    assert all(replicas[at] != replicas[at + 1] for at in range(-10, -1))


@pytest.mark.parametrize("mode", MODES)
def test_with_redis_stopped_in_the_middle_the_error_is_clear_and_other_calls_go_on(
    mode: Mode, deployment: Deployment
) -> None:
    month, redis = f"2026-03-{mode}", deployment.redis
    with reaching(deployment.url, mode=mode) as client:
        page(client, month, 0)
        page(client, month, 100)
        ran = len(deployment.calls())
        redis.stop()
        try:
            for _ in deployment.ports:
                result = client.call("close_month", {"month": month, "offset": 200})
                assert result["isError"]
                assert f"redis at 127.0.0.1:{redis.port}: " in text_of(result)
                assert text_of(result).endswith("; try again later")
            assert len(deployment.calls()) == ran
            for id in ("a", "b"):
                result = client.call("get_order", {"id": id})
                assert orjson.loads(text_of(result)) == {"id": id, "state": "open"}
            again = [page(client, f"{month}-{n}", 0) for n in range(2)]
            assert [each["pagination"]["total"] for each in again] == [ORDERS] * 2
        finally:
            redis.start()
        # Once both replicas have found it again, new pages fit together as before.
        until = time.monotonic() + SECONDS
        while True:
            first = page(client, month, 0)
            result = client.call("close_month", {"month": month, "offset": 100})
            if not result["isError"]:
                break
            assert time.monotonic() < until, result
        assert result["structuredContent"]["booked"] == booked(month, first["run"])[100:200]


def test_events_pass_through_nginx_one_by_one(deployment: Deployment) -> None:
    """The server goes on with its answer only when the client has answered an event of it."""
    questions = []

    async def agree(context: Any, params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content={"agreed": True})

    with reaching(deployment.url, mode="legacy", elicitation_callback=agree) as client:
        result = client.call("reopen_month", {"month": "2026-04"})

    assert questions == ["Open 2026-04 again?"]
    assert text_of(result) == "2026-04 is open"


def test_figures_are_not_shown_to_clients(deployment: Deployment) -> None:
    root = deployment.url.removesuffix("/mcp")
    with urlopen(f"{root}/readyz", timeout=SECONDS) as response:
        assert response.status == 200
    with pytest.raises(HTTPError) as caught:
        urlopen(f"{root}/metrics", timeout=SECONDS)
    with caught.value:
        assert caught.value.code == 404
