"""Answers of Sentry: an issue with an event, whose stack has frames of the app and of others."""

from typing import Any

WHEN = "2026-01-02T03:04:05.000000Z"
ORGANIZATION = "/api/0/organizations/shop"


def answer(request: str) -> Any:
    """Answer a request to the API; there are issues unless a query asks for a zebra."""
    path, _, query = request.partition("?")
    match path.removeprefix(f"GET {ORGANIZATION}"):
        case "/issues/":
            return [] if "zebra" in query else [issue(n) for n in range(40)]
        case "/issues/SHOP-7/":
            return issue(7)
        case "/issues/SHOP-7/events/latest/" | "/issues/7/events/latest/":
            return event()
        case "/events/validate/":
            lists = ("projects", "dataset", "environment", "field", "orderby")
            query_check = {"valid": True, "fields": [], "error": ""}
            return {**{key: [] for key in lists}, "query": query_check, "valid": True}
        case "/issues/SHOP-7/events/":
            return [event() for _ in range(20)]
        case "/events/":
            return {"data": [row(n) for n in range(60)], "meta": {"fields": {}}}
    return None


def issue(n: int) -> dict[str, Any]:
    return {
        "id": str(n),
        "shortId": f"SHOP-{n}",
        "title": f"KeyError: 'price of lamp {n}'",
        "culprit": "shop.basket in total",
        "permalink": f"https://shop.sentry.test/issues/{n}/",
        "project": {"id": "1", "name": "Shop", "slug": "shop", "platform": "python"},
        "platform": "python",
        "status": "unresolved",
        "substatus": "ongoing",
        "count": "4812",
        "userCount": 31,
        "firstSeen": WHEN,
        "lastSeen": WHEN,
        "type": "error",
        "issueType": "error",
        "issueCategory": "error",
        "metadata": {"title": "KeyError", "value": f"price of lamp {n}", "location": "basket.py"},
        "assignedTo": None,
    }


def frame(n: int) -> dict[str, Any]:
    ours = n % 10 == 9
    return {
        "filename": f"shop/basket_{n}.py" if ours else f"framework/handlers/base_{n}.py",
        "absPath": f"/srv/shop/basket_{n}.py",
        "module": "shop.basket" if ours else "framework.handlers",
        "function": f"total_{n}",
        "lineNo": 40 + n,
        "inApp": ours,
        "context": [[38 + n + k, f"    line {k} of the function {n}"] for k in range(5)],
    }


def event() -> dict[str, Any]:
    value = {
        "type": "KeyError",
        "value": "price of lamp 7",
        "mechanism": {"type": "generic", "handled": False},
        "stacktrace": {"frames": [frame(n) for n in range(60)]},
    }
    request = {"method": "GET", "url": "https://shop.test/basket", "headers": []}
    crumb = {"type": "default", "level": "info", "category": "query", "timestamp": WHEN}
    crumbs = [{**crumb, "message": f"SELECT price FROM lamp {n}"} for n in range(60)]
    return {
        "id": "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        "eventID": "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        "title": "KeyError: 'price of lamp 7'",
        "message": "",
        "platform": "python",
        "type": "error",
        "dateCreated": WHEN,
        "dateReceived": WHEN,
        "culprit": "shop.basket in total",
        "entries": [
            {"type": "exception", "data": {"values": [value]}},
            {"type": "request", "data": request},
            {"type": "breadcrumbs", "data": {"values": crumbs}},
        ],
        "tags": [{"key": "level", "value": "error"}],
        "contexts": {"cart": {f"lamp_{n}": f"{n}.90" for n in range(40)}},
    }


def row(n: int) -> dict[str, Any]:
    return {
        "id": f"{n:032x}",
        "issue": f"SHOP-{n}",
        "issue.id": n,
        "title": f"KeyError: 'price of lamp {n}'",
        "project": "shop",
        "timestamp": WHEN,
        "level": "error",
        "message": f"KeyError: 'price of lamp {n}' in the basket of somebody",
        "error.type": ["KeyError"],
        "culprit": "shop.basket in total",
    }
