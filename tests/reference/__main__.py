"""`python -m tests.reference`: writes the generated blocks of both reference pages anew."""

from pathlib import Path

from tests.reference import rules_page, sidecar_page
from tests.reference.markdown import rendered

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "rules" / "REFERENCE.md"
SIDECAR = ROOT / "examples" / "sidecar" / "REFERENCE.md"
PAGES = {RULES: rules_page.blocks, SIDECAR: sidecar_page.blocks}


def current(path: Path) -> str:
    return rendered(path.read_text(encoding="utf-8"), PAGES[path]())


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(current(path), encoding="utf-8")
