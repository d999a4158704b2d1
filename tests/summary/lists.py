"""Lists of the documented shapes of much used servers: each with the columns one reads it for."""

import csv
import hashlib
import io
import json
import random
from collections.abc import Callable
from typing import Any

from msgspec import Struct

Value = Any

# fmt: off
WORDS = [
    "cache", "retry", "token", "index", "pager", "worker", "volume", "schema", "invoice", "ledger",
    "folder", "branch", "quota", "relay", "signal", "vault", "probe", "cursor", "tenant", "shard",
    "bucket", "replica", "header", "digest",
]
COLUMNS_OF_SLACK = [
    "MsgID", "UserID", "UserName", "RealName", "Channel", "ThreadTs", "Text", "Time", "Reactions",
    "BotName", "Cursor",
]
# fmt: on
PEOPLE = ("Ada Moreau", "Bo Lindqvist", "Chen Wei", "Dina Farouk", "Emeka Obi", "Freya Holt")


class Listing(Struct):
    """A result; `names` are alternatives for the column without which its rows mean nothing.

    A column counts as shown if its name ends so, with or without the steps into arrays.
    """

    value: Value
    names: tuple[str, ...]
    others: tuple[str, ...] = ()
    arguments: dict[str, Any] = {}


class Dice(random.Random):
    def hex(self, length: int) -> str:
        return hashlib.sha256(str(self.random()).encode()).hexdigest()[:length]

    def uuid(self) -> str:
        return "-".join(self.hex(length) for length in (8, 4, 4, 4, 12))

    def words(self, least: int, most: int) -> str:
        return " ".join(self.choices(WORDS, k=self.randint(least, most)))

    def title(self) -> str:
        return self.words(4, 9).capitalize()

    def time(self) -> str:
        return (
            f"2026-{self.randint(1, 12):02}-{self.randint(1, 28):02}T"
            f"{self.randint(0, 23):02}:{self.randint(0, 59):02}:{self.randint(0, 59):02}.000Z"
        )


def git_log(dice: Dice) -> Listing:
    def commit() -> Value:
        sha, name = dice.hex(40), dice.choice(PEOPLE)
        return {
            "hash": sha,
            "shortHash": sha[:7],
            "parents": [dice.hex(40)],
            "author": name,
            "authorEmail": f"{name.split()[0].lower()}@example.org",
            "timestamp": dice.randint(1_760_000_000, 1_790_000_000),
            "refs": "",
            "subject": f"{dice.choice(WORDS)}: {dice.words(4, 9)}",
            "body": dice.words(10, 60),
        }

    return Listing({"commits": [commit() for _ in range(200)]}, ("subject",), ("shortHash",))


def prometheus(dice: Dice) -> Listing:
    def series(number: int) -> Value:
        return {
            "metric": {
                "__name__": "http_requests_total",
                "code": dice.choice(["200", "200", "404", "500"]),
                "endpoint": "web",
                "instance": f"10.4.{number % 7}.{number}:8080",
                "job": "shop",
                "namespace": "prod",
                "pod": f"{dice.choice(WORDS)}-{dice.hex(9)}-{dice.hex(5)}",
            },
            "value": [1_764_316_800.123, str(dice.randint(1, 90_000))],
        }

    result = [series(number) for number in range(180)]
    return Listing(
        {"status": "success", "data": {"resultType": "vector", "result": result}},
        ("metric.pod", "metric.instance"),
        ("value[1]",),
    )


def _rich(text: str) -> Value:
    style = dict.fromkeys(["bold", "italic", "strikethrough", "underline", "code"], False)
    return {
        "type": "text",
        "text": {"content": text, "link": None},
        "annotations": {**style, "color": "default"},
        "plain_text": text,
        "href": None,
    }


