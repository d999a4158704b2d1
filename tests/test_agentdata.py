"""Holds the knowledge base of the examples to its promises, whichever way its list comes."""

import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import orjson
import pytest
from mcp.shared.exceptions import MCPError

from tests.faults.scale import scaled
from tests.python_client import Mode, PythonClient, System, within
from tests.serving import FRONTS, Front
from tests.wrapped import ROOT, texts

EXAMPLE = ROOT / "examples" / "agentdata"
SERVER = EXAMPLE / "server.py"
# The server that sends its list all at once, and the one that pages it by itself.
BEFORES = {
    "whole": ([], ["rules.yaml"]),
    "paged": (["--paged"], ["rules-paged.yaml", "rules.yaml"]),
}  # fmt: skip
FIELDS = ["document_id", "parent_id", "title", "tags", "revision"]
LONG = "knowledge/billing/metrics-1000"

Json = dict[str, Any]

# How the proxy stands before each: the command that it starts, or the server's own HTTP.
TRANSPORTS = ("stdio", "http")


class Base(System):
    """A running knowledge base, and a client in front of it."""

    def __init__(self, front: Front, client: PythonClient, log: Path, whole: bool) -> None:
        super().__init__(client, log)
        self.whole = whole
        self._front = front

    @contextmanager
    def again(self, mode: Mode) -> Iterator["Base"]:
        """Connect another client."""
        with self._front.connect(mode) as client:
            yield Base(self._front, client, self._log, self.whole)

    def walk(self, offset: int = 0, **arguments: Any) -> list[list[Json]]:
        """Return the items of each page from `offset` on; check what each says of itself."""
        pages: list[list[Json]] = []
        while True:
            page = self.document("list_documents", offset=offset, **arguments)
            assert list(page) == ["items", "count", "truncated", "next_offset"]
            assert page["count"] == len(page["items"])
            pages.append(page["items"])
            if not page["truncated"]:
                assert page["next_offset"] is None
                return pages
            offset += arguments.get("limit", 50)
            assert page["next_offset"] == offset


@pytest.fixture(scope="module", params=zip(TRANSPORTS, BEFORES, strict=True), ids="-".join)
def base(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Base]:
    """Start a knowledge base that no test changes."""
    transport, before = request.param
    options, rules = BEFORES[before]
    folder = tmp_path_factory.mktemp("base")
    server = [sys.executable, str(SERVER), "--log", str(folder / "calls.log"), *options]
    files = [EXAMPLE / name for name in rules]
    with (
        FRONTS[transport](server, files, folder, "--budget", "off") as front,
        front.connect("auto") as client,
    ):
        yield Base(front, client, folder / "calls.log", whole=before == "whole")


@pytest.fixture(scope="module")
def direct() -> Iterator[PythonClient]:
    """Connect to the server that sends everything at once, with nothing between."""
    script = runpy.run_path(str(SERVER))
    with within(script["serve"](script["Base"](), paged=False, log=None)) as client:
        yield client


@pytest.fixture(scope="module")
def rows(direct: PythonClient) -> list[Json]:
    """Return every row that the server has, by the bytes of the ids."""
    all_rows: list[Json] = listed(direct)
    return sorted(all_rows, key=lambda row: str(row["document_id"]).encode())


def listed(direct: PythonClient, **arguments: str) -> Any:
    [text] = texts(direct.call("list_documents", arguments))
    return orjson.loads(text)["items"]


def alive(rows: list[Json], prefix: str = "") -> list[Json]:
    """Return the items that a list of these rows should have."""
    defaults = {"title": "", "tags": [], "revision": 0}
    return [
        {name: defaults.get(name) if row.get(name) is None else row[name] for name in FIELDS}
        for row in rows
        if row["document_id"].startswith(prefix) and row["document_id"] and not row["deleted_at"]
    ]


def items_of(pages: list[list[Json]]) -> list[Json]:
    return [item for page in pages for item in page]


def test_the_data_are_as_they_should_be(rows: list[Json]) -> None:
    living = alive(rows)
    assert len(rows) == 5040
    assert [len(living), len(alive(rows, "knowledge/"))] == [2907, 2570]
    assert sum("_" in row["document_id"] for row in living) == 1184
    assert [row["deleted_at"] for row in rows if row["document_id"] == ""] == [None]
    for name in FIELDS[2:]:
        there = [row for row in rows if row["document_id"] and not row["deleted_at"]]
        assert {row.get(name, "missing") is None for row in there} == {True, False}
        assert {name in row for row in there} == {True, False}


def test_every_page_of_the_whole_list(base: Base, rows: list[Json]) -> None:
    pages = base.walk(limit=100)
    assert items_of(pages) == alive(rows)
    assert len(pages) == (30 if base.whole else 51)
    for item in items_of(pages):
        assert list(item) == FIELDS
        assert type(item["revision"]) is int


