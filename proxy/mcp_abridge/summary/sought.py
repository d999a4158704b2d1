"""The words that a call looks for: without them, a long text is cut beside them."""

import re
from collections.abc import Collection
from typing import Any

_QUERIES = re.compile("(?i)quer|search|pattern|jql|filter|keyword|term|text|regex|^q$")
_REGULAR = re.compile("(?i)pattern|regex")
_LANGUAGE = re.compile(r"(?i)[={}<>~]|\w\(|^\s*(?:select|with|show|from)\s")
_LITERAL = re.compile(r"""'([^'\n]+)'|"([^"\n]+)"|~\s*(\w+)""")
_SOUGHT = re.compile(r"\w{3,}")
_MOST_SOUGHT = 8  # words


def sought_by(arguments: dict[str, Any]) -> tuple[str, ...]:
    """Return the words that the arguments of a call look for, in lower case.

    Of a query in a language, such as SQL, JQL or GraphQL, these are in its quoted texts.

    >>> sought_by({"query": "Crash AND start", "limit": 9, "repo": "acme"})
    ('crash', 'start')
    >>> sought_by({"sql_query": "select name from orders where note like '%copper%' limit 9"})
    ('copper',)
    >>> sought_by({"searchPattern": "crash|panic(ked)?"})
    ('crash', 'panic', 'ked')
    """
    queries = (
        (name, value[:1000])
        for name, value in arguments.items()
        if isinstance(value, str) and _QUERIES.search(name)
    )
    texts = " ".join(
        " ".join(map("".join, _LITERAL.findall(query)))
        if _LANGUAGE.search(query) and not _REGULAR.search(name)
        else query
        for name, query in queries
    ).lower()
    words = dict.fromkeys(_SOUGHT.findall(texts[:1000]))
    return tuple(word for word in words if word not in ("and", "not"))[:_MOST_SOUGHT]


def sought_at(content: str, sought: Collection[str]) -> int:
    """Return where the first word that the call looks for stands in a text; 0 if nowhere."""
    if not sought:
        return 0
    lowered = content.lower()
    places = [at for word in sought if (at := lowered.find(word)) > 0]
    return min(places, default=0)
