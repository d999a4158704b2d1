"""A tool of an agent, as a plain function: it answers in brief, and by `view` shows the rest."""

import json
import sys

from mcp_abridge import Abridge

abridge = Abridge()


def list_issues(state: str, view: str | None = None) -> str:
    """List the issues in a state; `view` shows a part of the answer, as its notices say."""
    call = abridge.call("list_issues", {"state": state, "view": view})
    return call.end(fetch(state)) if call.text is None else call.text


def fetch(state: str) -> str:
    """Stand in for a service that has these issues."""
    print(f"fetching the {state} issues", file=sys.stderr)
    issues = [{"number": n, "title": f"Crash {n}", "state": state} for n in range(1, 501)]
    return json.dumps({"issues": issues})


if __name__ == "__main__":
    print(list_issues("open"))
    print(list_issues("open", view="issues[?number==`42`].title"))
