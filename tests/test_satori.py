"""Holds the code-search server of the examples to its envelope, its preflight and its hints."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from mcp_abridge.cli import main
from mcp_abridge.document.tree import Document
from mcp_abridge.errors import RuleErrors
from mcp_abridge.query.call import Call
from mcp_abridge.ruleset.selection import load

from examples.satori import gitignore, noise
from tests.python_client import Mode, PythonClient, System
from tests.serving import FRONTS
from tests.wrapped import ROOT, texts

EXAMPLE = ROOT / "examples" / "satori"
# How the proxy stands before the server that answers with texts, or before the one that sends an
# envelope; clients of both eras.
WAYS: dict[str, tuple[str, bool, Mode]] = {
    "stdio": ("stdio", False, "legacy"),
    "http to a command, envelopes": ("http to a command", True, "2026-07-28"),
}
ENVELOPE = ["status", "reason", "warnings", "hints", "preflight", "message", "humanText"]
UNNECESSARY = "reindex_unnecessary_ignore_only"
# What is known of codebases when a server starts, by path.
CODEBASES = {
    f"/srv/{UNNECESSARY}": {"state": "indexed", "preflight": UNNECESSARY},
    "/srv/insisted": {"state": "indexed", "preflight": UNNECESSARY},
    "/srv/older": {"state": "requires_reindex"},
}
Json = dict[str, Any]


class Search(System):
    """A client of the code-search server, and what shows what reached the server."""

    def __init__(self, client: PythonClient, log: Path, enveloped: bool) -> None:
        super().__init__(client, log)
        self.enveloped = enveloped

    def manage(self, action: str, path: str, **more: Any) -> Json:
        """Call manage_index; return the envelope without what is the server's own in it."""
        document: Json = self.document("manage_index", action=action, path=path, **more)
        assert list(document)[-7:] == ENVELOPE
        # An answer of the proxy's own has nothing else, whatever the server's have.
        own = {"tool": "manage_index", "version": 1, "action": action, "path": path}
        own = own if self.enveloped and document["preflight"] is None else {}
        assert {name: document.pop(name) for name in list(document)[:-7]} == own
        return document


def served(folder: Path, *options: str) -> list[str]:
    """Return the command of a server that knows the codebases."""
    file = folder / "codebases.json"
    file.write_text(json.dumps(CODEBASES))
    command = [sys.executable, str(EXAMPLE / "server.py"), "--log", str(folder / "calls.log")]
    return [*command, "--codebases", str(file), *options]


@pytest.fixture(scope="module", params=WAYS)
def search(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Search]:
    """Start everything, in each way; a test has codebases of its own."""
    transport, enveloped, mode = WAYS[request.param]
    folder = tmp_path_factory.mktemp("satori")
    server = served(folder, *(["--envelope"] if enveloped else []))
    front = FRONTS[transport](server, [EXAMPLE / "rules.yaml"], folder, "--allow-python")
    with front as entered, entered.connect(mode) as client:
        yield Search(client, folder / "calls.log", enveloped)


def envelope(text: str, status: str = "ok", reason: str | None = None, **more: Any) -> Json:
    """Return the envelope of a text."""
    empty: Json = {"warnings": [], "hints": {}, "preflight": None}
    texts_of = {"message": text.partition("\n")[0], "humanText": text}
    return {"status": status, "reason": reason} | empty | texts_of | more


def suggested(action: str, path: str, **more: Any) -> Json:
    """Return the hint that suggests an action."""
    arguments = {"action": action, "path": path, **more}
    return {"tool": "manage_index", "arguments": arguments}


def test_every_action_is_answered_with_an_envelope(search: Search) -> None:
    path, hinted = "/srv/walked", not search.enveloped
    started = f"Started background indexing of '{path}'.\n\nAsk for its status."
    assert search.manage("create", path) == envelope(started)
    pending = envelope(f"Codebase '{path}' is being indexed: 40% done.", "not_ready", "indexing")
    hints = {"hints": {"status": suggested("status", path)}} if hinted else {}
    assert search.manage("create", path) == pending | hints
    statuses = {
        "status": ["not_ready", "ok"], "sync": ["ok"], "create": ["blocked"], "reindex": ["ok"],
        "clear": ["ok", "not_indexed"],
    }  # fmt: skip
    for action, expected in statuses.items():
        assert [search.manage(action, path)["status"] for _ in expected] == expected
    assert search.manage("status", "/srv/older")["reason"] == "requires_reindex"


