"""Results with structure, of the shapes that servers return: lists, rows, maps, graphs, YAML."""

import base64
import json
from functools import cache
from typing import Any

import yaml

from tests.answers.dice import Dice, clock

Value = Any
STATUSES = ("open", "paid", "shipped", "shipped", "refunded")


@cache
def issues() -> list[dict[str, Value]]:
    """Return 60 issues as a forge does: many URLs, nested users and labels, long bodies."""
    dice = Dice("issues")
    return [_issue(dice, 4160 - number) for number in range(60)]


def _issue(dice: Dice, number: int) -> dict[str, Value]:
    url = f"https://api.example.org/repos/acme/vault/issues/{number}"
    labels = ("bug", "docs", "security", "performance", "question")
    body = "\n\n".join(dice.text(3 + dice.below(4)) for _ in range(3 + dice.below(4)))
    if number == 4129:
        body += "\n\nWorkaround: set retry.limit to 17 in vault.toml."
    title = dice.words(5).capitalize()
    return {
        "url": url,
        **{name: f"{url}/{name}" for name in ("labels_url", "comments_url", "events_url")},
        "html_url": f"https://example.org/acme/vault/issues/{number}",
        "id": 880_000_000 + number * 7,
        "node_id": dice.digits(18),
        "number": number,
        "title": "Crash on start after the update to 4.2" if number == 4123 else title,
        "user": _user(dice),
        "labels": [
            {"id": 300 + index, "url": f"{url}/labels/{name}", "name": name, "color": "d73a4a"}
            for index, name in enumerate(labels)
            if dice.below(4) == 0
        ],
        "state": dice.pick(("open", "open", "closed")),
        "locked": False,
        "assignee": None if dice.below(2) else _user(dice),
        "milestone": None,
        "comments": dice.below(30),
        "created_at": dice.time(),
        "updated_at": dice.time(),
        "author_association": "NONE",
        "body": body,
        "reactions": {"url": f"{url}/reactions", "total_count": dice.below(9), "+1": 0, "-1": 0},
    }


def _user(dice: Dice) -> dict[str, Value]:
    login = f"{dice.name()}{dice.below(90) + 10}"
    url = f"https://api.example.org/users/{login}"
    links = ("followers", "following", "gists", "starred", "repos", "events", "received_events")
    return {
        "login": login,
        "id": dice.below(10**7),
        "avatar_url": f"https://avatars.example.org/{login}?v=4",
        "url": url,
        **{f"{name}_url": f"{url}/{name}" for name in links},
        "type": "User",
        "site_admin": False,
    }


@cache
def orders(count: int = 2000) -> list[dict[str, Value]]:
    dice = Dice("orders")
    return [_order(dice, number) for number in range(count)]


def _order(dice: Dice, number: int) -> dict[str, Value]:
    name = dice.words(2).title()
    return {
        "id": 100_000 + number,
        "number": f"SO-{number:06}",
        "status": dice.pick(STATUSES),
        "createdAt": dice.time(),
        "currency": dice.pick(("EUR", "USD")),
        "total": dice.below(9_000_000) / 1000,
        "customer": {"id": dice.below(900), "name": name, "email": f"{dice.word()}@example.org"},
        "lines": [
            {"sku": f"{dice.word()}-{dice.below(100)}", "quantity": 1 + dice.below(9)}
            for _ in range(1 + dice.below(3))
        ],
        "note": dice.sentence() if dice.below(5) == 0 else None,
    }


@cache
def lint() -> list[dict[str, Value]]:
    """Return 661 messages of a linter, in the order of files and lines."""
    dice = Dice("lint")
    rules = ("unused-import", "line-too-long", "missing-docstring", "shadowed-name", "bare-except")
    messages: list[dict[str, Value]] = []
    for file in sorted({f"src/{dice.word()}/{dice.word()}.py" for _ in range(60)}):
        line = 0
        for _ in range(661 - len(messages) if file.startswith("src/z") else 12):
            line += 1 + dice.below(30)
            rule = dice.pick(rules[: 1 + dice.below(len(rules))])
            severity = "error" if rule == "bare-except" and dice.below(6) == 0 else "warning"
            text = f"{rule.replace('-', ' ').capitalize()}: {dice.word()}_{dice.below(1000)}"
            messages.append(
                {
                    "file": file,
                    "line": line,
                    "column": dice.below(80),
                    "rule": rule,
                    "severity": severity,
                    "message": text,
                    "url": f"https://lint.example.org/rules/{rule}",
                }
            )
    return messages[:661]


