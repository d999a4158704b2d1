"""The rules of the soak, and the ways in which their file changes while they are in use."""

import os
from collections.abc import Callable
from pathlib import Path

RULES = """\
version: 1
rules:
  - tools: rows
    response:
      - keep: [rows.id, rows.title, rows.state, source]
      - paginate: {at: rows, limit: 5}
  - {tools: note, response: [truncate: {max_length: 600}]}
  - tools: both
    response:
      - project: {at: rows, fields: [id, title]}
      - elide: {at: rows, first: 2}
  - {tools: long, max_bytes: 900}
  - {tools: once, response: [paginate: {at: rows, limit: 3}]}
  - tools: checked
    output_schema: {type: object, properties: {count: {type: integer}}, required: [count]}
    validate: refuse
  - {tools: bounded, arguments: {most: {maximum: 10}}}
  - {tools: failing, response: [jmespath: "join(',', rows)"]}
  - {tools: broken, errors: [recast: {cases: [{match: "fire", to: {code: FIRE}}]}]}
  - {tools: hidden, hide: true}
"""
OTHERS = RULES + "  - {tools: plain, definition: {description: What is plain.}}\n"
BAD = RULES.replace("truncate", "trunkate")


def rewritten(file: Path) -> None:
    file.write_text(RULES)


def swapped(file: Path) -> None:
    """Put another file in place of the file, which changes the definition of a tool."""
    other = file.with_suffix(".new")
    other.write_text(OTHERS)
    os.replace(other, file)


def spoiled(file: Path) -> None:
    file.write_text(BAD)


def removed(file: Path) -> None:
    file.unlink(missing_ok=True)


CHANGES: tuple[Callable[[Path], None], ...] = (rewritten, swapped, spoiled, swapped, removed)
"""What happens to the file, in turn; then it begins again."""
