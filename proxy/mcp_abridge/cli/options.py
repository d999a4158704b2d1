"""The options of `run`, from the command line and the environment.

A client waits while `run` starts, so they are read without argparse, which other verbs use.
"""

import os

from mcp_abridge.document.sizes import LEAST_BOUND, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Container, Iterable, Mapping
    from typing import Any, Literal

    from mcp_abridge.ruleset.selection import Selection


class Options:
    """The options of `run`, as read from the command line and the environment."""

    rules: list[str] | None
    budget: "int | Literal['auto', 'client', 'off'] | None"
    scripts: "Literal['auto', 'on', 'off'] | None"
    ledger: str | None
    record: str | None
    record_size: int
    redact: list[str] | None
    max_message: int
    deadline: float | None
    snapshots: int
    snapshot_age: float
    store: str | None
    store_scope: str | None
    log_format: "Literal['text', 'json']"
    verbose: bool
    quiet: bool
    allow_python: bool
    header: list[str] | None
    headers: list[tuple[str, str]]
    command: list[str]
    url: str | None


class Option:
    """One option; `read` raises ValueError, and without it the flag takes no value."""

    def __init__(
        self,
        flag: str,
        help: str,
        metavar: str = "",
        read: "Callable[[str], object] | None" = None,
        default: object = None,
        *,
        short: str = "",
        many: bool = False,
        separator: str = os.pathsep,
    ) -> None:
        self.flag = flag
        self.help = help
        self.metavar = metavar
        self.read = read
        self.default = default
        self.short = short
        self.many = many
        self.separator = separator
        """The separator of several values in the variable."""
        self.name = flag[2:].replace("-", "_")
        self.variable = "MCP_ABRIDGE_" + self.name.upper()

    def absent(self, environment: "Mapping[str, str]") -> object:
        """Return the value of the variable, or the default. Raises ValueError."""
        text = environment.get(self.variable)
        if not text:
            return self.default
        if self.read is None:
            return text.lower() not in _FALSE
        try:
            if not self.many:
                return self.read(text)
            parts = map(str.strip, text.split(self.separator))
            return [self.read(part) for part in parts if part]
        except ValueError as error:
            raise ValueError(f"{self.variable}: {error}") from None


URL, HEADER = SECRETS = ("MCP_ABRIDGE_URL", "MCP_ABRIDGE_HEADER")
"""The variables of a server's URL and headers, which others would see among a command's words.

No server that is a command may inherit them.
"""

VARIABLES = "Each flag is also a variable: --log-format is MCP_ABRIDGE_LOG_FORMAT."
_FALSE = ("0", "false", "no", "off")


def _budget(text: str) -> object:
    if text in ("auto", "client", "off"):
        return text
    try:
        budget = size(text)
    except ValueError as error:
        raise ValueError(f"{error}, or auto, client or off") from None
    if budget < LEAST_BOUND:
        raise ValueError(f"{text!r} is less than the minimum of {LEAST_BOUND} bytes")
    return budget


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{text!r} is no number of seconds above 0, such as 30 or 2.5")
    return seconds


def _folder(text: str) -> str:
    if "://" in text or not text:
        raise ValueError(f"{text!r} is no folder; a store at a URL is for `serve`")
    return os.path.expanduser(text)


def _mask(text: str) -> str:
    # Imported late: the engine of regular expressions takes 30 ms.
    from mcp_abridge.errors import AbridgeError
    from mcp_abridge.storage.redaction import Redaction

    try:
        Redaction([text])
    except AbridgeError as error:
        raise ValueError(str(error)) from None
    return text


def _one_of(*words: str) -> "Callable[[str], str]":
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r} is none of {', '.join(words)}")
        return text

    return read


