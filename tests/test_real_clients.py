"""Real clients, which check output schemas, work through the wrapper in both eras, with rules."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson
import pytest

from tests import servers
from tests.faults.scale import scaled
from tests.history import with_history
from tests.python_client import Mode, connected
from tests.servers import Call, typescript
from tests.wrapped import Result, Tee, notice, sizes, texts, wrapped

pytestmark = pytest.mark.usefixtures("servers")

Client = Literal["python", "v1", "v2"]
Talk = tuple[str, dict[str, Any]]

SHAPING = """
version: 1
defaults: {max_bytes: 3000}
rules:
  - tools: directory_tree
    response: [{keep: [name, children.name]}, {paginate: {as: entries, limit: 4}}]
  - tools: [list_directory, list_directory_with_sizes, search_files]
    response: [{parse: {as: lines}}, {paginate: {limit: 10}}]
  - tools: git_log
    response: [{parse: {as: records, split: '(?m)^(?=Commit: )'}}, {paginate: {limit: 50}}]
  - tools: [read_file, read_text_file]
    response: [{truncate: {max_length: 1000}}]
  - tools: read_graph
    response:
      - elide: {at: entities.observations, first: 2}
      - paginate: {at: [entities, relations], limit: 5}
  - tools: "*"
"""


def options(rules: str, folder: Path) -> list[str]:
    """Return the options that put rules in force: none at all, what is bundled, or those above."""
    if rules == "bundled":
        return []
    if rules == "shaping":
        (folder / "rules.yaml").write_text(SHAPING)
        return ["--rules", str(folder / "rules.yaml")]
    return ["--rules", "none"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Make a folder whose lists, tree and one file are long."""
    folder = tmp_path.resolve() / "place"
    for n in range(300):
        inner = folder / "many" / f"folder {n % 20:02}"
        inner.mkdir(parents=True, exist_ok=True)
        (inner / f"file {n:03}.txt").write_text("")
        (folder / f"file {n:03} of the place.txt").write_text("")
    (folder / "note.txt").write_text("a note\n")
    (folder / "long.txt").write_text("".join(f"line {n} — ünïcode\n" for n in range(2_000)))
    (folder / "rows.json").write_bytes(orjson.dumps([{"id": n} for n in range(2_000)]))
    (folder / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 60)
    return folder


