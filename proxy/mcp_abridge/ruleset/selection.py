"""Selects the rules of a session: the files given, or the bundled file for the server."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from mcp_abridge.document.garbage import uncollected
from mcp_abridge.document.paths import matches
from mcp_abridge.errors import AbridgeError, Problem, RuleErrors, did_you_mean_or_known
from mcp_abridge.ruleset.rule import Rule, Whole
from mcp_abridge.ruleset.rule_set import RuleFile, RuleSet
from mcp_abridge.storage.regular import open_regular
from mcp_abridge.storage.rule_history import RuleHistory

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_abridge.ruleset.loading.rulefile import LoadedRules

Budget = int | Literal["auto", "client", "off"]
Scripts = Literal["auto", "on", "off"]

NO_RULES = "none"
"""The name in place of rule files if everything passes through."""

_FIRST_LOOK = 2000  # bytes of a text: measured by `make answers`, see rules/reference/views.md
_AROUND = 1000  # bytes that a client shows around the text of a resource: its URI, twice
_MAX_CACHED = 256  # endless new client names must not exhaust memory


def load(names: Sequence[str], *, allow_python: bool = False) -> tuple[RuleFile, ...]:
    """Load rule files, in the order given.

    A name is a file, a directory (its *.yaml by name) or a word, which names a file of the bundled
    library. If `allow_python`, the Python that a file names is run. Raises RuleErrors with every
    problem of every file.
    """
    with uncollected():
        every = list(readings(names, allow_python=allow_python))
    if problems := [problem for each in every for problem in each.problems]:
        raise RuleErrors(problems)
    return tuple(each.rules for each in every if each.rules is not None)


def readings(names: Iterable[str], *, allow_python: bool = False) -> "Iterator[LoadedRules]":
    """Yield the LoadedRules of each file that `names` refer to, in order; see `load`."""
    from mcp_abridge.ruleset.loading import rulefile
    from mcp_abridge.ruleset.loading.yaml_nodes import MAX_BYTES

    for name in names:
        try:
            files = [*map(str, paths(name))]
        except (OSError, _NoFile) as error:
            yield _unreadable(name, error)
            continue
        for file in files:
            try:
                # One byte over the limit shows that the file is too long.
                raw = content(file, MAX_BYTES + 1)
                yield rulefile.read(file, raw, allow_python=allow_python)
            except OSError as error:
                yield _unreadable(file, error)


def _unreadable(file: str, error: Exception) -> "LoadedRules":
    from mcp_abridge.ruleset.loading import rulefile

    reason = getattr(error, "strerror", None) or str(error)
    problem = Problem(file, 0, 0, reason[:1].lower() + reason[1:])
    return rulefile.LoadedRules(None, (problem,), readable=False)


class _NoFile(AbridgeError):
    """A name that refers to no file."""


def content(path: "str | Path", limit: int) -> bytes:
    """Return the first `limit` bytes of a regular file: a device has no end. Raises OSError."""
    with open_regular(path) as file:
        return file.read(limit)


def paths(name: str) -> "list[Path]":
    """Return the files that a name refers to, see `load`; raises AbridgeError if there are none."""
    from pathlib import Path

    path = Path(name)
    if os.path.dirname(name) or path.suffix or len(path.parts) != 1:
        if not path.is_dir():
            return [path]
        files = sorted(path.glob("*.yaml"))
        if not files:
            raise _NoFile("a directory without *.yaml files")
        return files
    bundled = library()
    if name in bundled:
        return [bundled[name]]
    advice = did_you_mean_or_known(name, bundled)
    if path.exists():
        advice += f"; for what lies in this directory write ./{name}"
    raise _NoFile(f"no bundled rule file has this name{advice}")


def absolute(name: str) -> str:
    """Return a name that means the same files in any folder, see `load`. Raises AbridgeError."""
    if name == NO_RULES or name in library():
        return name
    try:
        [first, *_] = paths(name)
    except _NoFile as error:
        raise AbridgeError(f"--rules {name}: {error}") from None
    if not first.exists():
        raise AbridgeError(f"--rules {name}: there is no such file")
    return os.path.abspath(name)


def shipped(name: str) -> "Path":
    """Return a file or a folder beside the package, in a wheel and in a checkout alike."""
    from pathlib import Path

    package = Path(__file__).parents[1]
    return next(path for path in (package / name, package.parents[1] / name) if path.exists())


def library() -> "dict[str, Path]":
    """Return the bundled rule files by their names."""
    return {path.stem: path for path in sorted(shipped("rules").glob("*.yaml"))}


class Selection:
    """Selects the rules of a session by the names of the server and the client.

    `files` are the requested files, or a function that returns them as they are now, or None for
    the bundled file that matches the server. Every tool without a rule gets `budget`: bytes, `auto`
    for the client's default, `client` for the same if the client would cut the result, or `off`;
    None is `auto`. `log` gets one line for each bundled file
    that applies, and for each given file that does not, unless a session may need it nevertheless.
    `first` is a file before all others. `environ` is the client's own environment, if that is
    known: some clients have limits there. `history` has the files that held in earlier sessions.
    With `scripts` on, results go to scripts of the model, and nothing is abridged; `auto`, and
    None, ask the table of clients.
    """

    def __init__(
        self,
        files: tuple[RuleFile, ...] | Callable[[], tuple[RuleFile, ...]] | None,
        budget: Budget | None,
        log: Callable[[str], None],
        first: RuleFile | None = None,
        environ: Mapping[str, str] = MappingProxyType({}),
        history: RuleHistory | None = None,
        scripts: Scripts | None = None,
    ) -> None:
        self._current: Callable[[], tuple[RuleFile, ...] | None]
        self._current = files if callable(files) else lambda: files
        self._files = self._current()
        self._environ, self._log, self._history = environ, log, history
        self._budget: Budget = budget or "auto"
        self._scripts = scripts
        self._first = () if first is None else (first,)
        self._files_for = lru_cache(_MAX_CACHED)(self._choose)
        self._rules_for = lru_cache(_MAX_CACHED)(self._build)

    def __call__(
        self, server: str | None, client: str | None, version: str | None = None
    ) -> RuleSet:
        """Return the rules for a server and a client of these names, None if unknown.

        `version` is that of the client. Raises RuleErrors if the matching bundled file cannot be
        used.
        """
        if (files := self._current()) is not self._files:
            self._files = files
            self._files_for.cache_clear()
            self._rules_for.cache_clear()
        return self._rules_for(server, client, version)

    def _build(self, server: str | None, client: str | None, version: str | None) -> RuleSet:
        scripts = self._scripts == "on"
        if self._scripts not in ("on", "off"):
            from mcp_abridge.ruleset.clients import client_for

            scripts = client_for(client).writes_scripts(version, self._environ)
        budget = None if scripts else budget_rule(self._budget, client, self._environ)

        change = _for_scripts if scripts else partial(with_budget, budget=budget)
        files, candidates = (tuple(map(change, files)) for files in self._files_for(server))
        first = self._first
        return RuleSet((*first, *files), budget, (*first, *candidates), self._history)

    def _choose(self, server: str | None) -> tuple[tuple[RuleFile, ...], tuple[RuleFile, ...]]:
        if self._files is None:
            bundled = () if server is None else self._bundled(server)
            return bundled, bundled
        files: list[RuleFile] = []
        candidates: list[RuleFile] = []
        for file in self._files:
            misfit = file.server and file.server.misfit(server, None)
            if not misfit:
                files.append(file)
            elif not (file.required or file.protects):
                self._log(f"{file.name}: {misfit}; none of its rules apply")
                continue
            candidates.append(file)
        return tuple(files), tuple(candidates)

    def _bundled(self, server: str) -> tuple[RuleFile, ...]:
        for name, path in library().items():
            pattern = _server_name(path.read_text(encoding="utf-8"))
            if pattern is not None and matches(pattern, server):
                self._log(f"the bundled rules {name!r} apply to server {server!r}")
                return load([str(path)])
        return ()


def budget_rule(
    budget: Budget, client: str | None, environ: Mapping[str, str] = MappingProxyType({})
) -> Rule | None:
    """Return the rule of a budget for a client, None if there is none; see Selection."""
    from mcp_abridge.transforms.abridge import AbridgeStep

    first_look, whole = None, None
    if budget == "off":
        return None
    if not isinstance(budget, int):
        from mcp_abridge.ruleset.clients import UNKNOWN, client_for

        facts, passes = client_for(client).within(environ), budget == "client"
        if passes and facts.limit_bytes is None and facts is not UNKNOWN:
            return None
        budget, first_look = facts.budget_bytes, _FIRST_LOOK
        whole = Whole(facts.whole_bytes, facts.limit_tokens, facts.author_bytes, passes)
    steps = (AbridgeStep(max_bytes=budget, first_look=first_look),)
    return Rule(name="budget", tools=("*",), pipeline=steps, max_bytes=budget, whole=whole)


def with_budget(file: RuleFile, budget: Rule | None) -> RuleFile:
    """Return the file in which each rule that is to have the budget has it.

    That is one that says so, and one for resources that has no steps.
    """

    def bounded(rule: Rule) -> Rule:
        of_resource = bool(rule.resources) and not rule.pipeline
        if budget is None or not (rule.budgeted or of_resource):
            return rule
        spare = _AROUND if of_resource else 0
        whole = budget.whole and replace(budget.whole, size=budget.whole.size - spare)
        steps = (*rule.pipeline, *budget.pipeline)
        return replace(rule, pipeline=steps, max_bytes=budget.max_bytes, whole=whole)

    return file.with_rules(bounded)


def _for_scripts(file: RuleFile) -> RuleFile:
    return file.with_rules(lambda rule: rule.unabridged if rule.abridges else rule)


def _server_name(text: str) -> str | None:
    """Return the glob of `server: {name: ...}` without parsing the YAML, which is slow."""
    import re

    match = re.search(r"""^server:\s*\{?\s*name: *["']?([^"'},\n]+)""", text, re.MULTILINE)
    return match[1].strip() if match else None
