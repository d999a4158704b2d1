r"""Samples of metrics as Prometheus reads them, as rows: the metric, its labels, its value.

Without it, no view adds up the requests that failed.
"""

import re

from mcp_abridge.summary.rows import Rows

_LABEL = r'[A-Za-z_]\w*="[^"\\\n]*(?:\\.[^"\\\n]*)*"'
_LABELS = rf"\{{ *((?:{_LABEL}[, ]*)+)\}}"
_NAME = r"[A-Za-z_:][\w:]*"

SIGN = re.compile(rf"\A\s*(?:# (?:HELP|TYPE) {_NAME} |{_NAME}{_LABELS} +[-+.\dNI])")
"""What is said of a metric, or a sample with labels, at the beginning of a text."""

_SAMPLE = re.compile(rf"({_NAME})(?:{_LABELS})? +([-+.\w]+)(?: +(-?[\d.]+))?(?: +# .*)?\s*")
_ONE_LABEL = re.compile(r'(\w+)="([^"\\]*(?:\\.[^"\\]*)*)"')
_ESCAPED = re.compile(r'\\([\\"n])')


def metrics(text: str) -> Rows | None:
    r"""Return the samples; None if a line is none and no comment. Comments are left out.

    >>> metrics('# TYPE hits counter\nhits{path="/",code="200"} 7\nup 1\n').rows
    [{'metric': 'hits', 'path': '/', 'code': '200', 'value': '7'}, {'metric': 'up', 'value': '1'}]
    """
    rows = list[dict[str, str]]()
    for line in text.splitlines():
        if line[:1] == "#" or not line.strip():
            continue
        match = _SAMPLE.fullmatch(line)
        if match is None:
            return None
        name, labels, value, timestamp = match.groups()
        own = {"value": value} | ({"timestamp": timestamp} if timestamp else {})
        pairs = {
            each[1]: _ESCAPED.sub(_sign, each[2]) for each in _ONE_LABEL.finditer(labels or "")
        }
        if {"metric", *own} & pairs.keys():
            return None
        rows.append({"metric": name, **pairs, **own})
    return Rows(rows, "metrics", loses=True)


def _sign(escape: re.Match[str]) -> str:
    return "\n" if escape[1] == "n" else escape[1]
