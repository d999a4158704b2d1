"""The generated blocks of the sidecar's reference page.

Flags, keys, types and defaults come from the tables that parse them. Metrics are those that a
sidecar exposes after some requests.
"""

import os
import re
from collections.abc import Collection, Iterable
from typing import Any

from mcp_abridge.cli import options, serve
from mcp_abridge.cli.options import Option
from mcp_abridge.ruleset.loading.config_model import ConfigSpec, LimitsSpec, RouteSpec
from mcp_abridge.ruleset.loading.convert import fields
from mcp_abridge.storage.meter import Row, Warnings
from mcp_abridge.transports.sidecar.metrics import Metrics
from mcp_abridge.transports.sidecar.route import AccessRecord, Route
from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from tests.reference.markdown import table
from tests.reference.rules_page import words
from tests.reference.schemas import descriptions

_SEPARATORS = {os.pathsep: "colons", ",": "commas", "\n": "line breaks"}
_DEFAULT = re.compile(r" \(default: (.+)\)$", re.DOTALL)
_OURS = "mcp_"


def blocks() -> dict[str, str]:
    return {
        "serve": _flags(serve.OPTIONS),
        "run": _flags(options.OPTIONS),
        "top": _keys(ConfigSpec),
        "route": _keys(RouteSpec),
        "limits": _keys(LimitsSpec),
        "metrics": _metrics(),
    }


_BY_NAME = {option.name: option for option in serve.OPTIONS}
_FLAG_OF = {key: _BY_NAME[name] for name, key in (*serve.KEYS.items(), ("store", "store"))}


def _flags(flags: Iterable[Option]) -> str:
    rows = [
        (_flag(each), _variable(each), default(each), _DEFAULT.sub("", each.help)) for each in flags
    ]
    return table(("flag", "variable", "default", ""), rows)


def _flag(option: Option) -> str:
    short = f"`{option.short}`, " if option.short else ""
    return f"{short}`{' '.join(filter(None, (option.flag, option.metavar)))}`"


def _variable(option: Option) -> str:
    several = f"; several with {_SEPARATORS[option.separator]} between" if option.many else ""
    return f"`{option.variable}`{several}"


def default(option: Option) -> str:
    """Return the default of an option, as its help states it."""
    match = _DEFAULT.search(option.help)
    return match[1] if match else ""


def _keys(kind: type[Struct]) -> str:
    rows = [
        (
            f"`{key}`",
            words(field.type) if key != "routes" else "a list of [routes](#a-route)",
            "required" if field.required else _default(key),
            f"`{_FLAG_OF[key].flag}`" if key in _FLAG_OF else "",
            descriptions(kind)[key],
        )
        for key, field in fields(kind).items()
    ]
    return table(("key", "value", "default", "flag", ""), rows)


def _default(key: str) -> str:
    """Return the default of a key: that of its flag, or else that of the Route field."""
    if key in _FLAG_OF:
        return default(_FLAG_OF[key])
    field = fields(Route).get(key)
    value: Any = None if field is None else field.default
    return f"`{value}`".lower() if isinstance(value, str | int) else ""


def _metrics() -> str:
    rows = [
        (f"`{name}`", kind, ", ".join(f"`{label}`" for label in labels), text)
        for name, kind, labels, text in figures()
    ]
    return table(("metric", "kind", "labels", ""), rows)


def figures() -> list[tuple[str, str, Collection[str], str]]:
    metrics = Metrics()
    metrics.observe(Row("find", None, "shaped", None, None, 1, 2, 1, 2, 1))
    metrics.warned(Warnings("lists", "recast: no case fits", 1))
    record = AccessRecord(method="tools/call", tool="find", answered_by="proxy")
    metrics.count_request(record, 503, 0.1)
    rows: list[tuple[str, str, Collection[str], str]] = []
    for family in text_string_to_metric_families(metrics.exposition()[0].decode()):
        if family.name.startswith(_OURS):
            total = "_total" if family.type == "counter" else ""
            labels = [label for label in family.samples[0].labels if label != "le"]
            rows.append((family.name + total, family.type, labels, family.documentation))
    return rows