def notion(dice: Dice) -> Listing:
    def page() -> Value:
        user = {"object": "user", "id": dice.uuid()}
        key = dice.uuid()
        return {
            "object": "page",
            "id": key,
            "created_time": dice.time(),
            "last_edited_time": dice.time(),
            "created_by": user,
            "last_edited_by": user,
            "cover": None,
            "icon": {"type": "emoji", "emoji": "📌"},
            "parent": {
                "type": "database_id",
                "database_id": "d9824bdc-8445-4327-be8b-5b47500af6ce",
            },
            "archived": False,
            "properties": {
                "Estimate": {"id": "%3AUPp", "type": "number", "number": dice.randint(1, 13)},
                "Status": {
                    "id": "A%40Hk",
                    "type": "select",
                    "select": {
                        "id": dice.hex(8),
                        "name": dice.choice(["Todo", "Doing", "Blocked", "Done"]),
                        "color": "red",
                    },
                },
                "Notes": {"id": "B%5E", "type": "rich_text", "rich_text": []},
                "Name": {"id": "title", "type": "title", "title": [_rich(dice.title())]},
            },
            "url": f"https://www.notion.so/{key.replace('-', '')}",
        }

    results = [page() for _ in range(100)]
    whole = {"object": "list", "results": results, "next_cursor": None, "has_more": False}
    return Listing(whole, ("title[0].plain_text", "title[].plain_text"), ("Status.select.name",))


def jira(dice: Dice) -> Listing:
    def person() -> Value:
        name = dice.choice(PEOPLE)
        link = f"https://jira.example.org/rest/api/2/user?accountId={dice.hex(24)}"
        avatars = {size: f"{link}&size={size}" for size in ("48x48", "24x24", "16x16")}
        return {"self": link, "accountId": dice.hex(24), "avatarUrls": avatars, "displayName": name}

    def issue(number: int) -> Value:
        status = dice.choice(["To Do", "In Progress", "Blocked", "Done"])
        link = "https://jira.example.org/rest/api/2"
        return {
            "expand": "operations,versionedRepresentations,editmeta,changelog,renderedFields",
            "id": str(10_000 + number),
            "self": f"{link}/issue/{10_000 + number}",
            "key": f"SHOP-{number}",
            "fields": {
                **{f"customfield_{10_000 + each}": None for each in range(40)},
                "summary": dice.title(),
                "status": {
                    "self": f"{link}/status/{len(status)}",
                    "description": "",
                    "iconUrl": "https://jira.example.org/images/icons/status.png",
                    "name": status,
                    "id": str(len(status)),
                    "statusCategory": {"id": 4, "key": "indeterminate", "name": status},
                },
                "assignee": person(),
                "reporter": person(),
                "priority": {"name": dice.choice(["High", "Medium", "Low"]), "id": "3"},
                "created": dice.time(),
                "updated": dice.time(),
                "labels": [],
                "description": dice.words(40, 120),
                "project": {"id": "10", "key": "SHOP", "name": "The shop", "self": f"{link}/10"},
            },
        }

    names = {f"customfield_{10_000 + each}": dice.title() for each in range(40)}
    issues = [issue(number) for number in range(60)]
    whole = {"expand": "names,schema", "startAt": 0, "total": 60, "issues": issues, "names": names}
    return Listing(whole, ("summary",), ("status.name", "key"))


def note_search(dice: Dice) -> Listing:
    def hit() -> Value:
        context = [
            {
                "match": {"start": 20, "end": 25},
                "context": f"{dice.words(9, 20)} quota {dice.words(9, 20)}",
            }
            for _ in range(dice.randint(1, 4))
        ]
        name = f"{dice.choice(WORDS).capitalize()}/{dice.title()}.md"
        return {"filename": name, "score": -round(dice.random(), 6), "matches": context}

    return Listing([hit() for _ in range(400)], ("filename",), (), {"query": "quota"})


