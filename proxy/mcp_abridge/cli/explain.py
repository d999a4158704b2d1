"""`mcp-abridge explain`: show an answer after each step of its rule, or after the budget's."""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from mcp_abridge.cli import options, takes_rules
from mcp_abridge.cli.terminal import (
    console,
    content,
    count_text,
    json_text,
    print_lines,
    put,
    refuse,
    show,
    table,
)
from mcp_abridge.document.message import READ
from mcp_abridge.document.tree import loads
from mcp_abridge.errors import AbridgeError, DocumentError
from mcp_abridge.query.fragment import end_for
from mcp_abridge.replay.account import account_of
from mcp_abridge.replay.exchanges import as_json, recorded, text_result
from mcp_abridge.replay.play import Replay
from mcp_abridge.replay.recordings import RecordedSession

_OF_RULES = [re.compile(line, re.MULTILINE) for line in (rb"^version: *1\s", rb"^rules:")]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    takes_rules(parser, "*")
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a recorded exchange {request, response}, a response, a result, any JSON or text; "
        "- or none is stdin",
    )
    parser.add_argument("--tool", metavar="NAME", help="the tool, in place of the recorded one")
    parser.add_argument("--resource", metavar="URI", help="a read of this resource, no tool's call")
    parser.add_argument(
        "--client", metavar="NAME", help="the client, as in its clientInfo: codex-mcp-client"
    )
    parser.add_argument("--view", metavar="EXPR", help="call again with this view")
    parser.add_argument(
        "--show", action="store_true", help="print what the model gets, and only it"
    )
    options.add(parser, options.by_name("budget"))
    parser.add_argument(
        "--arguments",
        metavar="JSON",
        type=_object,
        help="the arguments of the call, in place of the recorded ones",
    )
    parser.add_argument(
        "--found",
        metavar="JSON|TEXT",
        help="the server's answer to the query of a guard (default: none)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--html", metavar="FILE", help="write a page of the answer and what is shown; - prints it"
    )


