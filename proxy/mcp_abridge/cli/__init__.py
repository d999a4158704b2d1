"""The command `mcp-abridge`: one module per verb, imported only if the verb is used."""

# The module that `signal` wraps; `signal` imports `enum`, which takes 4 ms.
import _signal  # type: ignore[import-not-found]
import codecs
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

PROGRAM = "mcp-abridge"

SITUATIONS = {
    "answers are too long": {
        "run": ("-- npx -y some-server", "wrap a server; the verb may be left out"),
        "wrap": ("--all --dry-run", "wrap servers in clients' configurations"),
        "unwrap": ("--all", "restore clients' configurations"),
        "serve": ("-- npx -y some-server", "serve MCP over HTTP, for one server or several"),
        "hook": ("", "cut answers of any server by a client's hook"),
        "demo": ("", "make real calls, before and after"),
    },
    "which answers, and what is saved": {
        "weigh": ("", "list the largest answers in your transcripts"),
        "call": ("TOOL name=value URL", "call a tool, or list all and what they cost"),
        "report": ("--since 7d", "show what is still large, and what was saved"),
        "doctor": ("-- npx -y some-server", "find what is wrong with a server or its rules"),
    },
    "rules": {
        "suggest": ("-- npx some-server", "draft rules from real answers"),
        "check": ("rules.yaml", "list every mistake in rule files"),
        "test": ("rules.yaml", "run the tests in rule files"),
        "explain": ("answer.json --show", "show what the model gets of a saved answer"),
        "view": ("answer.json help", "print a part of a saved answer"),
        "replay": ("DIR --rules R", "show what rules do to recorded calls"),
        "schema": ("--reference", "print the JSON Schema of rules, or the reference"),
        "completion": ("bash", "print a script that completes verbs and flags"),
    },
}
"""The verbs by what a user wants."""

VERBS = {verb: how for verbs in SITUATIONS.values() for verb, how in verbs.items()}
"""Each verb: the words of an example after it, and what the verb does."""


OLD_VERBS = {
    "init": ("suggest", "--"),
    "record": ("run", "--rules", "none", "--record"),
    "tools": ("call", "--"),
}
"""Verbs of earlier versions: what is written now before the words of a server or a folder."""

# These verbs take the command of a server as well, the second ones only after --.
_TAKE_A_SERVER = frozenset(("serve", "doctor"))
_TAKE_A_DASHED_SERVER = frozenset(("call", "suggest"))

# Names that other programs have for a flag.
_OTHER_NAMES = {"--host": "--listen", "--port": "--listen"}


def main(words: list[str] | None = None) -> int:
    """Run a command line; return its exit code."""
    if words is None:
        # Python loses a KeyboardInterrupt that comes within a callback, and imports have many.
        _replace_handler(_signal.default_int_handler, _signal.SIG_DFL)
        # Imported late, as all that the wrapper does not need before it has started the server.
        import atexit
        import gc

        # All that is left goes with the process: to look through it takes a fifth of a short one.
        atexit.register(gc.freeze)
    try:
        try:
            return _run(sys.argv[1:] if words is None else words)
        except SystemExit:  # of argparse: its help may not be written yet
            sys.stdout.flush()
            raise
    except BrokenPipeError:
        # The reader has closed the pipe, as `| head` does. Buffered output goes to /dev/null, or
        # Python would report an error when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # the exit code in a shell of a program that SIGPIPE ended
    except RuntimeError as error:
        if str(error) != "can't start new thread":
            raise
    reason = "no thread can be started; the limit of processes or of memory may be too low"
    os.write(2, f"{PROGRAM}: error: {reason}\n".encode())
    # Exit without joining threads. A server that was started sees its stdin close.
    os._exit(1)


def _replace_handler(before: object, after: object) -> None:
    """Have SIGINT handled in another way; it stays ignored if it was when this was started."""
    if _signal.getsignal(_signal.SIGINT) == before:
        _signal.signal(_signal.SIGINT, after)


def _run(words: list[str]) -> int:
    if words and words[0] in OLD_VERBS:
        words = _in_new_words(*words)
    verb = words[0] if words else ""
    if verb in VERBS and verb != "run":
        return _verb(verb, words[1:])
    from mcp_abridge.cli import options, run

    try:
        settings = options.read(words[1:] if verb == "run" else words, os.environ)
    except ValueError as error:
        _prepare_streams()
        parser, reason = _parser(), str(error)
        if reason in options.HELP:
            parser.parse_args([reason])
        parser.error(reason)
    return run.run(settings, first_word=verb)


def _in_new_words(old: str, *words: str) -> list[str]:
    """Return a command line with an old verb as it is written now, and say how that is."""
    from mcp_abridge.cli.terminal import print_lines

    verb, *own = OLD_VERBS[old]
    before, rest = _split(_parser_of(verb), [*words])
    print_lines(f"{PROGRAM}: `{old}` is now `{' '.join(OLD_VERBS[old])}`", stderr=True)
    return [verb, *before, *(own if rest else ()), *rest]


