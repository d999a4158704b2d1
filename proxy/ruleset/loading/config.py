"""Loads a configuration of `serve`: the routes, or every problem with its position.

    version: 1
    listen: 127.0.0.1:8808            # where a route listens that does not say so itself
    upstream: http://server:3000/mcp  # or {command: [npx, -y, some-server]}
    store: redis://redis:6379/0
    token_env: SIDECAR_TOKEN
    headers: {Authorization: "Bearer ${UPSTREAM_TOKEN}"}
    limits: {body: 8MiB, drain_seconds: 20}
    routes:
      - path: /mcp
        rules: [rules.yaml]
      - path: /mcp-readonly
        tools: [list_*, get_*]

Keys at the top are defaults of each route. But `headers` and `auth` beside an upstream never apply
to another upstream. config_model has every key.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from proxy.document.sizes import Size
from proxy.errors import AbridgeError, Problem
from proxy.ruleset.loading import checks as consistency
from proxy.ruleset.loading import config_model as configkeys
from proxy.ruleset.loading import yaml_nodes as positions
from proxy.ruleset.loading.config_model import (
    NO_DEFAULTS,
    NO_RULES,
    TOKEN,
    ConfigSpec,
    LimitsSpec,
    RouteSpec,
)
from proxy.ruleset.loading.convert import BAD, NodeConverter, Reader, fields, found, sized
from proxy.ruleset.loading.yaml_errors import SourceError, quote
from proxy.ruleset.loading.yaml_nodes import Node


class Config(Struct, frozen=True):
    """A loaded configuration."""

    routes: tuple[RouteSpec, ...]
    store: configkeys.StoreUrl | None = None
    limits: LimitsSpec = LimitsSpec()


class LoadedConfig(Struct, frozen=True):
    """The result of loading one file: `config`, or None if there are problems."""

    config: Config | None
    problems: tuple[Problem, ...] = ()


def read(
    file: str,
    raw: bytes,
    environment: Mapping[str, str],
    given: Mapping[str, Any] | None = None,
) -> LoadedConfig:
    """Read the bytes of a configuration; `file` is its name, and paths are relative to its folder.

    `given` are values from elsewhere (flags), by key: each replaces the value at the top of the
    file.

    >>> text = b"version: 1\\nupstream: http://server:3000/mcp\\nroutes: [{path: /mcp, tool: [a]}]"
    >>> print(read("serve.yaml", text, {}).problems[0])
    serve.yaml:3:23: unknown key 'tool' of a route; did you mean 'tools'?
    """
    root, slips = positions.read(file, raw)
    if root is None:
        return LoadedConfig(None, tuple(slips))
    notes = NodeConverter(file, _readers(Path(file).parent, environment))
    made = None
    try:
        if b"\\" in raw:
            consistency.characters(notes, root)
        made = _config(notes, root, given or {})
    except SourceError as stop:
        slips.append(Problem(file, stop.line, stop.column, str(stop)))
    problems = sorted({*slips, *notes.problems})
    return LoadedConfig(None if problems else made, tuple(problems))


def _readers(folder: Path, environment: Mapping[str, str]) -> dict[Any, Reader]:
    texts: dict[Any, Callable[[str], Any]] = {
        configkeys.Url: configkeys.url,
        configkeys.StoreUrl: configkeys.store,
        configkeys.RoutePath: configkeys.place,
        configkeys.Host: configkeys.host,
        configkeys.Origin: configkeys.origin,
        configkeys.HeaderName: configkeys.name,
        configkeys.HeaderValue: lambda text: configkeys.value(text, environment),
        configkeys.RuleFileName: lambda text: configkeys.rules(text, folder),
        configkeys.TokenFromEnv: lambda text: configkeys.token_in(text, environment),
        configkeys.TokenFile: lambda text: configkeys.tokens_of(folder / text),
    }
    readers = {kind: _text(make) for kind, make in texts.items()}
    own = {Size: sized, configkeys.ListenAddress: _address, configkeys.Command: _command}
    return {**own, **readers}


def _text(make: Callable[[str], Any]) -> Reader:
    def read(notes: NodeConverter, node: Node, label: str) -> Any:
        text = notes.value(node, str, label)
        if text is BAD:
            return BAD
        try:
            return make(text)
        except AbridgeError as error:
            return notes.report(node, f"{label}: {error}")

    return read


def _address(notes: NodeConverter, node: Node, label: str) -> Any:
    if type(node.value) is int:  # a port alone: report the missing host
        node = replace(node, value=str(node.value))
    return _text(configkeys.address)(notes, node, label)


def _command(notes: NodeConverter, node: Node, label: str) -> Any:
    line = node.value.get("command")
    if line is not None and isinstance(line.value, str) and not line.invalid:
        try:
            words = shlex.split(line.value)
        except ValueError:  # a quotation without an end
            words = line.value.split()
        if len(words) > 1:
            written = ", ".join(word if _PLAIN.fullmatch(word) else quote(word) for word in words)
            return notes.report(line, f"command: {found(line)} is one word; write [{written}]")
    return notes.made(
        node, configkeys.Command, notes.members(node, configkeys.Command, label), label
    )


_PLAIN = re.compile(r"-{0,2}[A-Za-z_/][\w./@=+-]*", re.ASCII)


def _config(notes: NodeConverter, root: Node, given: Mapping[str, Any]) -> Config | None:
    if not isinstance(root.value, dict):
        notes.report(root, f"expected a mapping with version and routes, found {found(root)}")
        return None
    own = {word: node for word, node in root.value.items() if not word.startswith("x-")}
    shared = {word: node for word, node in own.items() if word in _SHARED}
    for word in own.keys() - fields(ConfigSpec).keys() - shared.keys():
        if word in NO_DEFAULTS:
            notes.report(root.keys[word], f"{word!r} is each route's own; it has no default")
        else:
            known = [*fields(ConfigSpec), *_SHARED]
            notes.unknown(root.keys[word], "key", known, " of a configuration")
    values = {word: node for word, node in own.items() if word in fields(ConfigSpec)}
    head = notes.members(replace(root, value=values), ConfigSpec, "a configuration", "key")
    for word, node in shared.items():
        notes.value(node, _SHARED[word].type, word)
    defaults = {word: node for word, node in shared.items() if word not in _replaced(given)}
    starts = replace(root, value=defaults)
    top = {*defaults, *given}
    routes: list[tuple[Node, RouteSpec | None]] = []
    for node in _routes(notes, root):
        nearer = _replaced(node.value, top)
        merged = notes.members(_merged(starts, node, nearer), RouteSpec, "a route", "key")
        used = {word: value for word, value in given.items() if word not in nearer}
        routes.append((node, _made(notes, node, {**used, **merged})))
    if not routes:
        routes = [(root, _made(notes, starts, _alone(notes, starts, given)))]
    _once(notes, routes)
    if notes.problems:
        return None
    made = tuple(route for _, route in routes if route is not None)
    return Config(made, head.get("store"), head.get("limits", LimitsSpec()))


_SHARED = {word: field for word, field in fields(RouteSpec).items() if word not in NO_DEFAULTS}
# A nearer value of either key replaces both.
_TOKENS = ("token_env", "token_file")
# Credentials for the upstream beside them, never for another upstream.
_CREDENTIALS = ("headers", "auth")


def _replaced(nearer: Iterable[str], top: Iterable[str] = ()) -> set[str]:
    """Return the keys whose values at the top are overridden by nearer ones."""
    words = set(nearer)
    if words & set(_TOKENS):
        words |= set(_TOKENS)
    if "upstream" in words and "upstream" in top:
        words |= set(_CREDENTIALS)
    return words


def _routes(notes: NodeConverter, root: Node) -> list[Node]:
    node = root.value.get("routes")
    if node is None or node.invalid:
        return []
    nodes = node.value if isinstance(node.value, list) else [node]
    for each in nodes:
        if not isinstance(each.value, dict) and not each.invalid:
            notes.report(each, f"expected a route, a mapping with path, found {found(each)}")
    return [each for each in nodes if isinstance(each.value, dict)]


def _merged(defaults: Node, route: Node, nearer: set[str]) -> Node:
    kept = {word: node for word, node in defaults.value.items() if word not in nearer}
    value = {**kept, **route.value}
    return replace(route, value=value, keys={**defaults.keys, **route.keys})


def _alone(notes: NodeConverter, root: Node, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the only route of a file that lists none."""
    own = {word: notes.value(node, _SHARED[word].type, word) for word, node in root.value.items()}
    return {"path": configkeys.RoutePath("/mcp"), **own, **given}


