"""The URL and the headers of a remote server, as a command line gives them.

The value of a header may be secret, so no error message here shows it.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110 section 5.6.2
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

# Headers that the proxy itself sets toward the server.
_OURS = {"accept", "accept-encoding", "connection", "content-encoding", "content-length"}
_OURS |= {"content-type", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version"}
_OURS |= {"mcp-session-id", "transfer-encoding", "upgrade"}


def url(text: str) -> str:
    """Return the URL of a server unchanged. Raises ValueError if it is invalid.

    >>> url("https://example.org/mcp")
    'https://example.org/mcp'
    """
    try:
        parts = urlsplit(text)
        found = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        found = None
    if not found or re.search(r"\s", text):
        raise ValueError("the URL of a server is written like https://example.org/mcp")
    return text


def header(text: str) -> str:
    """Return a header, `Name: value`, unchanged. Raises ValueError if it is invalid."""
    name, colon, _ = text.partition(":")
    if not colon or not _NAME.fullmatch(name.strip()):
        raise ValueError("a header is written like 'Authorization: Bearer ${TOKEN}'")
    if name.strip().lower() in _OURS:
        raise ValueError(f"the header {name.strip()} is the proxy's own")
    return text


def expanded(text: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the name and the value of a header, with `${NAME}` taken from the environment.

    >>> expanded("Authorization: Bearer ${TOKEN}", {"TOKEN": "x"})
    ('Authorization', 'Bearer x')

    Raises ValueError if a variable is not set, or the header is invalid.
    """
    name, _, value = header(text).partition(":")
    absent = [each for each in _VARIABLE.findall(value) if not environment.get(each)]
    if absent:
        needed = f"the header {name.strip()} needs ${{{absent[0]}}}"
        raise ValueError(f"{needed}, which is not set in the environment")
    value = _VARIABLE.sub(lambda found: environment[found[1]], value).strip()
    if _CONTROL.search(value):
        raise ValueError(f"the value of the header {name.strip()} has a control character in it")
    return name.strip(), value