def _object(text: str) -> dict[str, Any]:
    try:
        value = loads(text.encode(errors="replace"))
    except DocumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Explain the response. Returns 2 for a recording of no use; raises RuleErrors or OSError."""
    # The last word is the file: argparse gives all words to the rules.
    name = arguments.file or (arguments.rules.pop() if arguments.rules else "-")
    if _is_rule_file(name):
        arguments.rules, name = [*(arguments.rules or ()), name], "-"
    selection = options.selection(arguments, os.environ)
    raw = b"" if name == "-" and sys.stdin.isatty() else content(name)
    if name == "-" and not raw:
        return refuse("explain", "name a file with an answer, or pipe one")
    try:
        recording = as_json(raw)
        # Without rules, the budget treats the answers of all tools alike.
        any_tool = None if arguments.rules else "tool"
        if arguments.resource is not None:
            arguments.tool, arguments.arguments = READ, {"uri": arguments.resource}
        exchange = recorded(recording, arguments.tool, arguments.arguments, any_tool)
        if arguments.view is not None:
            own = {**exchange.arguments, "view": arguments.view}
            if exchange.tool == READ:
                uri = exchange.arguments["uri"]
                own = {"uri": uri + end_for(uri, arguments.view)}
            exchange = recorded(recording, exchange.tool, own)
        result = None if arguments.found is None else text_result(arguments.found)

        if arguments.html is not None:
            from mcp_abridge.cli.page import calls, write

            session = RecordedSession(name, None, arguments.client, {}, [(name, exchange)])
            single = calls.RecordedCalls([session], arguments.client, lambda _: None, result)
            write("explain", arguments.html, calls.page(single, selection, lambda _: None))
            return 0

        def replay_for(client: str | None) -> Replay:
            return Replay(selection(None, client), exchange, query_result=result, client=client)

        replay = replay_for(arguments.client)
        if arguments.show:
            put("".join(f"{text}\n" for text in replay.texts[1]))
            return 0
        account = {"file": name, **account_of(replay, replay_for)}
    except AbridgeError as error:
        return refuse("explain", f"{name}: {error}")
    show(arguments, account, _print)
    return 0


def _is_rule_file(name: str) -> bool:
    if not name.endswith((".yaml", ".yml")):
        return False
    raw = content(name)
    return all(each.search(raw) for each in _OF_RULES)


def _print(account: dict[str, Any]) -> None:
    print_lines(*_opening(account))
    rows = table("after the step", ">on the wire", ">visible", "paths that matched nothing")
    remarks: dict[str, str] = {}  # steps after a mismatch repeat its message
    for step in account["steps"]:
        title = f"errors: {step['step']}" if step["key"] == "errors" else step["step"]
        sizes = (f"{step[key]:,}" for key in ("wire", "visible"))
        rows.add_row(title, *sizes, ", ".join(step["missing"]))
        remarks.setdefault(step["said"] or "", title)
    if account["steps"]:
        console().print(rows)
    at_steps = (f"at {title}: {message}" for message, title in remarks.items() if message)
    print_lines(*at_steps, *_findings(account), *_in_models(account))
    rows = table("client", ">limit", ">before", ">after", "what is over the limit")
    keys = ("before", "after")
    for client in account["clients"]:
        if any(client[f"over_{key}"] for key in keys):
            sizes = (f"{client[key]:,}{' over' * client[f'over_{key}']}" for key in keys)
            rows.add_row(client["client"], f"{client['limit']:,}", *sizes, client["beyond"])
    if rows.rows:
        console().print(rows)
    else:
        print_lines("", "no known client's limit is overrun, before or after")


def _opening(account: dict[str, Any]) -> Iterator[str]:
    yield f"{account['tool']}({json_text(account['arguments'])})"
    if account["upstream"] not in (None, account["arguments"]):
        yield f"the server sees: {json_text(account['upstream'])}"
    others = 0
    for rule in account["rules"]:
        if rule["applies"] and rule["place"]:
            yield f"rule {rule['name']} ({rule['place']}) applies"
        elif rule["applies"]:
            yield "no rule applies, so that the budget does"
        elif rule["reason"].startswith("it is for "):
            others += 1
        else:
            yield f"rule {rule['name']} ({rule['place']}) does not: {rule['reason']}"
    if others:
        yield f"{count_text(others, 'rule')} for other tools"
    if account["rule"] is None:
        yield "no rule applies: the response passes as it came"
    for key, value in (account["guard"] or {}).items():
        if value and key != "name":
            yield f"guard {account['guard']['name']}, {key}: {json_text(value)}"
    document = account["document"]
    if document is not None:
        yield f"document: {document['kind']}, {' and '.join(document['copies'])}"
    elif account["rule"] is not None and account["upstream"] is not None:
        yield "document: none that a transform could work on"
    yield f"outcome: {account['outcome']}"


def _findings(account: dict[str, Any]) -> Iterator[str]:
    for warning in account["warnings"]:
        yield f"warning ({warning['kind']}): {warning['said']}"
    messages = [each["said"] for each in (*account["steps"], *account["warnings"])]
    for line in account["log"]:
        if not any(message and line.endswith(message) for message in messages):
            yield f"log: {line}"
    for notice in account["notices"]:
        yield f"notice beside the document: {json_text(notice)}"
    for name in account["drawings"]:
        yield f"{name}: made smaller on its way to a client, if the extra `images` is installed"
    for path, words in account["vocabulary"].items():
        yield f"words of {path}: {', '.join(words)}"


def _in_models(account: dict[str, Any]) -> Iterator[str]:
    texts = account["shown"]
    structured = "clients that show structuredContent where there is some"
    names = {"structured": structured, "text": "clients that show text"}
    if texts["structured"] == texts["text"]:
        single = account["after"]["structured"] is None
        names = {"text": "every client" if single else "clients that show one copy"}
    for kind, name in names.items():
        size = f"{texts[kind]['bytes']:,} bytes, about {texts[kind]['tokens']:,} tokens"
        yield ""
        yield f"what the model reads in {name}, {size}:"
        yield from (f"  {line}" for line in texts[kind]["lines"])
