"""Answers of Jira and Confluence: issues and pages as full as theirs for any request."""

from typing import Any
from urllib.parse import unquote_plus

WHEN = "2026-01-02T03:04:05.000+0000"


def answer(request: str) -> Any:
    """Answer a request to either API; there are thirty issues in PRO, and none in NONE."""
    path, _, query = unquote_plus(request.partition(" ")[2]).partition("?")
    match path.split("/")[1:]:
        case ["rest", "api", "2", "search"]:
            issues = [] if "project = NONE" in query else [issue(n) for n in range(30)]
            return {"startAt": 0, "maxResults": 50, "total": len(issues), "issues": issues}
        case ["rest", "api", "2", "issue", key]:
            return None if key == "PRO-404" else issue(int(key.partition("-")[2]))
        case ["rest", "api", "2", "project"]:
            return [{"key": "PRO", "name": "Pro", "avatarUrls": icons(), "lead": user("ann")}]
        case ["rest", "api", "2", "field"]:
            return []
        case ["wiki", "rest", "api", "search"]:
            return {"results": [] if "zebra" in query else [hit(n) for n in range(10)]}
        case ["wiki", "rest", "api", "content", number]:
            return None if number == "404" else page(int(number))
        case ["wiki", "rest", "api", "content", _, "child", "page"]:
            return {"results": [page(n) for n in range(5)]}
    return None


def icons() -> dict[str, str]:
    return {f"{n}x{n}": f"http://jira.test/secure/avatar?size={n}" for n in (16, 24, 32, 48)}


def user(name: str) -> dict[str, Any]:
    names = {"name": name, "key": name, "displayName": name.title(), "active": True}
    return {**names, "emailAddress": f"{name}@example.org", "avatarUrls": icons()}


def issue(n: int) -> dict[str, Any]:
    custom = {f"customfield_{10_000 + k}": None for k in range(60)}
    fields = {
        "summary": f"The list is slow, part {n}",
        "description": f"It is slow, and here is what I did in part {n}.\n" * 20,
        "status": {"name": "Open", "statusCategory": {"name": "To Do", "colorName": "blue-gray"}},
        "issuetype": {"name": "Bug", "iconUrl": "http://jira.test/i"},
        "priority": {"name": "High", "iconUrl": "http://jira.test/i"},
        "assignee": user("ann"),
        "reporter": user("ben"),
        "labels": ["sync"],
        "created": WHEN,
        "updated": WHEN,
        "project": {"key": "PRO", "name": "Pro", "avatarUrls": icons()},
        "comment": {"comments": [comment(n) for n in range(3)], "total": 3},
        "customfield_20000": {"value": "A", "id": "3"},
    }
    return {"id": str(10_000 + n), "key": f"PRO-{n}", "fields": fields | custom}


def comment(n: int) -> dict[str, Any]:
    text = f"It is slow here too, as part {n} was in January. " * 8
    return {"id": str(n), "body": text, "author": user("ben"), "created": WHEN, "updated": WHEN}


def page(n: int) -> dict[str, Any]:
    html = f"<h1>Lamps</h1><p>A lamp for the desk, part {n}.</p>" * 200
    return {
        "id": str(n),
        "type": "page",
        "status": "current",
        "title": f"Lamps {n}",
        "space": {"id": 1, "key": "S", "name": "Sales"},
        "body": {"storage": {"value": html}},
        "version": {"number": 3, "when": WHEN, "by": {"displayName": "Ann"}},
        "history": {"createdDate": WHEN, "createdBy": {"displayName": "Ann"}},
        "_links": {"webui": f"/pages/{n}"},
    }


def hit(n: int) -> dict[str, Any]:
    text = "A @@@hl@@@lamp@@@endhl@@@ for the desk, the shelf and the night. " * 8
    return {"content": page(n), "title": f"Lamps {n}", "excerpt": text, "lastModified": WHEN}
