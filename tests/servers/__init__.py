"""The real third-party servers and clients of the tests; the fixture `servers` installs them."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from tests.servers.install import CACHE
from tests.servers.install import node as node

CLIENTS = Path(__file__).parent / "clients"


def package(name: str) -> str:
    return str(CACHE / "node" / "node_modules" / "@modelcontextprotocol" / name / "dist/index.js")


def filesystem(directory: Path) -> list[str]:
    """Serve the files of one folder; every tool of it declares an outputSchema."""
    return [node(), package("server-filesystem"), str(directory)]


def everything() -> list[str]:
    """Serve one of each: images, links, annotations, structured content, tasks."""
    return [node(), package("server-everything"), "stdio"]


def with_packages(part: str, script: Path) -> list[str]:
    """Run a script by this Python; what it imports is in a part that `make servers` installs."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    root = CLIENTS.parents[2]
    paths = (CACHE / part / "lib" / version / "site-packages", root, root / "proxy")
    return ["env", f"PYTHONPATH={':'.join(map(str, paths))}", sys.executable, str(script)]


def ruled(*names: str) -> str:
    """Return a file of an npm package that only the bundled rules need."""
    return str(CACHE.joinpath("rules", "node_modules", *names))


def playwright(chromium: str, folder: Path) -> list[str]:
    """Drive a browser; long logs go to `folder`."""
    options = ["--headless", "--isolated", "--no-sandbox", "--executable-path", chromium]
    return [node(), ruled("@playwright", "mcp", "cli.js"), *options, "--output-dir", str(folder)]


def chrome_devtools(chromium: str) -> list[str]:
    """Drive a browser, and send nobody statistics of it."""
    options = ["--headless", "--isolated", "--executablePath", chromium]
    options += ["--chromeArg=--no-sandbox", "--no-usage-statistics"]
    file = ruled("chrome-devtools-mcp", "build", "src", "bin", "chrome-devtools-mcp.js")
    return [node(), file, *options]


def atlassian(url: str) -> list[str]:
    """Serve Jira at a URL, and Confluence below it."""
    variables = {"JIRA_URL": url, "CONFLUENCE_URL": f"{url}/wiki"}
    variables |= {"JIRA_PERSONAL_TOKEN": "none", "CONFLUENCE_PERSONAL_TOKEN": "none"}
    environ = [f"{name}={value}" for name, value in variables.items()]
    return ["env", *environ, str(CACHE / "atlassian" / "bin" / "mcp-atlassian")]


def kubernetes(url: str, folder: Path) -> list[str]:
    """Serve the cluster whose API is at a URL; the configuration that says so is in `folder`."""
    context = {"name": "shop", "context": {"cluster": "shop", "user": "ann"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "shop",
        "contexts": [context],
        "clusters": [{"name": "shop", "cluster": {"server": url}}],
        "users": [{"name": "ann", "user": {"token": "none"}}],
    }
    (folder / "kubeconfig").write_text(json.dumps(config))
    file = ruled("kubernetes-mcp-server", "bin", "index.js")
    return [node(), file, "--kubeconfig", str(folder / "kubeconfig")]


def sentry(url: str) -> list[str]:
    """Serve the Sentry at a URL, and report nothing to another one."""
    file = CACHE / "sentry" / "node_modules" / "@sentry" / "mcp-server" / "dist" / "index.js"
    host = f"--host={url.removeprefix('http://')}"
    options = ["--access-token=none", host, "--insecure-http", "--sentry-dsn="]
    return [node(), str(file), *options]


def serena(project: Path, folder: Path) -> list[str]:
    """Serve the Python code of a project by Pyright, which the server asks `uvx` for."""
    pyright = CACHE / "apis" / "node_modules" / "pyright" / "langserver.index.js"
    uvx = folder / "uvx"
    uvx.write_text(f'#!/bin/sh\nexec "{node()}" "{pyright}" --stdio\n')
    uvx.chmod(0o755)
    options = ["--agent-interface", "tools", "--enable-web-dashboard", "false"]
    variables = [f"UVX={uvx}", f"HOME={folder}", f"SERENA_HOME={folder}"]
    command = [str(CACHE / "serena" / "bin" / "serena"), "start-mcp-server", *options]
    return ["env", *variables, *command, "--log-level", "ERROR", "--project", str(project)]


def firecrawl(url: str) -> list[str]:
    package = CACHE / "apis" / "node_modules" / "firecrawl-mcp"
    variables = [f"FIRECRAWL_API_URL={url}", "FIRECRAWL_API_KEY=fc-test"]
    return ["env", *variables, node(), str(package / "dist" / "index.js")]


def supabase(url: str) -> list[str]:
    """Serve a project of the Supabase whose Management API is at a URL."""
    package = CACHE / "apis" / "node_modules" / "@supabase" / "mcp-server-supabase"
    options = ["--access-token=none", "--project-ref=shop", f"--api-url={url}"]
    return [node(), str(package / "dist" / "cli.js"), *options, "--features=database,debugging"]


def grafana(url: str) -> list[str]:
    program = str(CACHE / "grafana" / "bin" / "mcp-grafana")
    return ["env", f"GRAFANA_URL={url}", program, "--log-level", "error"]


def git(repository: Path) -> list[str]:
    """Serve one git repository; the only one here that speaks 2026-07-28 as well."""
    return [str(CACHE / "git" / "bin" / "mcp-server-git"), "--repository", str(repository)]


def sqlite(database: Path) -> list[str]:
    """Serve one SQLite file, which is made when it is not there."""
    return [str(CACHE / "sqlite" / "bin" / "mcp-server-sqlite"), "--db-path", str(database)]


class Call(msgspec.Struct, frozen=True):
    """One tools/call for a TypeScript client to make."""

    name: str
    arguments: dict[str, Any] = {}


class TypescriptRun(msgspec.Struct, frozen=True, rename="camel"):
    """The tools that a TypeScript client has listed, and a result or error per call."""

    tools: list[dict[str, Any]]
    results: list[dict[str, Any]]
    protocol_version: str


def typescript(
    sdk: Literal["v1", "v2"],
    command: Sequence[str],
    *calls: Call,
    mode: Literal["auto", "legacy", "2026-07-28"] = "legacy",
) -> TypescriptRun:
    """Run the TypeScript SDK's client against a server: connect, list every page, call in order.

    A call that the client refuses, be it by its own check of the outputSchema, is
    `{"ok": false, "error": {code, message}}`, any other `{"ok": true, "result": {...}}`. As in real
    life, the server gets a handful of variables, not the whole environment. With `mode="auto"`, v2
    starts the server twice: first to ask for its era. Raises RuntimeError with the client's stderr
    if it cannot connect or list.
    """
    spec = {
        "command": command[0],
        "args": command[1:],
        "calls": msgspec.to_builtins(calls),
        "mode": mode,
        "client": {"name": f"typescript-{sdk}", "version": "1.0.0"},
    }
    completed = subprocess.run(
        [node(), str(CLIENTS / f"{sdk}.mjs"), json.dumps(spec)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    if completed.returncode:
        raise RuntimeError(f"TypeScript client {sdk}: {completed.stderr.decode(errors='replace')}")
    return msgspec.json.decode(completed.stdout, type=TypescriptRun)