def slack(dice: Dice) -> Listing:
    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow(COLUMNS_OF_SLACK)
    for number in range(177):
        name, stamp = dice.choice(PEOPLE), f"17643168{number:02}.{number:06}"
        user = f"U0{dice.hex(8).upper()}", name.split()[0].lower(), name
        writer.writerow([stamp, *user, "#ops", stamp, dice.words(12, 40), dice.time(), "", "", ""])
    return Listing(output.getvalue(), ("Text",), ("UserName", "RealName"))


def har(dice: Dice) -> Listing:
    def headers(least: int) -> Value:
        return [{"name": f"x-{word}", "value": dice.hex(20)} for word in WORDS[:least]]

    def entry() -> Value:
        return {
            "pageref": "page_1",
            "startedDateTime": dice.time(),
            "time": round(dice.random() * 900, 3),
            "request": {
                "method": dice.choice(["GET", "GET", "POST"]),
                "url": f"https://shop.example.org/{dice.choice(WORDS)}/{dice.hex(6)}.js",
                "httpVersion": "http/2.0",
                "headers": headers(12),
                "queryString": [],
                "cookies": [],
                "headersSize": -1,
                "bodySize": 0,
            },
            "response": {
                "status": dice.choice([200, 200, 200, 304, 404]),
                "statusText": "",
                "httpVersion": "http/2.0",
                "headers": headers(9),
                "cookies": [],
                "content": {"size": dice.randint(100, 90_000), "mimeType": "text/javascript"},
                "redirectURL": "",
                "headersSize": -1,
            },
            "cache": {},
            "timings": {name: round(dice.random() * 90, 3) for name in ("send", "wait", "receive")},
            "connection": str(dice.randint(1, 999)),
        }

    page = {"startedDateTime": dice.time(), "id": "page_1", "title": "Shop", "pageTimings": {}}
    creator = {"name": "WebInspector", "version": "537.36"}
    entries = [entry() for _ in range(120)]
    log = {"version": "1.2", "creator": creator, "pages": [page], "entries": entries}
    return Listing({"log": log}, ("request.url",), ("response.status",))


def sarif(dice: Dice) -> Listing:
    rules = [
        {
            "id": f"py/{word}-{number}",
            "name": f"py/{word}",
            "shortDescription": {"text": dice.title()},
            "fullDescription": {"text": dice.words(20, 50)},
            "help": {"text": dice.words(60, 120)},
            "properties": {"tags": ["security", "external/cwe"], "precision": "high"},
        }
        for number, word in enumerate(WORDS)
    ]

    def result() -> Value:
        number = dice.randrange(len(rules))
        uri = {"uri": f"src/{dice.choice(WORDS)}/{dice.choice(WORDS)}.py", "uriBaseId": "%SRCROOT%"}
        line = dice.randint(1, 900)
        region = {"startLine": line, "startColumn": dice.randint(1, 40), "endColumn": 80}
        place = {"physicalLocation": {"artifactLocation": {**uri, "index": 3}, "region": region}}
        return {
            "ruleId": rules[number]["id"],
            "ruleIndex": number,
            "rule": {"id": rules[number]["id"], "index": number},
            "level": dice.choice(["error", "warning", "note"]),
            "message": {"text": f"{dice.title()} flows to {dice.words(3, 8)}."},
            "locations": [place],
            "partialFingerprints": {"primaryLocationLineHash": f"{dice.hex(16)}:1"},
        }

    driver = {"name": "CodeQL", "semanticVersion": "2.20.1", "rules": rules}
    artifacts = [{"location": {"uri": f"src/{word}.py", "index": 1}} for word in WORDS * 4]
    results = [result() for _ in range(150)]
    run = {"tool": {"driver": driver}, "artifacts": artifacts, "results": results}
    return Listing({"version": "2.1.0", "runs": [run]}, ("message.text",), ("ruleId", ".uri"))


