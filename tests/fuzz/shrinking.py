"""Makes what shows something smaller, as long as it shows the same."""

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import yaml

from tests.fuzz.reading import elements, members

T = TypeVar("T")

_TRIES = 600


def shrunk(given: T, fewer: Callable[[T], Iterator[T]], shows: Callable[[T], bool]) -> T:
    """Return what is left of something once nothing more of it can be taken away.

    >>> shrunk("xxaxx", lambda said: (said[:at] + said[at + 1 :] for at in range(len(said))),
    ... lambda said: "a" in said)
    'a'
    """
    tries = 0
    found = True
    while found:
        found = False
        for smaller in fewer(given):
            tries += 1
            if tries > _TRIES:
                return given
            if shows(smaller):
                given, found = smaller, True
                break
    return given


def rules(raw: bytes) -> Iterator[bytes]:
    """Yield a rule file with one of the words, or one of the steps, of its rule left out."""
    try:
        [rule] = yaml.safe_load(raw)["rules"]
        steps = list(rule.get("response", ()))
    except (yaml.YAMLError, TypeError, KeyError, ValueError, AttributeError):
        return
    for word in [word for word in rule if word != "tools"]:
        yield _file({name: value for name, value in rule.items() if name != word})
    for at in range(len(steps)):
        yield _file({**rule, "response": steps[:at] + steps[at + 1 :]})


def _file(rule: Any) -> bytes:
    return json.dumps({"version": 1, "rules": [rule]}).encode()


def documents(text: str, depth: int = 12) -> Iterator[str]:
    """Yield JSON with one member or element left out, large parts first, in its texts too."""
    if depth and text[:1] == '"' and text[1:2] in "{[":
        for smaller in documents(json.loads(text), depth - 1):
            yield json.dumps(smaller)
    elif depth and text[:1] == "{":
        held = members(text)
        for name in sorted(held, key=lambda name: -len(held[name])):
            rest = {other: value for other, value in held.items() if other != name}
            yield _object(rest)
            for smaller in documents(held[name], depth - 1):
                yield _object({**held, name: smaller})
    elif depth and text[:1] == "[":
        parts = elements(text)
        half = len(parts) // 2
        if half:
            yield f"[{','.join(parts[:half])}]"
            yield f"[{','.join(parts[half:])}]"
        for at, part in enumerate(parts):
            yield f"[{','.join(parts[:at] + parts[at + 1 :])}]"
            for smaller in documents(part, depth - 1):
                yield f"[{','.join([*parts[:at], smaller, *parts[at + 1 :]])}]"


def _object(held: dict[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in held.items()) + "}"