def _made(notes: NodeConverter, node: Node, values: dict[str, Any]) -> RouteSpec | None:
    """Check the keys of a route against each other, and return the route."""
    read = {word: value for word, value in values.items() if value is not BAD}
    own = {word: place for word, place in node.value.items() if word in read}
    if "upstream" not in values or values["upstream"] is None:
        notes.report(node, "a route: 'upstream' is missing")
    if all(own.get(word) and own[word].value is not None for word in _TOKENS):
        notes.report(node.keys["token_file"], "'token_env' and 'token_file' cannot stand together")
    if NO_RULES in (read.get("rules") or ()) and len(read["rules"]) > 1:
        notes.report(own.get("rules", node), f"rules: {NO_RULES!r} stands alone")
    for word, reason in _meaningless(read):
        if word in own:
            notes.report(node.keys[word], f"{word!r} means nothing {reason}")
    if isinstance(read.get("upstream"), configkeys.Command) and read.get("passes"):
        notes.report(node.keys["passes"], "'passes' needs the URL of an upstream, not a command")
    if len(read) < len(values):
        return None
    route = RouteSpec(**read)
    if TOKEN in route.path and not route.tokens:
        message = f"path: {TOKEN} needs a token to compare with: token_env or token_file"
        notes.report(own["path"], message)
    if route.torn is not None:
        said = [own[word] for word in ("auth", *_TOKENS, "path") if word in own]
        notes.report(said[0] if said else node, f"auth: {route.torn}")
    if route.passes and TOKEN in route.path:
        notes.report(own["path"], f"path: with 'passes', the {TOKEN} in it would go to the server")
    return route


def _meaningless(read: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if read.get("passes"):
        words = ("rules", "budget", "tools", "deadline_seconds", "malformed_status")
        yield from ((word, "where everything passes") for word in words)
    if isinstance(read.get("upstream"), configkeys.Command):
        yield from ((word, "to a command") for word in ("headers", "auth"))


def _once(notes: NodeConverter, routes: Iterable[tuple[Node, RouteSpec | None]]) -> None:
    """Report routes whose path an earlier route of the same listener already takes."""
    seen: list[tuple[int, RouteSpec]] = []
    for node, route in routes:
        if route is None:
            continue
        for line, other in seen:
            if other.listen == route.listen and _same(other.path, route.path):
                message = f"path: {route.path} is taken by the route in line {line}"
                notes.report(node.value.get("path", node), message)
                break
        seen.append((node.line, route))


def _same(first: str, second: str) -> bool:
    """Return True if a path may match both, and neither is more specific."""
    one, other = first.rstrip("/").split("/"), second.rstrip("/").split("/")
    if len(one) != len(other) or (TOKEN in one) != (TOKEN in other):
        return False
    return all(a == b or TOKEN in (a, b) for a, b in zip(one, other, strict=True))
