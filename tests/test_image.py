"""The image: its Dockerfile is held to what it promises, and its steps are run without Docker."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.conformance.suite import free_port

ROOT = Path(__file__).resolve().parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load(
    (ROOT / "examples" / "sidecar" / "docker-compose.yaml").read_text()
)
RULES = "/etc/mcp-abridge/rules.d"
SECONDS = 60


class Instruction(NamedTuple):
    """One instruction of a Dockerfile; what stands behind its word is one line."""

    word: str
    rest: str

    @property
    def flags(self) -> list[str]:
        return re.findall(r"(?:^|\s)(--\S+)", self.rest.partition("[")[0])

    @property
    def listed(self) -> list[str]:
        """The words of a JSON array: a command that no shell reads."""
        words: list[str] = json.loads(self.rest[self.rest.index("[") :])
        return words


def instructions() -> list[Instruction]:
    lines = (ROOT / "Dockerfile").read_text().splitlines(keepends=True)
    # A comment may stand anywhere, and a line ends where no backslash is before the newline.
    text = "".join(line for line in lines if not line.lstrip().startswith("#"))
    logical = [line for line in text.replace("\\\n", "").splitlines() if line.strip()]
    return [Instruction(*line.strip().split(maxsplit=1)) for line in logical]


STEPS = instructions()
LAST = max(at for at, step in enumerate(STEPS) if step.word == "FROM")
BUILD, FINAL = STEPS[:LAST], STEPS[LAST:]


def only(word: str) -> Instruction:
    """Return the one instruction of the image, as opposed to its build, with this word."""
    (match,) = (step for step in FINAL if step.word == word)
    return match


def environment() -> dict[str, str]:
    pairs = [pair for step in FINAL if step.word == "ENV" for pair in shlex.split(step.rest)]
    return dict(pair.split("=", 1) for pair in pairs)


def test_the_image_has_the_wheels_and_nothing_of_the_source() -> None:
    assert not [step for step in FINAL if step.word == "COPY"]
    (mounted,) = (flag for step in FINAL for flag in step.flags if flag.startswith("--mount="))
    assert "from=build,source=/wheels" in mounted


def test_it_runs_as_an_ordinary_user_by_number() -> None:
    user, group = only("USER").rest.split(":")
    assert int(user) > 0
    assert int(group) > 0
    command = next(step.rest for step in FINAL if step.word == "RUN")
    assert f"useradd --system --uid {user} --user-group" in command
    after = [step.word for step in FINAL[FINAL.index(only("USER")) :]]
    assert "RUN" not in after


def test_it_serves_at_the_port_that_it_exposes() -> None:
    assert environment() == {"MCP_ABRIDGE_LISTEN": f"0.0.0.0:{only('EXPOSE').rest}"}
    assert not [step for step in FINAL if step.word == "CMD"]


def build_context() -> list[Path]:
    """Return the files that .dockerignore lets through, relative to the root."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    tops = [ROOT / line[1:] for line in lines if line.startswith("!")]
    assert {"*", "**/__pycache__", "**/*.py[cod]"} == {
        line for line in lines if line[:1] not in ("", "!", "#")
    }
    files = [file for top in tops for file in (top, *top.rglob("*")) if file.is_file()]
    return [
        file.relative_to(ROOT)
        for file in files
        if "__pycache__" not in file.parts and file.suffix not in (".pyc", ".pyo", ".pyd")
    ]


def test_only_what_the_wheel_is_made_of_reaches_the_build() -> None:
    tops = {file.parts[0] for file in build_context()}
    assert tops == {"pyproject.toml", "README.md", "LICENSE", "proxy", "rules", "examples"}


