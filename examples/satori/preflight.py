"""Asks the server whether a reindex is needed, and holds it back where a sync is enough."""

from collections.abc import Mapping
from typing import Any, ClassVar

from mcp_abridge.plugin import Allow, Call, Decision, Parameter, Query, QueryResult, Respond
from msgspec import Struct

OVERRIDE = "allowUnnecessaryReindex"
UNNECESSARY = "reindex_unnecessary_ignore_only"
FAILED = "probe_failed"

# What is noted on the answer of a reindex that goes to the server, by the outcome of the preflight.
NOTES: dict[str, dict[str, Any]] = {
    "reindex_required": {},
    "unknown": {"reason": "preflight_unknown", "warnings": ["REINDEX_PREFLIGHT_UNKNOWN"]},
    FAILED: {
        "warnings": ["IGNORE_POLICY_PROBE_FAILED"],
        "hints": {"preflight": {"probeFailed": True}},
    },
}
BLOCKED: dict[str, Any] = {
    "status": "blocked",
    "reason": "unnecessary_reindex_ignore_only",
    "warnings": ["REINDEX_UNNECESSARY_IGNORE_ONLY"],
}
MESSAGE = "Nothing but ignore rules has changed: a sync is enough."


class Preflight(Struct, frozen=True):
    """Let a reindex go to the server only if it is needed, as far as the server knows.

    The server's `tool` is asked for an `outcome`; an answer without one of the four, or none
    within `seconds`, is `probe_failed`. What the preflight says beyond that the reindex is required
    is in the fact `preflight`, for the envelope. `vocabulary` has the words that may be said there.
    """

    name: ClassVar[str] = "preflight"
    shorthand: ClassVar[str | None] = None
    parameters: ClassVar[Mapping[str, Parameter]] = {
        OVERRIDE: Parameter(
            {
                "type": "boolean",
                "description": "Reindex even if nothing but ignore rules has changed.",
            }
        )
    }

    vocabulary: dict[str, tuple[str, ...]]
    tool: str = "check_reindex"
    seconds: float = 10.0

    def __post_init__(self) -> None:
        """Raise ValueError where this would say a word that is not in the vocabulary."""
        for said in (BLOCKED, *NOTES.values()):
            for name in ("status", "reason", "warnings"):
                known, words = self.vocabulary.get(name, ()), said.get(name, [])
                for word in [words] if isinstance(words, str) else words:
                    if word not in known:
                        raise ValueError(f"vocabulary: {name} lacks {word!r}, which preflight says")

    def __call__(self, call: Call, found: QueryResult | None) -> Decision:
        """Ask, unless the caller wants the reindex in any case; then decide by the outcome."""
        if call.argument(OVERRIDE) is True:
            return Allow()
        if found is None:
            return Query(self.tool, {"path": call.argument("path")}, self.seconds)
        outcome = outcome_of(found)
        if outcome == UNNECESSARY:
            return Respond(blocked(call))
        note = NOTES[outcome]
        return Allow(facts=note and {**note, "preflight": {"outcome": outcome}})


def outcome_of(found: QueryResult) -> str:
    """Return the outcome that the server's answer names.

    >>> outcome_of(QueryResult({"outcome": "unknown"}))
    'unknown'
    >>> outcome_of(QueryResult(failure="timed out"))
    'probe_failed'
    """
    outcome = found.document.get("outcome") if isinstance(found.document, dict) else None
    return next((word for word in (UNNECESSARY, *NOTES) if word == outcome), FAILED)


def blocked(call: Call) -> dict[str, Any]:
    """Return the envelope of a reindex that is held back: what to do, and how to insist."""
    own = {word: value for word, value in call.arguments.items() if word != OVERRIDE}
    override = call.advertised_name(OVERRIDE)
    sync = {"action": "sync", "path": call.argument("path")}
    return {
        **BLOCKED,
        "hints": {
            "sync": {"tool": call.tool, "arguments": sync},
            "overrideReindex": {"tool": call.tool, "arguments": {**own, override: True}},
        },
        "preflight": {"outcome": UNNECESSARY},
        "message": MESSAGE,
        "humanText": f"{MESSAGE} Call {call.tool} with action sync. To reindex all the same, call "
        f"it again with {override}: true.",
    }
