"""The rules of the soak, and the ways in which their file changes while they are in use."""

import os
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
CHANGES = (RULES, OTHERS, BAD, OTHERS, None)
"""What the file has in turn: the same, other definitions, a mistake; None: it is not there."""


def change(file: Path, number: int) -> None:
    """Put another file in place of the file, or remove it."""
    text = CHANGES[number % len(CHANGES)]
    if text is None:
        file.unlink(missing_ok=True)
    else:
        other = file.with_suffix(".new")
        other.write_text(text)
        os.replace(other, file)
