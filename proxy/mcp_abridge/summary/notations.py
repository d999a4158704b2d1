r"""Conversion of other notations to JSON text: YAML, Python literals, JSON with text after it.

Each function takes a text and returns its content as JSON, and the offset at which the content
ends. Nothing is evaluated, and the work grows with the length of the text, not with its nesting.
Errors of JSON itself (a missing comma, unbalanced brackets) are left to its decoder.
"""

import re
from collections.abc import Iterable
from typing import Any, Literal

from msgspec import DecodeError, Raw
from msgspec.json import decode, encode

from mcp_abridge.document.measure import exceeds
from mcp_abridge.document.possessive import possessive
from mcp_abridge.document.tree import Value
from mcp_abridge.errors import DocumentError

JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
MOST_YAML = 1 << 19  # characters; the pure Python reader takes about 4 s for them
_DEEPEST_YAML = 100  # levels: the reader's time for a token grows with its depth
_QUOTED = "|".join(
    rf"{mark}[^{mark}\\]*+" + possessive(rf"\\.[^{mark}\\]*+") + mark for mark in "'\""
)
_GROWTH = 4  # how many times longer than the YAML its JSON may be, since aliases repeat parts


def from_json(text: str) -> tuple[str, int]:
    """Return the JSON value that `text` begins with. Raises DocumentError if there is none."""
    content = text.strip()
    try:
        decode(content, type=Raw)
        return content, len(text.rstrip())
    except (DecodeError, UnicodeEncodeError):
        pass
    import json

    start = len(text) - len(text.lstrip())
    try:
        end = json.JSONDecoder().raw_decode(text, start)[1]
    except ValueError as error:
        raise DocumentError(f"not JSON: {error}") from error
    return text[start:end], end


def from_python(text: str, *, objects: bool = False) -> tuple[str, int]:
    r"""Return the Python literal `text` as JSON: dicts, lists, tuples, sets, strings, numbers.

    A call, such as `Decimal('1.10')` or `datetime.date(2024, 1, 31)`, becomes a string: a date or a
    time as ISO 8601 has it, any other its one string argument, else its spelling. Bytes become
    strings too. With `objects`, a call of fields alone, such as `User(id=1)`, is an object.

    Raises DocumentError for a character that no literal has.
    """
    tokens = re.compile(
        rf"\s*+(?:(?P<mark>[\[\](){{}}:,])|(?P<quoted>b?(?:{_QUOTED}))"
        r"|(?P<field>[A-Za-z_]\w*+=(?!=))|(?P<number>-?[0-9][0-9.eE+\-]*+)|(?P<word>[A-Za-z_][\w.]*+)|(?P<end>\Z))",
        re.DOTALL,
    )
    out: list[str] = []
    opened: list[int] = []  # the places in `out` of the brackets that are open
    position, valued = 0, False
    while True:
        match = tokens.match(text, position)
        if match is None:
            near = text[position : position + 20]
            raise DocumentError(f"not a Python literal at character {position}: {near!r}")
        kind, token = match.lastgroup, match[match.lastgroup or 0]
        start, position = match.start(kind or 0), match.end()
        if valued and kind not in ("mark", "end"):
            raise DocumentError(f"two values without a comma at character {start}: {token[:20]!r}")
        valued = kind not in ("mark", "field")
        if kind == "end":
            return "".join(out), len(text.rstrip())
        if kind == "mark":
            closes = token in ")]}"
            if closes and out and out[-1] == ",":
                out.pop()  # the comma of (1,)
            if not closes and token not in ",:":
                opened.append(len(out))
            elif closes and opened:
                token = _closing(out, opened.pop(), token)
            if token == ":" and out and not out[-1].endswith('"'):
                out[-1] = encode(out[-1]).decode()  # a key that is not a string
            out.append({"(": "[", ")": "]"}.get(token, token))
        elif kind == "field":
            if not (opened and out[opened[-1]] == "{"):
                raise DocumentError(f"not a Python literal at character {start}: {token!r}")
            out.append(f"{encode(token[:-1]).decode()}:")
        elif kind == "quoted":
            out.append(encode(token).decode() if token[0] == "b" else _string(token[1:-1]))
        elif kind == "number":
            out.append(token)
        elif token in _WORDS:
            out.append(_WORDS[token])
        elif objects and _OF_FIELDS.match(text, start):
            opened.append(len(out))
            out.append("{")
            position, valued = position + 1, False
        elif text[position : position + 1] == "(":
            position = _call_end(text, position)
            inside = tokens.match(text, match.end() + 1)
            alone = inside is not None and inside.lastgroup == "quoted"
            if inside is not None and alone and text[inside.end() : position].strip() == ")":
                out.append(_string(inside["quoted"][1:-1]))
            else:
                out.append(encode(_iso(text[start:position])).decode())
        else:
            raise DocumentError(f"not a Python literal at character {start}: {token[:20]!r}")


