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


def further(*values: Any, **options: Any) -> Any:
    """Return the parameters of a case that only the long form tries."""
    marks = options.pop("marks", ())
    return pytest.param(*values, marks=[*marks, pytest.mark.long_form], **options)


def some(cases: Mapping[str, Any] | Iterable[Any], *short: Any) -> list[Any]:
    """Return cases as parameters; those not named in `short` are tried in the long form only.

    >>> [case.id for case in some({"a": 1, "b": (2, 3)}, "b")]
    ['a', 'b']
    """
    by_id = cases if isinstance(cases, Mapping) else {str(case): case for case in cases}
    short_ids = set(map(str, short))
    assert short_ids <= by_id.keys(), f"no such cases: {short_ids - by_id.keys()}"
    return [
        (pytest.param if name in short_ids else further)(
            *(case if isinstance(case, tuple) else (case,)), id=name
        )
        for name, case in by_id.items()
    ]


def in_short_form(item: pytest.Item) -> bool:
    return item.get_closest_marker(LONG_FORM) is None
