"""A first call with a view: it runs the tool once, or is refused with the words that help.

Official clients of both eras, over stdio and HTTP, before a server that counts its calls.
"""

import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.processes import until
from tests.faults.scale import scaled
from tests.python_client import Mode, PythonClient, connected, logged
from tests.serving import FRONTS, upstream
from tests.wrapped import texts, wrapped

SERVER = Path(__file__).parent / "fixtures" / "counting_server.py"
# The ways to the server, in turns by the eras: none of them looks at the version.
WAYS: tuple[tuple[str, Mode], ...] = (
    ("stdio", "legacy"),
    ("http", "2026-07-28"),
    ("http to a command", "legacy"),
    ("run URL", "2026-07-28"),
)
ANSWER = '{"view":7}'
FIRST = "call again without view first; an answer that is cut takes views for a while"


class Counting:
    """A server that counts, and ways to it; `calls` are the tools that ran, in order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "calls"
        self._ledger = folder / "ledger.sqlite3"
        self.command = [sys.executable, str(SERVER), str(self._file)]

    @property
    def calls(self) -> list[str]:
        return self._file.read_text().split() if self._file.exists() else []

    @property
    def log(self) -> list[str]:
        """The lines of the last wrapper's stderr."""
        return (self._folder / "log").read_text().splitlines()

    def wrapped(
        self, *options: str, mode: Mode = "legacy", environ: Sequence[str] = ()
    ) -> AbstractContextManager[PythonClient]:
        """Begin a session with a wrapper and a server of its own; `environ` is as for env(1)."""
        ledger = () if "--ledger" in options else ("--ledger", str(self._ledger))
        command = ["env", *environ, *wrapped(self.command, *ledger, *options)]
        return connected(logged(command, self._folder / "log"), mode=mode)

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Start the server's own HTTP; yield its URL."""
        with upstream(self.command, self._folder / "server.log") as origin:
            yield f"{origin}/mcp"

    def wrapped_url(
        self, url: str, *options: str, mode: Mode = "legacy"
    ) -> AbstractContextManager[PythonClient]:
        """Begin a session with a wrapper before a URL."""
        return connected(wrapped((), "--ledger", "off", *options, url)[:-1], mode=mode)

    @contextmanager
    def served(self, front: str, mode: Mode) -> Iterator[PythonClient]:
        """Begin a session by one of WAYS."""
        if front == "run URL":
            with self.listening() as url, self.wrapped_url(url, mode=mode) as client:
                yield client
            return
        with (
            FRONTS[front](self.command, [], self._folder, "--ledger", "off") as entered,
            entered.connect(mode) as client,
        ):
            yield client


@pytest.fixture
def server(tmp_path: Path) -> Counting:
    return Counting(tmp_path)


def look(client: PythonClient, tool: str, view: str = "rows[7].id", **more: Any) -> str:
    """Call a tool with a view; return the text of the answer."""
    [text, *_] = texts(client.call(tool, {"view": view, **more}))
    return text


def refusal(client: PythonClient, tool: str, **more: Any) -> str:
    result = client.call(tool, {"view": "rows[7].id", **more})
    assert result["isError"] is True
    [text] = texts(result)
    return text


@pytest.mark.parametrize(("front", "mode"), WAYS[: scaled(2, 4)])
def test_a_first_call_with_a_view_is_one_call_and_one_answer(
    server: Counting, front: str, mode: Mode
) -> None:
    with server.served(front, mode) as client:
        # Nobody has listed the tools.
        assert look(client, "plain") == ANSWER
        assert server.calls == ["plain"]
        assert look(client, "plain", "rows[8].id") == ANSWER.replace("7", "8")
        assert look(client, "reads") == ANSWER
        assert server.calls == ["plain", "reads"]
        text = refusal(client, "deletes")
        assert text == (
            "deletes declares destructiveHint, so it does not run just to show a part of its "
            f"answer; {FIRST}"
        )
        assert server.calls == ["plain", "reads"]
        client.call("deletes", {})
        assert look(client, "deletes") == ANSWER
        assert server.calls == ["plain", "reads", "deletes"]


MADE_BEFORE = (
    "this call was made before, and its answer is not kept (it expired, or was short, and then all "
    "of it was shown); plain does not run again just to show a part, since it declares neither "
    "readOnlyHint nor idempotentHint; " + FIRST
)


def test_a_view_does_not_repeat_a_call_of_another_session_of_the_user(
    server: Counting,
) -> None:
    with server.wrapped(mode="2026-07-28") as client:
        client.call("plain", {"query": "a"})
        assert look(client, "plain", query="b") == ANSWER
    with server.wrapped(mode="2026-07-28") as client:
        assert refusal(client, "plain", query="a") == MADE_BEFORE
        assert refusal(client, "plain", query="b") == MADE_BEFORE
        assert look(client, "reads") == ANSWER
        assert look(client, "plain", query="c") == ANSWER
    assert server.calls == ["plain", "plain", "reads", "plain"]


def test_the_log_says_how_the_sessions_of_a_sidecar_share_answers(
    server: Counting, tmp_path: Path
) -> None:
    with FRONTS["http to a command"](server.command, [], tmp_path, "--ledger", "off") as front:
        with front.connect("legacy") as client:
            client.call("plain", {})
        with front.connect("legacy") as client:
            assert refusal(client, "plain") == MADE_BEFORE
        sidecar = front.sidecar
        assert sidecar is not None
        until(lambda: "in `serve` by a token" in "\n".join(sidecar.messages()))