_OF_FIELDS = re.compile(r"(?!datetime\.|timedelta)[\w.]++\(\s*+[A-Za-z_]\w*+=(?!=)")


def _closing(out: list[str], opening: int, token: str) -> str:
    """Return the bracket that closes the one at `opening`; a set becomes an array."""
    if token == ")":
        return "}" if out[opening] == "{" else "]"
    first = out[opening + 1 : opening + 3]
    is_set = token == "}" and first and first[1:] != [":"] and not first[0].endswith(":")
    if is_set:
        out[opening] = "["
    return "]" if is_set else token


_WORDS = {"None": "null", "True": "true", "False": "false"}


def _call_end(text: str, position: int) -> int:
    depth = 0
    for match in re.compile(rf"{_QUOTED}|[()\[\]{{}}]", re.DOTALL).finditer(text, position):
        depth += (match[0] in "([{") - (match[0] in ")]}")
        if depth == 0 and len(match[0]) == 1:
            return match.end()
    raise DocumentError("a call in a Python literal is not closed")


def _iso(call: str) -> str:
    """Return a date, a time or both as ISO 8601 writes them; any other call as it is spelled.

    >>> _iso("datetime.datetime(2024, 1, 31, 9, 5, 0, 25, tzinfo=datetime.timezone.utc)")
    '2024-01-31T09:05:00.000025Z'
    >>> _iso("datetime.datetime(2024, 1, 31, 9, 5, tzinfo=zoneinfo.ZoneInfo(key='Europe/Berlin'))")
    '2024-01-31T09:05[Europe/Berlin]'
    >>> _iso("datetime.time(9, 5)"), _iso("datetime.timedelta(days=1)")
    ('09:05', 'datetime.timedelta(days=1)')
    """
    match = re.fullmatch(_MOMENT, call)
    if match is None:
        return call
    parts = [each.zfill(2) for each in match["numbers"].split(", ")]
    day, time = ([], parts) if match["kind"] == "time" else (parts[:3], parts[3:])
    day[:1] = [year.zfill(4) for year in day[:1]]
    clock = ".".join([":".join(time[:3]), *(each.zfill(6) for each in time[3:])])
    zone = "Z" if match["utc"] else match["zone"] and f"[{match['zone']}]"
    return "T".join(filter(None, ["-".join(day), clock])) + (zone or "")


_MOMENT = (
    r"datetime\.(?P<kind>date|datetime|time)\((?P<numbers>[0-9]+(?:, [0-9]+){1,6})"
    r"(?:, tzinfo=(?:(?P<utc>datetime\.timezone\.utc|zoneinfo\.ZoneInfo\(key='(?:Etc/)?UTC'\))"
    r"|zoneinfo\.ZoneInfo\(key='(?P<zone>[\w/+\-]+)'\)))?\)"
)