def every_tool(place: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name a call or two of each tool of server-filesystem; the last one ends in an error."""

    def at(name: str = "") -> str:
        return str(place / name) if name else str(place)

    yield "read_file", {"path": at("long.txt")}
    yield "read_text_file", {"path": at("note.txt")}
    yield "read_text_file", {"path": at("long.txt"), "head": 500}
    yield "read_text_file", {"path": at("rows.json")}
    yield "read_media_file", {"path": at("dot.png")}
    yield "read_multiple_files", {"paths": [at("note.txt"), at("long.txt"), at("missing.txt")]}
    yield "write_file", {"path": at("new.txt"), "content": "one\ntwo\n"}
    yield "edit_file", {"path": at("new.txt"), "edits": [{"oldText": "two", "newText": "2"}]}
    yield "create_directory", {"path": at("new")}
    yield "list_directory", {"path": at()}
    yield "list_directory_with_sizes", {"path": at()}
    yield "directory_tree", {"path": at("many")}
    yield "move_file", {"source": at("new.txt"), "destination": at("new/moved.txt")}
    yield "search_files", {"path": at(), "pattern": "**/*.txt"}
    yield "get_file_info", {"path": at("note.txt")}
    yield "list_allowed_directories", {}
    yield "read_text_file", {"path": at("missing.txt")}


def check(rules: str, results: list[Result], tee: Tee) -> None:
    """Check what a client got of `every_tool` against what the server had said."""
    answers = (orjson.loads(line).get("result", {}) for line in tee.lines())
    originals = [answer for answer in answers if "content" in answer]
    assert [bool(result.get("isError")) for result in results] == [False] * 16 + [True]
    for result, original in zip(results, originals, strict=True):
        if rules == "none" or original.get("isError"):
            assert result["content"] == original["content"]
            assert result.get("structuredContent") == original.get("structuredContent")
        else:
            bound = 8_000 if rules == "bundled" else 3_000
            assert max(sizes(result)) <= bound
            shortened = max(sizes(original)) > bound
            assert bool(notice(result["structuredContent"])) >= shortened
            assert bool(notice(texts(result))) >= (shortened and bool(texts(original)))


class Spoken(NamedTuple):
    """The protocol version of a client, the tools, and the result of each call."""

    version: str
    tools: list[dict[str, Any]]
    results: list[Result]


def speak(client: Client, mode: Mode, command: list[str], *calls: Talk) -> Spoken:
    """Have an official client list the tools and make calls; it must take every result."""
    if client == "python":
        with connected(command, mode=mode) as talking:
            tools = [tool.model_dump(by_alias=True) for tool in talking.tools().values()]
            results = [talking.call(tool, arguments) for tool, arguments in calls]
            return Spoken(talking.protocol_version, tools, results)
    report = typescript(
        client, command, *(Call(tool, arguments) for tool, arguments in calls), mode=mode
    )
    assert [each["ok"] for each in report.results] == [True] * len(calls), report.results
    results = [each["result"] for each in report.results]
    return Spoken(report.protocol_version, report.tools, results)


@pytest.mark.parametrize(
    ("client", "mode", "rules"),
    [
        ("python", "auto", "shaping"),
        ("v1", "auto", "bundled"),
        ("v2", "auto", "none"),
        ("python", "legacy", "bundled"),
        ("v1", "auto", "shaping"),
        ("v2", "auto", "bundled"),
    ][: scaled(3, 6)],
)
def test_the_official_clients_take_every_result_of_the_filesystem(
    client: Client, mode: Mode, rules: str, place: Path, tmp_path: Path
) -> None:
    tee = Tee(tmp_path / "log")
    command = wrapped(tee.before(servers.filesystem(place)), *options(rules, tmp_path))
    calls = [*every_tool(place)]
    if rules == "shaping":
        calls.append(("search_files", {"path": str(place), "pattern": "*", "limit": 101}))
    spoken = speak(client, mode, command, *calls)
    assert len(spoken.tools) == 14
    # Something to check against is advertised all along.
    assert all(tool["outputSchema"] is not None for tool in spoken.tools)
    check(rules, spoken.results[:17], tee)
    for result in spoken.results[17:]:
        assert result["isError"]
        assert texts(result) == ["limit: 101 is greater than the maximum of 100"]


COMMITS = {"max_count": 60}


@pytest.fixture(scope="module")
def log_of_git(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository with a history."""
    return with_history(tmp_path_factory.mktemp("log").resolve(), COMMITS["max_count"])


@pytest.mark.parametrize(
    ("client", "mode", "version", "rules"),
    [
        ("python", "auto", "2026-07-28", "shaping"),
        ("python", "legacy", "2025-11-25", "none"),
        ("v1", "auto", "2025-11-25", "shaping"),
        ("v2", "auto", "2026-07-28", "none"),
    ][: scaled(1, 4)],
)
def test_the_official_clients_speak_either_era_with_git(
    client: Client, mode: Mode, version: str, rules: str, log_of_git: Path, tmp_path: Path
) -> None:
    tee = Tee(tmp_path / "log")
    command = wrapped(tee.before(servers.git(log_of_git)), *options(rules, tmp_path))
    call = ("git_log", COMMITS | {"repo_path": str(log_of_git)})
    spoken = speak(client, mode, command, call)
    assert spoken.version == version
    [tool] = [tool for tool in spoken.tools if tool["name"] == "git_log"]
    assert ("offset" in tool["inputSchema"]["properties"]) == (rules == "shaping")
    assert len(tee.calls()) == 1
    if rules == "none":
        assert spoken.results[0]["content"] == tee.result()["content"]
        return
    page, message = texts(spoken.results[0])
    count = page.count("Commit: ")
    assert notice(message) == {
        "total": 60, "offset": 0, "limit": 50, "returned": count, "hasMore": True,
        "nextOffset": count,
    }  # fmt: skip
    assert texts(tee.result())[0].startswith(page)