def _verb(verb: str, words: list[str]) -> int:
    import argparse
    from importlib import import_module

    from mcp_abridge.cli import options
    from mcp_abridge.cli.terminal import refuse, refuse_error
    from mcp_abridge.document.garbage import uncollected
    from mcp_abridge.errors import AbridgeError

    _prepare_streams()
    with uncollected():  # a tenth of the time that it takes to load `serve`
        module = import_module(f"mcp_abridge.cli.{verb}")
    _replace_handler(_signal.SIG_DFL, _signal.default_int_handler)
    parser = _parser_of(verb)
    ours = words
    command: list[str] = []
    dashed = verb in _TAKE_A_DASHED_SERVER
    if dashed and "--" in words:
        at = words.index("--")
        ours, command = words[:at], words[at + 1 :]
    elif verb in _TAKE_A_SERVER:
        ours, command = _split(parser, words)
    try:
        namespace = argparse.Namespace(command=command, words=words)
        # In `explain R --tool T FILE`, argparse would else take FILE as absent before the option.
        arguments, others = parser.parse_known_intermixed_args(ours, namespace)
        if others:
            key = getattr(module, "config_key", None)
            _unexpected(parser, others[0], key, dashed=dashed and not command)
        options.complete(parser, arguments)
        code: int = module.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        raise
    except (AbridgeError, OSError) as error:
        return refuse_error(verb, error)
    except RecursionError:
        from mcp_abridge.document.tree import TOO_DEEP

        return refuse(verb, f"a text that it reads is {TOO_DEEP}")
    return code


def _prepare_streams() -> None:
    """Let each text be printed: what cannot be encoded is escaped, on stdout as in JSON."""
    from io import TextIOWrapper

    from mcp_abridge.system import platform

    codecs.register_error("json", _escaped)
    for stream, errors in ((sys.stdout, "json"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=errors, encoding=platform.PIPED, newline="\n")


def _split(parser: "argparse.ArgumentParser", words: list[str]) -> tuple[list[str], list[str]]:
    from mcp_abridge.cli import options

    actions = parser._option_string_actions.items()
    return options.split(words, {flag for flag, action in actions if action.nargs is None})


def _unexpected(
    parser: "argparse.ArgumentParser",
    word: str,
    config_key: "Callable[[str], str | None] | None",
    *,
    dashed: bool,
) -> None:
    from mcp_abridge.cli import options
    from mcp_abridge.errors import did_you_mean

    flag = word.partition("=")[0]
    key = config_key(flag) if config_key and flag.startswith("--") else None
    if key:
        parser.error(f"unexpected {flag!r}: it is the key {key!r} in the file of --config")
    flags = [flag for flag in parser._option_string_actions if flag.startswith("--")]
    other = _OTHER_NAMES.get(flag)
    advice = did_you_mean(other if other in flags else flag, flags) if word.startswith("-") else ""
    parser.error(f"unexpected {word!r}{advice or options.AFTER_DASHES * dashed}")


def takes_rules(parser: "argparse.ArgumentParser", count: str = "+") -> None:
    """Declare the arguments for rule files, and the flag that permits the Python they name."""
    from mcp_abridge.cli import options

    parser.add_argument(
        "rules",
        nargs=count,
        metavar="R",
        help="a rule file, a directory of them, or the name of a bundled one, such as github",
    )
    options.add(parser, options.by_name("allow_python"))


def _escaped(error: UnicodeError) -> tuple[str, int]:
    from json import dumps

    assert isinstance(error, UnicodeEncodeError)
    return dumps(error.object[error.start : error.end])[1:-1], error.end


def _parser_of(verb: str) -> "argparse.ArgumentParser":
    import argparse
    from importlib import import_module

    if verb == "run":
        return _parser()
    example, help = VERBS[verb]
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {verb}",
        description=f"{help[0].upper()}{help[1:]}.",
        epilog=f"example: {PROGRAM} {verb} {example}".rstrip(),
    )
    import_module(f"mcp_abridge.cli.{verb}").add(parser)
    return parser


def _parser() -> "argparse.ArgumentParser":
    import argparse

    from mcp_abridge.cli import options

    width = max(len(f"{verb} {example}") for verb, (example, _) in VERBS.items())
    lines: list[str] = []
    for situation, verbs in SITUATIONS.items():
        lines.append(f"{situation}:")
        for verb, (example, help) in verbs.items():
            lines.append(f"  {f'{verb} {example}':<{width}}  {help}")
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [run] [OPTION]... [--] COMMAND [ARG]...\n"
        f"       {PROGRAM} [run] [OPTION]... URL    (or in {options.URL})\n"
        f"       {PROGRAM} VERB ...",
        description="Wrap an MCP server: its long answers reach the model short.\n\n"
        f"Verbs, each with an example ({PROGRAM} VERB --help says more):\n" + "\n".join(lines),
        epilog=options.VARIABLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {own_version()}")
    options.add(parser)
    return parser


def whole_parsers() -> "list[argparse.ArgumentParser]":
    """Return the parser of the whole command line, and those of its verbs."""
    from importlib import import_module

    parser = _parser()
    parsers = [parser]
    verbs = parser.add_subparsers()
    for verb, (_, help) in VERBS.items():
        if verb != "run":
            parsers.append(verbs.add_parser(verb, help=help))
            import_module(f"mcp_abridge.cli.{verb}").add(parsers[-1])
    return parsers


def own_version() -> str:
    """Return the version of this package, as it is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(PROGRAM)
    except PackageNotFoundError:
        return "(not installed)"
