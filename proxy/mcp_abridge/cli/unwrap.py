"""`unwrap`: without it, what `wrap` did to a client's configuration would be undone by hand."""

import argparse

from mcp_abridge.cli.terminal import refuse
from mcp_abridge.cli.wrap import changes, entry, hooks
from mcp_abridge.cli.wrap.files import ConfigFile
from mcp_abridge.cli.wrap.records import Records


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    changes.add(parser)


def run(arguments: argparse.Namespace) -> int:
    """Restore servers. Returns 1 if a server or a file was left as it is, 2 for misuse."""
    if arguments.hook:
        return hooks.uninstall(arguments)
    if not arguments.names and not arguments.all:
        return refuse("unwrap", "say which: NAME, or --all (`mcp-abridge wrap` lists them)")
    return changes.change("unwrap", arguments, _unwrap)


def _unwrap(file: ConfigFile, server: entry.Server, records: Records) -> str:
    if server.own_words is None:
        return "is not wrapped"
    file.check()

    def is_original(text: str) -> bool:
        file.check_part(server.path, text)
        return entry.own_words(file.entry(server.path, text)) is None

    file.change(server.path, records.restore(server, file, is_original))
    return "restored"
