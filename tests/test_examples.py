"""Runs the examples end to end with the official client, and holds each to its promises."""

import re
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.faults.scale import scaled
from tests.python_client import Mode, PythonClient, System, reaching, within
from tests.serving import FRONTS
from tests.wrapped import ROOT, Result, texts

EXAMPLES = ROOT / "examples"
NAMED_IN_README = ("examples", "agentdata", "agentdata_http", "codebase", "satori")


class Example(System):
    """A running example: a client in front of the proxy, and one of the server itself."""

    def __init__(self, client: PythonClient, direct: PythonClient, log: Path) -> None:
        super().__init__(client, log)
        self.direct = direct
        self.sizes: list[int] = []

    def call(self, tool: str, **arguments: Any) -> Result:
        """Call a tool, and note how long the answer is for a model."""
        result = super().call(tool, **arguments)
        self.sizes.append(sum(len(text.encode()) for text in texts(result)))
        return result

    def original_result(self) -> Result:
        """Repeat the last call that reached the server; return its own result."""
        last = self.calls()[-1]
        return self.direct.call(last["tool"], last["arguments"])

    def before(self) -> Any:
        """Return the document that the server sent last."""
        return orjson.loads(texts(self.original_result())[0])


ONCE = """
version: 1
rules:
  - tools: bulk_delete_files
    arguments: {limit: {default: 100}}
    response: [{paginate: {at: deleted, limit: 10, arguments: {limit: rows, offset: row}}}]
"""
WHOLE = ("--budget", "off")  # tools without a rule answer at any length
SCRIPTS = ("fullsync", "obsidian")
# The names that the scripts of the servers define.
FULLSYNC, OBSIDIAN = (runpy.run_path(str(EXAMPLES / name / "server.py")) for name in SCRIPTS)
FILES = {"vault": 50_000, "small": 5_000, "once": 2000}


def index(folder: Path) -> Any:
    """Return the index of the document-sync server, whose file lies in a folder."""
    return FULLSYNC["Index"](folder, 8016, "full")


class Running:
    """Everything that runs by one transport: started at its first use."""

    def __init__(self, transport: str, folder: Path, stack: ExitStack) -> None:
        self._transport = transport
        self._folder = folder
        self._stack = stack
        self._examples: dict[tuple[str, Mode], Example] = {}

    def folder(self, name: str) -> Path:
        """Return the folder of a server."""
        return self._folder / name

    def example(self, name: str, mode: Mode = "auto") -> Example:
        """Return the example of a name, with a client that negotiates by `mode`."""
        if (name, mode) not in self._examples:
            self._examples[name, mode] = self._start(name, mode)
        example = self._examples[name, mode]
        example.sizes.clear()
        return example

    def _start(self, name: str, mode: Mode) -> Example:
        enter, folder = self._stack.enter_context, self.folder(name)
        folder.mkdir(exist_ok=True)
        example = "obsidian" if name in FILES else name
        options = ["--index-dir", str(folder)] if name == "fullsync" else []
        options += ["--files", str(FILES[name])] if name in FILES else []
        server = [sys.executable, str(EXAMPLES / example / "server.py"), *options]
        rules = EXAMPLES / example / "rules.yaml"
        if name == "once":
            rules = folder / "rules.yaml"
            rules.write_text(ONCE)
        elif name == "small":
            text = rules.read_text()
            rules = folder / "rules.yaml"
            rules.write_text(re.sub(r"(?m)^defaults: .*$", "defaults: {max_bytes: 5000}", text))
        log = folder / "calls.log"
        own = () if name in ("vault", "small") else WHOLE
        front = enter(FRONTS[self._transport]([*server, "--log", str(log)], [rules], folder, *own))
        if front.direct is not None:
            direct = reaching(front.direct, mode=mode)
        elif name == "fullsync":
            direct = within(FULLSYNC["serve"](index(folder), None), mode=mode)
        else:
            direct = within(OBSIDIAN["serve"](OBSIDIAN["vault_of"](FILES[name]), None), mode=mode)
        return Example(enter(front.connect(mode)), enter(direct), log)


Ways = Callable[[str], Running]


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    """Return a function that returns what runs by a transport; it goes on until the last test."""
    with ExitStack() as stack:
        yield cache(lambda way: Running(way, tmp_path_factory.mktemp("examples"), stack))


