"""`wrap`: puts mcp-abridge before servers in clients' configurations, or shows what is there."""

import argparse
import base64
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import orjson

from mcp_abridge.cli import PROGRAM, options
from mcp_abridge.cli.events import BUILT_IN
from mcp_abridge.cli.terminal import (
    console,
    json_text,
    print_lines,
    refuse,
    refuse_error,
    show,
    table,
)
from mcp_abridge.cli.wrap import changes, entry, hooks
from mcp_abridge.cli.wrap.entry import HEADERS
from mcp_abridge.cli.wrap.files import ConfigFile
from mcp_abridge.cli.wrap.places import DIALECTS, dialect
from mcp_abridge.cli.wrap.records import Records, recorded
from mcp_abridge.cli.wrap.text import NotPossible
from mcp_abridge.document.masks import MASK, masked_words
from mcp_abridge.ruleset.selection import NO_RULES, absolute, load
from mcp_abridge.system import platform
from mcp_abridge.transports.client import LOGIN


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    changes.add(parser)
    parser.add_argument("--rules", action="append", metavar="R", help="rules for the servers")
    options.add(parser, options.by_name("allow_python"))
    parser.add_argument(
        "--scripts", choices=("on", "off"), help="the model's scripts read the answers: none is cut"
    )
    parser.add_argument(
        "--tools",
        action="append",
        choices=BUILT_IN,
        help="with --hook: this tool of Claude Code's own, too",
    )
    parser.add_argument("--login", action="store_true", help="the URL wants a login (mcp-remote)")
    parser.add_argument(
        "--print",
        action="store_true",
        help="print each client's own line for a server: NAME, or [NAME] -- COMMAND",
    )


def run(arguments: argparse.Namespace) -> int:
    """Wrap, print or list. Returns 1 if a server or a file was left as it is, 2 for misuse."""
    own = [word for name in arguments.rules or () for word in ("--rules", absolute(name))]
    if arguments.rules not in (None, [NO_RULES]):
        # With a mistake in them, the client's servers would not start.
        load(arguments.rules, allow_python=arguments.allow_python)
    own += ["--allow-python"] if arguments.allow_python else []
    if arguments.hook:
        return hooks.install(arguments, entry.launcher(shared=False), own)
    own += ["--scripts", arguments.scripts] if arguments.scripts else []
    if arguments.print:
        return _print_lines(arguments, [*entry.launcher(shared=False), *own])
    if not arguments.names and not arguments.all:
        return _list(arguments)
    launchers = {shared: entry.launcher(shared=shared) for shared in (False, True)}
    notes: dict[str, str] = {}

    def edit(file: ConfigFile, server: entry.Server, records: Records) -> str:
        if server.own_words is not None:
            if server.own_words[: len(own)] != own:
                undo = f"{PROGRAM} unwrap {platform.join([server.name])}"
                raise NotPossible(f"is wrapped already, with other options; `{undo}` comes first")
            if fault := server.fault:
                raise NotPossible(f"is wrapped already, but {fault}; unwrap it, and wrap it again")
            pin = next((word for word in server.words if word.startswith(f"{PROGRAM}@")), "")
            old = pin not in ("", launchers[False][-1])
            advice = f" by {pin}; unwrap it, and wrap it again, for {launchers[False][-1]}"
            return f"is wrapped already{advice * old}"
        launch = [*launchers[server.place.scope == "project"], *own]
        result = _wrap(file, server, records, launch, arguments)
        if server.place.scope == "project":
            need = entry.needs(launchers[True])
            notes[file.path] = f"{file.path} is for all who have the project, and {need}"
        return result

    return changes.change("wrap", arguments, edit, notes)