def _string(body: str) -> str:
    r"""Write the inside of a Python string as a JSON string.

    >>> _string(r"it\'s \x41 \U0001f600 \ud83d\ude00 \ud800")
    '"it\'s A 😀 😀 \ufffd"'
    """
    if "\\" not in body:
        return encode(body).decode()
    escapes = re.match(possessive(rf"[^\\]++|\\(?:{_ESCAPE})"), body)
    end = escapes.end() if escapes else 0
    if end < len(body):
        raise DocumentError(f"a Python string with the escape {body[end : end + 2]!r}")
    text = body.encode("latin-1", "backslashreplace").decode("unicode_escape")
    # Joins the halves of characters; a lone one becomes U+FFFD.
    return encode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")).decode()


_ESCAPE = r"""['"\\abfnrtv\n]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}"""


def from_yaml(text: str) -> tuple[str, int]:
    r"""Return the one document of a YAML text as JSON; plain scalars follow YAML 1.2 core.

    A plain number that JSON spells otherwise (`0644`, `0x1F`, `+49`, `.5`) stays a string.

    Raises DocumentError if the text is not YAML, holds several documents, is longer than 512K
    characters, or grows by its aliases.
    """
    documents, _ = _yaml_documents(text)
    if len(documents) > 1:
        raise DocumentError("several YAML documents in one text")
    return encode(documents[0] if documents else None).decode(), len(text.rstrip())


def nested_yaml(text: str) -> tuple[str, bool]:
    r"""Return a text that may be no YAML at all as JSON; also True if JSON loses something of it.

    It is read quickly, by the parser in C. Several documents are an array. Lost are comments, tags,
    anchors, line ends in a folded scalar, the spelling of words (`~`, `True`), and quotes if
    scalars that some readers take for no text stand with and without them (`'0644'` beside `0755`).

    Raises DocumentError as `from_yaml` does, also if the text is no mapping with nested values, nor
    a list of mappings, or if a key is repeated: then one of the values would be lost.
    """
    every, loses = _yaml_documents(text, strict=True)
    documents = [each for each in every if each != Raw(b"null")]  # such as one behind the last ---
    loses |= len(documents) < len(every)
    value = documents[0] if len(documents) == 1 else documents
    if not _is_nested(value):
        raise DocumentError("YAML of one level")
    return encode(value).decode(), loses


def _yaml_documents(text: str, *, strict: bool = False) -> tuple[list[Value], bool]:
    import yaml

    loader: Any = getattr(yaml, "CBaseLoader", None) if strict else None
    if len(text) > MOST_YAML:
        raise DocumentError(f"{len(text)} characters of YAML are more than {MOST_YAML}")
    losses = _Losses(text) if strict else None
    try:
        events = yaml.parse(text, Loader=loader or yaml.BaseLoader)
        documents = _yaml_values(events, losses)
        if exceeds(documents, _GROWTH * len(text) + 1000):
            raise DocumentError("YAML that grows by its aliases")
    except (yaml.YAMLError, ValueError) as error:
        raise DocumentError(f"not YAML: {' '.join(str(error).split())}") from error
    return documents, losses is not None and losses.any()


def _is_nested(value: Value) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, dict) for each in value)
    inner = value.values() if isinstance(value, dict) else ()
    return any(isinstance(each, dict | list) and each for each in inner)