def frames(dice: Dice) -> Listing:
    def frame() -> Value:
        word = dice.choice(WORDS)
        return {
            "filename": f"app/{word}/{dice.choice(WORDS)}.py",
            "absPath": f"/srv/www/releases/{dice.hex(12)}/app/{word}/{dice.choice(WORDS)}.py",
            "module": f"app.{word}",
            "package": None,
            "platform": None,
            "instructionAddr": None,
            "symbolAddr": None,
            "function": f"{dice.choice(WORDS)}_{dice.choice(WORDS)}",
            "rawFunction": None,
            "symbol": None,
            "context": [[line, f"    {dice.words(4, 9)}"] for line in range(40, 51)],
            "lineNo": dice.randint(1, 900),
            "colNo": None,
            "inApp": dice.random() < 0.4,
            "trust": None,
            "errors": None,
            "lock": None,
            "sourceLink": None,
            "vars": {word: dice.hex(30) for word in dice.sample(WORDS, 6)},
        }

    stack = {"frames": [frame() for _ in range(90)], "framesOmitted": None, "hasSystemFrames": True}
    value = {"type": "ValueError", "value": "shard is gone", "stacktrace": stack}
    entries = [{"type": "exception", "data": {"values": [value]}}]
    return Listing({"id": "c0ffee", "entries": entries}, ("filename", "function"), ("lineNo",))


def terraform(dice: Dice) -> Listing:
    def resource() -> Value:
        kind, word = (
            dice.choice(["aws_instance", "aws_s3_bucket", "aws_iam_role"]),
            dice.choice(WORDS),
        )
        name = f"{word}_{dice.hex(4)}"
        return {
            "address": f"module.{dice.choice(WORDS)}.{kind}.{name}",
            "mode": "managed",
            "type": kind,
            "name": name,
            "provider_name": "registry.terraform.io/hashicorp/aws",
            "schema_version": 1,
            "values": {each: dice.hex(20) for each in WORDS[:8]},
        }

    def change(each: Value) -> Value:
        values = each["values"]
        own = {name: each[name] for name in ("address", "mode", "type", "name", "provider_name")}
        actions = dice.choice([["no-op"], ["update"], ["create"], ["delete", "create"]])
        return own | {
            "change": {
                "actions": actions,
                "before": values,
                "after": {**values, "cache": dice.hex(20)},
                "after_unknown": {},
                "before_sensitive": {},
                "after_sensitive": {},
            }
        }

    resources = [resource() for _ in range(140)]
    module = {"root_module": {"resources": resources}}
    whole = {
        "format_version": "1.2",
        "terraform_version": "1.9.5",
        "planned_values": module,
        "resource_changes": [*map(change, resources)],
        "prior_state": {"format_version": "1.0", "values": module},
        "configuration": module,
    }
    return Listing(whole, ("resource_changes:address",), ("change.actions",))


def code_search(dice: Dice) -> Listing:
    def match() -> Value:
        before, after = dice.words(6, 14), dice.words(6, 14)
        path = f"src/{dice.choice(WORDS)}/{dice.choice(WORDS)}_{dice.hex(4)}.ts"
        return {
            "file_path": path,
            "repository": {"id": 123, "name": "shop", "url": "https://git.example.org/shop"},
            "sha": dice.hex(40),
            "line_number": dice.randint(1, 2000),
            "column": dice.randint(1, 80),
            "language": "TypeScript",
            "score": 1.0,
            "text": f"    const {before} = parseQuota({after});",
            "url": f"https://git.example.org/shop/blob/{dice.hex(40)}/{path}",
        }

    matches = [match() for _ in range(220)]
    return Listing({"matches": matches}, ("text",), ("file_path",), {"pattern": "parseQuota"})