def _wrap(
    file: ConfigFile,
    server: entry.Server,
    records: Records,
    launch: list[str],
    arguments: argparse.Namespace,
) -> str:
    login, offline = arguments.login, arguments.dry_run
    file.check()
    part, inner = file.part(server.path)
    place = server._replace(path=inner)
    text = entry.wrap(file.syntax, part, place, launch, login=login, offline=offline)
    after = server._replace(entry=file.entry(server.path, text))
    if after.own_words is None:
        raise NotPossible("its entry has an unusual form; edit it by hand")
    file.check_part(server.path, text)
    records.add(server, file, text)
    file.change(server.path, text)
    result = f"wrapped, by {platform.join(launch)}{' (disabled)' if server.disabled else ''}"
    if not server.words and LOGIN[-1] in after.words:
        result += "; mcp-remote takes its URL as a word, which others see in the list of processes"
    elif offline and entry.may_want_login(server):
        result += "; its URL is asked then if it wants a login, for which mcp-remote comes between"
    return result


def _list(arguments: argparse.Namespace) -> int:
    clients = recorded(partial(refuse_error, "wrap"))
    configs = changes.Configs(arguments.client)
    configs.report_problems("wrap")
    rows = [
        {
            **changes.describe(server),
            "starts": server.summary(),
            "wrapped": server.own_words is not None,
            "disabled": server.disabled,
            "fault": server.fault,
        }
        for server in configs.servers
    ]
    show(arguments, rows, _print_table)
    print_lines(*_several_files(rows), stderr=True)
    code = int(bool(configs.problems))
    configs.add(clients)
    print_lines(*changes.faults(configs), stderr=True)
    bare = [row["server"] for row in rows if not row["wrapped"]]
    if not rows:
        print_lines("no client has a server here; `claude mcp add`, for one, adds one", stderr=True)
    elif bare:
        print_lines(
            f"next: {PROGRAM} wrap {platform.join(bare[:1])}, or wrap --all; with --dry-run it only"
            " shows the changes",
            stderr=True,
        )
    return code


def _several_files(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Name the files of a client that has several, as after it was installed in another way."""
    files: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["scope"] == "user":
            files.setdefault(row["client"], {})[row["file"]] = None
    for client, paths in files.items():
        if len(paths) > 1:
            yield f"{client} has {len(paths)} files, and may read only one: {', '.join(paths)}"


def _print_table(rows: list[dict[str, Any]]) -> None:
    if rows:
        printed = table("client", "scope", "server", "command or URL", "")
        for row in rows:
            cells = (row[key] for key in ("client", "scope", "server", "starts"))
            state = ", ".join(key for key in ("wrapped", "disabled") if row[key])
            printed.add_row(*cells, state)
        console().print(printed)


def _print_lines(arguments: argparse.Namespace, launch: list[str]) -> int:
    words: list[str] = arguments.words
    command = words[words.index("--") + 1 :] if "--" in words else []
    names = arguments.names[: len(arguments.names) - len(command)]
    masked = masked_words(command)
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
        words = server.words or [server.entry[entry.usable_url(server)]]
        command = masked = masked_words(words)
        if any(server.entry.get(key) for key in (dialect(server.place.client).env, *HEADERS)):
            print_lines("its environment or headers are not in these lines: add them", stderr=True)
        if masked != words:
            advice = f"*** may be secret: write there what {server.file} has"
            print_lines(advice, stderr=True)
    elif masked != command:
        print_lines(
            "if one of these words is secret, others see it in the list of processes; a server"
            " should take it from its environment",
            stderr=True,
        )
    name = names[0] if names else "server"
    whole = [*launch, "--", *command]
    member: dict[str, Any] = {"command": launch[0], "args": whole[1:]}
    if len(command) == 1 and "://" in command[0]:
        whole = [*launch, *command]
        member = {"command": launch[0], "args": launch[1:], "env": {options.URL: command[0]}}
    if "env" in member and MASK in masked[0]:
        print_lines("only as JSON and links: a line would show others the URL", stderr=True)
    else:
        for client, spelling in DIALECTS.items():
            if spelling.add and arguments.client in (None, client):
                line = f"{spelling.add.format(platform.join([name]))} {platform.join(whole)}"
                print_lines(line)
    print_lines(f"JSON     {json_text({name: member})}")
    config = quote(base64.b64encode(orjson.dumps(member)).decode())
    link = "cursor://anysphere.cursor-deeplink/mcp/install"
    print(f"Cursor   {link}?name={quote(name)}&config={config}")
    print(f"VS Code  vscode:mcp/install?{quote(orjson.dumps({'name': name, **member}))}")
    return 0