def test_a_large_folder_is_twenty_six_pages_of_a_hundred(base: Base, rows: list[Json]) -> None:
    calls = len(base.calls())
    pages = base.walk(prefix="knowledge/", limit=100)
    assert items_of(pages) == alive(rows, "knowledge/")
    assert len(pages) == 26
    assert len(base.calls()) - calls <= (1 if base.whole else 26)


def test_first_pages_in_a_row_cost_the_server_one_call(base: Base) -> None:
    calls = len(base.calls())
    pages = [base.document("list_documents", prefix="archive/", limit=9 + n) for n in range(3)]
    assert [page["items"][:9] for page in pages] == [pages[0]["items"][:9]] * 3
    assert len(base.calls()) - calls == (1 if base.whole else 3)


@pytest.mark.parametrize(
    "prefix", ["knowledge/billing/latency_", "projects/100%", "inbox/C:\\", "旅行/"]
)
def test_every_sign_of_a_prefix_means_itself_under_its_old_name_too(
    prefix: str, base: Base, rows: list[Json], direct: PythonClient
) -> None:
    pages = base.walk(prefix=prefix, limit=100)
    assert items_of(pages) == alive(rows, prefix)
    assert base.document("list_documents", path=prefix, limit=100)["items"] == pages[0]
    loosely = [row["document_id"] for row in listed(direct, prefix=prefix)]
    assert any(not id.startswith(prefix) for id in loosely) == any(wild in prefix for wild in "_%")
    assert "path" not in base.calls()[-1]["arguments"]


@pytest.mark.parametrize("offset", [0, 24, 49, 50, 99, 100, 9999])
def test_a_window_of_fifty_at_any_offset_twice_the_same(
    offset: int, base: Base, rows: list[Json]
) -> None:
    page = base.document("list_documents", offset=offset)
    expected = alive(rows)[offset : offset + 50]
    assert page["items"] == (expected if base.whole else alive(rows[offset : offset + 50]))
    assert base.document("list_documents", offset=offset) == page
    if not base.whole:
        assert base.calls()[-1]["arguments"] == {"limit": 50, "offset": offset}


@pytest.mark.parametrize("tool", ["get_document", "get_document_for_rewrite"])
@pytest.mark.parametrize("document_id", [LONG, "none"])
def test_a_document_is_never_truncated_and_a_missing_one_keeps_its_error(
    tool: str, document_id: str, base: Base, direct: PythonClient
) -> None:
    result = base.call(tool, document_id=document_id)
    assert result == direct.call(tool, {"document_id": document_id})
    [text] = texts(result)
    if document_id == LONG:
        assert len(text) > 400_000
    else:
        assert orjson.loads(text)["error"]["status"] == 404


def test_a_conflict_keeps_its_error_and_three_paths_are_three_items(
    base: Base, direct: PythonClient
) -> None:
    patch = {"document_id": LONG, "revision": 999, "old": "1", "new": "2"}
    result = base.call("patch_document", **patch)
    assert result == direct.call("patch_document", patch)
    assert orjson.loads(texts(result)[0])["error"]["status"] == 409
    paths = [LONG, "none", "knowledge/billing/backup-1145"]
    items = base.document("batch_read", paths=paths)["items"]
    assert [item["document_id"] for item in items] == paths
    assert len(items[0]["content"]) < 2_100
    [text] = texts(base.call("batch_read", paths=paths, full=True))
    assert [text] == texts(direct.call("batch_read", {"paths": paths}))


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"][: scaled(1, 3)])
def test_the_tools_are_the_servers_own_but_for_the_list_the_batch_and_the_retired_one(
    mode: Mode, base: Base, direct: PythonClient
) -> None:
    calls = base.calls()
    with nullcontext(base) if mode == "auto" else base.again(mode) as other:
        own, after = direct.tools(), other.client.tools()
        assert set(own) - set(after) == {"move_document"}
        changed = [name for name, tool in after.items() if tool != own[name]]
        assert changed == ["list_documents", "batch_read"]
        says = after["list_documents"].description or ""
        assert "`count` is the number of" in says
        assert "`next_offset`" in says
        properties = after["list_documents"].input_schema["properties"]
        assert list(properties) == ["prefix", "path", "limit", "offset"]
        bounds = [properties[name].get(word) for name in ("limit", "offset") for word in
                  ("minimum", "maximum", "default")]  # fmt: skip
        assert bounds == [1, 100, 50, 0, 10_000, 0]
        with pytest.raises(MCPError, match=r"^Unknown tool: move_document$") as raised:
            other.call("move_document", document_id=LONG, target="elsewhere")
        assert raised.value.error.code == -32601
        assert base.calls() == calls
        assert other.document("list_documents")["truncated"]
