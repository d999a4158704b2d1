"""`record`: without it, rules are written for answers that nobody has seen."""

import argparse
import os

from mcp_abridge.cli import PROGRAM, options
from mcp_abridge.cli import run as wrapper
from mcp_abridge.cli.terminal import refuse

_OPTIONS = options.by_name(
    *("ledger", "record_size", "redact", "max_message", "deadline", "header"),
    *("log_format", "verbose", "quiet"),
)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.usage = f"{PROGRAM} record [OPTION]... DIR (URL | -- COMMAND [ARG]...)"
    parser.allow_abbrev = False
    parser.add_argument("folder", metavar="DIR", help="the folder, which is created if need be")
    parser.add_argument("url", nargs="?", metavar="URL", help="the server's URL")
    options.add(parser, _OPTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Wrap the server until either side ends. Returns 2 if it cannot be recorded."""
    server = options.server_words(arguments, "header")
    words = ["--rules", "none", "--record", arguments.folder, *server]
    try:
        settings = options.read(words, os.environ)
    except ValueError as error:
        return refuse("record", str(error))
    if os.path.exists(arguments.folder) and not os.path.isdir(arguments.folder):
        return refuse("record", f"{arguments.folder} is a file; name a folder, or a new one")
    os.makedirs(arguments.folder, mode=0o700, exist_ok=True)
    for option in _OPTIONS:
        setattr(settings, option.name, getattr(arguments, option.name))
    return wrapper.run(settings)