@cache
def metrics() -> dict[str, Value]:
    dice = Dice("metrics")
    units = {"cpu": "percent", "memory": "MiB", "disk": "IOPS"}
    return {
        "host": "db-7",
        "step": "60s",
        "series": [
            {
                "metric": metric,
                "unit": unit,
                "points": [
                    [clock(60 * minute), (10_000 + dice.below(80_000)) / 1000]
                    for minute in range(1440)
                ],
            }
            for metric, unit in units.items()
        ],
    }


@cache
def graph() -> dict[str, Value]:
    dice = Dice("graph")
    nodes: list[dict[str, Value]] = [
        {
            "id": f"n{1000 + number}",
            "label": f"{dice.word()}-{dice.word()}-{number}",
            "kind": dice.pick(("service", "job", "database")),
            "owner": f"team-{dice.name()}",
        }
        for number in range(300)
    ]
    nodes[211]["label"] = "ledger-writer"
    nodes[158]["label"] = "billing-gateway"
    edges: list[dict[str, Value]] = [
        {
            "source": dice.pick(nodes)["id"],
            "target": dice.pick(nodes)["id"],
            "relation": dice.pick(("depends_on", "calls", "reads")),
            "weight": dice.below(1000) / 1000,
        }
        for _ in range(900)
    ]
    for position in (333, 512, 790):
        edges[position] |= {"source": "n1158", "relation": "depends_on"}
    return {"directed": True, "nodes": nodes, "edges": edges}


@cache
def packages() -> dict[str, Value]:
    dice = Dice("packages")
    licenses = ("MIT", "MIT", "Apache-2.0", "BSD-3-Clause", "ISC", "GPL-3.0")
    return {
        "lockfileVersion": 3,
        "packages": {
            f"{dice.word()}-{dice.word()}-{number}": {
                "version": f"{dice.below(20)}.{dice.below(20)}.{dice.below(200)}",
                "license": dice.pick(licenses),
                "size": dice.below(900_000),
                "integrity": f"sha512-{dice.digits(40)}",
            }
            for number in range(3000)
        },
    }


@cache
def tree() -> list[dict[str, Value]]:
    dice = Dice("tree")

    def folder(name: str, children: list[dict[str, Value]]) -> dict[str, Value]:
        return {"name": name, "type": "directory", "children": children}

    def files(module: int, part: int) -> list[dict[str, Value]]:
        names = sorted(f"{dice.word()}_{module:02}{part}{index}.py" for index in range(8))
        if (module, part) == (17, 5):
            names.append("zone_transfer.py")
        return [{"name": name, "type": "file"} for name in names]

    return [
        folder(
            f"module{module:02}",
            [folder(f"part{module:02}{part}", files(module, part)) for part in range(8)],
        )
        for module in range(24)
    ]


def query() -> str:
    """Return 300 rows as a database server that prints Python does."""
    rows = [
        {
            "id": row["id"],
            "number": row["number"],
            "status": row["status"],
            "created_at": row["createdAt"],
            "total": row["total"],
            "note": row["note"],
            "raw_json": json.dumps({"customer": row["customer"], "lines": row["lines"]}),
        }
        for row in orders()[:300]
    ]
    return repr(rows)


@cache
def pods() -> list[dict[str, Value]]:
    dice = Dice("pods")
    return [_pod(dice, number) for number in range(80)]


def _pod(dice: Dice, number: int) -> dict[str, Value]:
    app = f"{dice.word()}-{dice.word()}"
    waits = {"waiting": {"message": "back-off 5m0s restarting", "reason": "CrashLoopBackOff"}}
    runs = {"running": {"startedAt": dice.time()}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-{dice.digits(9)}-{dice.digits(5)}",
            "namespace": "default",
            "uid": dice.digits(32),
            "creationTimestamp": dice.time(),
            "labels": {"app": app, "pod-template-hash": dice.digits(9)},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app}],
        },
        "spec": {
            "nodeName": f"node-{dice.digits(6)}",
            "restartPolicy": "Always",
            "containers": [
                {
                    "name": app,
                    "image": f"registry.example.org/{app}:{dice.below(9)}.{dice.below(90)}",
                    "env": [{"name": dice.word().upper(), "value": dice.word()} for _ in range(6)],
                    "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}},
                }
            ],
        },
        "status": {
            "phase": "Running",
            "podIP": f"10.0.{dice.below(256)}.{dice.below(256)}",
            "containerStatuses": [
                {
                    "name": app,
                    "ready": number != 53,
                    "restartCount": 217 if number == 53 else dice.below(3),
                    "state": waits if number == 53 else runs,
                }
            ],
        },
    }


