"""Runs the steps of a rule over a document, and bounds the growth of the document."""

from collections.abc import Iterable

from msgspec import UNSET, Raw, Struct
from msgspec.structs import astuple, replace

from mcp_abridge.document.measure import Structure, exceeds, growth_limit, text_in
from mcp_abridge.document.paths import ROOT, Name, Path
from mcp_abridge.document.tree import Document, Value, compact, encode, loads, raw, text
from mcp_abridge.errors import AbridgeError, EmptyResult, OutOfFuel, ShapeMismatch, TransformError
from mcp_abridge.query.call import Call
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.shaping import budget
from mcp_abridge.shaping.job import Observer, ShapeContext, ShapeJob
from mcp_abridge.shaping.result.frame import Frame
from mcp_abridge.transforms.base import Transform

# Steps that select the parts to keep or remove.
_REMOVING = frozenset(("keep", "drop", "project"))
# Steps that leave a text as it is. A rule that withholds refuses such a text: it may be JSON that
# is nested too deeply to be read.
_PICKING = frozenset(("drop", "filter"))
_BYTES_PER_FUEL = 128  # at most
_NOTHING = (b"null", b'""', b"{}")


def call(job: ShapeJob, frame: Frame, context: ShapeContext, excess: int = 0) -> Call:
    """Return the Call of `job` for its steps; `excess` as in `budget.document_budget`."""
    rule = job.rule
    limited = rule.max_bytes is not None
    viewable = job.viewable and rule.snapshot_step.viewable
    cutting = rule.pipeline[rule.snapshot_step.cut or 0 :]
    # A clip moves nothing: the paths of the notes lead to the same places before it.
    first_cut = next((step.name for step in cutting if step.name != "clip"), None)
    return Call(
        tool=job.tool,
        arguments=job.arguments,
        bound=budget.document_budget(job, frame, excess) if limited else None,
        whole=None if rule.whole is None else budget.whole_room(job, frame),
        structured=rule.structures or any(copy.where == "structured" for copy in frame.copies),
        blocks=any(copy.each for copy in frame.copies),
        records=any(len(copy.blocks) > 1 and not copy.each for copy in frame.copies),
        names=job.names,
        member=next((copy.member for copy in frame.copies if copy.member), ""),
        viewable=viewable and first_cut == "abridge",
        notices=[],
        missing=[],
        warnings=context.warnings,
        fuel=context.fuel,
        error=frame.error,
        breadth=rule.breadth,
        ordered=any(step.name in ("keep", "project") for step in rule.pipeline),
        reader=job.reader,
        uri=job.uri,
    )


def read_structure(
    rule: Rule,
    document: Document,
    call: Call,
    structure: Structure | None = None,
    *,
    sample: bool = False,
) -> Structure | None:
    """Read structure inside a text for a budget without steps; error results stay texts.

    A text that is itself a structuredContent must fit the schema of its tool: it stays a text; one
    in a member is written back as a text. What was read is returned, to be given again for views.
    With `sample`, it may be the beginning alone, which no view reads.
    """
    budgeted = rule.passes_small and rule.document == "auto"
    if not budgeted or (call.structured and document.textual) or call.error:
        return None
    if structure is None:
        if text_in(document)[1] is None:
            return None  # most long answers are structure: what reads texts need not be loaded
        from mcp_abridge.summary.structure_in_text import read_structure

        records = call.records
        return read_structure(document, call.fuel, records=records, sample=sample, beside=True)
    structure.put_into(document)
    return structure


def run(
    rule: Rule, document: Document, call: Call, steps: slice, observe: Observer | None = None
) -> None:
    """Run some steps of the rule's pipeline over `document`.

    Raises TransformError for anything that a step raises, except the proxy's own AbridgeError;
    EmptyResult if a step leaves nothing.
    """
    closed = rule.failure_policy.withholds_misfits
    for step in rule.pipeline[steps]:
        if closed and step.name in _PICKING and text(document.cell[0]) is not None:
            raise ShapeMismatch(f"{step.name}: the document is a text")
        if document.textual:
            fitting = for_text(step, rule.pipeline, call)
            if fitting is None:
                continue
            step = fitting
        removes = step.name in _REMOVING and not is_blank(document.cell[0])
        fuel = call.fuel.remaining
        try:
            step(document.root, call)
        except OutOfFuel as error:
            raise OutOfFuel(f"{step.name}: {error}") from error
        except AbridgeError:
            raise
        except (Exception, SystemExit) as error:
            raise TransformError(step.name, error) from error
        if observe is not None:
            observe(step.name, document, call)
        if removes and was_emptied(document):
            raise EmptyResult(f"everything was removed by rule {rule.name!r}")
        if getattr(step, "repeats", rule.foreign):
            # The output of `project` is paid for in fuel.
            cost = fuel - call.fuel.remaining
            growth = cost * _BYTES_PER_FUEL if step.name == "project" else None
            _limit_growth(step.name, document, growth)


def for_text(step: Transform, every: Iterable[Transform], call: Call) -> Transform | None:
    """Return `step` for a document that is a text, even if `at` names the member that holds it.

    None if another step does the same to the whole: one is for a text, the other for an object.
    """
    path = getattr(step, "at", None)
    if not isinstance(path, Path) or not path.steps:
        return step
    if any(other.name == step.name and getattr(other, "at", None) == ROOT for other in every):
        return None
    return replace(step, at=ROOT) if path.steps == (Name(call.member),) else step


def _limit_growth(name: str, document: Document, growth: int | None) -> None:
    """Raise AbridgeError if a document has outgrown its source; `growth` is at least as much."""
    source = document.source
    limit = growth_limit(len(source if isinstance(source, str) else memoryview(raw(source))))
    if (growth is None or growth > limit) and exceeds(document.cell[0], limit):
        raise AbridgeError(f"{name}: it gives more than {limit} bytes")


def is_blank(value: Value) -> bool:
    """Return True if `value` holds nothing; parts that no step has opened are not inspected.

    >>> is_blank({"items": [{}, {"title": ""}]}), is_blank({"items": []}), is_blank(Raw(b"[{}]"))
    (True, False, False)
    """
    if isinstance(value, Struct):
        value = {index: each for index, each in enumerate(astuple(value)) if each is not UNSET}
    if isinstance(value, dict | list) and value:
        return all(map(is_blank, value.values() if isinstance(value, dict) else value))
    if type(value) is Raw:
        return bytes(memoryview(value)[:5]) in _NOTHING
    return value is None or value in ("", {})


def was_emptied(document: Document) -> bool:
    """Return True if steps left nothing of a document that held something.

    Inside of an object or array, null or empty values are no sign of it if the original document
    had such values: the rule may mean to leave them.
    """
    root = document.cell[0]
    if not is_blank(root):
        return False
    original = compact(encode(document.source))
    if is_blank(loads(original)):
        return False
    return root in (None, "", {}) or not any(nothing in original for nothing in _NOTHING)
