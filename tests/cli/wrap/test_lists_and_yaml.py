"""Servers in lists and in YAML: `wrap` edits their text, restores it, or says why it does not."""

import os
import shutil
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit
import yaml
from mcp_abridge.cli.options import HEADER, URL
from mcp_abridge.cli.wrap.places import DIALECTS, Dialect

from tests.cli.conftest import Run
from tests.cli.wrap.conftest import PROGRAM, program, write
from tests.cli.wrap.layouts import Layout
from tests.faults.scale import scaled

FILES = {
    "goose": ".config/goose/config.yaml",
    "continue": ".continue/config.yaml",
    "mistral-vibe": ".vibe/config.toml",
}


def entries(kind: str, raw: bytes) -> dict[str, Any]:
    """Return the servers in a file, as other libraries read it."""
    text = raw.decode("utf-8-sig")
    document = tomllib.loads(text) if kind == "mistral-vibe" else yaml.safe_load(text)
    if kind == "goose":
        return {name: each for name, each in document["extensions"].items() if name[0] == "s"}
    key = "mcp_servers" if kind == "mistral-vibe" else "mcpServers"
    return {each.pop("name"): each for each in document[key]}


def expected(entry: dict[str, Any], us: str, spelling: Dialect) -> dict[str, Any]:
    after, program = dict(entry), spelling.command
    if program in entry:
        words = ["--", entry[program], *entry.get("args", [])]
        return after | {program: us, "args": words}
    [url] = {"url", "uri"} & after.keys()
    [(name, value)] = after.pop("headers").items()
    variables = {URL: after.pop(url), HEADER: f"{name}: {value}"}
    if "transport" in after:
        after["transport"] = "stdio"
    env = {spelling.env: after.get(spelling.env, {}) | variables}
    return after | {program: us, "args": []} | env


@pytest.mark.parametrize("kind", FILES)
def test_any_layout_is_wrapped_and_restored_to_the_byte(kind: str, home: Path, run: Run) -> None:
    spelling = DIALECTS.get(kind, Dialect())
    for seed in range(scaled(4, 300)):
        raw, servers = Layout(seed).text(kind)
        file = write(home, FILES[kind], raw.decode())
        assert entries(kind, raw) == servers, f"layout {seed}"
        words = run("wrap", "--all").err
        after = entries(kind, file.read_bytes())
        wrapped = {name: expected(each, program(home), spelling) for name, each in servers.items()}
        assert after == wrapped, f"layout {seed}: {words}"
        remarks = [line.rpartition("# ")[2] for line in raw.decode().splitlines() if "# " in line]
        assert [each for each in remarks if each not in file.read_bytes().decode()] == [], seed
        for words in ([*servers][seed % len(servers)], "--all"):
            os.utime(file, (0, 0))  # nobody is writing it
            run("unwrap", words)
        assert file.read_bytes() == raw, f"layout {seed}"


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ("&a {cmd: x}\nother: *a", "its entry has an anchor or an alias of YAML; edit it by hand"),
        ("{cmd: x, args: &a [y]}", "its entry has an anchor or an alias of YAML; edit it by hand"),
        ("{<<: *base, cmd: x}", "its entry has an anchor or an alias of YAML; edit it by hand"),
        ("\n    cmd: >\n      x", "a text after > has no clear end: write it in quotes"),
        ("{cmd: x, args: }", "its args has no value: remove it, or give it one"),
        ("{cmd: x, args: {a: 1}}", "its entry has an unusual form; edit it by hand"),
        ("{cmd: npx y}", "its command is a whole line; split it into command and args first"),
        ("{uri: 'http://127.0.0.1:1/', headers: {A: b}}", "its headers has no line of its own"),
        ("{uri: 'http://127.0.0.1:1/', env_keys: [K]}", "the client logs in for it (env_keys)"),
    ],
)
def test_yaml_that_cannot_be_edited_safely_is_left_with_the_reason(
    members: str, reason: str, home: Path, run: Run
) -> None:
    text = f"base: &base {{args: [y]}}\nextensions:\n  s: {members}\n"
    file = write(home, FILES["goose"], text)
    assert f"s (goose, user): {reason}" in run("wrap", "--all", code=1).err
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (
            'name = "s"\ncommand = "x"\n[[other]]\n[[mcp_servers]]',
            "[[mcp_servers]] has other tables",
        ),
        ('name = "s"\ncommand = "\'/opt/a b/x\' y"', "its command is a whole line"),
        ('name = "s"\nurl = "http://127.0.0.1:1/"\napi_key_env = "K"', "the client logs in for it"),
    ],
)
def test_a_table_in_a_list_that_cannot_be_edited_is_left_with_the_reason(
    members: str, reason: str, home: Path, run: Run
) -> None:
    text = f'[[mcp_servers]]\n{members}\nname = "t"\n' if "[[other" in members else ""
    file = write(home, FILES["mistral-vibe"], text := text or f"[[mcp_servers]]\n{members}\n")
    assert f"s (mistral-vibe, user): {reason}" in run("wrap", "s", code=1).err
    assert file.read_text() == text


