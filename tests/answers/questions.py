"""The questions, with answers that are computed from what the server returns."""

from collections import Counter
from functools import partial
from typing import Any

from tests.answers import structured as s
from tests.answers.question import Alone, Question, Row, question


def _text(value: str | float) -> str:
    """Return a text, or a number as JSON spells it."""
    return value if isinstance(value, str) else repr(value)


_ask = partial(question, "structured")


def _rows(rows: list[dict[str, Any]], *names: str, **more: Any) -> tuple[Row, ...]:
    """Return these members of all rows; `key` in `more` names the member that joins a row."""
    key = more.pop("key", None)
    return tuple(
        Row(tuple(_text(row[name]) for name in names), key=_text(row[key]) if key else "", **more)
        for row in rows
    )


def _one(rows: list[dict[str, Any]], **members: Any) -> dict[str, Any]:
    [row] = [row for row in rows if members.items() <= row.items()]
    return row


def issues() -> list[Question]:
    crash = _one(s.issues(), number=4123)
    labels = {
        str(issue["number"]): tuple(label["name"] for label in issue["labels"])
        for issue in s.issues()
    }
    ids = {str(issue["number"]): str(issue["id"]) for issue in s.issues()}
    count = str(sum("security" in names for names in labels.values()))
    busiest = max(s.issues(), key=lambda issue: issue["comments"])
    return [
        _ask(
            "list_issues/crash",
            "Which issue is about a crash on start, and who opened it?",
            f"4123 by {crash['user']['login']}",
            Row(("4123", crash["user"]["login"]), ("Crash on start",)),
            views="[?contains(title, 'Crash on start')].[number, user.login]",
            pattern="Crash on start",
            word="crash",
        ),
        _ask(
            "list_issues/security",
            "How many issues have the label security?",
            count,
            Alone((count,)),
            tuple(Row((number, *names), key=ids[number]) for number, names in labels.items()),
            views="length([?contains(labels[].name, 'security')])",
            pattern='"name": "security"',
            word="security",
        ),
        _ask(
            "list_issues/workaround",
            "Which workaround does issue 4129 name?",
            "set retry.limit to 17",
            Row(("retry.limit to 17",), ("4129",)),
            views="[?number==`4129`].body | [0] | grep('Workaround')",
            pattern="Workaround",
            word="workaround",
        ),
        _ask(
            "list_issues/comments",
            "Which issue has the most comments?",
            str(busiest["number"]),
            Alone((str(busiest["number"]), str(busiest["comments"]))),
            _rows(s.issues(), "number", "comments", key="id"),
            views="max_by(@, &comments).[number, comments]",
            pattern='"comments": ',
            ranks="comments",
        ),
    ]


def orders() -> list[Question]:
    order = _one(s.orders(), number="SO-001734")
    refunds = str(sum(row["status"] == "refunded" for row in s.orders()))
    best = max(s.orders(), key=lambda row: float(row["total"]))
    total, email = _text(order["total"]), order["customer"]["email"]
    return [
        _ask(
            "list_orders/one",
            "Who placed order SO-001734, and over which total?",
            f"{email}, {total}",
            Row((total, email), ("SO-001734",), key=str(order["id"])),
            views="items[?number=='SO-001734'].[customer.email, total]",
            word="SO-001734",
        ),
        _ask(
            "list_orders/refunded",
            "How many orders are refunded?",
            refunds,
            Alone((refunds,)),
            _rows(s.orders(), "number", "status", key="id"),
            views="length(items[?status=='refunded'])",
            pattern='"status":"refunded"',
            word="refunded",
            counts="status",
        ),
        _ask(
            "list_orders/largest",
            "Which order has the highest total?",
            best["number"],
            Alone((best["number"], _text(best["total"]))),
            _rows(s.orders(), "number", "total", key="id"),
            views="max_by(items, &total).[number, total]",
            pattern='"total":',
            ranks="total",
        ),
    ]


