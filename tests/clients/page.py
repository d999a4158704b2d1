"""Writes examples/clients/README.md: the table of clients, and how to set each up.

The page keeps the rows of clients that did not run; a client that could not run says so in its row.
"""

from pathlib import Path

from proxy.ruleset.clients import client_for
from tests.clients import install
from tests.clients.cases import SMALL, Bench, Check, plain
from tests.clients.programs import CLIENTS, Client, Talk

PAGE = Path(__file__).resolve().parents[2] / "examples" / "clients" / "README.md"
HEAD = """\
# Clients

What the model reads of a tool's answer of 200 KB (rows as JSON), with the server directly and with `mcp-abridge`, in
programs from npm and PyPI. `make clients` installs these versions, runs each against a stand-in model on loopback,
checks that no answer of the proxy is cut again and that small ones pass unchanged, and writes this page. Another
version is tried by changing its pin in `tests/clients/install.py`.

Seven of the programs are also set up in the two ways below: `mcp-abridge wrap` before servers that are commands and
URLs, then `unwrap`; and the program's own line, as it stands here.

"Copy" is the one the model reads if a result has text and structuredContent. "Limit" is the size from which the client
itself changes a result. Bytes are those of a result with text alone, then with both copies. "Rest" is the call that the
proxy's notice names.

"""
COLUMNS = ("client", "version", "name it says", "copy", "limit", "direct", "wrapped", "rest")
SETUP = """
## To set up

`mcp-abridge wrap` changes the configurations of Claude Code, Codex, Gemini CLI, Qwen Code, opencode, Copilot CLI and
Cline for the servers that are in them. By hand, `SERVER` stands for a server's package; a server that is not from npm
has its own command in place of `npx -y SERVER`.

"""


def row(bench: Bench, checks: list[Check]) -> list[str]:
    name, version = bench.client.name, install.version(bench.client.program or bench.client.name)
    failures = "; ".join(f"not: {check.title}" for check in checks if check.problem)
    if bench.client.whole:
        outcome = failures or "a script gets the whole result"
        return [name, version, "`codex-mcp-client`", "what a script prints", "-", "-", "-", outcome]
    wrapped = bench.wrapped
    if len(wrapped.visible) <= len(SMALL) + 1:
        return skipped(bench.client, "did not start here")
    limit = client_for(bench.name).limit_bytes
    return [
        name,
        version,
        f"`{bench.name}`",
        copy(bench.wrapped),
        "none" if limit is None else f"{limit:,}",
        f"{size(bench.direct, len(SMALL))} / {size(bench.direct_both, 0)}",
        f"{size(wrapped, len(SMALL) + 1)} / {size(wrapped, len(SMALL) + 3)}",
        failures or "works",
    ]


def skipped(client: Client, reason: str) -> list[str]:
    version = install.version(client.program or client.name)
    return [client.name, version, *["-"] * 5, reason]


def copy(talk: Talk) -> str:
    text = plain(talk.visible[SMALL.index("marked")].text)
    return " and ".join(each for each in ("text", "structured") if f'"copy":"{each}"' in text)


def size(talk: Talk, number: int) -> str:
    results = talk.visible[number : number + 1]
    return f"{len(results[0].text.encode()):,}" if results else "nothing"


def write(rows: list[list[str]]) -> None:
    """Write the page with these rows in place of those that it has for the same clients."""
    text = PAGE.read_text() if PAGE.exists() else ""
    lines = {line.split(" | ")[0]: line for line in text.splitlines() if line.count(" | ") == 7}
    for cells in rows:
        lines[f"| {cells[0]}"] = f"| {' | '.join(cells)} |"
    table = [
        f"| {' | '.join(COLUMNS)} |",
        f"|{' --- |' * len(COLUMNS)}",
        *(lines[key] for client in CLIENTS if (key := f"| {client.name}") in lines),
    ]
    setup = ["| client | line |", "| --- | --- |"]
    setup += [f"| {client.name} | {client.line} |" for client in CLIENTS if not client.program]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(HEAD + "\n".join(table) + "\n" + SETUP + "\n".join(setup) + "\n")
