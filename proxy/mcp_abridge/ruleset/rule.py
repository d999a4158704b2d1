"""A rule, as it was loaded and checked, and the parts of it."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from msgspec import UNSET, Struct
from msgspec.structs import replace

from mcp_abridge.document.fuel import LITTLE, Fuel
from mcp_abridge.document.paths import matches
from mcp_abridge.errors import OutOfFuel, Refusal
from mcp_abridge.query.patterns import Expression, Pattern, truthy
from mcp_abridge.ruleset.guard import Guard
from mcp_abridge.transforms.base import Schema, Transform


class Messages(Struct, frozen=True, kw_only=True):
    """Messages that replace the standard text of a refusal, by the bound that refuses."""

    minimum: str | None = None
    """For a lesser number."""
    maximum: str | None = None
    """For a greater number."""
    enum: str | None = None
    """For any other value."""
    max_length: str | None = None
    """For a longer text."""
    pattern: str | None = None
    """For a text that it does not match anywhere."""
    type: str | None = None
    """For a value of another type."""


class Bounds(Struct, frozen=True, kw_only=True):
    """The bounds of one argument (`arguments:` in a rule file)."""

    default: Any = UNSET
    """The argument's value if the call does not have it."""
    minimum: int | float | None = None
    """A lesser number is refused."""
    maximum: int | float | None = None
    """A greater number is refused."""
    enum: tuple[Any, ...] | None = None
    """Any other value is refused."""
    max_length: int | None = None
    """A text of more characters is refused."""
    pattern: Pattern | None = None
    """A text that it does not match anywhere is refused."""
    type: Literal["string", "integer", "number", "boolean", "array", "object"] | None = None
    """A value of another JSON type is refused."""
    clamp: bool = False
    """A value beyond `minimum`, `maximum` or `max_length` is moved to it, not refused."""
    alias_of: str | None = None
    """A further name for that argument; the server gets the value by that one."""
    upstream: bool = True
    """`false`: the argument is for the rule alone; the server never sees it."""
    message: str | Messages | None = None
    """The message of a refusal: one text for all bounds, or one for each."""
    description: str | None = None
    """The description of the argument for the client."""

    @property
    def limits(self) -> bool:
        words = (self.minimum, self.maximum, self.enum, self.max_length, self.pattern, self.type)
        return any(word is not None for word in words)


class Hidden(Struct, frozen=True):
    """The error response to a call of a hidden tool; `{tool}` in `message` is the tool's name."""

    code: int = -32602
    """The code of the JSON-RPC error."""
    message: str = "Unknown tool: {tool}"
    """Its message; `{tool}` in it is the tool's name."""


class Definition(Struct, frozen=True, kw_only=True):
    """Edits of a tool's entry in tools/list (`definition:` in a rule file)."""

    description: str | None = None
    """The new description of the tool."""
    max_description: int | None = None
    """The most characters of the description."""
    max_bytes: int | None = None
    """The most bytes of prose: descriptions end earlier, titles and examples go. May stand in
    `defaults`, and beside `when`."""
    drop: tuple[str, ...] = ()
    """Keywords to drop from the schemas, such as `examples`; properties always stay."""
    meta: dict[str, Any] | None = None
    """Members to put into the tool's `_meta`."""


class FailurePolicy(Struct, frozen=True):
    """The failures after which a rule refuses rather than passes (fails closed).

    It `withholds` a response that it could not process, and a document that its own steps do not
    fit (`withholds_misfits`). It `protects` if it refuses anything when in doubt.
    """

    withholds: bool = False
    withholds_misfits: bool = False
    protects: bool = False


class Whole(Struct, frozen=True):
    """The bytes beyond the budget that a client shows whole: what may come at once if need be.

    A request for all of an answer gets up to `size` bytes, and at most `tokens`. The author of a
    tool can say that its results belong together (`anthropic/maxResultSizeChars`): up to `size`
    they pass as they are, and a request for all gets up to `author` bytes. If `passes`, every
    result up to `size` passes.
    """

    size: int
    tokens: int | None = None
    author: int = 0
    passes: bool = False


class SnapshotStep(Struct, frozen=True):
    """The step of a pipeline before which the snapshot for later pages and views is taken.

    A later page runs the steps from `restart` on: that is `cut`, the first step that leaves
    something out, or the `parse` before it. Views show the document before `cut`. The `windows` are
    the steps whose remainder a later call can request. If `viewable`, the tool gains `view`.
    """

    restart: int | None
    cut: int | None
    windows: tuple[Transform, ...]
    viewable: bool

    @property
    def is_used(self) -> bool:
        """True if a later call can request a window or a view."""
        return bool(self.windows) or self.viewable