def test_yaml_that_does_not_parse_or_is_too_long_is_named_at_once(home: Path, run: Run) -> None:
    bomb = "a: &a [x]\n" + "".join(
        f"{chr(98 + at)}: &{chr(98 + at)} [{', '.join([f'*{chr(97 + at)}'] * 9)}]\n"
        for at in range(20)
    )
    file = write(home, FILES["goose"], "extensions:\n  s: {cmd: x\n  t: y\n")
    long = write(home, FILES["continue"], "# x\n" * 200_000)
    large = write(
        home, "project/.continue/mcpServers/a.yaml", f"{bomb}mcpServers: [{{name: b, command: x}}]"
    )
    before = time.monotonic()
    words = run("wrap", "--all", code=1).err
    assert f"{file}:3:4: expected ',' or the closing bracket" in words
    assert f"{long}: 800000 characters of YAML are more than 500000; left as it is" in words
    assert "b (continue, project): wrapped, by mcp-abridge\n" in words
    run("unwrap", "--all", code=1)
    assert large.read_text().startswith(bomb)
    assert time.monotonic() - before < 20


def test_an_entry_comes_back_in_a_file_that_its_client_has_written_anew(
    home: Path, run: Run
) -> None:
    goose = write(home, FILES["goose"], "extensions:\n  s: {cmd: x, args: [y], timeout: 30} # s\n")
    vibe = write(
        home,
        FILES["mistral-vibe"],
        '[[mcp_servers]] # s\nname = "s"\ncommand = "x"\n'
        '[[mcp_servers]]\nname = "t"\ncommand = "y"\n',
    )
    run("wrap", "--all")
    document = yaml.safe_load(goose.read_text())
    document["extensions"]["s"] |= {"envs": {}, "bundled": None, "description": ""}
    goose.write_text(yaml.safe_dump({**document, "added": 1}))
    vibe.write_text(tomlkit.dumps({**tomllib.loads(vibe.read_text()), "added": 1}))
    assert run("unwrap", "--all").err.count(": restored\n") == 3
    entry = {"cmd": "x", "args": ["y"], "timeout": 30}
    assert yaml.safe_load(goose.read_text()) == {"extensions": {"s": entry}, "added": 1}
    assert entries("mistral-vibe", vibe.read_bytes()) == {
        "s": {"command": "x"},
        "t": {"command": "y"},
    }
    assert tomllib.loads(vibe.read_text())["added"] == 1


def test_vibe_gets_a_command_that_it_does_not_split(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    spaced = home.parent / "my programs" / PROGRAM
    spaced.parent.mkdir()
    shutil.copy(program(home), spaced)
    monkeypatch.setattr("sys.argv", [str(spaced)])
    file = write(home, FILES["mistral-vibe"], '[[mcp_servers]]\nname = "s"\ncommand = "x"\n')
    run("wrap", "--all")
    [entry] = entries("mistral-vibe", file.read_bytes()).values()
    assert entry == {"command": [str(spaced)], "args": ["--", "x"]}
    assert "is wrapped already" in run("wrap", "--all").err


def test_a_difference_names_the_server_and_masks_the_rest(home: Path, run: Run) -> None:
    write(home, FILES["continue"], "mcpServers:\n- {name: s, command: x, env: {K: s3cr3t}}\n")
    write(home, FILES["goose"], "extensions:\n  s: {cmd: x, args: [--key, s3cr3t]}\n")
    out, words = run("wrap", "--all", "--dry-run")
    assert "- name: s\n-  command: x\n" in out.replace("\n ", "\n")
    assert "s3cr3t" not in out + words
