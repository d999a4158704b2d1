"""The names that Python beside a rule file may import; every other module may change.

A transform is described in mcp_abridge.transforms.base, a guard in mcp_abridge.ruleset.guard, and
both with examples in rules/PYTHON.md.
"""

from mcp_abridge.document.paths import ROOT, Path, places, select
from mcp_abridge.document.tree import Slot, Value, plain, text
from mcp_abridge.errors import Refusal, ShapeMismatch
from mcp_abridge.query.call import Call, Notice
from mcp_abridge.ruleset.guard import Allow, Decision, Guard, Query, QueryResult, Respond
from mcp_abridge.transforms.base import Parameter, Schema, Transform

__all__ = [
    "ROOT",
    "Allow",
    "Call",
    "Decision",
    "Guard",
    "Notice",
    "Parameter",
    "Path",
    "Query",
    "QueryResult",
    "Refusal",
    "Respond",
    "Schema",
    "ShapeMismatch",
    "Slot",
    "Transform",
    "Value",
    "places",
    "plain",
    "select",
    "text",
]