@pytest.fixture
def running(request: pytest.FixtureRequest, ways: Ways) -> Running:
    """Return the examples of one transport: stdio, unless a test is parametrised with each."""
    return ways(getattr(request, "param", "stdio"))


HTTP = pytest.param("http", marks=pytest.mark.long)
over_http_too = pytest.mark.parametrize("running", ["stdio", HTTP], indirect=True)


SUMMARY = [
    "status", "runId", "startedAt", "updatedAt", "completedAt", "rootFolderId", "lastError",
    "foldersVisited", "foldersPending", "documentsDiscovered", "documentsIndexed", "contentSynced",
    "contentFailed", "contentUnsupported", "chromaUpsertedMetadataRecords", "chromaUpsertedChunks",
]  # fmt: skip
VERBATIM = SUMMARY[:7]
ARRAYS = [
    "folderQueue", "visitedFolderIds", "discoveredFileIds", "processedContentFileIds",
    "failedFileIds", "unsupportedFileIds",
]  # fmt: skip
PEERS = ["documentCount", "indexDir", "progressPath", "nextRecommendedCall"]

Sync = Callable[..., Example]


@pytest.fixture
def sync(running: Running) -> Sync:
    """Return a function that puts the run of the document-sync server in a state."""

    def start(state: str, mode: Mode = "legacy") -> Example:
        example = running.example("fullsync", mode)
        # The run is in a file; a server that starts writes it anew.
        index(running.folder("fullsync")).begin(state)
        return example

    return start


@pytest.mark.parametrize("state", ["idle", "running", "paused", "complete", "failed"])
def test_progress_of_any_size_becomes_a_summary_of_sixteen_keys(state: str, sync: Sync) -> None:
    example = sync(state)
    after, before = example.document("roxtra_index_full_sync_status"), example.before()
    summary, progress = after["progressSummary"], before["progress"]
    assert list(summary) == SUMMARY
    assert summary == {name: progress[name] for name in VERBATIM} | progress["counters"]
    assert list(after) == ["progressSummary", *PEERS]
    assert {name: after[name] for name in PEERS} == {name: before[name] for name in PEERS}
    assert (after["nextRecommendedCall"] is None) == (state == "complete")
    text = texts(example.original_result())[0]
    assert example.sizes == [len(orjson.dumps(after))]
    assert example.sizes[0] < 2_000
    assert not any(name in orjson.dumps(after).decode() for name in ARRAYS)
    if state == "running":
        assert len(text) > 490_000
        assert len(progress["folderQueue"]) > 3_200
        assert len(text) / example.sizes[0] > 100
    elif state != "idle":
        assert len(text) / example.sizes[0] > 100


@pytest.mark.parametrize(
    ("running", "mode"),
    [("stdio", "legacy"), pytest.param("http", "2026-07-28", marks=pytest.mark.long)],
    indirect=["running"],
)
def test_all_else_of_the_document_sync_is_as_the_server_has_it(mode: Mode, sync: Sync) -> None:
    example = sync("paused", mode=mode)
    listed = example.client.tools()
    own = example.direct.tools()
    assert {name: tool.input_schema for name, tool in listed.items()} == {
        name: tool.input_schema for name, tool in own.items()
    }
    for tool, arguments in [
        ("roxtra_search", {"query": "instruction"}),
        ("roxtra_document_text", {"file_id": "10007"}),
        ("roxtra_index_manage", {"action": "resume"}),
        ("roxtra_index_manage", {"action": "pause"}),
        ("roxtra_index_manage", {"action": "no such action"}),
    ]:
        result = example.call(tool, **arguments)
        assert result["content"] == example.original_result()["content"]
        assert result["isError"] == (arguments.get("action") == "no such action")
    result = example.call("roxtra_index_full_sync_status")
    meta = example.original_result().get("_meta")
    assert result.get("_meta") == meta


def test_no_call_gets_the_arrays_back_and_the_file_keeps_them(sync: Sync) -> None:
    example = sync("running")
    plain = example.document("roxtra_index_full_sync_status")
    for name, value in [("view", "progress"), ("limit", 10_000), ("full", True), ("offset", 1)]:
        result = example.call("roxtra_index_full_sync_status", **{name: value})
        assert orjson.loads(texts(result)[0]) == plain
    document = orjson.loads(Path(plain["progressPath"]).read_bytes())
    assert [len(document[name]) for name in ARRAYS[:3]] == [3207, 4809, 41357]


