"""The facts of the call that a document answers, and the notices and warnings about its shaping."""

import re
from typing import Any

from msgspec import Struct, field

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.tree import Value


class Notice(Struct, frozen=True):
    """A message to the model about content that was left out.

    `value` holds numbers and argument names, and of a server's text no more than names, as
    `names.label` gives them. In a structuredContent it is the member `name`; as a text block it is
    written as JSON, under its name unless it is `bare`.
    """

    name: str
    value: Value
    bare: bool = False


_SPECIAL, _ESCAPED = re.compile(r'["$`\\]'), r"\\\g<0>"  # between double quotes, in a shell
_QUOTE = re.compile(r'["\\]')

_FEWEST = 1.5  # bytes of a token, of rows of hexadecimal digits

ALL = "all"
"""The view that asks for all of a document at once."""

HELP = "help"
"""The view that asks how to write one."""

ROWS = "rows"
"""The name, in views, of the rows that were read in a text which is shown as a text."""

DROPPED = "_dropped"  # the notice on how many blocks of each type a rule dropped


def asks_for(word: str, view: str) -> bool:
    """Return True if a view is a single word: ALL, or HELP.

    >>> asks_for(ALL, "all"), asks_for(ALL, " all() "), asks_for(ALL, "all[0]")
    (True, True, False)
    """
    return view.strip().removesuffix("()") == word


class Warned(Struct, frozen=True):
    """A warning to the operator of the proxy; the response is sent all the same.

    Warnings of one `kind` are counted together and logged once. A kind is a few plain words, never
    upstream text, and a rule has few kinds; `text` is one case of it in full.
    """

    kind: str
    text: str


class Room(Struct, frozen=True):
    """The most bytes and tokens of a document that may come whole, if a model asks for it."""

    size: int
    tokens: int | None = None

    def bytes_for(self, raw: bytes) -> int:
        """Return how many bytes of JSON or of a text may come.

        >>> room = Room(60_000, 25_000)
        >>> room.bytes_for(b"item " * 12_000), room.bytes_for(b"5fd1e " * 10_000)
        (60000, 34090)
        """
        part = raw[: self.size]
        if self.tokens is None or len(part) <= self.tokens * _FEWEST:
            return self.size
        from mcp_abridge.document.tokens import tokens  # few answers are so long, and still fit

        return min(self.size, len(part) * self.tokens // tokens(part.decode(errors="ignore")))


class Call(Struct):
    """The shaping of one response: the facts of the call, and the messages of the steps.

    `arguments` are complete and plain: the client's, defaults filled in, the rule's own included,
    each under the name that the rule file gives it. `bound` is the most bytes that the document may
    take, if the rule has a bound. `structured`: clients may get a structuredContent. `blocks`: the
    document is an array of the texts of several blocks; `records`: it is these texts as one.
    `names` maps the rule's argument names to the advertised names if they differ. `member` is the
    member of structuredContent that holds the document, if the document is a text. `viewable`:
    notices may offer views. `breadth`: a size budget shows all rows in brief, not the first rows
    whole. `ordered`: a step has put the members in order, those first that count. `fuel` is the
    budget of all steps together. `error`: the document is an error, whose end matters more than its
    middle. `reader` is the shell command that answers views if no call of the tool can; ""
    otherwise. `uri` is that of a resource, whose fragment asks for a view; "" for a tool. `whole`
    is the room for a document that the model asks for as a whole; None if that is no more than
    `bound`. `all_question` is how to ask for it, "" if the document does not fit. `unfit`: the
    document breaks the rule's schema, so that structuredContent gets it as a text.
    """

    tool: str
    arguments: dict[str, Any] = {}
    bound: int | None = None
    structured: bool = False
    blocks: bool = False
    records: bool = False
    names: dict[str, str] = {}
    member: str = ""
    viewable: bool = False
    notices: list[Notice] = []
    missing: list[str] = []
    warnings: list[Warned] = []
    fuel: Fuel = field(default_factory=Fuel)
    error: bool = False
    breadth: bool = True
    ordered: bool = False
    reader: str = ""
    uri: str = ""
    whole: Room | None = None
    all_question: str = ""
    unfit: bool = False

    def warn(self, kind: str, text: str) -> None:
        self.warnings.append(Warned(kind, text))

    def argument(self, name: str) -> Any:
        value: Any = self.arguments
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def advertised_name(self, name: str) -> str:
        return self.names.get(name, name)

    def question(self, view: str) -> str:
        """Return a view as the model writes it: an argument, a word for a shell, the end of a URI.

        >>> print(Call("t").question("items[0:9]"), Call("t").question("grep('a')"))
        view='items[0:9]' view="grep('a')"
        >>> print(Call("t", reader="mcp-abridge view F").question("grep('a')"))
        "grep('a')"
        """
        if self.reader:
            # As one word of a shell's command line.
            return f"'{view}'" if "'" not in view else f'"{_SPECIAL.sub(_ESCAPED, view)}"'
        if self.uri:
            from mcp_abridge.query.fragment import end_for  # few sessions read resources

            return end_for(self.uri, view)
        word = f"'{view}'" if "'" not in view else f'"{_QUOTE.sub(_ESCAPED, view)}"'
        return f"{self.advertised_name('view')}={word}"

    def whole_question(self, raw: bytes) -> str:
        """Return how to ask for all of a document, "" if that does not fit into one answer."""
        size = len(raw)
        if self.whole is None or size > self.whole.size or size > self.whole.bytes_for(raw):
            return ""
        return f"{self.question(ALL)} gives all {size:,} bytes"

    def next_question(self, view: str) -> str:
        """Return how to ask for a view: the first sentence of a notice.

        >>> Call("resources/read", uri="file:///x.log").next_question("text[0:9]")
        'read file:///x.log#view=text%5B0:9%5D'
        """
        command = f"run {self.reader} " if self.reader else "call again with "
        command = f"read {self.uri}" if self.uri else command
        return f"{command}{self.question(view)}"