def lint() -> list[Question]:
    (rule, count), *_ = Counter(row["rule"] for row in s.lint()).most_common()
    errors = [row for row in s.lint() if row["severity"] == "error"]
    row = s.lint()[405]
    file, line = row["file"], str(row["line"])
    return [
        _ask(
            "lint/most",
            "Which rule has the most messages, and how many?",
            f"{rule}: {count}",
            Alone((rule, str(count))),
            _rows(s.lint(), "file", "line", "rule"),
            views="count_by(@, &rule)",
            pattern='"rule":',
            counts="rule",
        ),
        _ask(
            "lint/line",
            f"What is the message for {file}, line {line}?",
            row["message"],
            Row((row["message"],), (file, line)),
            views=f"[?file=='{file}' && line==`{line}`].message",
            word=file,
        ),
        _ask(
            "lint/errors",
            "Which messages are errors? (file and line of each)",
            ", ".join(f"{row['file']}:{row['line']}" for row in errors),
            _rows(errors, "file", "line", given=("error",)),
            views="[?severity=='error'].[file, line]",
            pattern='"severity":"error"',
            word="error",
        ),
    ]


def metrics() -> list[Question]:
    cpu, memory, _ = (series["points"] for series in s.metrics()["series"])
    time, peak = max(cpu, key=lambda point: float(point[1]))
    return [
        _ask(
            "get_metrics/peak",
            "When was the load of the CPU highest, and how high?",
            f"{peak} at {time}",
            Alone((time, _text(peak))),
            tuple(Row((time, _text(value))) for time, value in cpu),
            views="max_by(series[?metric=='cpu'] | [0].points, &[1])",
            pattern='"cpu"',
            word="cpu",
            ranks="[1]",
        ),
        _ask(
            "get_metrics/minute",
            "How much memory was used at 13:37?",
            f"{memory[817][1]} MiB",
            Row((_text(memory[817][1]),), (memory[817][0],)),
            views=f"series[?metric=='memory'] | [0].points[?[0]=='{memory[817][0]}']",
            pattern=memory[817][0],
            word="13:37",
        ),
    ]


def graph() -> list[Question]:
    targets = [
        edge["target"]
        for edge in s.graph()["edges"]
        if (edge["source"], edge["relation"]) == ("n1158", "depends_on")
    ]
    owner = _one(s.graph()["nodes"], label="ledger-writer")["owner"]
    return [
        _ask(
            "get_graph/dependencies",
            "On which nodes does n1158 (billing-gateway) depend?",
            ", ".join(targets),
            tuple(Row((target,), ("n1158", "depends_on")) for target in targets),
            views="edges[?source=='n1158' && relation=='depends_on'].target",
            pattern='"source":"n1158"',
            word="n1158",
        ),
        _ask(
            "get_graph/owner",
            "Who owns the node ledger-writer?",
            owner,
            Row((owner,), ("ledger-writer",)),
            views="nodes[?label=='ledger-writer'].owner",
            word="ledger-writer",
        ),
    ]


def packages() -> list[Question]:
    found = s.packages()["packages"]
    name = list(found)[1418]
    gpl = [name for name, each in found.items() if each["license"] == "GPL-3.0"]
    largest = max(found, key=lambda name: int(found[name]["size"]))
    return [
        _ask(
            "list_packages/version",
            f"Which version of {name} is locked, and under which license?",
            f"{found[name]['version']}, {found[name]['license']}",
            Row((found[name]["version"], found[name]["license"]), (name,)),
            views=f'packages."{name}".[version, license]',
            pattern=f'"{name}"',
            word=name,
        ),
        _ask(
            "list_packages/gpl",
            "How many packages are under GPL-3.0?",
            str(len(gpl)),
            Alone((str(len(gpl)),)),
            tuple(Row((name, each["license"])) for name, each in found.items()),
            views="length(values(packages)[?license=='GPL-3.0'])",
            word="GPL-3.0",
            counts="license",
        ),
        _ask(
            "list_packages/largest",
            "How large is the largest package?",
            str(found[largest]["size"]),
            Alone((str(found[largest]["size"]),)),
            tuple(Row((name, str(each["size"]))) for name, each in found.items()),
            views="max(values(packages)[].size)",
            pattern='"size": ',
            ranks="size",
        ),
    ]


