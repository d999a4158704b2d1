"""The wheel and its manifests: it works beside others', they are valid, of one name and version."""

import json
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from mcp_abridge.transports.client import LOGIN

from tests.cli.test_current_folder import OWN, RULES
from tests.cli.test_current_folder import SERVER as SHELF
from tests.release.archives import omissions

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SERVER: dict[str, Any] = json.loads((ROOT / "server.json").read_text())


def read(name: str) -> Any:
    return json.loads((ROOT / ".claude-plugin" / name).read_text())


# What the schema of 2025-12-11 asks of the members that the manifest has.
TEXT = {"type": "string", "minLength": 1}
TITLE = {**TEXT, "maxLength": 100}
ARGUMENT = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"enum": ["positional", "named"]}, "isRepeated": {"type": "boolean"}},
    "anyOf": [{"required": ["valueHint"]}, {"required": ["value"]}, {"required": ["name"]}],
}
PACKAGE = {
    "type": "object",
    "required": ["registryType", "identifier", "transport"],
    "properties": {
        "identifier": TEXT,
        "version": {**TEXT, "not": {"const": "latest"}},
        "transport": {"required": ["type"], "properties": {"type": {"const": "stdio"}}},
        "packageArguments": {"type": "array", "items": ARGUMENT},
    },
}
SCHEMA = {
    "type": "object",
    "required": ["name", "description", "version"],
    "properties": {
        "$schema": {"pattern": "/schemas/2025-12-11/server.schema.json$"},
        "name": {**TEXT, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "maxLength": 200},
        "title": TITLE,
        "description": TITLE,
        "version": {**TEXT, "pattern": "^[^ ^~<>=*]+$"},
        "repository": {"type": "object", "required": ["url", "source"]},
        "packages": {"type": "array", "items": PACKAGE},
    },
    "additionalProperties": False,
}


def test_the_registry_s_manifest_fits_its_schema() -> None:
    validator = jsonschema_rs.validator_for(SCHEMA)
    assert [error.message for error in validator.iter_errors(SERVER)] == []
    assert not validator.is_valid({**SERVER, "description": "x" * 101})


def test_all_manifests_have_one_version_and_the_changelog_begins_with_it() -> None:
    versions = {each["version"] for each in SERVER["packages"] if "version" in each}
    versions |= {SERVER["version"], read("plugin.json")["version"]}
    assert versions == {PROJECT["version"]}
    first = re.search(r"^## \[(.+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] == PROJECT["version"]


def test_the_owner_is_that_of_pyproject_wherever_there_is_one() -> None:
    url = PROJECT["urls"]["Repository"]
    [owner] = re.findall(r"^https://github\.com/([\w-]+)/mcp-abridge$", url)
    readme = (ROOT / "README.md").read_text()
    assert f"<!-- mcp-name: {SERVER['name']} -->" in readme
    assert SERVER["name"] == f"io.github.{owner}/mcp-abridge"
    assert SERVER["repository"]["url"] == url
    every = [*ROOT.glob("*.*"), *ROOT.glob("*file"), *ROOT.glob(".claude-plugin/*.json")]
    every += [*ROOT.glob("examples/**/*.md"), *ROOT.glob("rules/*.md")]
    text = "".join(path.read_text() for path in every if path.is_file())
    place = r"(?:github\.com/|io\.github\.|marketplace add )([\w-]+)/mcp-abridge"
    assert set(re.findall(place, text)) == {owner}


def test_the_plugin_runs_the_hook_for_tools_of_mcp_servers() -> None:
    plugin = read("plugin.json")
    [group] = json.loads((ROOT / plugin["hooks"]).read_text())["hooks"]["PostToolUse"]
    assert re.fullmatch(group["matcher"], "mcp__plugin_x_crm__list_contacts")
    [hook] = group["hooks"]
    assert (
        f"exec mcp-abridge hook; else exec uvx mcp-abridge@{PROJECT['version']} hook"
        in (hook["command"])
    )
    assert all((ROOT / command).is_file() for command in plugin["commands"])


def test_the_pages_name_the_program_for_logins_in_the_version_that_wrap_writes() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("examples/*.md")]
    words = {word for page in pages for word in re.findall(r"mcp-remote@[\w.]+", page.read_text())}
    assert words == {LOGIN[-1]}


