"""Holds the project to its layout: who may import whom, where tests lie, no machine's name."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "proxy" / "mcp_abridge"

# From the bottom to the top. A module may import its own level and those below; a folder counts
# for everything in it.
LEVELS = (
    {"errors"},
    {"system"},
    {"document"},
    {"query"},
    {"storage"},
    {"schema"},
    {"summary"},
    {"transforms"},
    {"ruleset"},
    {"shaping", "plugin"},
    {"session"},
    {"replay", "transports"},
    {"cli"},
    {"__main__"},
)

# Folders of tests of the whole; all others bear the name of the package that they test.
WHOLE = {"answers", "callers", "clients", "faults", "fuzz", "looks", "pictures"}
WHOLE |= {"pages", "reference", "soak"}

# What starting the wrapper must not load: together they would cost more than a second.
SLOW = {
    *("aiohttp", "asyncio", "dataclasses", "importlib.resources", "jmespath", "jsonschema_rs"),
    *("PIL", "mcp_abridge.shaping.blobs", "mcp_abridge.summary.media"),
    *("mcp", "orjson", "mcp_abridge.storage.recorder", "pydantic", "re2", "sqlite3", "subprocess"),
    "yaml",
}
WRAPPER = (
    "mcp_abridge.cli, mcp_abridge.cli.run, mcp_abridge.transports.stdio.relay, "
    "mcp_abridge.session.session, mcp_abridge.storage.ledger"
)


def name_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}
PYTHON = (*MODULES.values(), *sorted((ROOT / "tests").rglob("*.py")))


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """Return the nodes of a module of the package, which most tests here look at."""
    return tuple(ast.walk(ast.parse(file.read_text())))


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """Let all that was read here go: later tests of this process would look through it."""
    yield
    for each in (nodes, imports, words, used):
        each.cache_clear()


def test_imports_go_one_way() -> None:
    level = {part: height for height, parts in enumerate(LEVELS) for part in parts}
    unknown = sorted({part_of(name) for name in MODULES} - set(level) - {""})
    assert not unknown, f"give these a place in LEVELS of {Path(__file__).name}: {unknown}"
    upwards = [
        f"{MODULES[name].relative_to(ROOT)}:{line}: {name} imports {target},"
        f" which stands {level[part_of(target)] - level[part_of(name)]} level(s) above it"
        for name in MODULES
        for target, line, _ in imports(name)
        if part_of(name) and part_of(target) and level[part_of(target)] > level[part_of(name)]
    ]
    assert not upwards, "\n".join(["imports that go up:", *upwards])
    assert not [target for target, _, at_once in imports("mcp_abridge") if at_once]


def test_no_modules_import_each_other_in_a_circle() -> None:
    TopologicalSorter(
        {name: {target for target, _, at_once in imports(name) if at_once} for name in MODULES}
    ).prepare()


def part_of(name: str) -> str:
    """Name the file or folder right in the package that a module belongs to."""
    return name.partition(".")[2].partition(".")[0]


@cache
def imports(name: str) -> tuple[tuple[str, int, bool], ...]:
    """Name the modules of the project that one imports, with the line, and whether on loading."""
    return tuple(_imports(name))


def _imports(name: str) -> Iterator[tuple[str, int, bool]]:
    tree, *_ = every = nodes(MODULES[name])
    assert isinstance(tree, ast.Module)
    at_once = set(ast.walk(ast.Module(body=loaded(tree.body), type_ignores=[])))
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in every:
        match node:
            case ast.Import(names=aliases):
                targets = [alias.name for alias in aliases]
            case ast.ImportFrom(names=aliases, module=module, level=dots):
                above = package.split(".")[: len(package.split(".")) - dots + 1] if dots else []
                source = ".".join([*above, *([module] if module else [])])
                members = [f"{source}.{alias.name}" for alias in aliases]
                targets = [member if member in MODULES else source for member in members]
            case _:
                continue
        for target in targets:
            if target in MODULES and target != name:
                yield target, node.lineno, node in at_once


def loaded(body: list[ast.stmt]) -> list[ast.stmt]:
    """Keep the statements that run when the module loads: no function, nothing for types alone."""
    lazy = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [
        statement
        for statement in body
        if not isinstance(statement, lazy)
        and not (isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test))
    ]


def test_tests_lie_in_folders_of_the_names_of_packages() -> None:
    packages = {str(module.parent.relative_to(PACKAGE)) for module in MODULES.values()}
    folders = {
        parent.as_posix()
        for file in (ROOT / "tests").rglob("test_*.py")
        for parent in file.relative_to(ROOT / "tests").parents
    }
    assert packages - folders == set(), "packages without tests"
    assert folders - packages - WHOLE == set(), "tests of no package, in no folder of WHOLE"


def test_starting_the_wrapper_loads_nothing_slow() -> None:
    code = f"import sys; own = set(sys.modules); import {WRAPPER}; print(*set(sys.modules) - own)"
    completed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    slow = sorted(SLOW & set(completed.stdout.split()))
    assert not slow, f"loaded on the wrapper's path: {slow}; find by whom: python -X importtime"


# The most files of proxy/ that a message may run through, as `python -m tests.call_path` lists
# them: whoever reads how a call is handled opens each of them.
CALL_PATH = {
    **{"response": 10, "stdio": 19},
    **{"json": 40, "stream": 41, "session": 41, "stateless": 46},
}


def test_a_call_runs_through_few_files() -> None:
    command = [sys.executable, "-m", "tests.call_path"]
    completed = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert completed.returncode == 0, completed.stderr
    counts = dict(re.findall(r"^(\w+): (\d+)$", completed.stdout, re.MULTILINE))
    assert counts.keys() == CALL_PATH.keys()
    more = {name for name, count in counts.items() if int(count) > CALL_PATH[name]}
    assert not more, f"more files than CALL_PATH allows for {sorted(more)}:\n{completed.stdout}"


# Openings that name no thing; `Return the ...`, `Return True if ...`, `Record ...` do.
DIALECT = re.compile(r"Return what\b|Say\b|What\b|Whether\b|Take note\b")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def test_no_docstring_begins_with_a_word_that_names_no_thing() -> None:
    openings = [
        f"{file.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for file in PYTHON
        for text, line in words(file)[0]
        if DIALECT.match(text)
    ]
    assert not openings, "\n".join(["docstrings to begin with a noun or a verb:", *openings])


# Participles that names have been most, which leave open what thing it is: `message`, `match` and
# `rows` say it.
BARE = re.compile(
    r"""_*(?:
    asked|began|begun|called|chosen|done|found|given|gone|got|heard|held|kept|known|left|made|
    named|refused|said|seen|sent|shown|taken|told|wanted|written
    )_*""",
    re.VERBOSE,
)


# Keys of the rule language.
KEYS = {"rule_model": ("given", "found", "refused")}


def test_no_name_is_a_bare_participle() -> None:
    bare = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in PYTHON
        for name, line in words(file)[1]
        if BARE.fullmatch(name) and name not in KEYS.get(file.stem, ())
    ]
    assert not bare, "\n".join(["names to replace by the noun of what they hold:", *bare])


Words = list[tuple[str, int]]


@cache
def words(file: Path) -> tuple[Words, Words]:
    """Return the docstrings of a module, and every name that it gives, each with its line."""
    docstrings: Words = []
    names: Words = []
    of_package = file.is_relative_to(PACKAGE)
    for node in nodes(file) if of_package else ast.walk(ast.parse(file.read_text())):
        if isinstance(node, DOCUMENTED):
            docstrings.append((ast.get_docstring(node) or "", getattr(node, "lineno", 1)))
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                names.append((name, node.lineno))
            case ast.arg(arg=name, lineno=line):
                names.append((name, line))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.append((node.name, node.lineno))
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.append((name, node.lineno))
    return docstrings, names


def test_verbs_print_through_one_module() -> None:
    # It escapes what texts of others would do to a terminal.
    prints = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for name, file in MODULES.items()
        if name.startswith("mcp_abridge.cli.") and not re.search(r"\.(terminal|wrap)\b", name)
        for node in nodes(file)
        if isinstance(node, ast.Call)
        and re.fullmatch(r"print|sys\.std(out|err)\.write", ast.unparse(node.func))
    ]
    assert not prints, "\n".join(["to print through cli/terminal.py:", *prints])


# Who looks at the clock of the day, which may jump: to record when something was, nothing else.
DATED = {
    "proxy/mcp_abridge/cli/report.py": "counts back from now to what was recorded since",
    "proxy/mcp_abridge/cli/suggest/__init__.py": "counts back from now to what was recorded since",
    "proxy/mcp_abridge/cli/weigh.py": "counts back from now to transcripts that were written since",
    "proxy/mcp_abridge/cli/wrap/files.py": "names backups in the order of their times",
    "proxy/mcp_abridge/storage/folder.py": "says when a file was used last, for other processes",
    "proxy/mcp_abridge/storage/ledger.py": "says when a call was, and how old a row is",
    "proxy/mcp_abridge/storage/recorder.py": "says when a session began, in the name of its folder",
    "proxy/mcp_abridge/storage/redis.py": "orders the answers in a list by their age",
    "proxy/mcp_abridge/storage/regular.py": "deletes what later processes may read for an hour",
    "proxy/mcp_abridge/storage/snapshots.py": "says how old an answer in another process is",
    "proxy/mcp_abridge/transports/log.py": "begins a line with the time",
}
CLOCKS = {"time.time", "time.time_ns", "time.localtime", "time.gmtime", "time.ctime"}
CLOCKS |= {f"{kind}.{now}" for kind in ("datetime", "date") for now in ("now", "utcnow", "today")}


@pytest.mark.fault(47, "inside")
def test_the_clock_of_the_day_decides_nothing() -> None:
    files_with_clocks = {
        file.relative_to(ROOT).as_posix()
        for file in MODULES.values()
        for node in nodes(file)
        if isinstance(node, ast.Attribute | ast.ImportFrom) and CLOCKS & names_in(node)
    }
    assert files_with_clocks == set(DATED)


def names_in(node: ast.Attribute | ast.ImportFrom) -> set[str]:
    """Return the names in a node of a syntax tree, as `module.name`."""
    if isinstance(node, ast.ImportFrom):
        return {f"{node.module}.{alias.name}" for alias in node.names}
    of = getattr(node.value, "attr", getattr(node.value, "id", None))
    return {f"{of}.{node.attr}"}


# Put together here, so that this file does not name them either.
HOSTS = [
    *(f"{name}.org" for name in ("pypi", "pythonhosted", "npmjs")),
    *(f"{name}.com" for name in ("npmjs", "yarnpkg")),
    *(f"{name}.io" for name in ("ghcr", "docker", "quay")),
]
BEGINNINGS = ["/" + folder for folder in ("work", "root", "tmp/w", "home", "Users")]
FOLDERS = ["/" + folder for folder in ("work", "root", "tmp/w", r"home/\w+", r"Users/\w+")]
PATTERNS = [rf"\b{re.escape(host)}\b" for host in HOSTS]
PATTERNS += [rf"(?<![\w.~/-]){folder}(?![\w.-])" for folder in FOLDERS]
OF_ONE_MACHINE = re.compile("|".join(PATTERNS).encode())
# Whatever matches has one of these, which are looked for in a fortieth of the time.
PARTS = [part.encode() for part in (*HOSTS, *BEGINNINGS)]
GENERATED = {
    ".cache",
    ".git",
    ".hypothesis",
    ".venv",
    "build",
    "dist",
    "node_modules",
    "__pycache__",
}


def test_no_file_names_a_registry_or_a_folder_of_one_machine() -> None:
    matches = [
        f"{file.relative_to(ROOT)}:{raw.count(10, 0, match.start()) + 1}: {match[0].decode()}"
        for file in files(ROOT)
        for raw in (file.read_bytes(),)
        if any(part in raw for part in PARTS)
        for match in OF_ONE_MACHINE.finditer(raw)
    ]
    assert not matches, "\n".join(["true of one machine only:", *matches])


def files(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name in GENERATED or entry.name.endswith(("_cache", ".egg-info")):
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from files(entry)
        elif entry.is_file():
            yield entry


# The names that stand for a promise of the transports: whoever uses one has a part in it.
PROMISES = {
    "perform what the session returns": {"Shape"},
    "end a call or a query that is overdue": {"expire", "time_left"},
    "read the lines of a child": {"error_for_long_line"},
    "end a child: its stdin, TERM, then KILL": {"TERMINATE"},
    "read an HTTP answer, whole or in events": {"Events", "iter_any"},
    "resume a stream that broke off": {"end_reason", "resume"},
    "speak HTTP+SSE of 2024-11-05": {"ENDPOINT"},
    "ask a guard's query": {"Probe"},
    "end a request that was cancelled": {"cancels"},
    "fail what waits for a server that ended": {"fail_pending"},
}
# They state a fact for all, and promise nothing.
STATING = {f"transports.{name}" for name in ("correlation", "client.request", "http.sse")}


def test_each_promise_of_the_transports_has_the_home_that_their_page_names() -> None:
    page = ast.get_docstring(ast.parse(MODULES["mcp_abridge.transports"].read_text())) or ""
    rows = re.findall(r"^(.{40}) +(\S[\w., ]*(?:\n {40}.*)*)", page, re.MULTILINE)
    homes = {promise.strip(): set(re.findall(r"[\w.]+", names)) for promise, names in rows}
    assert homes.keys() == PROMISES.keys()
    for promise, names in PROMISES.items():
        users = {
            module.removeprefix("mcp_abridge.")
            for module, file in MODULES.items()
            if module.startswith("mcp_abridge.transports.") and names & used(file)
        }
        expected = {f"transports.{home}" for home in homes[promise]}
        assert users - STATING == expected, promise


@cache
def used(file: Path) -> set[str]:
    """Name what a module reads of others: names and attributes that it does not define."""
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in nodes(file)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


# What differs between platforms: `mcp_abridge.system` alone has it. `select` and `signal` have
# names that all have.
OF_A_PLATFORM = re.compile(
    r"\bos\.(name|fork|killpg|kill|setsid|waitpid|geteuid|readv|O_NOFOLLOW|O_NONBLOCK)\b"
    r"|\bsys\.platform\b|\bimport (fcntl|resource|msvcrt|mmap|_winapi)\b"
    r"|\bsignal\.(SIG[A-Z]+|pthread_sigmask)\b|\bstart_new_session\b|/dev/tty"
)


def test_what_differs_between_platforms_stands_in_one_room() -> None:
    others = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for name, file in MODULES.items()
        if part_of(name) != "system"
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if OF_A_PLATFORM.search(line)
    ]
    assert not others, "\n".join(others)
