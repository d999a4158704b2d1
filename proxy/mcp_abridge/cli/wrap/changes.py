"""Choosing servers, showing the difference, writing the files: the same in `wrap` and `unwrap`."""

import argparse
import difflib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from itertools import islice
from typing import Any

from mcp_abridge.cli import PROGRAM
from mcp_abridge.cli.terminal import print_lines, refuse, show
from mcp_abridge.cli.wrap.entry import Server, servers
from mcp_abridge.cli.wrap.files import Changed, Changes, ConfigFile, load
from mcp_abridge.cli.wrap.places import CLIENTS, HOOKS, Place, files
from mcp_abridge.cli.wrap.records import EntryKey, Records, exclusive
from mcp_abridge.cli.wrap.text import NotPossible, Syntax, SyntaxProblem, entry_at
from mcp_abridge.errors import AbridgeError, did_you_mean_or_known
from mcp_abridge.system import platform

_PATIENCE = 10.0  # seconds for a file that others write all the time
_PAUSE = 0.02
_SETTLING = 0.2  # seconds in which a client may put back what it had read before

Edit = Callable[[ConfigFile, Server, Records], str]
"""Changes one server in a file, and returns a word on it. Raises NotPossible."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of both verbs."""
    every = list(dict.fromkeys([*CLIENTS, *HOOKS]))
    parser.add_argument("names", nargs="*", metavar="NAME", help="a server, in all scopes")
    parser.add_argument("--all", action="store_true", help="every server")
    parser.add_argument("--hook", action="store_true", help="the hook of a client, not servers")
    parser.add_argument(
        "--client", metavar="C", choices=every, help=f"only this one: {', '.join(every)}"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the changes, write nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")


class Configs:
    """The configurations on this machine: `files` that parse, their `servers`, and `problems`."""

    def __init__(self, client: str | None) -> None:
        self._client = client
        self.files: dict[str, ConfigFile] = {}
        self.servers: list[Server] = []
        self.problems: dict[str, str] = {}
        for place, path in files(client):
            if file := self._load(path):
                self.servers += servers(place, path, file.document)

    def add(self, clients: Mapping[EntryKey, str]) -> None:
        """Read the recorded entries of these clients, too, wherever they are."""
        here = {(one.file, *one.path) for one in self.servers}
        for key in sorted(clients.keys() - here):
            path, *names = key
            at = names[:-2] if names[-1] == "transport" and len(names) > 2 else names[:-1]
            place = Place(clients[key], f"in {path}", path, tuple(at))
            if self._client in (None, place.client) and (file := self._load(path)):
                there = servers(place, path, file.document)
                self.servers += (one for one in there if (path, *one.path) == key)

    def _load(self, path: str) -> ConfigFile | None:
        try:
            return self.files.get(path) or self.files.setdefault(path, load(path))
        except FileNotFoundError:
            self.problems[path] = f"{path} is gone; what is recorded of it stays"
        except SyntaxProblem as error:
            self.problems[path] = f"{path}:{error.line}:{error.column}: {error}; left as it is"
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            self.problems[path] = f"{path}: {reason}; left as it is"
        return None

    def unknown(self, names: list[str]) -> str | None:
        """Return why no server can be found by the first of these names that is unknown."""
        all_names = sorted({server.name for server in self.servers})
        for name in names:
            if name not in all_names:
                advice = did_you_mean_or_known(name, all_names)
                return f"no client has a server {name!r}{advice}"
        return None

    def report_problems(self, verb: str) -> None:
        for problem in self.problems.values():
            refuse(verb, problem)


def faults(configs: Configs) -> Iterator[str]:
    """Yield a line for each wrapped server whose command cannot start, and what helps."""
    for server in configs.servers:
        if fault := server.fault:
            name = f"{server.name} ({server.place.client}, {server.scope})"
            yield f"{name}: {fault}; `{PROGRAM} unwrap --all` restores it"


def change(
    verb: str, arguments: argparse.Namespace, edit: Edit, notes: Mapping[str, str] | None = None
) -> int:
    """Edit the servers that are named. Returns 1 if one was left, 2 if a name is unknown.

    The edits may add `notes`, which are printed after the rows, one for each key.
    """
    with nullcontext() if arguments.dry_run else exclusive():
        return _change(verb, arguments, edit, {} if notes is None else notes)


def _change(verb: str, arguments: argparse.Namespace, edit: Edit, notes: Mapping[str, str]) -> int:
    dry_run = bool(arguments.dry_run)
    records = Records(dry_run=dry_run)
    configs = Configs(arguments.client)
    if verb == "unwrap" and arguments.all:
        # In the folders of other projects, too, what was wrapped is restored.
        configs.add(records.clients)
    configs.report_problems(verb)
    if problem := configs.unknown(arguments.names):
        return refuse(verb, problem)
    selection = [one for one in configs.servers if arguments.all or one.name in arguments.names]
    if not selection:
        refuse(verb, "no client has a server here")
    rows: dict[EntryKey, dict[str, Any]] = {}

    def edit_all(file: ConfigFile, selection: list[Server]) -> None:
        for one in selection:
            rows[one.file, *one.path] = _edit(file, one, records, edit, dry_run)
        if not dry_run:
            records.begin((one.file, *one.path) for one in selection)

    results: list[ConfigFile] = []
    for path, file in configs.files.items():
        own = [one for one in selection if one.file == path]
        if not own:
            continue
        edit_all(file, own)
        if not dry_run:
            try:
                file = _write(file, own, edit_all)
            except (AbridgeError, OSError, ValueError) as error:
                for one in own:
                    rows[path, *one.path] |= {"result": str(error), "left": True}
                continue
        results.append(file)
    if not dry_run:
        records.finish()
    for file in () if arguments.json else results:
        print_lines(*difference(file.syntax, file.path, file.changes))
    backups = {file.path: file.backup for file in results if file.backup}
    for path, backup in backups.items():
        note = f"; its backup is {backup}" if os.path.exists(backup) else ""
        print_lines(f"{path} is written{note}", stderr=True)
    show(arguments, list(rows.values()), _print)
    print_lines(*notes.values(), stderr=True)
    words = "--all" if arguments.all else platform.join(arguments.names)
    print_next_step(verb, words, changed=bool(backups), dry_run=dry_run)
    return int(bool(configs.problems) or any(row["left"] for row in rows.values()))


def _write(
    file: ConfigFile, selection: list[Server], edit_all: Callable[[ConfigFile, list[Server]], None]
) -> ConfigFile:
    """Write a file; return it as it was written: if others write it meanwhile, with theirs.

    Raises Changed if they do so all the time; else as ConfigFile and its `write`.
    """
    deadline, busy = time.monotonic() + _PATIENCE, False
    while True:
        stands = False
        try:
            file.write()
            if not (busy or file.fresh):
                return file
            stands = True
            time.sleep(_SETTLING)
        except Changed:
            busy = True
            if time.monotonic() > deadline:
                raise
            if file.follow():
                continue
            time.sleep(_PAUSE)
        try:
            now = load(file.path)
        except (AbridgeError, ValueError):
            now = None
        entries = [entry_at(now and now.document, one.path) for one in selection]
        if now is None or None in entries:
            if stands:
                return file
            continue
        selection = [one._replace(entry=each) for one, each in zip(selection, entries, strict=True)]
        rest = [one for one in selection if one.entry != file.entry(one.path)]
        if not rest:
            return file
        now.backup = file.backup
        edit_all(now, rest)
        file = now


def difference(syntax: Syntax, path: str, changes: Changes) -> Iterator[str]:
    """Yield the lines of a unified diff of the entries in a file, each as a hunk."""
    yield from (f"--- {path}", f"+++ {path}") if changes else ()
    for names, entries in changes.items():
        old, new = (
            [] if each is None else syntax.text_of(each, names).splitlines() for each in entries
        )
        yield f"@@ {'.'.join(names)} @@"
        yield from islice(difflib.unified_diff(old, new, n=len(old), lineterm=""), 3, None)


def print_next_step(verb: str, words: str, *, changed: bool, dry_run: bool) -> None:
    """Print what the user does after the verb with these words."""
    if dry_run:
        print_lines("nothing is written (--dry-run)", stderr=True)
    elif changed:
        back = f"; `{PROGRAM} unwrap {words}` restores" if verb == "wrap" else ""
        print_lines(f"restart the clients{back}", stderr=True)


def _edit(
    file: ConfigFile, server: Server, records: Records, edit: Edit, dry_run: bool
) -> dict[str, Any]:
    unchanged = True
    try:
        text = file.part(server.path)
        result, unchanged = edit(file, server, records), False
        result = f"would be {result}" if dry_run and file.part(server.path) != text else result
    except NotPossible as error:
        result = str(error)
    except (AbridgeError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        result = "its entry has an unusual form; edit it by hand"
    return {**describe(server), "left": unchanged, "result": result}


def describe(server: Server) -> dict[str, Any]:
    """Return the members that `--json` prints of a server."""
    return {
        "client": server.place.client,
        "scope": server.scope,
        "file": server.file,
        "server": server.name,
    }


def _print(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        line = f"{row['server']} ({row['client']}, {row['scope']}): {row['result']}"
        print_lines(line, stderr=True)