LONG = "Journal 📓/Everything.md"


@pytest.fixture
def vault(running: Running) -> Example:
    """Start the vault of fifty thousand notes; no test of it changes the vault."""
    return running.example("vault")


def pages(example: Example, tool: str, at: str, arguments: dict[str, Any]) -> list[Any]:
    """Walk every page of a call, and check what each says of itself; return all elements."""
    rows: list[Any] = []
    while True:
        window = {"offset": len(rows)} if rows else {}
        page, pagination = paged(example, tool, at, arguments | window)
        assert pagination["offset"] == len(rows)
        assert pagination["returned"] == len(page)
        rows += page
        assert pagination["hasMore"] == (len(rows) < pagination["total"])
        assert pagination["nextOffset"] == (len(rows) if pagination["hasMore"] else None)
        if not pagination["hasMore"]:
            return rows


def paged(example: Example, tool: str, at: str, arguments: dict[str, Any]) -> tuple[list[Any], Any]:
    """Call a tool; return its page and what that says of itself: within, or beside an array."""
    document, *beside = map(orjson.loads, texts(example.call(tool, **arguments)))
    if not at:
        [pagination] = beside
        return document, pagination
    assert not beside
    return document[at], document["pagination"]


def windows(example: Example, tool: str, arguments: dict[str, Any], at: str = "") -> str:
    """Walk every window of a call, and check what each says of itself; return the text."""
    joined_text = ""
    while True:
        window = {"startIndex": len(joined_text)} if joined_text else {}
        result = example.call(tool, **arguments | window)
        document = orjson.loads(texts(result)[0]) if at else {}
        text = document[at] if at else texts(result)[0]
        truncation = document["truncation"] if at else orjson.loads(texts(result)[1])
        end, total = len(joined_text) + len(text), truncation["totalLength"]
        assert end == min(len(joined_text) + 10_000, total)
        assert truncation == {
            "truncated": True, "totalLength": total, "startIndex": len(joined_text),
            "endIndex": end, "hasMore": end < total,
        } | ({"nextIndex": end} if end < total else {})  # fmt: skip
        joined_text += text
        if end == total:
            return joined_text


def calls_during(example: Example, action: Callable[[], Any]) -> list[dict[str, Any]]:
    """Return the calls that reached the server while `action` ran."""
    before = len(example.calls())
    action()
    return example.calls()[before:]


@over_http_too
def test_pages_of_fifty_thousand_files_give_the_whole_list(vault: Example) -> None:
    vault.sizes.clear()
    first = vault.document("list_vault_files")
    assert len(first["files"]) == 100
    assert first["pagination"] == {
        "total": 50_000, "offset": 0, "limit": 100, "returned": 100, "hasMore": True,
        "nextOffset": 100,
    }  # fmt: skip
    whole = vault.before()["files"]
    assert len(texts(vault.original_result())[0].encode()) > 5_000_000
    files: list[Any] = []
    calls = calls_during(
        vault, lambda: files.extend(pages(vault, "list_vault_files", "files", {"limit": 1000}))
    )
    assert files == whole
    assert calls == [{"tool": "list_vault_files", "arguments": {}}]
    assert max(vault.sizes) <= 50_000


@pytest.mark.parametrize(
    ("tool", "arguments", "at"),
    [
        ("get_vault_file", {"path": LONG, "format": "json"}, "content"),
        ("get_active_file", {}, ""),
        ("get_vault_file", {"path": LONG}, ""),
        ("vault", {"operation": "read", "path": LONG}, ""),
    ][: scaled(2, 4)],
)
def test_windows_of_a_note_of_a_megabyte_give_the_whole_note(
    tool: str, arguments: dict[str, Any], at: str, vault: Example
) -> None:
    notes = []
    calls = calls_during(vault, lambda: notes.append(windows(vault, tool, arguments, at)))
    original = texts(vault.original_result())[0]
    whole = orjson.loads(original)[at] if at else original
    assert notes == [whole]
    assert len(whole.encode()) > 1_000_000
    assert calls == [{"tool": tool, "arguments": arguments}]