def test_a_reindex_that_only_ignore_rules_call_for_is_blocked(search: Search) -> None:
    path = f"/srv/{UNNECESSARY}"
    with search.reaching({"tool": "check_reindex", "arguments": {"path": path}}):
        document = search.manage("reindex", path, force=True)
    assert [document["status"], document["preflight"]] == ["blocked", {"outcome": UNNECESSARY}]
    assert document["hints"] == {
        "sync": suggested("sync", path),
        "overrideReindex": suggested("reindex", path, force=True, allowUnnecessaryReindex=True),
    }
    # What the hint says is what helps.
    assert search.manage(**document["hints"]["sync"]["arguments"])["status"] == "ok"


def test_the_override_of_a_reindex_works_and_does_not_reach_the_server(search: Search) -> None:
    path = "/srv/insisted"
    blocked = search.manage("reindex", path)
    with search.reaching(suggested("reindex", path)):
        insisted = search.manage(**blocked["hints"]["overrideReindex"]["arguments"])
    assert insisted == envelope(
        f"Started background reindexing of '{path}'.\n\nAsk for its status."
    )


def test_the_override_is_an_optional_argument_that_the_tool_gained(search: Search) -> None:
    schema = search.client.tools()["manage_index"].input_schema
    assert list(schema["properties"]) == ["action", "path", "force", "allowUnnecessaryReindex"]
    assert schema["required"] == ["action", "path"]
    override = schema["properties"]["allowUnnecessaryReindex"]
    assert override["type"] == "boolean"
    assert "Reindex even if nothing but ignore rules has changed." in override["description"]
    with search.reaching():
        result = search.call(
            "manage_index", action="reindex", path="/srv/x", allowUnnecessaryReindex="yes"
        )
    assert result["isError"]
    [document] = map(orjson.loads, texts(result))
    assert list(document) == ENVELOPE
    assert document["status"] == "error"
    assert "allowUnnecessaryReindex" in document["humanText"]


def test_the_registry_is_what_explain_lists_and_the_readme_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Of the file itself, read without the proxy.
    registry = yaml.safe_load((EXAMPLE / "rules.yaml").read_text())["x-vocabulary"]
    recorded = tmp_path / "recorded.json"
    recorded.write_text(json.dumps({"content": [{"type": "text", "text": "Indexing: 7%"}]}))
    words = ["--tool", "manage_index", "--arguments", '{"action": "status"}', "--json"]
    rules = str(EXAMPLE / "rules.yaml")
    assert main(["explain", "--allow-python", rules, str(recorded), *words]) == 0
    assert json.loads(capsys.readouterr().out)["vocabulary"] == registry
    section = (EXAMPLE / "README.md").read_text().partition("## The envelope")[2]
    section = section.partition("These words stand once")[0]
    assert set(re.findall(r"`([A-Za-z_]+)`", section)) == {
        *registry,
        *(word for words in registry.values() for word in words),
    }


@pytest.mark.parametrize(
    "code",
    [
        "REINDEX_UNNECESSARY_IGNORE_ONLY",
        "REINDEX_PREFLIGHT_UNKNOWN",
        "IGNORE_POLICY_PROBE_FAILED",
    ],
)
def test_a_code_of_the_preflight_that_is_not_in_the_registry_is_a_mistake(
    code: str, tmp_path: Path
) -> None:
    for name in ("preflight.py", "noise.py", "gitignore.py"):
        shutil.copy(EXAMPLE / name, tmp_path)
    rules = (EXAMPLE / "rules.yaml").read_text()
    [registry] = re.findall(r"^  warnings: .*$", rules, re.MULTILINE)
    shorter = registry.replace(f"{code}, ", "").replace(f", {code}", "")
    (tmp_path / "rules.yaml").write_text(rules.replace(registry, shorter))
    with pytest.raises(RuleErrors) as raised:
        load([str(tmp_path / "rules.yaml")], allow_python=True)
    assert [problem.message for problem in raised.value.problems] == [
        f"preflight: vocabulary: warnings lacks {code!r}, which preflight says"
    ]


FIRST = 'Use scope="runtime" to reduce noise. '
LAST = " Reindex is only required when you see requires_reindex (fingerprint mismatch)."
EDIT = (
    "If you edit ignores, add only patterns not already ignored by root .gitignore (root-only "
    "check), then run manage_index sync."
)
COVERED = (
    "Top noisy files appear already covered by root .gitignore (root-only check); "
    ".satoriignore changes may be unnecessary. "
)
SYNC = "If you changed ignores, run manage_index sync for immediate convergence."
SUGGESTED = [
    "**/*.test.*", "**/*.spec.*", "**/__tests__/**", "**/__fixtures__/**", "**/fixtures/**",
    "docs/**", "coverage/**",
]  # fmt: skip