class Image(NamedTuple):
    """The result of the steps, in folders of the test's own."""

    bin: Path
    rules: Path
    home: Path

    def runs(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a container of it: its entry point, with arguments in place of its command."""
        return subprocess.run(
            [*self.entry, *arguments],
            cwd=self.home,
            env=self.variables | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    @property
    def entry(self) -> list[str]:
        return [word.replace(RULES, str(self.rules)) for word in only("ENTRYPOINT").listed]

    @property
    def variables(self) -> dict[str, str]:
        path = f"{self.bin}:{os.defpath}"
        return environment() | {"PATH": path, "HOME": str(self.home)}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Do what the Dockerfile does; the dependencies are those that the tests run with."""
    folder = tmp_path_factory.mktemp("image")
    source, wheels, home = folder / "src", folder / "wheels", folder / "home"
    for file in build_context():
        target = source / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, target)
    home.mkdir()
    python = Path(venv_in(folder / "venv"), "python")

    def run(words: list[str], *more: str) -> None:
        assert words[0] == "pip"
        at = [word.replace("/wheels", str(wheels)) for word in words[1:]]
        options = ["--disable-pip-version-check", "--quiet", "--no-deps", *more]
        python_pip = [sys.executable, "-m", "pip", "--python", str(python)]
        command = python_pip if at[0] == "install" else [sys.executable, "-m", "pip"]
        completed = subprocess.run(
            [*command, *at, *options], cwd=source, capture_output=True, text=True, check=False
        )
        assert completed.returncode == 0, completed.stdout + completed.stderr

    (wheel,) = (shlex.split(step.rest) for step in BUILD if step.word == "RUN")
    run(wheel, "--no-build-isolation", "--no-index")
    (command,) = (step.rest for step in FINAL if step.word == "RUN")
    install = command.partition("/wheels ")[2].partition("&&")[0]
    run(shlex.split(install))
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    subprocess.run([python, "-m", "compileall", "-q", str(site)], check=True)
    (rules := folder / "rules.d").mkdir()
    return Image(python.parent, rules, home)


def venv_in(folder: Path) -> Path:
    venv.create(folder, symlinks=True)
    return folder / "bin"


@pytest.mark.long
def test_it_has_the_bundled_rules_and_the_store(image: Image) -> None:
    assert image.runs("check", "github", "filesystem").returncode == 0
    code = "import mcp_abridge.storage.redis; print(mcp_abridge.__file__)"
    completed = subprocess.run(
        [image.bin / "python", "-c", code],
        cwd=image.home, env=image.variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert completed.stdout.startswith(str(image.bin.parent)), completed.stderr


@pytest.mark.long
def test_rules_of_the_mounted_folder_are_used(image: Image) -> None:
    file = image.rules / "mine.yaml"
    file.write_text("version: 1\nrulez: []\n")
    completed = image.runs("--", "sh", "-c", "cat")
    file.unlink()
    assert completed.returncode == 2
    assert f"{file}:2:1: unknown key 'rulez'" in completed.stderr


def healthy(image: Image, port: int) -> bool:
    """Run the health check of docker-compose.yaml as Docker does, the server being at this port."""
    kind, *words = COMPOSE["services"]["replica-1"]["healthcheck"]["test"]
    assert kind == "CMD"
    [*program, code] = words
    assert code.count(only("EXPOSE").rest) == 1
    completed = subprocess.run(
        [*program, code.replace(only("EXPOSE").rest, str(port))],
        env=image.variables | {"HTTP_PROXY": "http://127.0.0.1:9"},
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert completed.returncode in (0, 1)
    return completed.returncode == 0


def test_no_container_on_stdio_or_at_another_port_is_called_unhealthy() -> None:
    """Only who starts it knows whether it listens, and where: the manifests have the checks."""
    assert not [step for step in FINAL if step.word == "HEALTHCHECK"]


@pytest.mark.long
def test_it_serves_over_http_without_arguments_and_is_healthy(image: Image) -> None:
    """Run it as `docker run -e MCP_ABRIDGE_CONFIG=... IMAGE` does, and end it as Docker does."""
    upstream, port = free_port(), free_port()
    config = f"upstream: http://127.0.0.1:{upstream}/mcp\nroutes: [{{path: /mcp}}]\n"
    (image.home / "serve.yaml").write_text(f"version: 1\n{config}")
    variables = {
        "MCP_ABRIDGE_CONFIG": "serve.yaml",
        "MCP_ABRIDGE_LISTEN": f"0.0.0.0:{port}",
        "MCP_ABRIDGE_TOKEN": "nobody-knows-it",
    }
    log = image.home / "log"
    with log.open("wb") as stderr:
        container = subprocess.Popen(
            image.entry,
            cwd=image.home,
            env=image.variables | variables,
            stdin=subprocess.DEVNULL,
            stderr=stderr,
        )
    try:
        until = time.monotonic() + SECONDS
        while not healthy(image, port):
            assert container.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
        container.terminate()
        assert container.wait(SECONDS) == 0, log.read_text()
    finally:
        container.kill()
        container.wait()