def outline(dice: Dice) -> Listing:
    def symbol(depth: int) -> Value:
        place = {"line": dice.randint(1, 3000), "character": 4}
        span = {"start": place, "end": {"line": place["line"] + 20, "character": 0}}
        inner = [symbol(depth + 1) for _ in range(dice.randint(2, 5))] if depth < 2 else []
        return {
            "name": f"{dice.choice(WORDS)}{dice.choice(WORDS).capitalize()}",
            "kind": dice.choice([5, 6, 12, 13]),
            "detail": "",
            "range": span,
            "selectionRange": span,
            "children": inner,
        }

    return Listing([symbol(0) for _ in range(40)], ("name",), ("range.start.line",))


def alerts(dice: Dice) -> Listing:
    def alert() -> Value:
        name = f"{dice.choice(WORDS).capitalize()}{dice.choice(['Down', 'Slow', 'Full'])}"
        return {
            "annotations": {
                "description": dice.words(15, 40),
                "runbook_url": f"https://runbooks.example.org/{name}",
                "summary": dice.title(),
            },
            "endsAt": dice.time(),
            "fingerprint": dice.hex(16),
            "receivers": [{"name": "ops"}],
            "startsAt": dice.time(),
            "status": {
                "inhibitedBy": [],
                "silencedBy": [],
                "state": dice.choice(["active", "suppressed"]),
            },
            "updatedAt": dice.time(),
            "generatorURL": f"https://prometheus.example.org/graph?g0.expr={dice.hex(40)}",
            "labels": {
                "alertname": name,
                "cluster": "eu-1",
                "instance": f"10.0.0.{dice.randint(1, 250)}:9100",
                "severity": dice.choice(["critical", "warning", "info"]),
            },
        }

    return Listing(
        [alert() for _ in range(110)], ("alertname", "annotations.summary"), ("severity",)
    )


def fhir(dice: Dice) -> Listing:
    def entry() -> Value:
        key, display = dice.uuid(), dice.title()
        coding = {
            "system": "http://loinc.org",
            "code": str(dice.randint(1000, 9999)),
            "display": display,
        }
        category = "http://terminology.hl7.org/CodeSystem/observation-category"
        return {
            "fullUrl": f"https://fhir.example.org/Observation/{key}",
            "resource": {
                "resourceType": "Observation",
                "id": key,
                "meta": {"versionId": "1", "lastUpdated": dice.time()},
                "status": dice.choice(["final", "amended", "preliminary"]),
                "category": [{"coding": [{"system": category, "code": "laboratory"}]}],
                "code": {"coding": [coding], "text": display},
                "subject": {"reference": f"Patient/{dice.uuid()}"},
                "effectiveDateTime": dice.time(),
                "valueQuantity": {"value": round(dice.random() * 90, 1), "unit": "mg/dL"},
            },
            "search": {"mode": "match"},
        }

    whole = {"resourceType": "Bundle", "type": "searchset", "total": 130}
    return Listing(
        {**whole, "entry": [entry() for _ in range(130)]},
        ("code.text", "code.coding[0].display"),
        ("valueQuantity.value", "status"),
    )


def elastic(dice: Dice) -> Listing:
    def hit() -> Value:
        return {
            "_index": "logs-2026.11",
            "_id": dice.hex(20),
            "_score": 1.0,
            "_source": {
                "@timestamp": dice.time(),
                "agent": {
                    "id": dice.uuid(),
                    "name": "web",
                    "type": "filebeat",
                    "version": "8.15.0",
                },
                "host": {"name": f"web-{dice.randint(1, 40):02}", "os": {"family": "debian"}},
                "log": {
                    "level": dice.choice(["info", "warn", "error"]),
                    "offset": dice.randint(1, 10**6),
                },
                "message": f"{dice.title()} after {dice.words(6, 20)}",
                "tags": ["beats_input_codec_plain_applied"],
            },
        }

    hits = {"total": {"value": 160, "relation": "eq"}, "hits": [hit() for _ in range(160)]}
    shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    whole = {"took": 3, "timed_out": False, "_shards": shards, "hits": hits}
    return Listing(whole, ("_source.message",), ("log.level",))


