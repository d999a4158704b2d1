"""`wrap --hook`: without it, the settings of Claude Code would be edited by hand."""

import argparse
import os
import re
import shlex
from contextlib import nullcontext
from typing import Any

from mcp_abridge.cli import PROGRAM
from mcp_abridge.cli.terminal import json_text, print_lines, refuse
from mcp_abridge.cli.wrap.changes import print_next_step
from mcp_abridge.cli.wrap.difference import difference, masked_value
from mcp_abridge.cli.wrap.entry import NotPossible
from mcp_abridge.cli.wrap.files import ConfigFile, remove_backups
from mcp_abridge.cli.wrap.records import Records, exclusive
from mcp_abridge.cli.wrap.text import Json, SyntaxProblem, entry_at
from mcp_abridge.errors import AbridgeError
from mcp_abridge.system import platform

_MATCHER = "mcp__.*"
_EVENT = ("hooks", "PostToolUse")
_EMPTY = b"{ }\n"  # of a file that `wrap` makes; the space tells it from a user's own


def install(arguments: argparse.Namespace, launch: list[str], rules: list[str]) -> int:
    """Add the hook that `launch` starts. Returns 1 if the settings cannot be edited, 2 for misuse.

    A hook with other rules is replaced if there are `rules`.
    """
    command = shlex.join([*launch, "hook", *rules])
    group = {"matcher": _MATCHER, "hooks": [{"type": "command", "command": command}]}

    def edit(text: str, settings: Any) -> str:
        if rules:
            text = _without_hook(text, settings)
            settings = Json().read(text)
        return _with_hook(text, settings, group)

    return _edit("wrap", arguments, edit, group)


def uninstall(arguments: argparse.Namespace) -> int:
    """Remove the hook. Returns 1 if the settings cannot be edited, 2 for misuse."""
    return _edit("unwrap", arguments, _without_hook, None)


def _edit(verb: str, arguments: argparse.Namespace, edit: Any, group: Any) -> int:
    others = ("names", "all", "client", "json", "login", "print")
    if any(getattr(arguments, name, None) for name in others):
        words = "--dry-run and --rules" if verb == "wrap" else "--dry-run"
        return refuse(verb, f"--hook is for all servers of Claude Code: only {words} may follow")
    folder = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
    path = os.path.realpath(os.path.join(folder, "settings.json"))
    try:
        with nullcontext() if arguments.dry_run else exclusive():
            records = Records(dry_run=arguments.dry_run)
            file = ConfigFile(path, None if os.path.exists(path) else _EMPTY)
            file.text = edit(file.text, file.document)
            _check(verb, file)
            changed = file.text != file.before
            if changed:
                file.changes[_EVENT] = masked_value(_own_group(file.document)), group
                print_lines(*difference(file.syntax, path, file.changes))
            if not arguments.dry_run:
                if changed:
                    backup = _write(file, records)
                    note = f"; its backup is {backup}" if verb == "wrap" else ""
                    print_lines(f"{path} is written{note}", stderr=True)
                if verb == "unwrap":
                    remove_backups(path)
    except (AbridgeError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, AbridgeError | OSError) else "an unusual form"
        place = f":{error.line}:{error.column}" if isinstance(error, SyntaxProblem) else ""
        refuse(verb, f"{path}{place}: {reason}; edit it by hand")
        return 1
    if not changed:
        print_lines(f"the hook {'is there already' if verb == 'wrap' else 'is not there'}")
    print_next_step(verb, "--hook", changed=changed, dry_run=arguments.dry_run)
    return 0


def _write(file: ConfigFile, records: Records) -> str | None:
    if not os.path.exists(file.path):
        os.makedirs(os.path.dirname(file.path), exist_ok=True)
        with open(file.path, "xb") as new:
            new.write(_EMPTY)
    records.begin([(file.path,)])
    backup = file.write()
    records.finish()
    if file.text.encode() == _EMPTY:
        platform.unlink(file.path)
        print_lines(f"{file.path} has nothing else, and is removed", stderr=True)
    return backup


def _check(verb: str, file: ConfigFile) -> None:
    """Raise NotPossible if edited settings are broken, or hide the hook by a key that is null."""
    try:
        group = _own_group(file.syntax.read(file.text))
    except SyntaxProblem:
        raise NotPossible("an unusual form") from None
    if verb == "wrap" and group is None:
        raise NotPossible("an unusual form")


def _own_group(settings: Any) -> Any:
    for group in entry_at(settings, _EVENT) or ():
        for hook in group.get("hooks", ()):
            if re.search(rf"\b{PROGRAM}\b.* hook\b", str(hook.get("command"))):
                return group
    return None


def _with_hook(text: str, settings: Any, group: Any) -> str:
    """Return the text with the hook as the first member or element of what is there already."""
    if _own_group(settings) is not None:
        return text
    depth = next(each for each in (2, 1, 0) if entry_at(settings, _EVENT[:each]) is not None)
    container = entry_at(settings, _EVENT[:depth])
    piece = _pieces(group)[depth]
    at = Json().locate(text, _EVENT[:depth])[0] + 1
    if not container:
        # The space tells what was there from what is added around it.
        return f"{text[:at]}{piece}{' ' * (depth > 0)}{text[at:]}"
    rest = text[at:]
    gap = rest[: len(rest) - len(rest.lstrip())]
    return f"{text[:at]}{gap}{piece},{rest}"


def _pieces(group: Any) -> list[str]:
    literal = json_text(group)
    member = f'"PostToolUse": [{literal}]'
    return [f'"hooks": {{{member}}}', member, literal]


def _without_hook(text: str, settings: Any) -> str:
    group = _own_group(settings)
    if group is None:
        return text
    for depth, piece in enumerate(_pieces(group)):
        at = text.find(piece)
        if at >= 0:
            end = at + len(piece)
            if text[end : end + 1] == ",":
                return text[: len(text[:at].rstrip())] + text[end + 1 :]
            return text[:at] + text[end + (depth > 0) :]
    raise NotPossible("the hook was changed since")
