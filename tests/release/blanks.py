"""The blanks, to be filled in before the first release: no file that users get may name nobody."""

import re
from collections.abc import Iterator

from tests.release.archives import ROOT, git

PLACES = (":!tests", ":!Makefile", ":!CONTRIBUTING.md")  # but where the command itself stands
BLANKS = {
    "Dockerfile": (
        r"^FROM (?!.*@sha256:)\S+:\S+",
        "the digest of the base image: docker buildx imagetools inspect NAME",
    ),
    "CHANGELOG.md": (r"Unreleased", "the date of the release"),
}


def blanks() -> Iterator[str]:
    """Yield the blanks with their places."""
    for line in git("grep", "-nw", "OWNER", "--", *PLACES).splitlines():
        path, at, _ = line.split(":", 2)
        yield f"{path}:{at}: OWNER: the owner's name: make owner OWNER=NAME"
    for name, (pattern, what) in BLANKS.items():
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            if match := re.search(pattern, line):
                yield f"{name}:{number}: {match[0]}: {what}"
