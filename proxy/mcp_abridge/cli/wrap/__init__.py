"""`wrap`: puts mcp-abridge before servers in clients' configurations, or shows what is there."""

import argparse
import base64
import os
import shlex
import sys
from typing import Any
from urllib.parse import quote

import orjson

from mcp_abridge.cli import PROGRAM
from mcp_abridge.cli.terminal import console, json_text, printable, refuse, show, table
from mcp_abridge.cli.wrap import changes, entry, hooks
from mcp_abridge.cli.wrap.files import ConfigFile, Records
from mcp_abridge.cli.wrap.places import DIALECTS
from mcp_abridge.errors import AbridgeError


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    changes.add(parser)
    parser.add_argument("--rules", action="append", metavar="R", help="rules for the servers")
    parser.add_argument("--login", action="store_true", help="the URL wants a login (mcp-remote)")
    parser.add_argument(
        "--print",
        action="store_true",
        help="print each client's own line for a server: NAME, or [NAME] -- COMMAND",
    )


def run(arguments: argparse.Namespace) -> int:
    """Wrap, print or list. Returns 1 if a server or a file was left as it is, 2 for misuse."""
    rules = [word for name in arguments.rules or () for word in ("--rules", _absolute(name))]
    if arguments.hook:
        return hooks.install(arguments, entry.launcher(shared=False), rules)
    if arguments.print:
        return _print_lines(arguments, [*entry.launcher(shared=False), *rules])
    if not arguments.names and not arguments.all:
        return _list(arguments)
    launchers = {shared: entry.launcher(shared=shared) for shared in (False, True)}

    def edit(file: ConfigFile, server: entry.Server, records: Records) -> str:
        if server.own_words is not None:
            if server.own_words[: len(rules)] != rules:
                raise entry.NotPossible("is wrapped already, with other options; unwrap it first")
            return "is wrapped already"
        launch = [*launchers[server.place.scope == "project"], *rules]
        return _wrap(file, server, records, launch, login=arguments.login)

    return changes.change("wrap", arguments, edit)


def _wrap(
    file: ConfigFile, server: entry.Server, records: Records, launch: list[str], *, login: bool
) -> str:
    text = entry.wrap(file.syntax, file.text, server, launch, login=login)
    if changes.entry_in(file, text, server).own_words is None:
        raise entry.NotPossible("its entry has an unusual form; edit it by hand")
    records.add(server, file, text)
    file.change(text, server.path)
    return f"wrapped, by {shlex.join(launch)}{' (disabled)' if server.disabled else ''}"


def _absolute(name: str) -> str:
    from mcp_abridge.ruleset.selection import library, paths

    if name == "none" or name in library():
        return name
    [first, *_] = paths(name)
    if not first.exists():
        raise AbridgeError(f"--rules {name}: there is no such file")
    return os.path.abspath(name)


def _list(arguments: argparse.Namespace) -> int:
    configs = changes.Configs(arguments.client)
    configs.report_problems("wrap")
    rows = [
        {
            **changes.describe(server),
            "starts": server.summary(),
            "wrapped": server.own_words is not None,
            "disabled": server.disabled,
        }
        for server in configs.servers
    ]
    show(arguments, rows, _print_table)
    bare = [row["server"] for row in rows if not row["wrapped"]]
    if not rows:
        print("no client has a server here; `claude mcp add`, for one, adds it", file=sys.stderr)
    elif bare:
        print(
            f"next: {PROGRAM} wrap {shlex.quote(printable(bare[0]))}, or wrap --all; with --dry-run"
            " it only shows the changes",
            file=sys.stderr,
        )
    return int(bool(configs.problems))


def _print_table(rows: list[dict[str, Any]]) -> None:
    if rows:
        printed = table("client", "scope", "server", "command or URL", "")
        for row in rows:
            cells = (printable(row[key]) for key in ("client", "scope", "server", "starts"))
            state = ", ".join(key for key in ("wrapped", "disabled") if row[key])
            printed.add_row(*cells, state)
        console().print(printed)


def _print_lines(arguments: argparse.Namespace, launch: list[str]) -> int:
    words: list[str] = arguments.words
    command = words[words.index("--") + 1 :] if "--" in words else []
    names = arguments.names[: len(arguments.names) - len(command)]
    if not command:
        configs = changes.Configs(arguments.client)
        bare = (one for one in configs.servers if one.name in names and one.own_words is None)
        server = next(bare, None)
        if server is None:
            reason = (
                configs.unknown(names) or "--print needs the name of a server that is not wrapped"
            )
            return refuse(
                "wrap", f"{reason}; for one without an entry, write its command or URL after --"
            )
        command = server.words or [server.entry[entry.usable_url(server)]]
        if any(server.secrets()):
            print("its environment or headers are not in these lines: add them", file=sys.stderr)
    name = names[0] if names else "server"
    url = len(command) == 1 and "://" in command[0]
    whole = [*launch, *([] if url else ["--"]), *command]
    for client, spelling in DIALECTS.items():
        if spelling.add and arguments.client in (None, client):
            print(f"{spelling.add.format(shlex.quote(name))} {shlex.join(whole)}")
    member = {"command": whole[0], "args": whole[1:]}
    print(f"JSON     {json_text({name: member})}")
    config = quote(base64.b64encode(orjson.dumps(member)).decode())
    link = "cursor://anysphere.cursor-deeplink/mcp/install"
    print(f"Cursor   {link}?name={quote(name)}&config={config}")
    print(f"VS Code  vscode:mcp/install?{quote(orjson.dumps({'name': name, **member}))}")
    return 0