def tree() -> list[Question]:
    part = "children[?children[?name=='zone_transfer.py']].name"
    return [
        _ask(
            "directory_tree/place",
            "In which folder is zone_transfer.py?",
            "module17/part175",
            Row(("module17", "part175"), ("zone_transfer.py",)),
            views=f"[].{{module: name, part: {part}}} | [?part]",
            pattern="zone_transfer",
            word="zone_transfer.py",
        ),
        _ask(
            "directory_tree/modules",
            "How many folders are in module09?",
            "8",
            tuple(Row((f"part09{part}",)) for part in range(8)),
            views="[?name=='module09'].children[].name",
            pattern="part09",
            word="module09",
        ),
    ]


def query() -> list[Question]:
    rows = s.orders()[:300]
    total = _text(_one(rows, number="SO-000217")["total"])
    paid = str(sum(row["status"] == "paid" for row in rows))
    return [
        _ask(
            "read_query/total",
            "What is the total of SO-000217?",
            total,
            Row((total,), ("SO-000217",), near=150),
            views=("[?number=='SO-000217'].total", "grep('SO-000217')"),
            word="SO-000217",
        ),
        _ask(
            "read_query/paid",
            "How many of the orders are paid?",
            paid,
            Alone((paid,)),
            _rows(rows, "number", "status", near=60),
            views=("length([?status=='paid'])", "grep('.status.: .paid.')"),
            pattern="'status': 'paid'",
            word="paid",
            counts="status",
        ),
    ]


def pods() -> list[Question]:
    failing = s.pods()[53]["metadata"]["name"]
    name, node = s.pods()[22]["metadata"]["name"], s.pods()[22]["spec"]["nodeName"]
    waits = "status.containerStatuses[?state.waiting.reason=='CrashLoopBackOff']"
    return [
        _ask(
            "get_pods/failing",
            "Which pod is in CrashLoopBackOff?",
            failing,
            Row((failing,), ("CrashLoopBackOff",), near=1800),
            views=(f"items[?{waits}].metadata.name", "grep('CrashLoopBackOff', 50)"),
            word="CrashLoopBackOff",
        ),
        _ask(
            "get_pods/node",
            f"On which node does {name} run?",
            node,
            Row((node,), (name,), near=700),
            views=(f"items[?metadata.name=='{name}'].spec.nodeName", f"grep('{name}', 20)"),
            word=name,
        ),
    ]


def customers() -> list[Question]:
    row = s.customers()[911]
    large = [row for row in s.customers() if row[2:4] == ("PT", "enterprise")]
    count = str(len(large))
    return [
        _ask(
            "export_customers/plan",
            f"Which plan does {row[1]} have, and how much did they spend?",
            f"{row[3]}, {row[5]}",
            Row((row[3], row[5]), (row[1],)),
            views=(f"[?email=='{row[1]}'].[plan, spend]", f"grep('{row[1]}')"),
            word=row[1],
        ),
        _ask(
            "export_customers/portugal",
            "How many customers in PT have the plan enterprise?",
            count,
            Alone((count,)),
            tuple(Row((row[0], row[2], row[3])) for row in s.customers()),
            views=("length([?country=='PT' && plan=='enterprise'])", "grep(',PT,enterprise,')"),
            pattern=",PT,enterprise,",
            word="enterprise",
        ),
    ]


def events() -> list[Question]:
    failure = s.events()[703]
    denials = [row for row in s.events() if row["type"] == "login.denied"]
    return [
        _ask(
            "read_events/payment",
            "Which user's payment failed, and with which code?",
            f"{failure['user']}: {failure['code']}",
            Row((failure["user"], failure["code"]), ("payment.failed",)),
            views=("[?type=='payment.failed'].[user, code]", "grep('payment.failed')"),
            pattern="payment.failed",
            word="payment",
        ),
        _ask(
            "read_events/denied",
            "How many logins were denied?",
            str(len(denials)),
            Alone((str(len(denials)),)),
            _rows(s.events(), "time", "type"),
            views=("length([?type=='login.denied'])", "grep('login.denied')"),
            pattern="login.denied",
            word="denied",
            counts="type",
        ),
    ]