def test_with_a_store_a_later_session_looks_into_the_answer_of_an_earlier_one(
    server: Counting, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    with server.wrapped("--store", str(store)) as client:
        client.call("plain", {})
        client.call("deletes", {})
    with server.wrapped("--store", str(store)) as client:
        for tool in ("plain", "deletes"):
            # To start it may take a second: then the answer says how old it is.
            assert json.loads(look(client, tool))["view"] == 7
    assert server.calls == ["plain", "deletes"]
    assert store.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in store.iterdir()} == {0o600}


def test_a_store_is_shared_before_a_url_by_those_who_send_the_same_headers(
    server: Counting, tmp_path: Path
) -> None:
    store = ("--store", str(tmp_path / "store"))
    with server.listening() as url:
        with server.wrapped_url(url, *store, "--header", "X-Key: a") as client:
            client.call("deletes", {})
        with server.wrapped_url(url, *store, "--header", "X-Key: b") as client:
            assert "destructiveHint" in refusal(client, "deletes")
        with server.wrapped_url(url, *store, "--header", "X-Key: a") as client:
            assert look(client, "deletes") == ANSWER
    assert server.calls == ["deletes"]


def test_in_one_store_two_servers_do_not_get_each_others_answers(
    server: Counting, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Counting(tmp_path / "other")
    store = str(tmp_path / "store")
    with server.wrapped("--store", store) as client:
        client.call("deletes", {})
    with other.wrapped("--store", store) as client:
        assert "destructiveHint" in refusal(client, "deletes")
    assert other.calls == []


def test_an_account_of_the_environment_does_not_read_what_another_one_got(
    server: Counting, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    alice, bob = ["TOKEN=swordfish-1"], ["TOKEN=swordfish-2"]
    with server.wrapped("--store", str(store), environ=alice) as client:
        client.call("deletes", {})
        client.call("plain", {})
    with server.wrapped("--store", str(store), environ=bob) as client:
        assert "destructiveHint" in refusal(client, "deletes")
        # Nor is he told that she has made this call.
        assert look(client, "plain") == ANSWER
    assert server.calls == ["deletes", "plain", "plain"]
    # Another process of the same account, in another terminal.
    elsewhere = [*alice, "TERM=vt100", "SHLVL=7", "SSH_TTY=/dev/pts/9", "MCP_ABRIDGE_VERBOSE=1"]
    with server.wrapped("--store", str(store), environ=elsewhere) as client:
        for tool in ("deletes", "plain"):
            assert json.loads(look(client, tool))["view"] == 7
    assert server.calls == ["deletes", "plain", "plain"]
    files = [*store.iterdir(), *tmp_path.glob("ledger*")]
    texts_on_disk = [*(file.name for file in files), *(str(file.read_bytes()) for file in files)]
    assert not any("swordfish" in text for text in (*texts_on_disk, *server.log))


def test_a_call_of_one_account_is_not_taken_for_another_ones(server: Counting) -> None:
    with server.wrapped(environ=["TOKEN=a"], mode="2026-07-28") as client:
        client.call("plain", {})
    with server.wrapped(environ=["TOKEN=b"], mode="2026-07-28") as client:
        assert look(client, "plain") == ANSWER
    with server.wrapped(environ=["TOKEN=a"], mode="2026-07-28") as client:
        assert refusal(client, "plain") == MADE_BEFORE
    assert server.calls == ["plain", "plain"]


def test_an_account_that_is_named_finds_its_answers_in_any_environment(
    server: Counting, tmp_path: Path
) -> None:
    store = ("--store", str(tmp_path / "store"))
    with server.wrapped(*store, "--store-scope", "alice", environ=["RUN=1"]) as client:
        client.call("deletes", {})
    with server.wrapped(*store, environ=["RUN=2", "MCP_ABRIDGE_STORE_SCOPE=alice"]) as client:
        assert json.loads(look(client, "deletes"))["view"] == 7
    with server.wrapped(*store, "--store-scope", "bob", environ=["RUN=1"]) as client:
        assert "destructiveHint" in refusal(client, "deletes")
    with server.wrapped(*store, environ=["RUN=1"]) as client:
        assert "destructiveHint" in refusal(client, "deletes")
    with server.listening() as url:
        old, new = (("--header", f"Authorization: Bearer {token}") for token in ("old", "new"))
        with server.wrapped_url(url, *store, "--store-scope", "alice", *old) as client:
            client.call("deletes", {})
        with server.wrapped_url(url, *store, "--store-scope", "alice", *new) as client:
            assert json.loads(look(client, "deletes"))["view"] == 7
    assert server.calls == ["deletes", "deletes"]


def test_a_view_of_an_older_answer_says_how_old_it_is_of_a_tool_that_reads_after_a_write(
    server: Counting, tmp_path: Path
) -> None:
    store = str(tmp_path / "store")
    with server.wrapped("--store", store) as client:
        older, newer = ("plain", "typed", "reads"), "deletes"
        for tool in older:
            client.call(tool, {})
        time.sleep(5.1)
        assert json.loads(look(client, "reads")) == {"view": 7}
        client.call(newer, {})  # which may have changed what the others read
        documents = {tool: json.loads(look(client, tool)) for tool in (*older, newer)}
        for tool in older:
            age = documents[tool].pop("age")
            assert re.fullmatch(r"[5-9] s; call without view to run it again", age)
        assert documents == {tool: {"view": 7} for tool in documents}