def adf(dice: Dice) -> Listing:
    def text() -> Value:
        marks = [{"type": "strong"}] if dice.random() < 0.2 else []
        return {
            "type": "text",
            "text": f"{dice.words(8, 30)} ",
            **({"marks": marks} if marks else {}),
        }

    def node() -> Value:
        kind = dice.random()
        if kind < 0.2:
            title = {"type": "text", "text": dice.title()}
            return {"type": "heading", "attrs": {"level": 2}, "content": [title]}
        paragraph = {"type": "paragraph", "content": [text() for _ in range(dice.randint(1, 3))]}
        if kind < 0.8:
            return paragraph
        items = [{"type": "listItem", "content": [paragraph]} for _ in range(3)]
        return {"type": "bulletList", "content": items}

    body = {"type": "doc", "version": 1, "content": [node() for _ in range(90)]}
    return Listing({"id": "4711", "body": body}, ("content[].text", "plain_text"))


def home(dice: Dice) -> Listing:
    def state(number: int) -> Value:
        kind = dice.choice(["light", "sensor", "switch", "climate"])
        name = f"{dice.choice(WORDS).capitalize()} {dice.choice(WORDS)} {number}"
        attributes: dict[str, Value] = {"friendly_name": name}
        if kind == "sensor":
            attributes |= {"unit_of_measurement": "°C", "device_class": "temperature"}
        elif kind == "light":
            attributes |= {"brightness": dice.randint(1, 255), "supported_color_modes": ["xy"]}
        elif kind == "climate":
            attributes |= {"hvac_modes": ["heat", "off"], "min_temp": 7, "temperature": 21.5}
        value = str(dice.randint(15, 25)) if kind == "sensor" else dice.choice(["on", "off"])
        return {
            "entity_id": f"{kind}.{name.lower().replace(' ', '_')}",
            "state": value,
            "attributes": attributes,
            "last_changed": dice.time(),
            "last_reported": dice.time(),
            "last_updated": dice.time(),
            "context": {"id": dice.hex(26).upper(), "parent_id": None, "user_id": None},
        }

    return Listing([state(number) for number in range(160)], ("entity_id",), ("state",))


def mail(dice: Dice) -> Listing:
    """Messages of Gmail: their headers come in another order each, and some more than once."""

    def message() -> Value:
        name = dice.choice(PEOPLE)
        relays = [{"name": "Received", "value": f"by 2002:a05 id {dice.hex(16)}"} for _ in range(3)]
        headers = [
            *relays[: dice.randint(1, 3)],
            {"name": "From", "value": f"{name} <{name.split()[0].lower()}@example.org>"},
            {"name": "Subject", "value": dice.choice(["", "Re: "]) + dice.title()},
            {"name": "Date", "value": f"Fri, {dice.randint(1, 28)} Nov 2026 09:10:00 +0100"},
            *({"name": f"X-{dice.hex(6)}", "value": dice.hex(9)} for _ in range(4)),
        ]
        dice.shuffle(headers)
        payload = {"partId": "", "mimeType": "text/plain", "headers": headers, "body": {"size": 0}}
        return {
            "id": f"19a{dice.hex(13)}",
            "threadId": f"19a{dice.hex(13)}",
            "labelIds": ["INBOX", f"CATEGORY_{dice.choice(['PERSONAL', 'UPDATES'])}"],
            "snippet": dice.words(12, 30),
            "historyId": str(dice.randint(1_000_000, 9_999_999)),
            "internalDate": str(dice.randint(1_764_000_000_000, 1_765_000_000_000)),
            "payload": payload,
            "sizeEstimate": dice.randint(2_000, 90_000),
        }

    subject = "payload.headers[?name=='Subject'].value | [0]"
    return Listing({"messages": [message() for _ in range(70)]}, ("snippet", subject), (subject,))


