"""The reference page of the sidecar, as Markdown, made from the code of `serve` and `run`.

Flags, keys, types and defaults come from the tables that parse them. The sample is that of the
loader's docstring. Metrics are those that a sidecar exposes after some requests.
"""

import inspect
import os
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, get_args

from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from proxy.cli import options, serve
from proxy.cli.options import Option
from proxy.cli.schema import descriptions
from proxy.ruleset.loading import config
from proxy.ruleset.loading.config_model import NO_DEFAULTS, ConfigSpec, LimitsSpec, RouteSpec
from proxy.ruleset.loading.convert import fields
from proxy.storage.meter import OTHER, OutcomeKind, Row, Warnings
from proxy.transports.sidecar.metrics import Metrics
from proxy.transports.sidecar.route import AccessRecord, Route
from tests.reference import operations
from tests.reference.prose import filled
from tests.reference.rules_page import bound, table, words

_SEPARATORS = {os.pathsep: "colons", ",": "commas", "\n": "line breaks"}
_DEFAULT = re.compile(r" \(default: (.+)\)$", re.DOTALL)
_OURS = "mcp_"


def page() -> str:
    """Return the whole page."""
    opening = filled(operations.OPENING).replace("{sample}", sample())
    return bound(opening, ["\n\n".join(part) for part in _sections()])


def sample() -> str:
    """Return the sample configuration from the docstring of the loader."""
    lines = inspect.cleandoc(config.__doc__ or "").splitlines()
    return textwrap.dedent("\n".join(line for line in lines if line.startswith("    ")))


def _sections() -> Iterator[Iterable[str]]:
    own = " and ".join(f"`{word}`" for word in sorted(NO_DEFAULTS))
    yield "## Flags of `serve`", _flags(serve.OPTIONS)
    yield "## Flags of `run`", _flags(options.OPTIONS)
    yield "## Keys of a configuration", filled(operations.KEYS)
    yield "### The top", filled(operations.TOP.format(own=own)), _keys(ConfigSpec, _FLAGS)
    yield "### A route", _keys(RouteSpec, _FLAGS)
    yield "### Limits", _keys(LimitsSpec, _LIMITS)
    yield "## Its own paths", _said("path", operations.PATHS)
    yield "## Statuses of its own", filled(operations.ANSWERS), _said("status", operations.STATUSES)
    yield "## Metrics", filled(operations.METRICS.format(other=OTHER)), *_metrics()
    yield "## Log lines", filled(operations.LOG), *_lines()


_BY_NAME = {option.name: option for option in serve.OPTIONS}
# A key and a flag of the same name are the same option; tables of `serve` map other names.
_FLAGS = _BY_NAME | {key: _BY_NAME[name] for name, key in serve.KEYS.items()}
_TABLES = serve.LIMITS | serve.CONNECTIONS | serve.SNAPSHOTS
_LIMITS = {key: _BY_NAME[name] for name, (key, _) in _TABLES.items()}


def _said(what: str, meanings: Mapping[Any, str]) -> str:
    return table((what, ""), ((f"`{each}`", said) for each, said in meanings.items()))


def _flags(flags: Iterable[Option]) -> str:
    rows = [
        (_flag(each), _variable(each), default(each), _DEFAULT.sub("", each.help)) for each in flags
    ]
    return table(("flag", "variable", "default", ""), rows)


def _flag(option: Option) -> str:
    short = f"`{option.short}`, " if option.short else ""
    return f"{short}`{' '.join(filter(None, (option.flag, option.metavar)))}`"


def _variable(option: Option) -> str:
    several = f", several with {_SEPARATORS[option.separator]} between them" if option.many else ""
    return f"`{option.variable}`{several}"


def default(option: Option) -> str:
    """Return the default of an option, as its help states it.

    >>> default(Option("--drain", "how long (default: 10)"))
    '10'
    """
    found = _DEFAULT.search(option.help)
    return found[1] if found else ""


def _keys(kind: type[Struct], flags: Mapping[str, Option]) -> str:
    rows = [
        (
            f"`{word}`",
            words(field.type) if kind is not ConfigSpec or word != "routes" else _ROUTES,
            "required" if field.required else _without(word, flags.get(word)),
            f"`{flags[word].flag}`" if word in flags else "",
            descriptions(kind)[word],
        )
        for word, field in fields(kind).items()
    ]
    return table(("key", "value", "default", "flag", ""), rows)


_ROUTES = "a list of [routes](#a-route)"


def _without(word: str, flag: Option | None) -> str:
    """Return the default of a key: that of its flag, or else that of the Route field."""
    if flag is not None:
        return default(flag)
    field = fields(Route).get(word)
    value: Any = None if field is None else field.default
    return f"`{value}`".lower() if isinstance(value, str | int) else ""


def _metrics() -> Iterator[str]:
    found = figures()
    rows = [
        (f"`{name}`", kind, ", ".join(f"`{label}`" for label in labels), said)
        for name, kind, labels, said in found
    ]
    yield table(("metric", "kind", "labels", ""), rows)
    outcomes = ", ".join(f"`{each}`" for each in get_args(OutcomeKind))
    labels = dict.fromkeys(label for _, _, labels, _ in found for label in labels)
    yield _said(
        "label", {each: operations.LABELS[each].format(outcomes=outcomes) for each in labels}
    )


def figures() -> list[tuple[str, str, Collection[str], str]]:
    """Return the name, the kind, the labels and the meaning of each metric of a sidecar."""
    metrics = Metrics()
    metrics.observe(Row("find", None, "shaped", 1, 2, 1, 2, 1))
    metrics.warned(Warnings("find", "lists", "recast: no case fits", 1))
    metrics.count_request(
        AccessRecord(method="tools/call", tool="find", answered_by="proxy"), 503, 0.1
    )
    found: list[tuple[str, str, Collection[str], str]] = []
    for family in text_string_to_metric_families(metrics.exposition()[0].decode()):
        if family.name.startswith(_OURS):
            total = "_total" if family.type == "counter" else ""
            labels = [label for label in family.samples[0].labels if label != "le"]
            found.append((family.name + total, family.type, labels, family.documentation))
    return found


def _lines() -> Iterator[str]:
    request, call = operations.LINES["request"], operations.LINES["call"]
    rows = [(f"`{field}`", "" if field in call else "no", said) for field, said in request.items()]
    yield table(("field of `request`", "of `call` too", ""), rows)
    yield _said("field of `serving`", operations.LINES["serving"])
