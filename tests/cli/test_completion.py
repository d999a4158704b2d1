"""Shells complete verbs and flags with the scripts that `completion` prints."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Run

# The shell prints the candidates for $words, one on each line.
ASK = {
    "bash": (
        "source $script; COMP_WORDS=($words); COMP_CWORD=$((${#COMP_WORDS[@]} - 1));"
        "_shtab_mcp_abridge mcp-abridge ${COMP_WORDS[-1]}; printf '%s\\n' ${COMPREPLY[@]}"
    ),
    "fish": "source $script; complete -C $words",
}


@pytest.mark.parametrize("shell", ASK)
@pytest.mark.parametrize(("words", "word"), [("ex", "explain"), ("explain --sh", "--show")])
def test_a_shell_completes_verbs_and_their_flags(
    shell: str, words: str, word: str, tmp_path: Path, run: Run
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(run("completion", shell).out)
    completed = subprocess.run(
        [shell, "-c", ASK[shell]],
        env={"script": str(script), "words": f"mcp-abridge {words}", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert completed.stderr == ""
    assert word in completed.stdout.split()


def test_the_script_for_zsh_is_one_of_its_completion_functions(run: Run) -> None:
    assert run("completion", "zsh").out.startswith("#compdef mcp-abridge\n")
