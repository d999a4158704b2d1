"""Leaves, of the patterns that a search suggests to ignore, those that would help."""

import os
import re
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar

from mcp_abridge.plugin import Call, Parameter, Path, Slot, plain, select, text
from msgspec import Meta, Struct

from .gitignore import RootIgnores, matching

MEMBERS = {"suggestedIgnorePatterns", "topK", "nextStep"}
DRIVE = re.compile("[A-Za-z]:/")

# What is no runtime code, by the folders and names of files, in the notation of a .gitignore.
NOISE: dict[str, tuple[str, ...]] = {
    "tests": ("test/", "tests/", "__tests__/", "*.test.*", "*.spec.*", "test_*.py", "*_test.*"),
    "fixtures": ("fixtures/", "__fixtures__/", "testdata/"),
    "docs": ("doc/", "docs/", "*.md", "*.mdx", "*.rst"),
    "generated": ("build/", "coverage/", "dist/", "generated/", "*.generated.*", "*.min.js"),
}

FIRST = 'Use scope="runtime" to reduce noise.'
EDIT = (
    "If you edit ignores, add only patterns not already ignored by root .gitignore "
    "(root-only check), then run manage_index sync."
)
COVERED = (
    "Top noisy files appear already covered by root .gitignore (root-only check); "
    ".satoriignore changes may be unnecessary."
)
SYNC = "If you changed ignores, run manage_index sync for immediate convergence."
LAST = "Reindex is only required when you see requires_reindex (fingerprint mismatch)."


class NoiseHints(Struct, frozen=True, dict=True):
    """Leave a suggested pattern only where it matches a noisy file that is not ignored already.

    `hint` is where `suggestedIgnorePatterns`, `topK` and `nextStep` stand, `root` where the path of
    the codebase does, `files` where those of the files that were found do, the best first. Noisy
    are those of the first `topK` that are tests, fixtures, docs or generated; ignored is what the
    .gitignore at the root says, which is read again on every `interval`th use at the latest. Where
    it cannot be read, all suggestions stay. `nextStep` says what to do about those that are left,
    and `alreadyIgnoredByGitignore` names those that only match files which are ignored, if any.
    """

    name: ClassVar[str] = "noise_hints"
    shorthand: ClassVar[str | None] = None
    window: ClassVar[bool] = False
    cuts: ClassVar[bool] = False
    parameters: ClassVar[Mapping[str, Parameter]] = {}

    hint: Path = Path.parse("hints.noiseMitigation")
    root: Path = Path.parse("codebaseRoot")
    files: Path = Path.parse("results.file")
    interval: Annotated[int, Meta(ge=1)] = 25

    def __call__(self, root: Slot, call: Call) -> None:
        """Take out what would not help, and say what to do."""
        for slot in select(root, self.hint):
            hint = slot.open()
            if not isinstance(hint, dict) or not hint.keys() >= MEMBERS:
                continue
            suggested, most = plain(hint["suggestedIgnorePatterns"]), plain(hint["topK"])
            codebase = next((text(each.get()) for each in select(root, self.root)), None)
            if codebase is None or not isinstance(suggested, list) or not isinstance(most, int):
                call.missing.append(str(self.hint if codebase else self.root))
                continue
            found = [text(each.get()) for each in select(root, self.files)][:most]
            files = noisy(found, codebase)
            ignores = self._ignores.of(codebase)
            ignored = [file for file in files if ignores.ignore(file)]
            seen = [file for file in files if file not in ignored]
            left = with_match(suggested, seen) if ignores.state == "ready" else suggested
            rest = [pattern for pattern in suggested if pattern not in left]
            slot.child("suggestedIgnorePatterns").set(left)
            slot.child("nextStep").set(advice(left, bool(ignored)))
            if superfluous := with_match(rest, ignored):
                slot.child("alreadyIgnoredByGitignore").set(superfluous)

    @cached_property
    def _ignores(self) -> RootIgnores:
        return RootIgnores(self.interval)


def with_match(patterns: list[Any], files: list[str]) -> list[Any]:
    """Return the patterns that match at least one of the files.

    >>> with_match(["docs/**", "coverage/**"], ["docs/a.md"])
    ['docs/**']
    """
    return [pattern for pattern in patterns if any(matches(pattern, file) for file in files)]


def advice(left: list[Any], covered: bool) -> str:
    """Return what to do about the patterns that are left, `covered` if a file is ignored already.

    >>> advice([], covered=False).removeprefix(FIRST).removesuffix(LAST).strip() == SYNC
    True
    """
    between = [EDIT] if left else [COVERED, SYNC] if covered else [SYNC]
    return " ".join([FIRST, *between, LAST])


def noisy(files: Iterable[str | None], root: str) -> list[str]:
    r"""Return the files that are no runtime code, by their paths in the codebase, each once.

    >>> noisy(["src/a.py", "docs\\a.md", "../tests/b.py", "/etc/docs/c.md"], "/srv/shop")
    ['docs/a.md']
    """
    paths = (relative(file, root) for file in files if file is not None)
    return [path for path in dict.fromkeys(paths) if path is not None and kind(path) != "runtime"]


def kind(path: str) -> str:
    """Return what a file is: a word of NOISE, or `runtime`.

    >>> kind("web/dist/app.js"), kind("src/app.js")
    ('generated', 'runtime')
    """
    found = (word for word, patterns in NOISE.items() if _matching(patterns).match_file(path))
    return next(found, "runtime")


def relative(file: str, root: str) -> str | None:
    """Return the path of a file in the codebase, with `/` between its parts; None outside of it.

    A path that begins with `/` is meant from the root, if there is such a file.
    """
    path = file.replace("\\", "/")
    for own in (root, os.path.realpath(root)):
        path = path.removeprefix(own.replace("\\", "/").rstrip("/") + "/")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or DRIVE.match(path):
        return None
    inside = "/".join(parts)
    rooted = path.startswith("/")
    return None if rooted and not os.path.lexists(os.path.join(root, inside)) else inside


def matches(pattern: Any, path: str) -> bool:
    """Say whether a pattern of a .gitignore matches a file; what is none matches nothing."""
    try:
        return isinstance(pattern, str) and _matching((pattern,)).match_file(path)
    except Exception:  # of the pattern, or of the engine behind it
        return False


_matching = lru_cache(maxsize=256)(matching)
