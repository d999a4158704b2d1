"""The effect of each transform on an outputSchema, shown by the schema of its example's document.

The schema is strict, for that document alone, so that each loosened constraint is visible.
"""

import inspect
import json
from collections.abc import Iterator
from typing import Any

from proxy.schema.references import Subschema, within
from proxy.transforms.base import Schema, Transform
from tests.reference.examples import flow, runs
from tests.reference.markdown import filled, wrapped

CANNOT_SAY = (
    "So it cannot say, and the `outputSchema` is dropped, unless the rule has an `output_schema`."
)

RELAXING: Any = Transform.reshape

_KINDS = {
    bool: "boolean",
    dict: "object",
    float: "number",
    int: "integer",
    list: "array",
    str: "string",
    type(None): "null",
}


def reshaping(kind: Any) -> Iterator[str]:
    """Yield the effect of a transform on a schema, if it does not just relax it, and an example."""
    if kind.reshape is RELAXING:
        return
    before, after = example(kind)
    words = inspect.getdoc(kind.reshape)
    if after is None:
        yield filled(f"Effect on an `outputSchema`: {words} {CANNOT_SAY}")
        return
    yield filled(f"Effect on an `outputSchema`: {words} In the example:")
    lines = [line for word in ({"from": before}, {"to": after}) for line in wrapped(flow(word), 4)]
    yield "\n".join(["```yaml", *lines, "```"])


def example(kind: Any) -> tuple[Schema, Schema | None]:
    """Return the schema of the document in a transform's example, before and after the step."""
    run = runs(kind)[0]
    before = inferred(json.loads(run.before))
    if before["type"] == "object":
        before["additionalProperties"] = False
    after = run.step.reshape(before)
    return before, after if after is None else _bare(after)


def inferred(*values: Any) -> Schema:
    """Return a strict schema that admits `values`.

    >>> inferred({"a": ["b", None]})["properties"]
    {'a': {'type': 'array', 'items': {'type': ['string', 'null'], 'maxLength': 1}, 'minItems': 2}}
    """
    kinds = list(dict.fromkeys(_KINDS[type(value)] for value in values))
    schema: Schema = {"type": kinds[0] if len(kinds) == 1 else kinds}
    objects = [value for value in values if isinstance(value, dict)]
    arrays = [value for value in values if isinstance(value, list)]
    texts = [value for value in values if isinstance(value, str)]
    if objects:
        names = list(dict.fromkeys(name for each in objects for name in each))
        schema["properties"] = {
            name: inferred(*(each[name] for each in objects if name in each)) for name in names
        }
        schema["required"] = [name for name in names if all(name in each for each in objects)]
    if arrays:
        elements = [element for each in arrays for element in each]
        schema |= {"items": inferred(*elements)} if elements else {}
        schema["minItems"] = min(map(len, arrays))
    if texts:
        schema["maxLength"] = max(map(len, texts))
    return schema


def _bare(schema: Schema) -> Schema:
    """Return a schema without its descriptions, which do not constrain a value."""

    def change(node: Subschema) -> Subschema:
        return node if isinstance(node, bool) else _bare(node)

    members = {word: value for word, value in schema.items() if word != "description"}
    return within(members, change)
