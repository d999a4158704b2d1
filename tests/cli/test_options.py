"""The command line and the environment of `run`, read by hand and by argparse from one table."""

import json
import re
from pathlib import Path

import pytest
from mcp_abridge.cli import VERBS
from mcp_abridge.cli.options import OPTIONS, read
from mcp_abridge.errors import AbridgeError
from mcp_abridge.ruleset.loading.config_model import header

from tests.cli.conftest import Run

ONE_SERVER = "one server: give its URL, or write its command after --"
ROOT = Path(__file__).resolve().parents[2]


def test_each_option_is_read_in_both_spellings() -> None:
    with_spaces = (
        "--rules a --rules b --budget 8kB --ledger off --max-message 1MiB --log-format json -v -q"
        " --allow-python --snapshots 64MB --snapshot-age 60 --store d --store-scope s --deadline 30"
        " --scripts on --record r --record-size 9kB --redact token --redact sk-.*"
    )
    with_equals = (
        "--rules=a --rules=b --budget=8kB --ledger=off --max-message=1MiB --log-format=json"
        " --verbose --quiet --allow-python --snapshots=64MB --snapshot-age=60 --deadline=30"
        " --scripts=on --store=d --store-scope=s --record=r --record-size=9kB --redact=token"
        " --redact=sk-.*"
    )
    for words in (with_spaces, with_equals):
        options = read([*words.split(), "--", "server"], {})
        assert vars(options) == {
            "rules": ["a", "b"],
            "allow_python": True,
            "budget": 8000,
            "scripts": "on",
            "ledger": "off",
            "record": "r",
            "record_size": 9000,
            "redact": ["token", "sk-.*"],
            "max_message": 1 << 20,
            "snapshots": 64_000_000,
            "snapshot_age": 60.0,
            "store": "d",
            "store_scope": "s",
            "deadline": 30.0,
            "log_format": "json",
            "verbose": True,
            "quiet": True,
            "header": None,
            "headers": [],
            "command": ["server"],
            "url": None,
        }


def test_a_flag_wins_over_the_environment_and_that_over_the_default() -> None:
    environment = {
        "MCP_ABRIDGE_RULES": "a:b",
        "MCP_ABRIDGE_BUDGET": "off",
        "MCP_ABRIDGE_MAX_MESSAGE": "2MB",
        "MCP_ABRIDGE_VERBOSE": "1",
        "MCP_ABRIDGE_QUIET": "no",
        "MCP_ABRIDGE_ALLOW_PYTHON": "on",
        "MCP_ABRIDGE_LEDGER": "",
    }
    options = read(["--budget", "auto", "--", "server"], environment)
    assert options.rules == ["a", "b"]
    assert options.budget == "auto"
    assert options.max_message == 2_000_000
    assert (options.verbose, options.quiet, options.allow_python) == (True, False, True)
    assert options.ledger is None
    assert options.log_format == "text"
    again = read(["--rules", "c", "--", "server"], environment)
    assert again.rules == ["c"]


def test_a_url_stands_for_a_server_that_runs_already() -> None:
    words = ["--header", "A: ${TOKEN}", "-v", "https://example.org/mcp?a=b", "--header=B: c=d"]
    options = read(words, {"TOKEN": "t"})
    assert options.url == "https://example.org/mcp?a=b"
    assert options.headers == [("A", "t"), ("B", "c=d")]
    assert (options.command, options.rules, options.verbose) == ([], None, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("secret", "a header is written like 'Authorization: Bearer ${TOKEN}'"),
        ("MCP-Session-Id: secret", "the header 'MCP-Session-Id' is the proxy's own"),
        ("Mcp-Param-Name: secret", "the header 'Mcp-Param-Name' is the proxy's own"),
        ("A: ${SECRET}", "a header has no line breaks or other control characters"),
        ("A: secret ${", "'${' begins the name of a variable, which ends with '}'"),
    ],
)
def test_an_invalid_header_is_refused_without_its_value(text: str, message: str) -> None:
    with pytest.raises(AbridgeError) as error:
        header(text, {"SECRET": "secret\r\nB: c"})
    assert str(error.value) == message


