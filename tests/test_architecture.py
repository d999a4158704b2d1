"""Holds the project to its layout: who may import whom, a test per module, no machine's name."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path, PurePath

import pytest

ROOT = Path(__file__).resolve().parents[1]

# From the bottom to the top. A module may import its own level and those below; a folder counts
# for everything in it.
LEVELS = (
    {"errors"},
    {"document", "storage"},
    {"schema"},
    {"transforms"},
    {"ruleset"},
    {"shaping", "plugin"},
    {"session"},
    {"testing", "transports"},
    {"cli"},
    {"__main__"},
)

# Tests of the whole, which mirror no single module.
WHOLE = {
    "tests/faults/test_answers.py",
    "tests/faults/test_injected.py",
    "tests/faults/test_injection.py",
    "tests/faults/test_orphans.py",
    "tests/faults/test_outcomes.py",
    "tests/faults/test_requests.py",
    "tests/faults/test_scarcity.py",
    "tests/faults/test_served.py",
    "tests/faults/test_ends.py",
    "tests/faults/test_exhaustion.py",
    "tests/faults/test_names.py",
    "tests/faults/test_records.py",
    "tests/faults/test_deadlines.py",
    "tests/faults/test_rows.py",
    "tests/faults/test_rules.py",
    "tests/faults/test_shown.py",
    "tests/faults/test_stalls.py",
    "tests/faults/test_windows.py",
    "tests/soak/test_soak.py",
    "tests/fuzz/test_fuzz.py",
    "tests/faults/test_stdio.py",
    "tests/faults/test_table.py",
    "tests/faults/test_http.py",
    "tests/faults/test_probes.py",
    "tests/test_agentdata.py",
    "tests/test_agentdata_http.py",
    "tests/test_architecture.py",
    "tests/test_benchmarks.py",
    "tests/test_codebase.py",
    "tests/test_conformance.py",
    "tests/test_examples.py",
    "tests/test_hanging.py",
    "tests/test_http_clients.py",
    "tests/test_image.py",
    "tests/test_manifests.py",
    "tests/test_python_page.py",
    "tests/test_real_clients.py",
    "tests/test_real_servers.py",
    "tests/test_reload.py",
    "tests/test_replicas.py",
    "tests/test_rules.py",
    "tests/test_satori.py",
    "tests/test_servers.py",
    "tests/test_wire.py",
}

# What starting the wrapper must not load: together they would cost more than a second.
SLOW = {
    "aiohttp",
    "asyncio",
    "dataclasses",
    "importlib.resources",
    "jmespath",
    "jsonschema",
    "mcp",
    "orjson",
    "pydantic",
    "re2",
    "sqlite3",
    "subprocess",
    "yaml",
}
WRAPPER = "proxy.cli, proxy.cli.run, proxy.transports.stdio.relay, proxy.session.session"


def name_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(file): file for file in sorted((ROOT / "proxy").rglob("*.py"))}


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


def test_the_package_itself_imports_nothing() -> None:
    assert [target for target, _, _ in imports("proxy")] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    TopologicalSorter(
        {name: {target for target, _, at_once in imports(name) if at_once} for name in MODULES}
    ).prepare()


def part_of(name: str) -> str:
    """Name the file or folder right under proxy/ that a module belongs to."""
    return name.partition(".")[2].partition(".")[0]


def imports(name: str) -> Iterator[tuple[str, int, bool]]:
    """Name the modules of the project that one imports, with the line, and whether on loading."""
    tree = ast.parse(MODULES[name].read_text())
    at_once = set(ast.walk(ast.Module(body=loaded(tree.body), type_ignores=[])))
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
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


def test_every_module_has_its_test_file() -> None:
    wanted = {mirror(file) for file in MODULES.values()} - {None}
    missing = sorted(path for path in wanted if path and not (ROOT / path).is_file())
    assert not missing, "\n".join(["modules without their test file:", *missing])


def test_every_test_file_mirrors_a_package_or_is_named_as_a_test_of_the_whole() -> None:
    files = {file.relative_to(ROOT / "tests") for file in (ROOT / "tests").rglob("test_*.py")}
    stray = sorted(
        f"tests/{file}"
        for file in files
        if f"tests/{file}" not in WHOLE | {mirror(module) for module in MODULES.values()}
        and file.parent != Path("reference")
        and (file.parent == Path() or not (ROOT / "proxy" / file.parent).is_dir())
    )
    assert not stray, "\n".join(["tests of no package that are not in WHOLE:", *stray])


def mirror(file: Path) -> str | None:
    """Name the test file of a module; a package's own file and the start have none."""
    if file.stem in {"__init__", "__main__"}:
        return None
    inside = file.relative_to(ROOT / "proxy")
    return (PurePath("tests") / inside.with_name(f"test_{file.name}")).as_posix()


