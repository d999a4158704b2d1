"""`python -m tests.reference`: writes rules/REFERENCE.md and examples/sidecar/REFERENCE.md anew."""

from pathlib import Path

from tests.reference import rules_page, sidecar_page

ROOT = Path(__file__).resolve().parents[2]

if __name__ == "__main__":
    (ROOT / "rules" / "REFERENCE.md").write_text(rules_page.page(), encoding="utf-8")
    sidecar = ROOT / "examples" / "sidecar" / "REFERENCE.md"
    sidecar.write_text(sidecar_page.page(), encoding="utf-8")
