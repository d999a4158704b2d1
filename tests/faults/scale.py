"""How much is done: with FAULTS=long all of it, else less of what differs in number or case."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

LONG = os.environ.get("FAULTS") == "long"
LONG_FORM = "long_form"


def scaled(short: int, long: int) -> int:
    """Return how often to do something: `make faults` does it `long`, `make test` `short`."""
    return long if LONG else short


def further(*values: Any, **named: Any) -> Any:
    """Return the parameters of a case that only the long form tries."""
    marks = named.pop("marks", ())
    return pytest.param(*values, marks=[*marks, pytest.mark.long_form], **named)


def some(cases: Mapping[str, Any] | Iterable[Any], *short: Any) -> list[Any]:
    """Return cases as parameters; those not named in `short` are tried in the long form only.

    >>> [case.id for case in some({"a": 1, "b": (2, 3)}, "b")]
    ['a', 'b']
    """
    named = cases if isinstance(cases, Mapping) else {str(case): case for case in cases}
    wanted = set(map(str, short))
    assert wanted <= named.keys(), f"no such cases: {wanted - named.keys()}"
    return [
        (pytest.param if name in wanted else further)(
            *(case if isinstance(case, tuple) else (case,)), id=name
        )
        for name, case in named.items()
    ]


def in_short_form(item: pytest.Item) -> bool:
    return item.get_closest_marker(LONG_FORM) is None
