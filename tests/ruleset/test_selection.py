import os
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.errors import RuleErrors
from mcp_abridge.ruleset import selection as ruleset
from mcp_abridge.ruleset.clients import client_for
from mcp_abridge.ruleset.rule_set import RuleFile, ServerMatch
from mcp_abridge.ruleset.selection import Selection, library, load, readings

from tests.builders import file
from tests.platforms import on_posix, with_slashes

RULES = "version: 1\nrules: [{{tools: {}}}]\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of its own, so that messages name files as a person would."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A small library in place of the bundled one, which has tests of its own."""
    folder = tmp_path / "bundled"
    folder.mkdir()
    heads = {"github": 'server: {name: "github*"}\n', "git": "server:\n  name: mcp-git\n"}
    heads |= {"broken": "server: {name: broken}\nrulse: []\n", "any": ""}
    for word, head in heads.items():
        (folder / f"{word}.yaml").write_text(f"version: 1\n{head}rules: [{{tools: {word}}}]\n")
    words = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    monkeypatch.setattr(ruleset, "library", lambda: words)
    return words


def tools(files: tuple[RuleFile, ...]) -> list[str]:
    return [tool for file in files for rule in file.rules for tool in rule.tools]


def refusal(names: list[str]) -> str:
    with pytest.raises(RuleErrors) as caught:
        load(names)
    return str(caught.value)


def test_files_come_in_the_order_given_those_of_a_directory_by_name(here: Path) -> None:
    (here / "rules.d").mkdir()
    assert refusal(["rules.d"]) == "rules.d: a directory without *.yaml files"
    for name in ("20-b.yaml", "10-a.yaml", "notes.txt"):
        (here / "rules.d" / name).write_text(RULES.format(name[3]))
    files = load(["rules.d/", "./rules.d/10-a.yaml"])
    assert tools(files) == ["a", "b", "a"]
    names = ["rules.d/10-a.yaml", "rules.d/20-b.yaml", "rules.d/10-a.yaml"]
    assert [with_slashes(file.name) for file in files] == names


def test_a_bare_word_is_a_file_of_the_library_and_nothing_else(
    here: Path, bundled: dict[str, Path]
) -> None:
    (here / "git").write_text(RULES.format("mine"))
    (file,) = load(["git"])
    assert (tools((file,)), file.name) == (["git"], str(bundled["git"]))


def test_an_unknown_word_names_the_known_ones(here: Path, bundled: dict[str, Path]) -> None:
    (here / "mine").write_text(RULES.format("mine"))
    assert refusal(["githb", "zebra", "mine"]).splitlines() == [
        "githb: no bundled rule file has this name; did you mean 'github'?",
        "zebra: no bundled rule file has this name; known: any, broken, git, github",
        "mine: no bundled rule file has this name; known: any, broken, git, github; "
        "for what lies in this directory write ./mine",
    ]


@pytest.mark.fault(42, "inside")
def test_a_file_that_is_too_long_is_not_read_to_its_end(here: Path) -> None:
    (here / "long.yaml").write_bytes(b"version: 1\n" + b"# more\n" * 2_000_000)
    (reading,) = readings(["long.yaml"])
    [problem] = reading.problems
    assert problem.message == "more than 262144 bytes, the most a rule file may have"


@on_posix("no named pipes in folders")
@pytest.mark.fault(42, "inside")
def test_a_path_that_is_no_file_is_not_read(here: Path) -> None:
    os.mkfifo("pipe")
    Path("folder/inner.yaml").mkdir(parents=True)
    for reading in readings(["/dev/zero", "./pipe", "./folder"]):
        [problem] = reading.problems
        assert problem.message == "is no regular file"
        assert not reading.readable


def test_two_selections_share_no_rule_of_a_bundled_file(bundled: dict[str, Path]) -> None:
    selections = [Selection(None, None, print) for _ in range(2)]
    one, other = (each("mcp-git", None).files[0].rules[0] for each in selections)

    assert one == other
    assert one.circuit_breaker is not other.circuit_breaker


@pytest.mark.slow
def test_every_bundled_file_is_found_by_its_server_without_being_loaded() -> None:
    for word, path in library().items():
        (file,) = load([word])
        name = file.server.name if file.server else None
        assert ruleset._server_name(path.read_text()) == name, word


def test_files_apply_to_the_servers_they_are_for() -> None:
    files = (
        RuleFile(name="a.yaml", server=ServerMatch("git*")),
        RuleFile(name="b.yaml"),
        RuleFile(name="c.yaml", server=ServerMatch("other")),
    )
    lines: list[str] = []
    selection = Selection(files, "off", lines.append)
    # While the server is unknown, every file applies.
    assert selection(None, None).files == files
    assert lines == []
    assert selection("github", None).files == files[:2]
    assert selection("github", "codex").files == files[:2]
    assert lines == [
        "c.yaml: it is for server 'other', and this one is \"github\"; none of its rules apply"
    ]


def test_without_files_the_bundled_one_that_fits_the_server_applies(
    bundled: dict[str, Path],
) -> None:
    lines: list[str] = []
    selection = Selection(None, "off", lines.append)
    assert tools(selection("github-mcp-server", None).files) == ["github"]
    assert tools(selection("mcp-git", None).files) == ["git"]
    assert selection("unheard-of", None).files == ()
    assert selection(None, None).files == ()
    assert lines == [
        "the bundled rules 'github' apply to server 'github-mcp-server'",
        "the bundled rules 'git' apply to server 'mcp-git'",
    ]
    # The others are not read as YAML.
    with pytest.raises(RuleErrors):
        selection("broken", None)


@pytest.mark.parametrize("files", [None, ()])
def test_the_budget_is_a_rule_for_every_tool_without_one(files: Any) -> None:
    rule = Selection(files, 5_000, print)(None, None).otherwise
    assert rule is not None
    assert (rule.name, rule.tools, rule.max_bytes) == ("budget", ("*",), 5_000)
    assert [step.name for step in rule.pipeline] == ["abridge"]
    assert Selection(files, "off", print)(None, None).otherwise is None
    for name in (None, "codex-mcp-client"):
        automatic = Selection(files, "auto", print)(None, name).otherwise
        assert automatic is not None
        assert automatic.max_bytes == client_for(name).budget_bytes


ON, OFF, OPENCODE = {"OPENCODE_EXPERIMENTAL": "true"}, {"OPENCODE_EXPERIMENTAL": "0"}, "opencode"
OVERRIDDEN = ON | {"OPENCODE_EXPERIMENTAL_CODE_MODE": "false"}


@pytest.mark.parametrize(
    ("client", "version", "environ", "scripts", "whole"),
    [
        ("claude-code", "2.1.332", {"CLAUDE_CODE_EXPERIMENTAL_CODE_MODE": "1"}, None, True),
        ("claude-code", "2.1.332", {"CLAUDE_CODE_EXPERIMENTAL_CODE_MODE": "1"}, "off", False),
        ("claude-code", "2.1.332", ON, "auto", False),
        (OPENCODE, "1.18.33", ON, None, True),
        (OPENCODE, "1.18.33", OFF, None, False),
        (OPENCODE, "1.18.33", OVERRIDDEN, None, False),
        (OPENCODE, "2.0.1", {}, None, True),
        (OPENCODE, None, {}, None, False),
        ("codex-mcp-client", "0.171.0", {}, None, False),
        ("mcp", None, {}, "on", True),
    ],
)
def test_nothing_is_cut_if_scripts_read_it_by_variable_version_or_option(
    client: str, version: str | None, environ: Any, scripts: Any, whole: bool
) -> None:
    own = file(
        "version: 1\nrules:\n- {tools: a, response: [{drop: b}, abridge: 2kB], max_bytes: 4kB}"
    )
    select = Selection((own,), 9_000, print, environ=environ, scripts=scripts)
    ruleset = select(None, client, version)
    [bounded] = ruleset.files[0].rules
    names = [step.name for step in bounded.pipeline]

    assert (ruleset.otherwise is None) == whole
    assert (names, bounded.max_bytes) == (
        (["drop"], None) if whole else (["drop", "abridge", "abridge"], 4_000)
    )
    assert ruleset.candidates[0].rules[0] is bounded


def test_a_selection_is_made_once_and_endless_clients_fill_no_memory() -> None:
    lines: list[str] = []
    selection = Selection((RuleFile(name="a", server=ServerMatch("x")),), "auto", lines.append)
    assert selection("server", "zed") is selection("server", "zed")
    for number in range(2_000):
        selection("server", f"client {number}")
    assert selection._rules_for.cache_info().currsize <= 256
    assert len(lines) == 1