@pytest.mark.parametrize(
    ("tool", "arguments", "at", "limit"),
    [
        ("search_vault_simple", {"query": "migration"}, "", 20),
        ("vault", {"operation": "list", "folder": "Work/2019/"}, "files", 100),
        ("discover", {}, "folders", 100),
        ("search_vault", {"tag": "idea"}, "", 50),
        ("vault", {"operation": "search", "query": "roadmap"}, "", 20),
    ][: scaled(3, 5)],
)
def test_lists_come_in_pages_that_give_all_of_it(
    tool: str, arguments: dict[str, Any], at: str, limit: int, vault: Example
) -> None:
    _, pagination = paged(vault, tool, at, arguments)
    assert pagination["returned"] == pagination["limit"] == limit
    rows: list[Any] = []
    larger = arguments | {"limit": 10 * limit}
    calls = calls_during(vault, lambda: rows.extend(pages(vault, tool, at, larger)))
    original = vault.before()
    assert rows == (original if isinstance(original, list) else original[at])
    assert calls == [{"tool": tool, "arguments": arguments}]


def test_results_without_need_of_change_are_untouched(vault: Example) -> None:
    for more in ({}, {"startIndex": 5_000}, {"maxLength": 100}):
        result = vault.call("fetch", url="https://example.org/", **more)
        assert result["content"] == vault.original_result()["content"]
        assert vault.calls()[-1]["arguments"] == {"url": "https://example.org/"} | more
    result = vault.call("get_vault_file", path="none.md")
    assert result["isError"]
    assert result["content"] == vault.original_result()["content"]
    result = vault.call("list_vault_files", colour="red")
    assert texts(result) == texts(vault.original_result())
    assert result["isError"]


def test_descriptions_explain_the_pages_and_nothing_new_must_be_given(vault: Example) -> None:
    listed = vault.client.tools()
    added = {
        "list_vault_files": {"limit", "offset", "pattern"},
        "get_vault_file": {"maxLength", "startIndex"},
        "get_active_file": {"maxLength", "startIndex"},
        "search_vault_simple": {"limit", "offset"},
        "search_vault": {"limit", "offset"},
        "vault": {"limit", "offset", "maxLength", "startIndex"},
        "active_file": {"maxLength", "startIndex"},
        "discover": {"limit", "offset"},
    }
    for name, tool in vault.direct.tools().items():
        now = listed[name]
        before, after = tool.input_schema, now.input_schema
        assert after.get("required") == before.get("required")
        new = set(after["properties"]) - set(before["properties"]) - {"view"}
        assert new == added.get(name, set())
        description = now.description or ""
        assert description.startswith(tool.description or "")
        assert ("hasMore" in description) == (name in added or name == "vault_api")
    nested = listed["vault_api"].input_schema["properties"]["params"]["properties"]
    assert {"limit", "offset", "maxLength", "startIndex"} <= set(nested)
    smart = listed["search_vault_smart"].input_schema["properties"]["filter"]["properties"]
    assert smart["limit"]["default"] == 20
    assert listed["bulk_delete_files"].input_schema["properties"]["limit"]["default"] == 50


# Calls that do not say how much they want; the server has much more for each.
ORDINARY: list[tuple[str, dict[str, Any]]] = [
    ("list_vault_files", {}),
    ("list_vault_files", {"folder": "Work/"}),
    ("get_vault_file", {"path": LONG}),
    ("get_vault_file", {"path": LONG, "format": "json"}),
    ("get_active_file", {}),
    ("search_vault_simple", {"query": "migration"}),
    ("search_vault", {"tag": "idea"}),
    ("search_vault_smart", {"query": "budget"}),
    ("vault", {"operation": "list"}),
    ("vault", {"operation": "read", "path": LONG}),
    ("vault", {"operation": "search", "query": "roadmap"}),
    ("vault_api", {"operation": "list"}),
    ("vault_api", {"operation": "read", "params": {"path": LONG}}),
    ("vault_api", {"operation": "search", "params": {"query": "roadmap"}}),
    ("active_file", {"operation": "read"}),
    ("discover", {}),
    ("fetch", {"url": "https://example.org/"}),
]