OPTIONS = (
    Option(
        "--rules",
        "rule file, directory of them, a bundled name (github), or none (default: the bundled "
        "file that fits)",
        "R",
        str,
        many=True,
    ),
    Option(
        "--allow-python", "run the Python that rule files name, with your rights", default=False
    ),
    Option(
        "--budget",
        "most bytes of a response without a rule: a size, off, client (if that would cut it) or "
        "auto (default: auto)",
        "SIZE",
        _budget,
    ),
    Option(
        "--scripts",
        "on: answers go to scripts, whole (default: auto)",
        "WHEN",
        _one_of("auto", "on", "off"),
    ),
    Option("--ledger", "file for the sizes of calls, or off (default: in XDG state)", "PATH", str),
    Option("--record", "folder of whole calls and answers (default: none)", "DIR", _folder),
    Option(
        "--record-size", "most bytes in that folder (default: 200MB)", "SIZE", size, 200_000_000
    ),
    Option(
        "--redact",
        "mask members of this name, or matches of an expression",
        "NAME|REGEX",
        _mask,
        many=True,
        separator="\n",
    ),
    Option(
        "--max-message", "most bytes of one message (default: 256MB)", "SIZE", size, 256_000_000
    ),
    Option(
        "--deadline",
        "cancel a call without answer or progress (default: never)",
        "SECONDS",
        _seconds,
    ),
    Option(
        "--snapshots",
        "most bytes of answers kept for views (default: 256MB)",
        "SIZE",
        size,
        256_000_000,
    ),
    Option(
        "--snapshot-age", "how long after its last use (default: 1800)", "SECONDS", _seconds, 1800.0
    ),
    Option("--store", "folder of them that sessions share (default: memory)", "DIR", _folder),
    Option("--store-scope", "account that they belong to (default: by environment)", "NAME", str),
    Option(
        "--header",
        "header for a server at a URL, such as 'X-Key: ${KEY}'",
        "HEADER",
        str,
        many=True,
        separator="\n",
    ),
    Option("--log-format", "text or json (default: text)", "FORM", _one_of("text", "json"), "text"),
    Option("--verbose", "log more", default=False, short="-v"),
    Option("--quiet", "log errors only", default=False, short="-q"),
)

LISTING_DEADLINE = Option(
    "--deadline",
    "limit of the server's start and tool list (default: 30), and of a call (default: never)",
    "SECONDS",
    _seconds,
)
"""The option of verbs that start a server for its tools, and wait for them."""

_FLAGS = {flag: option for option in OPTIONS for flag in (option.flag, option.short) if flag}


def by_name(*names: str) -> "list[Option]":
    """Return the options of these names, for a verb that takes some of them."""
    options = {option.name: option for option in OPTIONS}
    return [options[name] for name in names]


HELP = ("-h", "--help", "--version")


def read(words: list[str], environment: "Mapping[str, str]") -> Options:
    """Return the options of a command line.

    >>> read(["--rules", "github", "-v", "--", "server", "--port"], {}).command
    ['server', '--port']
    >>> read(["-v", "server", "--rules", "its own"], {}).command
    ['server', '--rules', 'its own']
    >>> read(["--rules", "github", "https://example.org/mcp"], {}).url
    'https://example.org/mcp'
    >>> read([], {"MCP_ABRIDGE_URL": "https://example.org/mcp"}).url
    'https://example.org/mcp'

    Raises ValueError with the reason, or with the flag if it is one of HELP.
    """
    options = Options()
    for option in OPTIONS:
        setattr(options, option.name, option.absent(environment))
    options.headers, options.url = [], None
    lists: dict[str, list[str]] = {}
    urls: list[str] = []
    valued = {flag for flag, option in _FLAGS.items() if option.read is not None}
    ours, options.command = split(words, valued)
    rest = iter(ours)
    for word in rest:
        if _locates(word):
            urls.append(word)
            continue
        flag, equals, value = word.partition("=")
        if flag not in _FLAGS:
            raise ValueError(flag if flag in HELP else _unknown(word))
        option = _FLAGS[flag]
        if option.read is None:
            if equals:
                raise ValueError(f"argument {flag}: takes no value")
            setattr(options, option.name, True)
            continue
        try:
            value = value if equals else next(rest)
            setting = option.read(value)
        except StopIteration:
            raise ValueError(f"argument {flag}: expected one argument") from None
        except ValueError as error:
            raise ValueError(f"argument {flag}: {error}") from None
        if option.many:
            setting = lists.setdefault(option.name, [])
            setting.append(value)
        setattr(options, option.name, setting)
    source = ""
    if not urls and not options.command and environment.get(URL):
        source = f"{URL}: "
        urls.append(environment[URL])
    if len(urls) + bool(options.command) != 1:
        raise ValueError(ONE_SERVER)
    if urls:
        from mcp_abridge.ruleset.loading import config_model

        try:
            options.url = config_model.url(urls[0])
        except ValueError as error:
            raise ValueError(f"{source}{error}") from None
        lines = options.header or ()
        options.headers = [config_model.header(line, environment) for line in lines]
    elif "header" in lists:
        raise ValueError(HEADER_TO_COMMAND)
    return options