@pytest.fixture
def shop(search: Search, tmp_path: Path) -> Callable[..., Json]:
    """Make a codebase most of which is noise; return a search in it, for the hint on noise."""
    for name, hits in [
        ("src/shop.test.ts", 6), ("docs/guide.md", 5), ("coverage/report.txt", 4),
        ("src/shop.ts", 3), ("src/__tests__/cart.ts", 2), ("lib/fixtures/seventh.json", 1),
    ]:  # fmt: skip
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("token\n" * hits)
    search.manage("create", str(tmp_path))
    for _ in range(2):
        search.manage("status", str(tmp_path))

    def hint(**arguments: Any) -> Json:
        arguments = {"path": str(tmp_path), "query": "token", "limit": 50} | arguments
        document = search.document("search_codebase", **arguments)
        return dict(document["hints"]["noiseMitigation"])

    return hint


def test_helpful_patterns_are_suggested_in_the_order_of_the_server(
    shop: Callable[..., Json], tmp_path: Path
) -> None:
    (tmp_path / ".gitignore").write_text("docs/\n")
    assert shop(mode="grouped") == {
        "reason": "top_results_noise_dominant",
        "topK": 5,
        "ratios": {"generated": 0.2, "fixtures": 0, "tests": 0.4, "docs": 0.2, "runtime": 0.2},
        "recommendedScope": "runtime",
        "suggestedIgnorePatterns": ["**/*.test.*", "**/__tests__/**", "coverage/**"],
        "debounceMs": 5000,
        "nextStep": FIRST + EDIT + LAST,
        "alreadyIgnoredByGitignore": ["docs/**"],
    }
    # The first five lines are all of one file; a folder's own .gitignore is not looked at.
    (tmp_path / "src" / ".gitignore").write_text("*\n")
    raw = shop(mode="raw", path=str(tmp_path / "src"))
    assert raw["suggestedIgnorePatterns"] == ["**/*.test.*"]


def test_ignored_patterns_are_not_suggested(shop: Callable[..., Json], tmp_path: Path) -> None:
    ignored = "*.test.ts\n__tests__/\n/docs\ncoverage/*\n!coverage/none.txt\n"
    (tmp_path / ".gitignore").write_text(ignored)
    for mode in ("grouped", "raw"):
        hint = shop(mode=mode)
        assert hint["suggestedIgnorePatterns"] == []
        assert hint["nextStep"] == FIRST + COVERED + SYNC + LAST


def hinted(step: noise.NoiseHints, root: Path, *files: str, **hint: Any) -> Json:
    """Return the hint after the step, in a result with these files, the best first."""
    mitigation = {"suggestedIgnorePatterns": SUGGESTED, "topK": 5, "nextStep": ""} | hint
    document = Document.read(
        orjson.dumps(
            {
                "codebaseRoot": str(root),
                "results": [{"file": file} for file in files],
                "hints": {"noiseMitigation": mitigation},
            }
        )
    )
    step(document.root, Call("search_codebase"))
    outcome: Json = orjson.loads(document.encode())["hints"]["noiseMitigation"]
    return outcome


