"""Prints of verbs (tables, untrusted text, why one cannot do its work), and the files they read."""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from mcp_abridge.cli import PROGRAM
from mcp_abridge.document.printable import printable
from mcp_abridge.errors import AbridgeError, RuleErrors

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def print_lines(*lines: str, stderr: bool = False) -> None:
    """Print each text as one line, whatever of others is in it."""
    for line in lines:
        print(printable(line), file=sys.stderr if stderr else sys.stdout, flush=True)


def put(text: str) -> None:
    """Write a text of several lines to stdout: unchanged, but on a terminal without its escapes."""
    sys.stdout.write(printable(text, lines=True) if sys.stdout.isatty() else text)


def progress(text: str) -> None:
    """Print a text on stderr that the next one overwrites, if that is a terminal."""
    if sys.stderr.isatty():
        print(f"\r{text}\r", end="", file=sys.stderr, flush=True)


def say(verb: str, message: str, *more: str) -> None:
    """Print a line of a verb on stderr, and more lines below it."""
    print_lines(f"{PROGRAM} {verb}: {message}", *(f"  {line}" for line in more), stderr=True)


def refuse(verb: str, message: str, *more: str) -> int:
    """Print why a verb cannot do its work, and return the exit code 2."""
    say(verb, message, *more)
    return 2


def refuse_error(verb: str, error: AbridgeError | OSError) -> int:
    """Print the error that has ended a verb, or each problem of rules; return the exit code 2."""
    if isinstance(error, RuleErrors):
        print_lines(*map(str, error.problems), stderr=True)
        return 2
    if isinstance(error, OSError) and error.filename is not None:
        return refuse(verb, f"{error.filename}: {error.strerror or error}")
    return refuse(verb, str(error), *getattr(error, "__notes__", ()))


def check_output(path: str, *, force: bool) -> None:
    """Raise AbridgeError if a file cannot be made: its work should not be done in vain."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise AbridgeError(f"{path}: there is no folder {folder}")
    if os.path.isdir(path):
        raise AbridgeError(f"{path} is a folder; name a file in it")
    if os.path.exists(path) and not force:
        raise AbridgeError(f"{path} is there already; --force replaces it, -o names another")


def content(name: str) -> bytes:
    """Return the bytes of a file, of stdin if its name is `-`. Raises OSError."""
    if name == "-":
        return sys.stdin.buffer.read()
    with open(name, "rb") as file:
        return file.read()


def count_text(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural if it is not one."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def short_list(names: list[str]) -> str:
    """Return six names, and how many more there are."""
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON for people; what JSON does not know has its repr."""
    # Names, arguments and answers of servers may hold what orjson refuses: integers beyond 64 bits
    # and lone surrogates, which no stream would take.
    text = json.dumps(value, ensure_ascii=False, default=repr, indent=indent)
    return printable(text, lines=True, json=True)


def show(arguments: Namespace, value: Any, text: Callable[[Any], object]) -> None:
    """Print a value as JSON if --json is set; else `text` prints it."""
    if arguments.json:
        print(json_text(value, indent=2))
    else:
        text(value)


def console() -> "Console":
    """Return a console for stdout that prints texts as they are, and whole lines into a pipe."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        # The reader of a pipe expects whole lines, not lines wrapped at 80 columns.
        console.width = max(console.width, 160)
    return console


def table(*columns: str, title: str | None = None, footers: Sequence[str] = ()) -> "Table":
    """Return a table, whose cells are lines; a column whose title begins with `>` has numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    class PrintableTable(Table):
        def add_row(self, *cells: Any, **how: Any) -> None:
            super().add_row(*map(printable, cells), **how)

    table = PrintableTable(title=title, show_footer=bool(footers), box=SIMPLE_HEAD, pad_edge=False)
    table.padding = (0, 0, 0, 1)
    for column, footer in zip_longest(columns, footers, fillvalue=""):
        if column.startswith(">"):
            table.add_column(column[1:], footer, justify="right", no_wrap=True)
        else:
            table.add_column(column, footer, overflow="fold")
    return table
