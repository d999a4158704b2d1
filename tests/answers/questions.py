"""The questions, with answers that are computed from what the server returns."""

from collections import Counter
from typing import Any

from tests.answers import structured as s
from tests.answers.question import Alone, Atom, Group, Question, Row


def _number(value: float) -> str:
    """Spell a number as JSON does."""
    return repr(value)


class _About:
    """The questions about one tool."""

    def __init__(self, group: Group, tool: str) -> None:
        self.group, self.tool = group, tool

    def ask(
        self,
        name: str,
        text: str,
        answer: str,
        *evidence: Atom | tuple[Atom, ...],
        views: str | tuple[str, ...],
        pattern: str,
        word: str = "",
        counts: str = "",
        ranks: str = "",
    ) -> Question:
        return Question(
            f"{self.tool}/{name}",
            self.group,
            self.tool,
            text,
            answer,
            tuple(each if isinstance(each, tuple) else (each,) for each in evidence),
            (views,) if isinstance(views, str) else views,
            word,
            pattern,
            counts,
            ranks,
        )


def _one(rows: list[dict[str, Any]], **members: Any) -> dict[str, Any]:
    [row] = [row for row in rows if members.items() <= row.items()]
    return row


def issues() -> list[Question]:
    ask = _About("structured", "list_issues").ask
    crash = _one(s.issues(), number=4123)
    labels = {
        str(issue["number"]): tuple(label["name"] for label in issue["labels"])
        for issue in s.issues()
    }
    ids = {str(issue["number"]): str(issue["id"]) for issue in s.issues()}
    count = str(sum("security" in names for names in labels.values()))
    busiest = max(s.issues(), key=lambda issue: issue["comments"])
    return [
        ask(
            "crash",
            "Which issue is about a crash on start, and who opened it?",
            f"4123 by {crash['user']['login']}",
            Row(("4123", crash["user"]["login"]), ("Crash on start",)),
            views="[?contains(title, 'Crash on start')].[number, user.login]",
            pattern="Crash on start",
            word="crash",
        ),
        ask(
            "security",
            "How many issues have the label security?",
            count,
            Alone((count,)),
            tuple(Row((number, *names), key=ids[number]) for number, names in labels.items()),
            views="length([?contains(labels[].name, 'security')])",
            pattern='"name": "security"',
            word="security",
        ),
        ask(
            "workaround",
            "Which workaround does issue 4129 name?",
            "set retry.limit to 17",
            Row(("retry.limit to 17",), ("4129",)),
            views="[?number==`4129`].body | [0] | grep('Workaround')",
            pattern="Workaround",
            word="workaround",
        ),
        ask(
            "comments",
            "Which issue has the most comments?",
            str(busiest["number"]),
            Alone((str(busiest["number"]), str(busiest["comments"]))),
            tuple(
                Row((str(row["number"]), str(row["comments"])), key=str(row["id"]))
                for row in s.issues()
            ),
            views="max_by(@, &comments).[number, comments]",
            pattern='"comments": ',
            ranks="comments",
        ),
    ]


def orders() -> list[Question]:
    ask = _About("structured", "list_orders").ask
    order = _one(s.orders(), number="SO-001734")
    refunds = str(sum(row["status"] == "refunded" for row in s.orders()))
    best = max(s.orders(), key=lambda row: float(row["total"]))
    total, email = _number(order["total"]), order["customer"]["email"]
    return [
        ask(
            "one",
            "Who placed order SO-001734, and over which total?",
            f"{email}, {total}",
            Row((total, email), ("SO-001734",), key=str(order["id"])),
            views="items[?number=='SO-001734'].[customer.email, total]",
            pattern="SO-001734",
            word="SO-001734",
        ),
        ask(
            "refunded",
            "How many orders are refunded?",
            refunds,
            Alone((refunds,)),
            tuple(Row((row["number"], row["status"]), key=str(row["id"])) for row in s.orders()),
            views="length(items[?status=='refunded'])",
            pattern='"status":"refunded"',
            word="refunded",
            counts="status",
        ),
        ask(
            "largest",
            "Which order has the highest total?",
            best["number"],
            Alone((best["number"], _number(best["total"]))),
            tuple(
                Row((row["number"], _number(row["total"])), key=str(row["id"]))
                for row in s.orders()
            ),
            views="max_by(items, &total).[number, total]",
            pattern='"total":',
            ranks="total",
        ),
    ]


