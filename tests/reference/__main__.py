"""`python -m tests.reference`: writes the generated blocks of both reference pages anew."""

from tests.reference.pages import PAGES, current

if __name__ == "__main__":
    for path in PAGES:
        path.write_text(current(path), encoding="utf-8")
