"""Every link of a page leads to a file and to one title, and so does each page that code names."""

import re
from pathlib import Path

import pytest

from tests.pages import ROOT, anchors, pages, prose

LINK = re.compile(r"\]\(([^)\s]+)\)")
# A page as code, rules and schemas name it: from the root.
NAMED = re.compile(r"(?:rules|examples)(?:/[\w.-]+)*/\w+\.md(?:#[\w-]+)?")
NAMING = [
    path
    for glob in ("proxy/**/*.py", "tests/**/*.py", "rules/*.*", "examples/**/*.*", "*file", "*.*")
    for path in sorted(ROOT.glob(glob))
    if path.is_file() and path.suffix in (".py", ".yaml", ".json", ".toml", "", ".md")
]


def lost(target: str, folder: Path) -> str | None:
    """Return the reason why a link in a page of a folder leads nowhere, or None."""
    name, _, fragment = target.partition("#")
    path = (folder / name).resolve()
    if name.startswith("../../") and not path.is_relative_to(ROOT):
        return None  # a page of the repository's host, beside its files
    if not path.exists():
        return f"{target}: there is no such file"
    # Of several titles of one name, a link leads to the first alone.
    if fragment and anchors(path.relative_to(ROOT)).count(fragment) != 1:
        return f"{target}: not one title of that name"
    return None


@pytest.mark.parametrize("page", pages(), ids=str)
def test_every_link_of_a_page_leads_to_a_file_and_to_one_title(page: Path) -> None:
    links = [each for each in LINK.findall(prose(page)) if not each.startswith("http")]
    here = [page.name + link if link.startswith("#") else link for link in links]
    assert [wrong for each in here if (wrong := lost(each, (ROOT / page).parent))] == []


def test_every_page_is_reached_from_the_readme() -> None:
    reached, queue = set[Path](), [Path("README.md")]
    while queue:
        page = queue.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        names = [each.partition("#")[0] for each in LINK.findall(prose(page))]
        paths = [((ROOT / page).parent / name).resolve() for name in names if name]
        queue += [path.relative_to(ROOT) for path in paths if path.is_relative_to(ROOT)]
    assert set(pages()) - reached <= {Path("CHANGELOG.md")}


def test_every_page_that_code_or_a_rule_names_is_there() -> None:
    names = {each for path in NAMING for each in NAMED.findall(path.read_text(encoding="utf-8"))}
    assert "rules/PYTHON.md" in names
    assert [wrong for each in sorted(names) if (wrong := lost(each, ROOT))] == []