def lint() -> list[Question]:
    ask = _About("structured", "lint").ask
    (rule, count), *_ = Counter(row["rule"] for row in s.lint()).most_common()
    errors = [row for row in s.lint() if row["severity"] == "error"]
    row = s.lint()[405]
    file, line = row["file"], str(row["line"])
    return [
        ask(
            "most",
            "Which rule has the most messages, and how many?",
            f"{rule}: {count}",
            Alone((rule, str(count))),
            tuple(Row((row["file"], str(row["line"]), row["rule"])) for row in s.lint()),
            views="count_by(@, &rule)",
            pattern='"rule":',
            counts="rule",
        ),
        ask(
            "line",
            f"What is the message for {file}, line {line}?",
            row["message"],
            Row((row["message"],), (file, line)),
            views=f"[?file=='{file}' && line==`{line}`].message",
            pattern=file,
            word=file,
        ),
        ask(
            "errors",
            "Which messages are errors? (file and line of each)",
            ", ".join(f"{row['file']}:{row['line']}" for row in errors),
            tuple(Row((row["file"], str(row["line"])), ("error",)) for row in errors),
            views="[?severity=='error'].[file, line]",
            pattern='"severity":"error"',
            word="error",
        ),
    ]


def metrics() -> list[Question]:
    ask = _About("structured", "get_metrics").ask
    cpu, memory, _ = (series["points"] for series in s.metrics()["series"])
    time, peak = max(cpu, key=lambda point: float(point[1]))
    return [
        ask(
            "peak",
            "When was the load of the CPU highest, and how high?",
            f"{peak} at {time}",
            Alone((time, _number(peak))),
            tuple(Row((time, _number(value))) for time, value in cpu),
            views="max_by(series[?metric=='cpu'] | [0].points, &[1])",
            pattern='"cpu"',
            word="cpu",
            ranks="[1]",
        ),
        ask(
            "minute",
            "How much memory was used at 13:37?",
            f"{memory[817][1]} MiB",
            Row((_number(memory[817][1]),), (memory[817][0],)),
            views=f"series[?metric=='memory'] | [0].points[?[0]=='{memory[817][0]}']",
            pattern=memory[817][0],
            word="13:37",
        ),
    ]


def graph() -> list[Question]:
    ask = _About("structured", "get_graph").ask
    targets = [
        edge["target"]
        for edge in s.graph()["edges"]
        if (edge["source"], edge["relation"]) == ("n1158", "depends_on")
    ]
    owner = _one(s.graph()["nodes"], label="ledger-writer")["owner"]
    return [
        ask(
            "dependencies",
            "On which nodes does n1158 (billing-gateway) depend?",
            ", ".join(targets),
            tuple(Row((target,), ("n1158", "depends_on")) for target in targets),
            views="edges[?source=='n1158' && relation=='depends_on'].target",
            pattern='"source":"n1158"',
            word="n1158",
        ),
        ask(
            "owner",
            "Who owns the node ledger-writer?",
            owner,
            Row((owner,), ("ledger-writer",)),
            views="nodes[?label=='ledger-writer'].owner",
            pattern="ledger-writer",
            word="ledger-writer",
        ),
    ]