def test_only_noisy_files_among_the_first_count(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("")
    step = noise.NoiseHints()
    result = hinted(step, tmp_path, "src/a.ts", "docs/a.md", "a.test.ts", topK=2)
    assert result["suggestedIgnorePatterns"] == ["docs/**"]
    result = hinted(step, tmp_path, "src/a.ts", suggestedIgnorePatterns=["src/**", "docs/**"])
    assert result["suggestedIgnorePatterns"] == []
    # None of the noisy files is known to be ignored.
    assert result["nextStep"] == FIRST + SYNC + LAST


def test_a_path_is_one_of_the_codebase_or_none(tmp_path: Path) -> None:
    root, link = tmp_path / "shop", tmp_path / "link"
    (root / "tests").mkdir(parents=True)
    (root / "tests" / "a.ts").touch()
    link.symlink_to(root)
    inside = ["tests/a.ts", "tests\\a.ts", "./tests//a.ts", "/tests/a.ts"]
    inside += [f"{root}/tests/a.ts", f"{link}/tests/a.ts"]
    outside = [f"{root}-other/tests/a.ts", f"{root}/../tests/a.ts", "/elsewhere/tests/a.ts"]
    outside += ["C:\\shop\\tests\\a.ts", "../tests/a.ts", "src/../tests/a.ts", "/", ""]
    assert {noise.relative(file, str(link)) for file in inside} == {"tests/a.ts"}
    assert {noise.relative(file, str(link)) for file in outside} == {None}


KINDS = {
    "runtime": ["src/shop.ts", "src/latest.ts", "docsify/index.ts"],
    "tests": ["a.test.ts", "a.spec.tsx", "src/__tests__/a.ts", "test_shop.py", "shop/shop_test.go"],
    "fixtures": ["shop/testdata/a.json", "src/__fixtures__/a.json"],
    "docs": ["docs/shop.ts", "README.md"],
    "generated": ["coverage/lcov.info", "web/dist/app.js", "web/app.min.js"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_noise_by_its_folders_and_its_name(kind: str) -> None:
    assert {noise.kind(path) for path in KINDS[kind]} == {kind}


def overwrite(file: Path, text: str) -> None:
    """Write another text of the same length, and keep the time."""
    was = file.stat()
    assert len(text.encode()) == was.st_size
    file.write_text(text)
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


def test_an_unchanged_gitignore_is_read_again_on_every_25th_use(tmp_path: Path) -> None:
    file, step = tmp_path / ".gitignore", noise.NoiseHints()
    file.write_text("docs/**\n")

    def suggestions(uses: int) -> list[bool]:
        hints = (hinted(step, tmp_path, "docs/a.md") for _ in range(uses))
        return [bool(hint["suggestedIgnorePatterns"]) for hint in hints]

    assert suggestions(1) == [False]
    overwrite(file, "other/*\n")
    assert suggestions(25) == [False] * 24 + [True]
    overwrite(file, "docs/**\n")
    assert suggestions(25) == [True] * 24 + [False]


@pytest.mark.parametrize(
    ("text", "later", "read"),
    [("bb\n", 0, True), ("b\n", 1_000_000, True), ("b\n", 999_999, False)],
)
def test_a_gitignore_of_another_size_or_millisecond_is_read_again_at_once(
    text: str, later: int, read: bool, tmp_path: Path
) -> None:
    file, ignores = tmp_path / ".gitignore", gitignore.RootIgnores(interval=25)
    file.write_text("a\n")
    os.utime(file, ns=(0, 5_000_000_000))
    assert ignores.of(str(tmp_path)).ignore("a")
    assert ignores.of(str(tmp_path)).uses == 1
    file.write_text(text)
    os.utime(file, ns=(0, 5_000_000_000 + later))
    assert ignores.of(str(tmp_path)).ignore("a") != read
    # The count begins anew when it is read.
    assert ignores.of(str(tmp_path)).uses == (1 if read else 3)
    file.unlink()
    assert ignores.of(str(tmp_path)).state == "absent"


UNREADABLE: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "no pattern": lambda file: file.write_text("ok\n!\n"),
    "too long": lambda file: file.write_bytes(b"#" * (gitignore.MOST_BYTES + 1)),
    "a circle": lambda file: file.symlink_to(file),
}


@pytest.mark.parametrize("kind", ["absent", *UNREADABLE])
def test_absent_and_unreadable_are_states_that_are_tried_again_on_every_nth_use(
    kind: str, tmp_path: Path
) -> None:
    root, file = str(tmp_path), tmp_path / ".gitignore"
    state = "unreadable" if kind in UNREADABLE else "absent"
    UNREADABLE.get(kind, str)(file)
    ignores = gitignore.RootIgnores(interval=3)
    for _ in range(4):  # tried again, in vain
        patterns = ignores.of(root)
        assert [patterns.state, patterns.ignore("a")] == [state, False]
    if file.is_dir():
        file.rmdir()
    file.unlink(missing_ok=True)
    file.write_text("a\n")
    assert [ignores.of(root).state for _ in range(3)] == [state, state, "ready"]
    assert ignores.of(root).ignore("a")


def test_each_root_has_its_own_and_a_link_to_it_is_the_same_root(tmp_path: Path) -> None:
    ignores = gitignore.RootIgnores(interval=25)
    one, other, link = (tmp_path / name for name in ("one", "other", "link"))
    for root in (one, other):
        root.mkdir()
        (root / ".gitignore").write_text(f"{root.name}.log\n")
    link.symlink_to(one)
    assert ignores.of(str(one)).ignore("one.log")
    assert not ignores.of(str(other)).ignore("one.log")
    assert [ignores.of(str(link)).uses, ignores.of(str(other)).uses] == [1, 1]


def test_patterns_match_as_in_git(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("\ufeff/dist\n*.log\n!keep.log\nfoo/\nexact\\ \n# docs\n")
    patterns = gitignore.read(str(tmp_path / ".gitignore"))
    assert patterns.state == "ready"
    ignored = ["dist/app.js", "a/b.log", "a/foo/x", "exact "]
    visible = ["a/dist/app.js", "keep.log", "a/keep.log", "foo", "docs/a.md", "exact"]
    assert [path for path in ignored + visible if patterns.ignore(path)] == ignored
