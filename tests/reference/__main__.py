"""`python -m tests.reference`: writes the schemas, and the generated blocks of the pages, anew.

On the page of clients, it writes what needs no run of theirs: their files, and lines of a command.
"""

from collections.abc import Callable
from pathlib import Path

from mcp_abridge.cli.terminal import json_text

from tests.reference import bundled_page, rules_page, schemas, sidecar_page
from tests.reference.markdown import rendered

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "rules" / "REFERENCE.md"
BUNDLED = RULES.with_name("README.md")
SIDECAR = ROOT / "examples" / "sidecar" / "REFERENCE.md"
PARTS = sorted((RULES.parent / "reference").glob("*.md"))
PAGES: dict[Path, Callable[[], dict[str, str]]] = {
    **dict.fromkeys((RULES, *PARTS), rules_page.blocks),
    BUNDLED: bundled_page.blocks,
    SIDECAR: sidecar_page.blocks,
}
SCHEMAS = {
    RULES.with_name("schema.json"): schemas.rules,
    SIDECAR.with_name("schema.json"): schemas.configuration,
}


def current(path: Path) -> str:
    if path in SCHEMAS:
        return json_text(SCHEMAS[path](), indent=2) + "\n"
    return rendered(path.read_text(encoding="utf-8"), PAGES[path]())


if __name__ == "__main__":
    from tests.clients import page as clients

    for path in (*PAGES, *SCHEMAS):
        path.write_text(current(path), encoding="utf-8")
    clients.write([])  # the rows of what ran stay
