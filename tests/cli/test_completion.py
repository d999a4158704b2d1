"""Shells complete verbs and flags with the scripts that `completion` prints."""

import os
import re
import select
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Run

TYPED = [("ex", "explain"), ("explain --sh", "--show")]
# The shell prints the candidates for $words, one on each line.
ASK = {
    "bash": (
        "source $script; COMP_WORDS=($words); COMP_CWORD=$((${#COMP_WORDS[@]} - 1));"
        "_shtab_mcp_abridge mcp-abridge ${COMP_WORDS[-1]}; printf '%s\\n' ${COMPREPLY[@]}"
    ),
    "fish": "source $script; complete -C $words",
}


@pytest.mark.parametrize("shell", ASK)
@pytest.mark.parametrize(("words", "word"), TYPED)
def test_a_shell_completes_verbs_and_their_flags(
    shell: str, words: str, word: str, tmp_path: Path, run: Run
) -> None:
    script = script_of(shell, tmp_path / "script", run)
    completed = subprocess.run(
        [shell, "-c", ASK[shell]],
        env={"script": str(script), "words": f"mcp-abridge {words}", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert completed.stderr == ""
    assert word in completed.stdout.split()


def test_zsh_completes_them_on_its_command_line(tmp_path: Path, run: Run) -> None:
    script_of("zsh", tmp_path / "_mcp-abridge", run)
    terminal, end = os.openpty()
    with subprocess.Popen(["zsh", "-f", "-i"], stdin=end, stdout=end, stderr=end) as zsh:
        os.write(terminal, b"fpath=(%b $fpath); autoload -U compinit\n" % bytes(tmp_path))
        os.write(terminal, b"compinit -D; echo is re''ady\n")
        wait_for(terminal, "is ready")
        for words, word in TYPED:
            os.write(terminal, f"mcp-abridge {words}\t".encode())
            wait_for(terminal, f"mcp-abridge .*{word}")
            os.write(terminal, b"\x15")  # deletes the line
        zsh.kill()
    os.close(terminal)
    os.close(end)


def script_of(shell: str, path: Path, run: Run) -> Path:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path.write_text(run("completion", shell).out)
    return path


def wait_for(terminal: int, pattern: str) -> None:
    text = ""
    while not re.search(pattern, text):
        assert select.select([terminal], [], [], 60)[0], f"{pattern} is missing: {text}"
        text += os.read(terminal, 65536).decode(errors="replace")
