"""Loads a configuration of `serve`: the routes, or every problem with its position.

Keys at the top are defaults of each route. But `headers` and `auth` beside an upstream never apply
to another upstream. config_model has every key.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcp_abridge.document.sizes import Size
from mcp_abridge.errors import Problem
from mcp_abridge.ruleset.loading import config_model
from mcp_abridge.ruleset.loading.config_model import (
    NO_DEFAULTS,
    TOKEN,
    Command,
    ConfigSpec,
    LimitsSpec,
    RouteSpec,
)
from mcp_abridge.ruleset.loading.convert import (
    INVALID,
    NodeConverter,
    Reader,
    fields,
    read_defaults,
    read_file,
    read_size,
    value_text,
)
from mcp_abridge.ruleset.loading.yaml_nodes import Node, merged
from mcp_abridge.ruleset.selection import NO_RULES


class Config(Struct, frozen=True):
    """A loaded configuration."""

    routes: tuple[RouteSpec, ...]
    store: config_model.StoreUrl | None = None
    limits: LimitsSpec = LimitsSpec()


def read(
    file: str,
    raw: bytes,
    environment: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
) -> tuple[Config | None, tuple[Problem, ...]]:
    """Return the configuration in the bytes of a file, or None and its problems.

    Paths are relative to its folder. `overrides` are values of flags, by key: each replaces the
    value at the top of the file.

    >>> text = b"version: 1\\nupstream: http://server:3000/mcp\\nroutes: [{path: /mcp, tool: [a]}]"
    >>> print(read("serve.yaml", text, {})[1][0])
    serve.yaml:3:23: unknown key 'tool' of a route; did you mean 'tools'?
    """
    readers = _readers(Path(file).parent, environment)
    config, problems, _ = read_file(
        file, raw, readers, "a mapping with version and routes", partial(_config, overrides or {})
    )
    return config, problems


def _readers(folder: Path, environment: Mapping[str, str]) -> dict[Any, Reader]:
    texts: dict[Any, Callable[[str], Any]] = {
        config_model.Url: config_model.url,
        config_model.StoreUrl: config_model.store_url,
        config_model.RoutePath: config_model.route_path,
        config_model.Host: config_model.host,
        config_model.Origin: config_model.origin,
        config_model.ListenAddress: config_model.listen_address,
        config_model.HeaderName: config_model.header_name,
        config_model.HeaderValue: lambda text: config_model.header_value(text, environment),
        config_model.RuleFileName: lambda text: config_model.rule_file_name(text, folder),
        config_model.TokenFromEnv: lambda text: config_model.token_from_env(text, environment),
        config_model.TokenFile: lambda text: config_model.token_file(folder / text),
    }
    readers = {kind: partial(_text, read) for kind, read in texts.items()}
    return {Size: read_size, Command: _command, **readers}


def _text(read: Callable[[str], Any], converter: NodeConverter, node: Node, label: str) -> Any:
    if type(node.value) is int:
        # What is wrong with it as a text comes before the advice to quote it.
        as_text = replace(node, value=str(node.value))
        if converter.read_text(as_text, read, label) is INVALID:
            return INVALID
    text = converter.convert(node, str, label)
    return INVALID if text is INVALID else converter.read_text(node, read, label)


def _command(converter: NodeConverter, node: Node, label: str) -> Any:
    line = node.value.get("command")
    if line is not None and isinstance(line.value, str) and len(line.value.split()) > 1:
        message = f"{value_text(line)} is one word; write [PROGRAM, ARGUMENT, ...]"
        return converter.report(line, f"command: {message}")
    return converter.build(node, Command, converter.members(node, Command, label), label)


def _config(overrides: Mapping[str, Any], converter: NodeConverter, root: Node) -> Config:
    keys = fields(ConfigSpec)
    head_nodes = {key: node for key, node in root.value.items() if key in keys}
    head = converter.members(replace(root, value=head_nodes), ConfigSpec, "a configuration", "key")
    defaults = read_defaults(converter, root, RouteSpec, NO_DEFAULTS, "a configuration", keys)
    overridden = _overridden(overrides)
    defaults = {key: node for key, node in defaults.items() if key not in overridden}
    routes_node = root.value.get("routes", replace(root, value=[]))
    nodes = converter.mappings(routes_node, "a route, a mapping with path")
    # Without routes there is one, and all that stands at the top is its own.
    single = {**defaults, "path": replace(root, value="/mcp")}
    routes: list[tuple[Node, RouteSpec]] = []
    for node in nodes or [replace(root, value=single)]:
        nearer = _overridden(node.value, {*defaults, *overrides}) if nodes else set()
        inherited = {key: each for key, each in defaults.items() if key not in nearer}
        for key in node.value.keys() & keys.keys():
            converter.report(node.keys[key], f"{key!r} stands at the top of the file only")
        own = {key: each for key, each in node.value.items() if key not in keys}
        whole = merged(replace(root, value=inherited), replace(node, value=own))
        values = {key: value for key, value in overrides.items() if key not in nearer}
        values |= converter.members(whole, RouteSpec, "a route", "key")
        route = _route(converter, node, values)
        if route is not None:
            conflicts = (each.line for each, other in routes if _overlap(other, route))
            if (line := next(conflicts, None)) is not None:
                message = f"path: {route.path} is taken by the route in line {line}"
                converter.report(node.value.get("path", node), message)
            routes.append((node, route))
    specs = tuple(route for _, route in routes)
    return Config(specs, head.get("store"), head.get("limits", LimitsSpec()))


# A nearer value of either key replaces both.
_TOKENS = ("token_env", "token_file")
# Credentials belong to the upstream beside them: a route with another upstream inherits none.
_CREDENTIALS = ("headers", "auth")
_OF_MCP = ("rules", "budget", "scripts", "tools", "deadline_seconds", "malformed_status")


def _overridden(nearer: Iterable[str], top: Iterable[str] = ()) -> set[str]:
    keys = set(nearer)
    if keys & set(_TOKENS):
        keys |= set(_TOKENS)
    if "upstream" in keys and "upstream" in top:
        keys |= set(_CREDENTIALS)
    return keys


def _route(converter: NodeConverter, node: Node, values: dict[str, Any]) -> RouteSpec | None:
    valid = {key: value for key, value in values.items() if value is not INVALID}
    own = {key: each for key, each in node.value.items() if key in valid}
    if values.get("upstream") is None:
        converter.report(node, "a route: 'upstream' is missing")
    if all(own.get(key) and own[key].value is not None for key in _TOKENS):
        message = "'token_env' and 'token_file' cannot stand together"
        converter.report(node.keys["token_file"], message)
    if NO_RULES in (valid.get("rules") or ()) and len(valid["rules"]) > 1:
        converter.report(own.get("rules", node), f"rules: {NO_RULES!r} stands alone")
    useless = dict.fromkeys(_OF_MCP if valid.get("passes") else (), "where everything passes")
    if isinstance(valid.get("upstream"), Command):
        useless |= dict.fromkeys(_CREDENTIALS, "to a command")
    for key in own.keys() & useless.keys():
        converter.report(node.keys[key], f"{key!r} means nothing {useless[key]}")
    if isinstance(valid.get("upstream"), Command) and valid.get("passes"):
        message = "'passes' needs the URL of an upstream, not a command"
        converter.report(node.keys["passes"], message)
    if len(valid) < len(values):
        return None
    route = RouteSpec(**valid)
    if TOKEN in route.path and not route.tokens:
        message = f"path: {TOKEN} needs a token to compare with: token_env or token_file"
        converter.report(own["path"], message)
    if route.auth_conflict is not None:
        at = next((own[key] for key in ("auth", *_TOKENS, "path") if key in own), node)
        converter.report(at, f"auth: {route.auth_conflict}")
    if route.passes and TOKEN in route.path:
        message = f"path: with 'passes', the {TOKEN} in it would go to the server"
        converter.report(own["path"], message)
    return route


def _overlap(first: RouteSpec, second: RouteSpec) -> bool:
    one, other = first.path.rstrip("/").split("/"), second.path.rstrip("/").split("/")
    if first.listen != second.listen or len(one) != len(other):
        return False
    if (TOKEN in one) != (TOKEN in other):
        return False
    return all(a == b or TOKEN in (a, b) for a, b in zip(one, other, strict=True))