def test_the_lines_for_clients_of_the_page_on_setup_wrap_the_server_of_the_line_by_hand() -> None:
    page = (ROOT / "examples" / "setup.md").read_text()
    [first] = re.findall(r"^mcp-abridge (-- npx .+server-filesystem .+)$", page, re.MULTILINE)
    lines = re.findall(r"^(?:claude|codex) mcp add fs -- mcp-abridge (.+)$", page, re.MULTILINE)
    assert lines == [first, first]
    [block] = re.findall(r"^```json\n(.+?)^```$", page, re.DOTALL | re.MULTILINE)
    assert json.loads(block)["servers"]["fs"] == {
        "type": "stdio",
        "command": "mcp-abridge",
        "args": first.split(),
    }
    options = read(first.split(), {})
    assert options.command == first.split()[1:]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), ONE_SERVER),
        (("https://a.b", "https://a.b"), ONE_SERVER),
        (("https://a.b", "--", "server"), ONE_SERVER),
        (("",), "unexpected ''; what is the server's goes after --"),
        (("ftp://a.b",), "expected a URL such as http://server:3000/mcp, found 'ftp://a.b'"),
        (("--header", "A: b", "--", "s"), "--header is for a server behind a URL"),
        (("--header", "A: ${NEVER_SET}", "https://a.b"), "the variable 'NEVER_SET' is not set"),
        (("--ruels", "x", "--", "s"), "unexpected '--ruels'; did you mean '--rules'?"),
        (("--budget", "8 kB", "--", "s"), "'8 kB' is not a size; write it like 8kB, 256MB or 1GiB"),
        (("--budget", "8", "npx", "--budget", "7"), "'8' is less than the minimum of 300 bytes"),
        (("--log-format", "xml", "--", "s"), "'xml' is none of text, json"),
        (("--rules", "--", "s"), "argument --rules: expected one argument"),
        (("--verbose=1", "--", "s"), "argument --verbose: takes no value"),
        *(
            (("--deadline", text, "--", "s"), f"{text!r} is no number of seconds above 0")
            for text in ("0", "nan", "inf", "30s")
        ),
    ],
)
def test_an_unusable_command_line_is_refused_in_one_line(
    words: tuple[str, ...], complaint: str, run: Run
) -> None:
    out, error = run(*words, code=2)
    assert out == ""
    assert complaint in error.splitlines()[-1]


def test_an_unusable_variable_is_refused_by_its_name(run: Run) -> None:
    error = run("--", "server", MCP_ABRIDGE_BUDGET="much", code=2).err
    assert "mcp-abridge: error: MCP_ABRIDGE_BUDGET: 'much' is not a size; " in error
    error = run(MCP_ABRIDGE_BUDGET="", MCP_ABRIDGE_URL="ftp://a/S3CRET", code=2).err
    assert "error: MCP_ABRIDGE_URL: expected a URL such as" in error
    assert error.endswith("found 'ftp://a/***'\n")


def test_the_words_of_a_server_win_over_the_url_in_the_environment() -> None:
    environment = {"MCP_ABRIDGE_URL": "https://a.b/mcp", "MCP_ABRIDGE_HEADER": "A: ${B}", "B": "c"}
    options = read(["-v"], environment)
    assert (options.url, options.headers) == ("https://a.b/mcp", [("A", "c")])
    assert read(["https://c.d"], environment).url == "https://c.d"
    options = read(["--", "server"], environment)
    assert (options.url, options.command, options.headers) == (None, ["server"], [])


@pytest.mark.parametrize("words", [("--help",), ("run", "-h")])
def test_help_names_every_option_how_variables_are_named_and_every_verb(
    words: tuple[str, ...], run: Run
) -> None:
    out = run(*words).out
    assert len(out.splitlines()) <= 60
    assert max(map(len, out.splitlines())) <= 80
    text = " ".join(out.split())  # argparse breaks long lines
    assert [option.flag for option in OPTIONS if option.flag not in text] == []
    assert f"--log-format is {OPTIONS[-3].variable}" in text
    assert [v for v, (example, _) in VERBS.items() if f"{v} {example}".strip() not in text] == []
    assert "mcp-abridge [run] [OPTION]... [--] COMMAND [ARG]..." in text
    assert "mcp-abridge [run] [OPTION]... URL" in text


@pytest.mark.parametrize("name", ["Mcp-Api-Key", "Content-Language", "Upgrade-Insecure-Requests"])
def test_a_header_that_only_begins_as_one_of_the_proxys_is_the_servers(name: str) -> None:
    assert header(f"{name}: ${{KEY}}", {"KEY": "k"}) == (name, "k")