HEADER_TO_COMMAND = "--header is for a server behind a URL, which has a ://"
ONE_SERVER = "one server: give its URL, or write its command after --"
AFTER_DASHES = "; what is the server's goes after --"


def _unknown(word: str) -> str:
    from mcp_abridge.errors import did_you_mean

    advice = did_you_mean(word.partition("=")[0], _FLAGS) if word else ""
    return f"unexpected {word!r}{advice or AFTER_DASHES}"


def _locates(word: str) -> bool:
    return "://" in word and word[0] != "-"


def add(parser: "argparse.ArgumentParser", options: "Iterable[Option]" = OPTIONS) -> None:
    """Declare `options` for argparse."""
    import argparse
    from functools import partial

    def checked(read: "Callable[[str], object]", text: str) -> object:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    for option in options:
        names = (option.short, option.flag) if option.short else (option.flag,)
        how: dict[str, Any] = {"action": "store_true"}
        if option.read is not None:
            how = {"action": "append" if option.many else "store", "metavar": option.metavar}
            how["type"] = partial(checked, option.read)
        action = parser.add_argument(*names, help=option.help, **how)
        action.option = option  # type: ignore[attr-defined]


def complete(parser: "argparse.ArgumentParser", arguments: "argparse.Namespace") -> None:
    """Give absent flags the values of their variables, or the defaults. Raises AbridgeError."""
    from mcp_abridge.errors import AbridgeError

    for action in parser._actions:
        option = getattr(action, "option", None)
        try:
            if option is not None and getattr(arguments, option.name) in (None, False):
                setattr(arguments, option.name, option.absent(os.environ))
        except ValueError as error:
            raise AbridgeError(str(error)) from None


def selection(
    arguments: "argparse.Namespace", environment: "Mapping[str, str] | None" = None
) -> "Selection":
    """Return the rules that the options choose, in a client's environment; raises RuleErrors."""
    from mcp_abridge.ruleset.selection import NO_RULES, Selection, load

    names, budget = arguments.rules, arguments.budget
    if names == [NO_RULES]:
        names, budget = [], "off"
    files = None if names is None else load(names, allow_python=arguments.allow_python)
    return Selection(files, budget, lambda _: None, environ=environment or {})


def split(words: list[str], valued: "Container[str]") -> tuple[list[str], list[str]]:
    """Split off a server's command: its flags are not the proxy's, of which `valued` take a value.

    The command begins after --, or with the first word that is no option, option value or URL.
    """
    at = 0
    while at < len(words) and words[at] != "--":
        word = words[at]
        if word[:1] not in ("", "-") and not _locates(word):
            return words[:at], words[at:]
        flag, equals, _ = word.partition("=")
        with_value = not equals and flag in valued
        at += 2 if with_value and words[at + 1 : at + 2] != ["--"] else 1
    return words[:at], words[at + 1 :]