def test_starting_the_wrapper_loads_nothing_slow() -> None:
    code = f"import sys; own = set(sys.modules); import {WRAPPER}; print(*set(sys.modules) - own)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    slow = sorted(SLOW & set(done.stdout.split()))
    assert not slow, f"loaded on the wrapper's path: {slow}; find by whom: python -X importtime"


# Openings that name no thing; `Return the ...`, `Return True if ...`, `Record ...` do.
DIALECT = re.compile(r"Return what\b|Say\b|What\b|Whether\b|Take note\b")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def test_no_docstring_begins_with_a_word_that_names_no_thing() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}"
        for file in MODULES.values()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, DOCUMENTED)
        and (text := ast.get_docstring(node) or "")
        and DIALECT.match(text)
    ]
    assert not found, "\n".join(["docstrings to begin with a noun or a verb:", *found])


# Who looks at the clock of the day, which may jump: to record when something was, nothing else.
DATED = {
    "proxy/cli/report.py": "counts back from now to what was recorded since",
    "proxy/storage/ledger.py": "says when a call was, and how old a row is",
    "proxy/transports/log.py": "begins a line with the time",
}
CLOCKS = {"time.time", "time.time_ns", "time.localtime", "time.gmtime", "time.ctime"}
CLOCKS |= {f"{kind}.{now}" for kind in ("datetime", "date") for now in ("now", "utcnow", "today")}


@pytest.mark.fault(47, "inside")
def test_the_clock_of_the_day_decides_nothing() -> None:
    found = {
        file.relative_to(ROOT).as_posix()
        for file in MODULES.values()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute | ast.ImportFrom) and CLOCKS & named(node)
    }
    assert found == set(DATED)


def named(node: ast.Attribute | ast.ImportFrom) -> set[str]:
    """Return what a node of a syntax tree names, as `module.name`."""
    if isinstance(node, ast.ImportFrom):
        return {f"{node.module}.{alias.name}" for alias in node.names}
    return {".".join(ast.unparse(node).split(".")[-2:])}


# Put together here, so that this file does not name them either.
HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("ghcr", "io"),
        ("docker", "io"),
        ("quay", "io"),
    )
]
FOLDERS = ["/" + folder for folder in ("work", "root", "tmp/w", r"home/\w+", r"Users/\w+")]
OF_ONE_MACHINE = re.compile(
    "|".join(
        [
            *(rf"\b{re.escape(host)}\b" for host in HOSTS),
            *(rf"(?<![\w.~/-]){folder}(?![\w.-])" for folder in FOLDERS),
        ]
    ).encode()
)
MADE = {".cache", ".git", ".hypothesis", ".venv", "build", "dist", "node_modules", "__pycache__"}


def test_no_file_names_a_registry_or_a_folder_of_one_machine() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {match[0].decode()}"
        for file in files(ROOT)
        for number, line in enumerate(file.read_bytes().splitlines(), 1)
        for match in OF_ONE_MACHINE.finditer(line)
    ]
    assert not found, "\n".join(["true of one machine only:", *found])


def files(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name in MADE or entry.name.endswith(("_cache", ".egg-info")):
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from files(entry)
        elif entry.is_file():
            yield entry