def pods_yaml() -> str:
    listed = {"apiVersion": "v1", "kind": "List", "items": pods()}
    return str(yaml.safe_dump(listed, sort_keys=False))


@cache
def customers() -> list[tuple[str, ...]]:
    dice = Dice("customers")
    plans = ("free", "free", "team", "enterprise")
    countries = ("DE", "FR", "PT", "PL", "US", "JP")
    return [
        (
            f"C-{10_000 + number}",
            f"{dice.name()}.{dice.word()}{number}@example.org",
            dice.pick(countries),
            dice.pick(plans),
            dice.time()[:10],
            f"{dice.below(100_000) / 100:.2f}",
        )
        for number in range(1500)
    ]


def customers_csv() -> str:
    head = "id,email,country,plan,signup,spend"
    return "\n".join([head, *(",".join(row) for row in customers()), ""])


@cache
def events() -> list[dict[str, Value]]:
    dice = Dice("events")
    kinds = ("login.ok", "login.ok", "login.denied", "file.read", "file.write")
    listed: list[dict[str, Value]] = [
        {
            "time": clock(37 * number),
            "type": dice.pick(kinds),
            "user": f"u-{1000 + dice.below(400)}",
            "ip": f"10.{dice.below(256)}.{dice.below(256)}.{dice.below(256)}",
            "agent": f"{dice.word()}/{dice.below(30)}.{dice.below(10)}",
            "trace": dice.digits(24),
        }
        for number in range(1200)
    ]
    listed[703] |= {"type": "payment.failed", "code": "card_expired_7731"}
    return listed


@cache
def hits() -> list[dict[str, Value]]:
    """Return 200 hits of a search; the server sends each as a text block of its own."""
    dice = Dice("hits")
    matches: list[dict[str, Value]] = [
        {
            "_index": "logs-2026.11",
            "_id": dice.digits(20),
            "_score": (20_000 - 90 * number) / 1000,
            "_source": {
                "@timestamp": dice.time(),
                "host": f"web-{dice.below(1000):03}",
                "level": dice.pick(("info", "warn", "error")),
                "message": dice.text(4),
            },
        }
        for number in range(200)
    ]
    matches[141]["_source"]["message"] = "Disk quota exceeded on volume 7. " + dice.text(3)
    return matches


@cache
def attachments() -> dict[str, Value]:
    dice = Dice("attachments")
    names = ["offer.pdf", "logo.png", "contract-signed.pdf", "terms.pdf", "photo.jpg", "plan.xlsx"]
    return {
        "message": "M-20817",
        "attachments": [
            {
                "name": name,
                "type": "application/octet-stream",
                "data": _binary(dice, 24_000 + dice.below(9000)),
                "sha256": dice.digits(64),
                "scanned": dice.time(),
            }
            for name in names
        ],
        "retention": {"policy": "seven years", "until": "2033-11-30"},
    }


def _binary(dice: Dice, size: int) -> str:
    return base64.b64encode(bytes(dice.below(256) for _ in range(size))).decode()


@cache
def sync() -> dict[str, Value]:
    """Return the state of a run, whose lists of ids are all of its size."""
    ids = [str(100_000 + number) for number in range(21_357)]
    return {
        "progress": {
            "status": "running",
            "runId": "6d1c4a52-ceee-34ce-92ef-46550c2f147a",
            "startedAt": "2026-05-21T08:14:02Z",
            "folderQueue": [str(1000 + number) for number in range(2411)],
            "discoveredFileIds": ids,
            "indexedFileIds": ids[:9000],
            "failedFileIds": ids[5::1700],
            "counters": {"foldersPending": 2411, "contentFailed": 13, "chunks": 61_775},
            "lastError": "413 from the indexer for file 108505",
        }
    }


@cache
def pages() -> list[dict[str, Value]]:
    dice = Dice("pages")
    listed: list[dict[str, Value]] = [
        {
            "id": 70_000 + number,
            "title": dice.words(4).capitalize(),
            "space": dice.pick(("OPS", "DEV", "HR")),
            "url": f"https://wiki.example.org/x/{dice.digits(6)}",
            "excerpt": dice.text(2),
            "content": dice.text(30),
            "version": 1 + dice.below(40),
        }
        for number in range(100)
    ]
    listed[64]["title"] = "Rotating the signing keys"
    listed[88]["content"] += " The quorum for a restore is four of seven officers. " + dice.text(9)
    return listed