def containers(dice: Dice) -> Listing:
    """Containers as Docker inspects them: many members are paths, one is the name."""

    def container(number: int) -> Value:
        key = dice.hex(64)
        folder = f"/var/lib/docker/containers/{key}"
        return {
            "Id": key,
            "Created": dice.time(),
            "Path": "/bin/sh",
            "State": {
                "Status": dice.choice(["running", "exited"]),
                "Pid": dice.randint(1, 9999),
                "ExitCode": dice.choice([0, 0, 137]),
                "StartedAt": dice.time(),
            },
            "Image": f"sha256:{dice.hex(64)}",
            "ResolvConfPath": f"{folder}/resolv.conf",
            "LogPath": f"{folder}/{key}-json.log",
            "Name": f"/{dice.choice(WORDS)}_{dice.choice(WORDS)}_{number}",
            "Config": {"Hostname": key[:12], "Image": f"shop/{dice.choice(WORDS)}:1.{number}"},
        }

    return Listing({"items": [*map(container, range(50))]}, ("Name",), ("State.Status",))


def jobs(dice: Dice) -> Listing:
    def job() -> Value:
        who = dice.choice(PEOPLE)
        return {
            "id": dice.randint(10**9, 10**10),
            "status": dice.choice(("success", "failed", "skipped")),
            "name": f"{dice.choice(WORDS)} {dice.randint(1, 30)}/30",
            "duration": dice.randint(1, 9000) / 10,
            "commit": {"id": dice.hex(40), "title": dice.title(), "author_name": who},
            "user": {"id": dice.randint(1, 90), "username": who.split()[0].lower(), "name": who},
            "runner": {"id": dice.randint(1, 90), "description": dice.words(2, 3)},
            "web_url": f"https://git.example.org/acme/shop/-/jobs/{dice.randint(1, 10**9)}",
        }

    return Listing([job() for _ in range(50)], ("name",), ("status", "user.username"))


def issues(dice: Dice) -> Listing:
    """Issues of GitHub: each thing has an id for the other API, which is no name of an issue."""
    url = "https://api.github.com/repos/acme/shop"

    def node(kind: str, name: str) -> Value:
        number = dice.randint(1, 10**9)
        return {"id": number, "node_id": f"{kind}_kwDO{dice.hex(10)}", "url": f"{url}/{name}"}

    def issue(number: int) -> Value:
        words, who = dice.sample(("bug", "docs", "ui", "perf"), k=number % 3), dice.choice(PEOPLE)
        labels = [node("LA", each) | {"name": each, "default": True} for each in words]
        return node("I", f"issues/{number}") | {
            "number": number,
            "title": dice.title(),
            "user": node("U", "user") | {"login": who.split()[0].lower(), "site_admin": False},
            "labels": labels,
            "state": "open" if number % 4 else "closed",
            "comments": dice.randint(0, 20),
            "created_at": dice.time(),
            "updated_at": dice.time(),
            "body": dice.words(10, 60),
        }

    return Listing([issue(n) for n in range(1, 51)], ("title",), ("state", "labels[].name"))


def bigquery(dice: Dice) -> Listing:
    def row(number: int) -> Value:
        cells = (str(number), dice.choice(("Oslo", "Riga")), dice.title(), str(number * 7919))
        return {"f": [{"v": each} for each in cells]}

    names = ("ID", "CITY", "TITLE", "TRIPS")
    schema = {"fields": [{"name": each, "type": "STRING", "mode": "NULLABLE"} for each in names]}
    return Listing(
        {"schema": schema, "rows": [row(n) for n in range(200)]}, ("TITLE", "f[].v"), ("CITY",)
    )


