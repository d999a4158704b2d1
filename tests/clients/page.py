"""Writes the tables of examples/clients/README.md: the clients, and how to set each up.

The page keeps the rows of clients that did not run or could not.
"""

import re
from pathlib import Path

from mcp_abridge.cli.wrap.places import CLIENTS as WRAP_CLIENTS
from mcp_abridge.cli.wrap.places import PLACES
from mcp_abridge.ruleset.clients import client_for

from tests.clients import install
from tests.clients.cases import SMALL, Bench, Check, plain
from tests.clients.programs import CLIENTS, Talk
from tests.reference.markdown import rendered, table

PAGE = Path(__file__).resolve().parents[2] / "examples" / "clients" / "README.md"
COLUMNS = (
    "client",
    "version",
    "name it says",
    "copy",
    "limit",
    "direct",
    "wrapped",
    "hook",
    "scripts",
    "rest",
)


def rows(bench: Bench, checks: list[Check]) -> list[list[str]]:
    """Return the row of a client; none if it did not start, so that the page keeps the last one."""
    name, version = bench.client.name, install.version(bench.client.program or bench.client.name)
    failures = "; ".join(f"not: {check.title}" for check in checks if check.problem)
    if bench.client.whole:
        outcome = failures or "a script gets the whole result"
        hook = "silent" if bench.client.shell else "-"
        copies = (f"`{bench.name}`", "what a script prints", "-", "-", "-", hook)
        return [[name, version, *copies, bench.client.scripts, outcome]]
    if bench.client.starts:
        outcome = failures or "its servers start wrapped; its model needs an account"
        return [[name, version, f"`{bench.name}`", *"------", outcome]]
    wrapped = bench.wrapped
    if len(wrapped.visible) <= len(SMALL) + 1:
        return []
    limit = client_for(bench.name).limit_bytes
    return [[
        name,
        version,
        f"`{bench.name}`",
        copy(bench.wrapped),
        "none" if limit is None else f"{limit:,}",
        f"{size(bench.direct, len(SMALL))} / {size(bench.direct_both, 0)}",
        f"{size(wrapped, len(SMALL) + 1)} / {size(wrapped, len(SMALL) + 3)}",
        "cuts" if bench.client.shell else "-",
        bench.client.scripts or "-",
        failures or "works",
    ]]  # fmt: skip


def copy(talk: Talk) -> str:
    text = plain(talk.visible[SMALL.index("marked")].text)
    return " and ".join(each for each in ("text", "structured") if f'"copy":"{each}"' in text)


def size(talk: Talk, number: int) -> str:
    results = talk.visible[number : number + 1]
    return f"{len(results[0].text.encode()):,}" if results else "nothing"


def write(rows: list[list[str]]) -> None:
    """Write the page with these rows in place of those that it has for the same clients."""
    page = PAGE.read_text()
    lines = [line[2:-2].split(" | ") for line in page.splitlines() if line.count(" | ") == 9]
    every = {cells[0]: cells for cells in (*lines, *rows)}
    names = [client.name for client in CLIENTS if client.name in every]
    setup = [(client.name, client.line) for client in CLIENTS if not client.program]
    tables = {
        "clients": table(COLUMNS, (every[name] for name in names)),
        "lines": table(("client", "line"), setup),
        "files": files(),
    }
    PAGE.write_text(rendered(page, tables))


def files() -> str:
    """Return the table of the files that `wrap` knows."""
    programs = {client.name for client in CLIENTS}
    rows = (
        [name, paths(name, "user"), paths(name, "local", "project"), "yes" * (name in programs)]
        for name in WRAP_CLIENTS
    )
    return table(("client", "of a user", "in a project", "run"), rows)


def paths(client: str, *scopes: str) -> str:
    every = {
        re.sub(r"\{(\w+):?([^}]*)\}", lambda match: match[2] or match[1], place.path)
        for place in PLACES
        if (place.client, place.scope in scopes, place.at[0] != "projects") == (client, True, True)
    }
    return ", ".join(f"`{path}`" for path in sorted(every))