class _Losses:
    """Losses of a YAML text that is read as JSON; its scalars are added in their order."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = 0
        self.some = False
        self.ambiguous: set[bool] = set()  # True if one has quotes

    def add(self, event: Any, value: Value) -> None:
        """Note what is lost of a scalar that is read as `value`, and between it and the last."""
        start, end = event.start_mark.index, event.end_mark.index
        literal, between = self.text[start:end], self.text[self.end : start]
        self.end = end
        changed = bool(event.tag or event.anchor) or between.strip(_BETWEEN_SCALARS) != ""
        if event.style in ("", None):
            spelled = value if isinstance(value, str) else bytes(value).decode()
            changed |= literal not in (event.value, "") or (
                spelled[:1] != '"' and literal not in (spelled, "")
            )
        elif event.style != "|":
            changed |= event.style == ">" or "\n" in literal
        if _may_be_no_text(event.value):
            self.ambiguous.add(bool(event.style))
        self.some |= changed

    def any(self) -> bool:
        """Return True if anything is lost, after the last scalar too."""
        after = self.text[self.end :].strip(_BETWEEN_SCALARS)
        return self.some or len(self.ambiguous) > 1 or after != ""


_BETWEEN_SCALARS = " \t\r\n:-,[]{}?"


def _may_be_no_text(text: str) -> bool:
    """Return True if some readers take a plain scalar for no text that `from_yaml` gives as one."""
    odd_number = _scalar(text)[0] == '"' and scalar_kind(text) != "text"
    return odd_number or re.fullmatch(_NO_TEXT, text, re.IGNORECASE) is not None


_NO_TEXT = r"y|n|yes|no|on|off|[-+]?[0-9]+(?::[0-5]?[0-9])+|[-+]?[0-9][0-9_]*_[0-9_.]*"  # YAML 1.1


def _yaml_values(events: Iterable[Any], losses: _Losses | None) -> list[Value]:
    """Return the values of the documents in `events`, in one pass without recursion.

    With `losses`, a repeated key is an error. An alias is the same object as its anchor: it may
    contain itself.
    """
    documents: list[Value] = []
    # Each open value, and its parts: keys and values in turn for a mapping.
    levels: list[tuple[Value, list[Value]]] = [(documents, documents)]
    anchored: dict[str, Value] = {}
    for event in events:
        kind = type(event).__name__
        outer, parts = levels[-1]
        is_key = isinstance(outer, dict) and len(parts) % 2 == 0
        value: Value
        if kind in ("SequenceEndEvent", "MappingEndEvent"):
            levels.pop()
            if isinstance(outer, dict):
                outer.update(zip(parts[::2], parts[1::2], strict=True))
                if losses and 2 * len(outer) != len(parts):
                    raise DocumentError("a YAML key that is repeated")
            continue
        if kind == "ScalarEvent":
            plain = event.implicit[0] and not is_key
            value = Raw(_scalar(event.value).encode()) if plain else event.value
            if losses:
                losses.add(event, value)
        elif kind == "AliasEvent":
            if event.anchor not in anchored:
                raise DocumentError(f"a YAML alias *{event.anchor} to nothing before it")
            value = anchored[event.anchor]
        elif kind in ("SequenceStartEvent", "MappingStartEvent"):
            if len(levels) > _DEEPEST_YAML:
                raise DocumentError(f"YAML nested more than {_DEEPEST_YAML} levels deep")
            value = {} if kind == "MappingStartEvent" else []
            levels.append((value, value if isinstance(value, list) else []))
        else:
            continue
        if is_key and not isinstance(value, str):
            raise DocumentError("a YAML key that is no scalar")
        parts.append(value)
        if event.anchor is not None:
            anchored[event.anchor] = value
    return documents


def _scalar(text: str) -> str:
    kind = scalar_kind(text)
    if kind in ("null", "boolean"):
        return "null" if kind == "null" else text.lower()
    return text if kind != "text" and JSON_NUMBER.fullmatch(text) else encode(text).decode()


ScalarKind = Literal["null", "boolean", "integer", "based", "float", "text"]


def scalar_kind(text: str) -> ScalarKind:
    """Return the kind of a plain YAML scalar by the core schema (YAML 1.2, section 10.3.2)."""
    if text in ("", "~", "null", "Null", "NULL"):
        return "null"
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return "boolean"
    if text[0] not in "0123456789+-.":
        return "text"
    match = re.fullmatch(_NUMBER, text)
    return "text" if match is None else match.lastgroup or "float"  # type: ignore[return-value]


_NUMBER = (
    r"(?P<integer>[-+]?[0-9]+)|(?P<based>0o[0-7]+|0x[0-9a-fA-F]+)"
    r"|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
)