MAX_FAILURES = 5
_WIDGET = "ui:"


class CircuitBreaker(Struct):
    """Counts consecutive failures of a rule; `open` for good after MAX_FAILURES of them.

    >>> breaker = CircuitBreaker()
    >>> [breaker.record_failure() for _ in range(MAX_FAILURES + 1)], breaker.open
    ([False, False, False, False, True, False], True)
    """

    failures: int = 0
    open: bool = False
    """True if the rule is disabled. Not derived: every call reads it."""

    def record_failure(self) -> bool:
        self.failures += 1
        self.open = self.failures >= MAX_FAILURES
        return self.failures == MAX_FAILURES

    def record_success(self) -> None:
        if not self.open:
            self.failures = 0


class Rule(Struct, frozen=True, kw_only=True, dict=True):
    """The handling of calls of some tools, and of their responses; RuleSpec describes the keys.

    A rule for `resources` has no tools: it is for reads of these.

    `pipeline` holds the steps of `response` in order, then the check of `validate`, and the
    `abridge` of `max_bytes` last. `budgeted`: the budget of the client is to be its `max_bytes`.
    `whole` is for that budget alone. `place` is `file:line`. `foreign` is true if a step or the
    guard comes from Python that the file names: it may depend on this process, so it runs in no
    other.
    """

    name: str
    tools: tuple[str, ...]
    resources: tuple[str, ...] = ()
    when: Expression | None = None
    pipeline: tuple[Transform, ...] = ()
    arguments: Mapping[str, Bounds] = {}
    definition: Definition | None = None
    hide: Hidden | None = None
    document: Literal["auto", "structured", "text", "blocks"] = "auto"
    drop_blocks: tuple[str, ...] = ()
    layout: Literal["compact", "as_sent"] = "compact"
    error_if: Expression | Pattern | None = None
    copies: Literal["both", "text", "structured"] = "both"
    errors: tuple[Transform, ...] = ()
    guard: Guard | None = None
    on_failure: Literal["pass", "refuse"] | None = None
    allow_growth: bool = True
    mode: Literal["active", "shadow"] = "active"
    max_bytes: int | None = None
    budgeted: bool = False
    whole: Whole | None = None
    view: bool = True
    refetch: bool = False
    drop_on: tuple[str, ...] = ()
    breadth: bool = True
    images: bool = True
    output_schema: Schema | None = None
    validate: Literal["warn", "text", "refuse"] | None = None
    tests: tuple[dict[str, Any], ...] = ()
    test_lines: tuple[int, ...] = ()
    place: str = ""
    foreign: bool = False

    @cached_property
    def failure_policy(self) -> FailurePolicy:
        """The failures that end in an error response."""
        if self.mode == "shadow":
            return FailurePolicy()
        withholds = "refuse" in (self.on_failure, self.validate)
        has_own_steps = len(self.pipeline) > len(self._closing_steps)
        return FailurePolicy(
            withholds=withholds,
            withholds_misfits=has_own_steps and self.on_failure == "refuse",
            protects=withholds
            or self.hide is not None
            or self.guard is not None
            or any(bounds.limits for bounds in self.arguments.values()),
        )

    @cached_property
    def snapshot_step(self) -> SnapshotStep:
        """The step before which the snapshot for later pages and views is taken."""
        cut = next((index for index, step in enumerate(self.pipeline) if step.cuts), None)
        names = [step.name for step in self.pipeline]
        return SnapshotStep(
            restart=cut if "parse" not in names[: cut or 0] else names.index("parse"),
            cut=cut,
            windows=tuple(step for step in self.pipeline if step.window),
            viewable=self.view and "abridge" in names,
        )

    @cached_property
    def max_age(self) -> int | None:
        """The greatest age in seconds of a snapshot that a first page may be cut from.

        None if each first page needs a call: a guard decides on it, or the rule only measures.
        """
        if self.guard is not None or self.mode != "active":
            return None
        ages = (getattr(step, "max_age_seconds", None) for step in self.pipeline)
        return min((age for age in ages if age is not None), default=None)

    @cached_property
    def abridges(self) -> bool:
        """True if a result that is too long is abridged."""
        return any(step.name == "abridge" for step in self.pipeline)

    @cached_property
    def only_abridges(self) -> bool:
        """True if the pipeline is a single `abridge`."""
        return len(self.pipeline) == 1 and self.pipeline[0].name == "abridge"

    @cached_property
    def passes_small(self) -> bool:
        """True if every response within `max_bytes` stays unchanged."""
        changes = self.drop_blocks or self.errors or self.copies != "both" or self.structures
        return self.only_abridges and self.max_bytes is not None and not changes

    @cached_property
    def snapshot_key(self) -> str:
        """A checksum of all that determines the document of a snapshot, equal in every process."""
        # hash() differs between processes, and hashlib takes 3 ms to import.
        from zlib import crc32

        steps = self.pipeline[: self.snapshot_step.restart]
        options = (self.document, self.drop_blocks, self.layout, self.error_if, self.copies)
        return f"{crc32(repr((steps, options)).encode()):08x}"

    @cached_property
    def circuit_breaker(self) -> CircuitBreaker:
        """The circuit breaker, shared by all users of the rule until it is loaded again."""
        return CircuitBreaker()

    @cached_property
    def costly(self) -> bool:
        """True if the size of a response does not bound the work on it."""
        steps = (*self.pipeline, *self.errors)
        return self.error_if is not None or any(getattr(step, "burns", False) for step in steps)

    @cached_property
    def structures(self) -> bool:
        """True if each result must have structuredContent, to fit the advertised schema."""
        return self.output_schema is not None and self.copies != "text" and self.mode == "active"

    @property
    def hides(self) -> bool:
        return self.hide is not None and self.mode == "active"

    @property
    def _closing_steps(self) -> tuple[Transform, ...]:
        """The last steps, which apply to a document of any shape: `validate` and `max_bytes`."""
        count = (self.validate is not None) + (self.max_bytes is not None)
        return self.pipeline[len(self.pipeline) - count :]

    @cached_property
    def for_misfits(self) -> "Rule":
        """The rule for a document that its own steps do not fit: only the closing steps."""
        return replace(self, pipeline=self._closing_steps, drop_blocks=(), copies="both")

    @cached_property
    def for_no_document(self) -> "Rule":
        """The rule for a result without a document: only the `max_bytes` of this rule."""
        assert self.max_bytes is not None
        return replace(self, pipeline=self.pipeline[-1:], validate=None)

    def for_all(self, size: int) -> "Rule":
        """Return the rule for a request for all of an answer, in at most `size` bytes."""
        steps = (*self.pipeline[:-1], replace(self.pipeline[-1], max_bytes=None, first_look=None))
        return replace(self, pipeline=steps, max_bytes=size)

    @cached_property
    def unabridged(self) -> "Rule":
        """The rule for what is sent whole, as to a script: nothing is abridged."""
        steps = (step for step in self.pipeline if step.name != "abridge")
        return replace(self, pipeline=tuple(steps), max_bytes=None, whole=None)

    @cached_property
    def unbounded(self) -> "Rule":
        """The same rule for a call with a view, which needs the place of `abridge`."""
        steps = (
            replace(step, max_bytes=None, first_look=None) if step.name == "abridge" else step
            for step in self.pipeline
        )
        return replace(self, pipeline=tuple(steps), max_bytes=None, whole=None)

    @cached_property
    def for_errors(self) -> "Rule":
        """The rule for an error: only the `max_bytes` of this rule."""
        budget = self.pipeline[-1:] if self.max_bytes is not None else ()
        base = replace(self, pipeline=budget, drop_blocks=(), copies="both", validate=None)
        return replace(base, output_schema=None, guard=None)

    def at(self, tool: str) -> str:
        """Return the names of the rule and the tool, the prefix of log lines."""
        return tool if self.name == tool else f"{self.name}: {tool}"

    def covers(self, tool: str) -> bool:
        """Return True if the rule is for `tool`, whatever the arguments."""
        return any(matches(pattern, tool) for pattern in self.tools)

    def covers_resource(self, uri: str) -> bool:
        """Return True if the rule is for the resource of this URI.

        The widget of a tool (MCP Apps) is for a program: only a pattern that says `ui:` is for it.
        """
        widget = uri.startswith(_WIDGET)
        patterns = (each for each in self.resources if not widget or each.startswith(_WIDGET))
        return any(matches(pattern, uri) for pattern in patterns)

    def applies(self, arguments: Mapping[str, Any]) -> bool:
        """Return True if `when` holds for the arguments; raises Refusal if it runs out of fuel."""
        if self.when is None:
            return True
        try:
            # Little fuel: all other calls wait for this decision.
            return truthy(self.when.search(arguments, Fuel(LITTLE)))
        except OutOfFuel as spent:
            raise Refusal(str(spent)) from spent
