"""Views through the wrapper: the official SDK takes their answers, and dear ones end soon."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from threading import Thread
from typing import Any

import pytest

from tests.benchmarks import views
from tests.faults.scale import scaled
from tests.plain_server import IMPORT
from tests.python_client import connected
from tests.wrapped import ROOT, wrapped

SERVER = f"""
{IMPORT}
from tests.benchmarks.views import rows
TOOLS = [
    {{"name": name, "inputSchema": {{"type": "object"}}, "annotations": {{"readOnlyHint": True}}}}
    for name in ("large", "small")
]
LARGE = rows().decode()
def call(name, arguments):
    return {{"content": [{{"type": "text", "text": LARGE if name == "large" else "small"}}]}}
serve("rows", "1", TOOLS, call)
"""
DEAR = f"[{', '.join(['count_by(@, &by.login)'] * 60)}]"


class Wrapper:
    """A wrapped server, and when each of its answers came."""

    def __init__(self, folder: Path) -> None:
        script = folder / "server.py"
        script.write_text(SERVER)
        command = wrapped([sys.executable, str(script)])
        self.process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        self.answers: dict[int, tuple[float, dict[str, Any]]] = {}
        self._ids = 0
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            self.answers[message["id"]] = (time.monotonic(), message)

    def close(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self.process.wait()

    def send(self, method: str, **params: Any) -> int:
        assert self.process.stdin is not None
        self._ids += 1
        message = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self._ids

    def call(self, tool: str, **arguments: Any) -> int:
        return self.send("tools/call", name=tool, arguments=arguments)

    def wait(self, id: int) -> dict[str, Any]:
        deadline = time.monotonic() + 60
        while id not in self.answers:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return self.answers[id][1]


@pytest.fixture
def wrapper(tmp_path: Path) -> Iterator[Wrapper]:
    wrapper = Wrapper(tmp_path)
    wrapper.wait(
        wrapper.send(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "claude-code", "version": "2"},
        )
    )
    wrapper.wait(wrapper.send("tools/list"))
    wrapper.wait(wrapper.call("large"))
    yield wrapper
    wrapper.close()


@pytest.mark.slow
def test_other_calls_are_answered_while_a_dear_view_is_evaluated(wrapper: Wrapper) -> None:
    view = wrapper.call("large", view=DEAR)
    small = [wrapper.call("small") for _ in range(5)]

    answer = wrapper.wait(view)["result"]["content"][0]["text"]
    assert "takes too much work; ask a part first, as in [0:20] | ..., or write" in answer
    assert all(wrapper.wait(id)["result"] for id in small)
    assert all(wrapper.answers[id][0] < wrapper.answers[view][0] for id in small)


@pytest.mark.slow
def test_a_view_is_answered_though_the_client_has_sent_its_last_message(wrapper: Wrapper) -> None:
    view = wrapper.call("large", view=DEAR)
    assert wrapper.process.stdin is not None
    wrapper.process.stdin.close()

    assert "takes too much work" in json.dumps(wrapper.wait(view))
    assert wrapper.process.wait(20) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["text", "rows"])
def test_a_dear_view_takes_two_seconds_of_a_processor_at_most(kind: str) -> None:
    document = views.document(kind)
    # All of them: python -m tests.benchmarks.views
    for expression in views.VIEWS[kind][3 :: scaled(288, 36)]:
        # A busy machine makes the same work take somewhat longer.
        assert views.seconds(document, expression)[0] < 3, expression


def test_the_official_client_takes_an_object_as_the_answer_of_a_tool_that_returns_a_text(
    tmp_path: Path,
) -> None:
    server = [sys.executable, "-W", "ignore", str(ROOT / "tests" / "fixtures" / "sdk_server.py")]
    command = wrapped([*server, str(tmp_path / "log")], "--budget", "2000", "--ledger", "off")
    text = json.dumps([{"id": n, "name": f"name {n}"} for n in range(900)])
    with connected(command) as client:
        assert client.tools()["echo"].output_schema
        viewed = client.call("echo", {"text": text, "view": "[899]"})
        window = client.call("echo", {"text": "word " * 900, "view": "text[0:4]"})
    assert viewed["structuredContent"] == {"view": {"id": 899, "name": "name 899"}}
    assert window["structuredContent"]["result"] == "word"
