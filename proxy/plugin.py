"""The names that Python beside a rule file may import; every other module may change.

A transform is described in proxy.transforms.base, a guard in proxy.ruleset.guard, and both with
examples in rules/PYTHON.md.
"""

from proxy.document.paths import ROOT, Path, places, select
from proxy.document.tree import Slot, Value, plain, text
from proxy.errors import Refusal, ShapeMismatch
from proxy.ruleset.guard import Allow, Decision, Guard, Query, QueryResult, Respond
from proxy.transforms.base import Call, Notice, Parameter, Schema, Transform

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