def test_an_answer_is_below_ten_kilobytes_on_average_and_below_fifty_always(vault: Example) -> None:
    vault.sizes.clear()
    for tool, arguments in ORDINARY:
        after = texts(vault.call(tool, **arguments))[0]
        before = texts(vault.original_result())[0]
        # A client that knows nothing of pages finds everything in its old place.
        if before[:1] in "{[":
            assert is_within(orjson.loads(before), orjson.loads(after)), (tool, arguments)
        else:
            assert is_within(before, after), (tool, arguments)
    assert sum(vault.sizes) / len(vault.sizes) < 10_000
    assert max(vault.sizes) < 13_000  # 10,000 characters, some of which take several bytes
    vault.sizes.clear()
    for tool, arguments in (
        ("list_vault_files", {"limit": 1000}),
        ("get_vault_file", {"path": LONG, "maxLength": 100_000}),
        ("search_vault", {"tag": "idea", "limit": 500}),
    ):
        vault.call(tool, **arguments)
    assert all(40_000 < size <= 50_000 for size in vault.sizes)


def test_one_line_of_the_rules_makes_answers_of_five_kilobytes_that_fit_together(
    running: Running,
) -> None:
    small = running.example("small")
    for tool, arguments in ORDINARY[:-1]:  # the server itself has windows of 5 KB for `fetch`
        small.call(tool, **arguments)
    assert max(small.sizes) <= 5_000 < 1.1 * sum(small.sizes) / len(small.sizes)
    files = pages(small, "list_vault_files", "files", {"folder": "Work/2019/", "limit": 1000})
    assert files == small.before()["files"]
    text, has_more = "", True
    while has_more and len(text) < scaled(200_000, 2_000_000):
        part, more = texts(small.call("get_active_file", maxLength=100_000, startIndex=len(text)))
        has_more = orjson.loads(more)["hasMore"]
        text += part
    whole = texts(small.original_result())[0]
    assert whole.startswith(text)
    assert has_more == (len(text) < len(whole))
    assert max(small.sizes) <= 5_000


def is_within(before: Any, after: Any) -> bool:
    """Return True if all that is left of `before` has its name and its type, and nothing moved."""
    if isinstance(before, dict):
        members = isinstance(after, dict) and before.keys() <= after.keys()
        return members and all(is_within(before[name], after[name]) for name in before)
    if isinstance(before, list):
        begins = isinstance(after, list) and bool(after) == bool(before)
        return begins and all(map(is_within, before, after))
    if isinstance(before, str):
        return isinstance(after, str) and before.startswith(after)
    return bool(before == after)


def test_a_tool_with_an_effect_runs_once_however_many_pages_are_read(running: Running) -> None:
    example = running.example("once")
    there = example.document("list_vault_files", folder="Work/")["files"]
    names: list[str] = []

    def delete() -> None:
        more = True
        while more:
            window = {"row": len(names)} if names else {}
            page = example.document("bulk_delete_files", folder="Work/", **window)
            names.extend(page["deleted"])
            more = page["pagination"]["hasMore"]

    calls = calls_during(example, delete)
    assert names == there[:100]
    assert calls == [{"tool": "bulk_delete_files", "arguments": {"folder": "Work/", "limit": 100}}]


@pytest.mark.long
@pytest.mark.parametrize("running", ["http"], indirect=True)
def test_a_result_too_large_for_clients_of_the_handshake_arrives_in_pages(running: Running) -> None:
    """Over HTTP, the official client refuses an event of more than a MiB."""
    vault = running.example("vault", "legacy")
    assert len(vault.document("list_vault_files")["files"]) == 100
    assert paged(vault, "search_vault", "", {"tag": "idea"})[1]["hasMore"]
    [text, more] = texts(vault.call("get_vault_file", path=LONG))
    assert len(text) == orjson.loads(more)["endIndex"] == 10_000


def test_every_case_that_the_readme_names_is_there() -> None:
    names = set(re.findall(r"`(test_\w+)`", (EXAMPLES / "README.md").read_text()))
    files = [Path(__file__).with_name(f"test_{name}.py") for name in NAMED_IN_README]
    there = {name for file in files for name in re.findall(r"^def (\w+)", file.read_text(), re.M)}
    assert names
    assert names <= there