def packages() -> list[Question]:
    ask = _About("structured", "list_packages").ask
    found = s.packages()["packages"]
    name = list(found)[1418]
    gpl = [name for name, each in found.items() if each["license"] == "GPL-3.0"]
    largest = max(found, key=lambda name: int(found[name]["size"]))
    return [
        ask(
            "version",
            f"Which version of {name} is locked, and under which license?",
            f"{found[name]['version']}, {found[name]['license']}",
            Row((found[name]["version"], found[name]["license"]), (name,)),
            views=f'packages."{name}".[version, license]',
            pattern=f'"{name}"',
            word=name,
        ),
        ask(
            "gpl",
            "How many packages are under GPL-3.0?",
            str(len(gpl)),
            Alone((str(len(gpl)),)),
            tuple(Row((name, each["license"])) for name, each in found.items()),
            views="length(values(packages)[?license=='GPL-3.0'])",
            pattern="GPL-3.0",
            word="GPL-3.0",
            counts="license",
        ),
        ask(
            "largest",
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
    ask = _About("structured", "directory_tree").ask
    part = "children[?children[?name=='zone_transfer.py']].name"
    return [
        ask(
            "place",
            "In which folder is zone_transfer.py?",
            "module17/part175",
            Row(("module17", "part175"), ("zone_transfer.py",)),
            views=f"[].{{module: name, part: {part}}} | [?part]",
            pattern="zone_transfer",
            word="zone_transfer.py",
        ),
        ask(
            "modules",
            "How many folders are in module09?",
            "8",
            tuple(Row((f"part09{part}",)) for part in range(8)),
            views="[?name=='module09'].children[].name",
            pattern="part09",
            word="module09",
        ),
    ]


def query() -> list[Question]:
    ask = _About("structured", "read_query").ask
    rows = s.orders()[:300]
    total = _number(_one(rows, number="SO-000217")["total"])
    paid = str(sum(row["status"] == "paid" for row in rows))
    return [
        ask(
            "total",
            "What is the total of SO-000217?",
            total,
            Row((total,), ("SO-000217",), near=150),
            views=("[?number=='SO-000217'].total", "grep('SO-000217')"),
            pattern="SO-000217",
            word="SO-000217",
        ),
        ask(
            "paid",
            "How many of the orders are paid?",
            paid,
            Alone((paid,)),
            tuple(Row((row["number"], row["status"]), near=60) for row in rows),
            views=("length([?status=='paid'])", "grep('.status.: .paid.')"),
            pattern="'status': 'paid'",
            word="paid",
            counts="status",
        ),
    ]


def pods() -> list[Question]:
    ask = _About("structured", "get_pods").ask
    failing = s.pods()[53]["metadata"]["name"]
    name, node = s.pods()[22]["metadata"]["name"], s.pods()[22]["spec"]["nodeName"]
    waits = "status.containerStatuses[?state.waiting.reason=='CrashLoopBackOff']"
    return [
        ask(
            "failing",
            "Which pod is in CrashLoopBackOff?",
            failing,
            Row((failing,), ("CrashLoopBackOff",), near=1800),
            views=(f"items[?{waits}].metadata.name", "grep('CrashLoopBackOff', 50)"),
            pattern="CrashLoopBackOff",
            word="CrashLoopBackOff",
        ),
        ask(
            "node",
            f"On which node does {name} run?",
            node,
            Row((node,), (name,), near=700),
            views=(f"items[?metadata.name=='{name}'].spec.nodeName", f"grep('{name}', 20)"),
            pattern=name,
            word=name,
        ),
    ]


def customers() -> list[Question]:
    ask = _About("structured", "export_customers").ask
    row = s.customers()[911]
    large = [row for row in s.customers() if row[2:4] == ("PT", "enterprise")]
    count = str(len(large))
    return [
        ask(
            "plan",
            f"Which plan does {row[1]} have, and how much did they spend?",
            f"{row[3]}, {row[5]}",
            Row((row[3], row[5]), (row[1],)),
            views=(f"[?email=='{row[1]}'].[plan, spend]", f"grep('{row[1]}')"),
            pattern=row[1],
            word=row[1],
        ),
        ask(
            "portugal",
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
    ask = _About("structured", "read_events").ask
    failure = s.events()[703]
    denials = [row for row in s.events() if row["type"] == "login.denied"]
    return [
        ask(
            "payment",
            "Which user's payment failed, and with which code?",
            f"{failure['user']}: {failure['code']}",
            Row((failure["user"], failure["code"]), ("payment.failed",)),
            views=("[?type=='payment.failed'].[user, code]", "grep('payment.failed')"),
            pattern="payment.failed",
            word="payment",
        ),
        ask(
            "denied",
            "How many logins were denied?",
            str(len(denials)),
            Alone((str(len(denials)),)),
            tuple(Row((row["time"], row["type"])) for row in s.events()),
            views=("length([?type=='login.denied'])", "grep('login.denied')"),
            pattern="login.denied",
            word="denied",
            counts="type",
        ),
    ]


def hits() -> list[Question]:
    ask = _About("structured", "search_logs").ask
    host = s.hits()[141]["_source"]["host"]
    row = s.hits()[120]
    level, time = row["_source"]["level"], row["_source"]["@timestamp"]
    return [
        ask(
            "quota",
            "Which host logged that a disk quota was exceeded?",
            host,
            Row((host,), ("quota",), near=250),
            views="[?_source && contains(_source.message, 'quota')]._source.host",
            pattern="Disk quota",
            word="quota",
        ),
        ask(
            "level",
            f"Of which level and time is the hit {row['_id']}?",
            f"{level}, {time}",
            Row((level, time), (row["_id"],), near=250),
            views=f"[?_id=='{row['_id']}']._source.[level, \"@timestamp\"]",
            pattern=row["_id"],
            word=row["_id"],
        ),
    ]


def fetch() -> list[Question]:
    ask = _About("structured", "fetch").ask
    order = _one(s.orders(), number="SO-000655")
    status, total = order["status"], _number(order["total"])
    return [
        ask(
            "status",
            "Which status and total has SO-000655?",
            f"{status}, {total}",
            Row((status, total), ("SO-000655",)),
            views=("items[?number=='SO-000655'].[status, total]", "grep('SO-000655')"),
            pattern="SO-000655",
            word="SO-000655",
        ),
    ]


def attachments() -> list[Question]:
    ask = _About("structured", "get_attachments").ask
    contract = s.attachments()["attachments"][2]["sha256"]
    return [
        ask(
            "contract",
            "What is the SHA-256 of contract-signed.pdf?",
            contract,
            Row((contract,), ("contract-signed.pdf",)),
            views="attachments[?name=='contract-signed.pdf'].sha256",
            pattern="contract-signed",
            word="contract-signed.pdf",
        ),
        ask(
            "retention",
            "Until when is the message kept?",
            "2033-11-30",
            Row(("2033-11-30",)),
            views="retention",
            pattern="retention",
            word="kept",
        ),
    ]


def sync() -> list[Question]:
    ask = _About("structured", "get_sync_status").ask
    return [
        ask(
            "failed",
            "How many documents failed, and what was the last error?",
            "13; 413 from the indexer for file 108505",
            (Row(("13",), ("contentFailed",)), Row(("413 from the indexer for file 108505",))),
            views="progress.[{contentFailed: counters.contentFailed}, lastError]",
            pattern="contentFailed|lastError",
            word="failed",
        ),
        ask(
            "found",
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
    ask = _About("structured", "search_pages").ask
    keys = _one(s.pages(), title="Rotating the signing keys")
    quorum = s.pages()[88]
    return [
        ask(
            "keys",
            "What is the URL of the page on rotating the signing keys?",
            keys["url"],
            Row((keys["url"],), ("signing keys",), key=str(keys["id"])),
            views="result[?contains(title, 'signing keys')].url",
            pattern="signing keys",
            word="signing keys",
        ),
        ask(
            "quorum",
            f"How many officers are the quorum for a restore, by the page {quorum['title']}?",
            "four of seven",
            Row(("four of seven officers",)),
            views="result[?contains(content, 'quorum')] | [0].content | grep('quorum')",
            pattern="quorum",
            word="quorum",
        ),
    ]


def structured() -> list[Question]:
    return [
        *(*issues(), *orders(), *lint(), *metrics(), *graph(), *packages(), *tree()),
        *(*query(), *pods(), *customers(), *events(), *hits(), *fetch(), *attachments()),
        *(*sync(), *pages()),
    ]
