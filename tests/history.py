"""Makes git repositories with a history, in one go."""

import subprocess
from collections.abc import Mapping
from pathlib import Path


def with_history(
    folder: Path, commits: int, files: Mapping[int, tuple[str, str]] | None = None
) -> Path:
    """Make `folder` a repository; `files` gives a commit's file and its text, by number."""
    steps: list[bytes] = []
    for n in range(commits):
        message = f"Change {n:03}\n\nBecause of reasons, {n} of them, each as good as the other.\n"
        name, text = (files or {}).get(n, ("some.txt", f"{n}\n"))
        content = text.encode()
        who = f"Someone <someone@example.org> {1_700_000_000 + n} +0000"
        head = f"commit refs/heads/main\ncommitter {who}\ndata {len(message)}\n{message}"
        steps += [head.encode(), f"M 644 inline {name}\ndata {len(content)}\n".encode(), content]
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "fast-import", "--quiet"], input=b"\n".join(steps), check=True)
    subprocess.run([*git, "reset", "-q", "--hard"], check=True)
    return folder