def payments(dice: Dice) -> Listing:
    def payment(number: int) -> Value:
        return {
            "id": f"pi_3Mtw{dice.hex(20)}",
            "object": "payment_intent",
            "amount": dice.randint(100, 9_000),
            "created": 1_764_400_000 + number,
            "customer": f"cus_Na{dice.hex(12)}",
            "latest_charge": f"ch_3Mtw{dice.hex(20)}",
            "description": None,
            "status": dice.choice(["succeeded", "canceled", "requires_payment_method"]),
        }

    return Listing({"data": [payment(n) for n in range(80)]}, ("id",), ("status", "amount"))


def vulnerabilities(dice: Dice) -> Listing:
    def vulnerability(number: int) -> Value:
        package = dice.choice(WORDS)
        return {
            "VulnerabilityID": f"CVE-2024-{dice.randint(1000, 60_000)}",
            "PkgID": f"{package}@1.{number}",
            "PkgName": package,
            "PkgIdentifier": {"PURL": f"pkg:deb/debian/{package}@1.{number}?arch=amd64"},
            "InstalledVersion": f"1.{number}.2-1",
            "Severity": dice.choice(["LOW", "MEDIUM", "HIGH", "CRITICAL"]),
            "Description": dice.words(40, 90),
        }

    targets = [
        {"Target": target, "Vulnerabilities": [vulnerability(n) for n in range(count)]}
        for target, count in (("debian", 90), ("package-lock.json", 9))
    ]
    return Listing({"Results": targets}, ("VulnerabilityID",), ("Severity", "PkgName"))


def volumes(dice: Dice) -> Listing:
    def volume(_number: int) -> Value:
        return {
            "VolumeType": "gp3",
            "VolumeId": f"vol-0{dice.hex(16)}",
            "Size": dice.choice([8, 20, 100]),
            "SnapshotId": f"snap-0{dice.hex(16)}",
            "State": dice.choice(["in-use", "available"]),
            "CreateTime": dice.time(),
            "Attachments": [{"InstanceId": f"i-0{dice.hex(16)}", "Device": "/dev/xvda"}],
        }

    return Listing({"Volumes": [volume(n) for n in range(90)]}, ("VolumeId",), ("State", "Size"))


LISTS: dict[str, Callable[[Dice], Listing]] = {
    each.__name__: each
    for each in (
        git_log, prometheus, notion, jira, note_search, slack, har, sarif, frames, terraform,
        code_search, outline, alerts, fhir, elastic, adf, home, mail, containers, jobs,
        bigquery, issues, payments, vulnerabilities, volumes,
    )
}  # fmt: skip


def listing(name: str) -> Listing:
    return LISTS[name](Dice(name))


def columns_of(document: Value, path: str = "") -> list[tuple[str, list[str]]]:
    """Return the columns of each list that a look shows, with the path of the list."""
    columns: list[tuple[str, list[str]]] = []
    if isinstance(document, dict):
        if "plain_text" in document:
            return [(path, ["plain_text"])]
        if isinstance(document.get("columns"), list) and "rows" in document:
            same = [*document.get("same", {}), *document.get("counts", {})]
            return [(path, [*document["columns"], *same])]
        for name, value in document.items():
            columns += columns_of(value, name)
    elif isinstance(document, list) and any(isinstance(each, dict) for each in document):
        for each in document[:3]:
            columns += columns_of(each, path)
        columns.append((path, [*members(document[0])] if isinstance(document[0], dict) else []))
    return columns


def members(row: Value, path: str = "") -> list[str]:
    names = []
    for name, value in row.items():
        inner = f"{path}.{name}" if path else name
        if isinstance(value, dict):
            names += members(value, inner)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            names += members(value[0], f"{inner}[]")
        else:
            names.append(inner)
    return names


def shows(document: Value, name: str) -> bool:
    """Return True if a look has the column `name`, after `list:` in the list of that name."""
    array, _, column = name.rpartition(":")
    return any(
        each == column or each.endswith(f".{column.lstrip('.')}") or each.endswith(column)
        for path, columns in columns_of(document)
        if array in ("", path)
        for each in columns
    )


def size(value: Value) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