def hits() -> list[Question]:
    host = s.hits()[141]["_source"]["host"]
    row = s.hits()[120]
    level, time = row["_source"]["level"], row["_source"]["@timestamp"]
    return [
        _ask(
            "search_logs/quota",
            "Which host logged that a disk quota was exceeded?",
            host,
            Row((host,), ("quota",), near=250),
            views="[?_source && contains(_source.message, 'quota')]._source.host",
            pattern="Disk quota",
            word="quota",
        ),
        _ask(
            "search_logs/level",
            f"Of which level and time is the hit {row['_id']}?",
            f"{level}, {time}",
            Row((level, time), (row["_id"],), near=250),
            views=f"[?_id=='{row['_id']}']._source.[level, \"@timestamp\"]",
            word=row["_id"],
        ),
    ]


def fetch() -> list[Question]:
    order = _one(s.orders(), number="SO-000655")
    status, total = order["status"], _text(order["total"])
    return [
        _ask(
            "fetch/status",
            "Which status and total has SO-000655?",
            f"{status}, {total}",
            Row((status, total), ("SO-000655",)),
            views=("items[?number=='SO-000655'].[status, total]", "grep('SO-000655')"),
            word="SO-000655",
        ),
    ]


def attachments() -> list[Question]:
    contract = s.attachments()["attachments"][2]["sha256"]
    return [
        _ask(
            "get_attachments/contract",
            "What is the SHA-256 of contract-signed.pdf?",
            contract,
            Row((contract,), ("contract-signed.pdf",)),
            views="attachments[?name=='contract-signed.pdf'].sha256",
            pattern="contract-signed",
            word="contract-signed.pdf",
        ),
        _ask(
            "get_attachments/retention",
            "Until when is the message kept?",
            "2033-11-30",
            Row(("2033-11-30",)),
            views="retention",
            pattern="retention",
            word="kept",
        ),
    ]


def sync() -> list[Question]:
    return [
        _ask(
            "get_sync_status/failed",
            "How many documents failed, and what was the last error?",
            "13; 413 from the indexer for file 108505",
            (Row(("13",), ("contentFailed",)), Row(("413 from the indexer for file 108505",))),
            views="progress.[{contentFailed: counters.contentFailed}, lastError]",
            pattern="contentFailed|lastError",
            word="failed",
        ),
        _ask(
            "get_sync_status/found",
            "How many files were discovered?",
            "21357",
            Row(("21357",)),
            tuple(Row((file,)) for file in s.sync()["progress"]["discoveredFileIds"]),
            views="length(progress.discoveredFileIds)",
            pattern="discoveredFileIds",
            word="discovered",
        ),
    ]


def pages() -> list[Question]:
    keys = _one(s.pages(), title="Rotating the signing keys")
    quorum = s.pages()[88]
    return [
        _ask(
            "search_pages/keys",
            "What is the URL of the page on rotating the signing keys?",
            keys["url"],
            Row((keys["url"],), ("signing keys",), key=str(keys["id"])),
            views="result[?contains(title, 'signing keys')].url",
            word="signing keys",
        ),
        _ask(
            "search_pages/quorum",
            f"How many officers are the quorum for a restore, by the page {quorum['title']}?",
            "four of seven",
            Row(("four of seven officers",)),
            views="result[?contains(content, 'quorum')] | [0].content | grep('quorum')",
            word="quorum",
        ),
    ]


def structured() -> list[Question]:
    return [
        *(*issues(), *orders(), *lint(), *metrics(), *graph(), *packages(), *tree()),
        *(*query(), *pods(), *customers(), *events(), *hits(), *fetch(), *attachments()),
        *(*sync(), *pages()),
    ]