def test_a_release_runs_what_every_change_must_pass() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    assert any(".ci/run" in step.get("run", "") for step in jobs["test"]["steps"])
    assert all("needs" in job for name, job in jobs.items() if name != "test")
    [build] = [step for step in jobs["image"]["steps"] if "build-push" in step.get("uses", "")]
    assert build["with"]["sbom"] is True


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_no_job_with_an_identity_runs_what_it_has_not_checked(
    workflow: Path,
) -> None:
    used = re.findall(r"uses: (.+)", workflow.read_text())
    assert [each for each in used if not re.search(r"@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", each)] == []
    for job in yaml.safe_load(workflow.read_text())["jobs"].values():
        if job.get("permissions", {}).get("id-token") == "write":
            steps = [step["run"] for step in job["steps"] if "run" in step]
            assert [step for step in steps if re.search(r"\b(pip|uvx?|npx?|make)\b", step)] == []
            assert all("sha256sum --check" in step for step in steps if "curl" in step)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return our wheel, and one with a package of the name `proxy`, as PyPI's proxy.py has."""
    folder = tmp_path_factory.mktemp("wheels")
    pip("wheel", "--no-build-isolation", "--wheel-dir", folder, ROOT)
    [ours] = folder.iterdir()
    other = folder / "proxy_py-2.4-py3-none-any.whl"
    records = "proxy_py-2.4.dist-info"
    with zipfile.ZipFile(other, "w") as wheel:
        for name, text in {
            "proxy/__init__.py": "OTHER = True\n",
            "proxy/__main__.py": "",
            f"{records}/METADATA": "Metadata-Version: 2.1\nName: proxy.py\nVersion: 2.4\n\n[a](b)",
            f"{records}/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
            f"{records}/RECORD": "",
        }.items():
            wheel.writestr(name, text)
    return {"ours": ours, "other": other}


def pip(*words: object, python: Path | None = None) -> None:
    place = ("--python", str(python)) if python else ()
    options = ("--no-deps", "--no-index", "--quiet", "--disable-pip-version-check")
    output([sys.executable, "-m", "pip", *place, *map(str, words), *options], ROOT)


def output(command: list[str], folder: Path) -> str:
    completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def test_the_wheel_has_licences_links_and_an_sbom_of_others_code(wheels: dict[str, Path]) -> None:
    assert list(omissions(wheels["ours"])) == []
    link, licence = islice(omissions(wheels["other"]), 2)
    assert "the link b of" in link
    assert "LICENSE" in licence


ORDERS = [("ours", "other"), ("other", "ours")]


@pytest.mark.long
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_beside_the_package_proxy_py_everything_works(
    order: tuple[str, str], wheels: dict[str, Path], tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    for name in order:
        pip("install", "--no-compile", wheels[name], python=python)
    [site] = tmp_path.glob("venv/lib/*/site-packages")
    # What it needs, as the tests have it.
    needs = [path for path in sys.path if path.endswith("site-packages")]
    (site / "needs.pth").write_text("\n".join(needs))
    for name, text in {"rules.yaml": RULES, "own.py": OWN, "server.py": SHELF}.items():
        (tmp_path / name).write_text(text)

    def run(*words: str) -> str:
        return output([str(python.with_name("mcp-abridge")), *words], tmp_path)

    rules = ("--allow-python", "rules.yaml")
    assert run("--version") == f"mcp-abridge {PROJECT['version']}\n"
    assert "ok: rules.yaml" in run("check", *rules, "github")
    assert "2 passed" in run("test", *rules)
    server = ("--", str(python), "server.py")
    assert "3999" in run("call", "list", "--budget", "off", "--rules", rules[1], rules[0], *server)
    code = "import mcp_abridge, proxy.__main__; print(proxy.OTHER, mcp_abridge.__file__)"
    other, ours = output([str(python), "-P", "-c", code], tmp_path).split()
    assert (other, Path(ours).is_relative_to(site)) == ("True", True)
