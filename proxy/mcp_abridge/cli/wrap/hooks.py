"""`wrap --hook`: without it, the settings of clients would be edited by hand."""

import argparse
import os
import re
import shlex
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from mcp_abridge.cli import PROGRAM
from mcp_abridge.cli.terminal import json_text, print_lines, refuse
from mcp_abridge.cli.wrap.changes import difference, print_next_step
from mcp_abridge.cli.wrap.entry import masked_value
from mcp_abridge.cli.wrap.files import ConfigFile, remove_backups
from mcp_abridge.cli.wrap.places import HOOKS, HookFile, hook_path
from mcp_abridge.cli.wrap.records import Records, exclusive
from mcp_abridge.cli.wrap.text import Json, NotPossible, Syntax, SyntaxProblem, Toml, entry_at
from mcp_abridge.errors import AbridgeError
from mcp_abridge.system import platform

_CLAUDE = "claude-code"
_UNUSUAL = "an unusual form"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\S')  # of JSON
_TROUBLE = (AbridgeError, AttributeError, LookupError, OSError, TypeError, ValueError)

_Entry = dict[str, Any]


def install(arguments: argparse.Namespace, launch: list[str], rules: list[str]) -> int:
    """Add the hook that `launch` starts. Returns 1 if the settings cannot be edited, 2 for misuse.

    A hook with other rules or tools is replaced if there are `rules` or tools.
    """
    client, tools = arguments.client or _CLAUDE, arguments.tools or []
    if client not in HOOKS or (tools and client != _CLAUDE):
        which = f"--tools is for {_CLAUDE}" if tools else f"--hook is for {', '.join(HOOKS)}"
        return refuse("wrap", which)
    place = HOOKS[client]
    command = shlex.join([*launch, "hook", *rules, *(f"--tools={tool}" for tool in tools)])
    entry = place.entry("|".join([place.matcher, *tools]), command)
    return _edit("wrap", arguments, {client: entry}, replace=bool(rules or tools))


def uninstall(arguments: argparse.Namespace) -> int:
    """Remove the hook of a client, or of all. Returns 1 or 2 as `install` does."""
    clients = HOOKS if arguments.client is None else HOOKS.keys() & {arguments.client}
    return _edit("unwrap", arguments, dict.fromkeys(clients), replace=True)


def _edit(
    verb: str, arguments: argparse.Namespace, entries: Mapping[str, _Entry | None], *, replace: bool
) -> int:
    """Put entries into the files of their clients, or none; `replace` those that are there."""
    others = ("names", "all", "json", "login", "print", "scripts")
    if any(getattr(arguments, name, None) for name in others):
        flags = "--client, --dry-run, --rules and --tools"
        flags = flags if verb == "wrap" else "--client and --dry-run"
        return refuse(verb, f"--hook is for all servers of a client: only {flags} may follow")
    changed, code = False, 0
    with nullcontext() if arguments.dry_run else exclusive():
        for client, entry in entries.items():
            place, path, dry_run = HOOKS[client], hook_path(client), arguments.dry_run
            try:
                changed |= _edit_file(verb, path, place, entry, replace=replace, dry_run=dry_run)
            except _TROUBLE as error:
                reason = str(error) if isinstance(error, AbridgeError | OSError) else _UNUSUAL
                at = f":{error.line}:{error.column}" if isinstance(error, SyntaxProblem) else ""
                refuse(verb, f"{path}{at}: {reason}; edit it by hand")
                code = 1
    if not changed and not code:
        print_lines(f"the hook {'is there already' if verb == 'wrap' else 'is not there'}")
    if not code:
        words = f"--hook --client {arguments.client}" if arguments.client else "--hook"
        print_next_step(verb, words, changed=changed, dry_run=arguments.dry_run)
    return code


def _edit_file(
    verb: str, path: str, place: HookFile, entry: _Entry | None, *, replace: bool, dry_run: bool
) -> bool:
    """Show and write the change of a file. Returns True if there is any.

    Raises NotPossible if the file would be broken, or hide the hook.
    """
    file = ConfigFile(path, None if os.path.exists(path) else place.empty)
    records, syntax, text = Records(dry_run=dry_run), file.syntax, file.text
    old = _own_entry(file.document, place) if entry is not None or PROGRAM in text else None
    if old is not None and replace:
        text = _without(text, _pieces(syntax, place, old))
    if entry is not None and (old is None or replace):
        text = _with(text, syntax, place, entry)
    if changed := text != file.before:
        try:
            own = _own_entry(syntax.read(text), place)
        except (SyntaxProblem, ValueError):
            raise NotPossible(_UNUSUAL) from None
        if entry is not None and own is None:  # by a key that is null
            raise NotPossible(_UNUSUAL)
        elements = None if old is None else [masked_value(old)], None if entry is None else [entry]
        print_lines(*difference(syntax, path, {(*place.event, PROGRAM): elements}))
    if changed and not dry_run:
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "xb") as new:
                new.write(place.empty)
        file.text = text
        file.write()
        if text.encode() == place.empty:
            platform.unlink(path)
            print_lines(f"{path} has nothing else, and is removed", stderr=True)
        else:
            note = f"; its backup is {file.backup}{place.note}" if verb == "wrap" else ""
            print_lines(f"{path} is written{note}", stderr=True)
    if verb == "unwrap" and not dry_run and not any(key[0] == path for key in records.clients):
        remove_backups(path)
    return changed


def _own_entry(settings: Any, place: HookFile) -> Any:
    for entry in entry_at(settings, place.event) or ():
        for hook in (entry, *entry.get("hooks", ())):
            command = str(hook.get("command") or hook.get("bash"))
            if re.search(rf"\b{PROGRAM}\b.* hook\b", command):
                return entry
    return None


def _with(text: str, syntax: Syntax, place: HookFile, entry: _Entry) -> str:
    """Return the text with the hook at the end of TOML, or first in what JSON has there already."""
    pieces = _pieces(syntax, place, entry)
    if isinstance(syntax, Toml):
        return text + pieces[0]
    settings = syntax.read(text)
    depth = next(each for each in (2, 1, 0) if entry_at(settings, place.event[:each]) is not None)
    container = entry_at(settings, place.event[:depth])
    piece = pieces[depth]
    at = Json().locate(text, place.event[:depth])[1] + 1
    if not container:
        # The space tells what was there from what is added around it.
        return f"{text[:at]}{piece}{' ' * (depth > 0)}{text[at:]}"
    rest = text[at:]
    gap = rest[: len(rest) - len(rest.lstrip())]
    return f"{text[:at]}{gap}{piece},{rest}"


def _pieces(syntax: Syntax, place: HookFile, entry: _Entry) -> list[str]:
    """Return the texts that add an entry to a file, by the depth of what is there already."""
    if isinstance(syntax, Toml):
        return [f"\n{syntax.text_of([entry], (*place.event, ''))}"]
    literal = json_text(entry)
    member = f'"{place.event[-1]}": [{literal}]'
    return [f'"hooks": {{{member}}}', member, literal]


def _without(text: str, pieces: list[str]) -> str:
    exact = [re.escape(piece) for piece in pieces]
    # The client may have written the whole file in a layout of its own.
    loose = [r"\s*".join(map(re.escape, _TOKEN.findall(piece))) for piece in pieces]
    for number, pattern in enumerate([*exact, *loose]):
        if match := re.search(pattern, text):
            start, end = match.span()
            if text[end : end + 1] == ",":
                return text[:start].rstrip() + text[end + 1 :]
            return text[:start] + text[end + (number % len(pieces) > 0) :]
    raise NotPossible("the hook was changed since")
