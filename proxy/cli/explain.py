"""`mcp-abridge explain`: show a recorded response after each step of its rule."""

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from proxy.cli import takes_rules
from proxy.cli.account import explained
from proxy.errors import AbridgeError, RuleErrors
from proxy.ruleset.rule import RuleSet
from proxy.ruleset.selection import load
from proxy.testing.exchange import recorded, text_result
from proxy.testing.play import Replay

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    takes_rules(parser)
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a recorded exchange {request, response}, a response, a result, or any JSON",
    )
    parser.add_argument(
        "--tool", metavar="NAME", help="the tool that was called, in place of the recorded one"
    )
    parser.add_argument(
        "--arguments",
        metavar="JSON",
        type=_object,
        help="the arguments of the call, in place of the recorded ones",
    )
    parser.add_argument(
        "--found",
        metavar="JSON|TEXT",
        help="what the server answers where a guard asks it something first; else it answers "
        "nothing",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Explain the response. Returns 2 if the rules or the recording cannot be used."""
    try:
        files = load(arguments.rules, allow_python=arguments.allow_python)
        with open(arguments.file, "rb") as held:
            exchange = recorded(held.read(), arguments.tool, arguments.arguments)
        answer = None if arguments.found is None else text_result(arguments.found)
        account = explained(Replay(RuleSet(files), exchange, query_result=answer), arguments.file)
    except RuleErrors as errors:
        for problem in errors.problems:
            print(problem, file=sys.stderr)
        return 2
    except OSError as error:
        return _refuse(f"{arguments.file}: {error.strerror or error}")
    except AbridgeError as error:
        return _refuse(f"{arguments.file}: {error}")
    if arguments.json:
        print(json.dumps(account, indent=2, ensure_ascii=False, default=repr))
    else:
        _print(account)
    return 0


def _refuse(message: str) -> int:
    print(f"mcp-abridge explain: {message}", file=sys.stderr)
    return 2


def _print(found: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=False)
    if not console.is_terminal:
        # The reader of a pipe expects whole lines, not lines wrapped at 80 columns.
        console = Console(highlight=False, markup=False, width=max(console.width, 160))
    console.print(f"{found['tool']}({_json(found['arguments'])})")
    if found["upstream"] not in (None, found["arguments"]):
        console.print(f"the server sees: {_json(found['upstream'])}")
    _print_rules(console, found)
    if found["guard"] is not None:
        _print_guard(console, found)
    _print_document(console, found)
    if found["steps"]:
        _print_steps(console, found["steps"])
    _print_told(console, found)
    _print_shown(console, found["shown"])
    _print_clients(console, found["clients"])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)


def _print_rules(console: "Console", found: dict[str, Any]) -> None:
    others = 0
    for each in found["rules"]:
        if each["applies"]:
            console.print(f"rule {each['name']} ({each['place']}) applies")
        elif each["reason"].startswith("it is for "):
            others += 1
        else:
            console.print(f"rule {each['name']} ({each['place']}) does not: {each['reason']}")
    if others:
        console.print(f"{others} rule{'s' * (others != 1)} for other tools")
    if found["rule"] is None:
        console.print("no rule applies: the response passes as it came")


def _print_guard(console: "Console", found: dict[str, Any]) -> None:
    guard = found["guard"]
    name = f"guard {guard['name']}"
    asks, answer = guard["asks"], guard["found"]
    if asks is not None:
        _say(console, f"{name} asks {asks['tool']}({_json(asks['arguments'])})")
    if answer is not None and "document" in answer:
        _say(console, f"{name} finds: {_json(answer['document'])}")
    elif answer is not None:
        _say(console, f"{name} finds nothing: {answer['failure']} (--found gives an answer)")
    onward = "the call goes on" if found["upstream"] is not None else "the call is withheld"
    decisions = {
        "forward": "lets the call go on",
        "answer": "answers the call itself",
        "failed": f"fails: {onward}",
    }
    _say(console, f"{name} {decisions[guard['decision']]}")
    if guard["facts"]:
        _say(console, f"{name} tells the steps: {_json(guard['facts'])}")


def _print_document(console: "Console", found: dict[str, Any]) -> None:
    document = found["document"]
    if document is not None:
        console.print(f"document: {document['kind']}, {' and '.join(document['copies'])}")
    elif found["rule"] is not None and found["upstream"] is not None:
        console.print("document: none that a transform could work on")
    console.print(f"outcome: {found['outcome']}")


def _print_steps(console: "Console", steps: list[dict[str, Any]]) -> None:
    from rich.text import Text

    table = _table(("after the step", "on the wire", "visible", "paths that matched nothing"))
    for step in steps:
        missing = ", ".join(step["missing"])
        table.add_row(_named(step), f"{step['wire']:,}", f"{step['visible']:,}", Text(missing))
    console.print(table)
    # Steps after a mismatch repeat its message.
    first = {step["said"]: _named(step) for step in reversed(steps) if step["said"] is not None}
    for said, name in reversed(first.items()):
        _say(console, f"at {name}: {said}")


def _named(step: dict[str, Any]) -> str:
    name: str = step["step"]
    return f"errors: {name}" if step["key"] == "errors" else name


def _print_told(console: "Console", found: dict[str, Any]) -> None:
    """Print the distinct warnings and log lines, unmatched paths, notices and vocabularies."""
    told = [step["said"] for step in found["steps"]]
    for warned in found["warnings"]:
        _say(console, f"warning ({warned['kind']}): {warned['said']}")
        told.append(warned["said"])
    for line in found["log"]:
        if not any(said and line.endswith(said) for said in told):
            _say(console, f"log: {line}")
    for path in found["missing"]:
        _say(console, f"matched nothing: {path}")
    for notice in found["notices"]:
        _say(console, f"notice beside the document: {_json(notice)}")
    for path, words in found["vocabulary"].items():
        _say(console, f"words of {path}: {', '.join(words)}")


def _print_shown(console: "Console", shown: dict[str, dict[str, Any]]) -> None:
    names = {
        "structured": "clients that show structuredContent where there is some",
        "text": "clients that show text",
    }
    if shown["structured"] == shown["text"]:
        names = {"text": "every client"}
    for kind, name in names.items():
        console.print(f"\nwhat the model reads in {name}, {shown[kind]['bytes']:,} bytes:")
        for line in shown[kind]["lines"]:
            _say(console, f"  {line}")


def _say(console: "Console", line: str) -> None:
    """Print an untrusted line, unwrapped and without characters that a terminal interprets."""
    console.print(_printable(line), soft_wrap=True)


def _printable(line: str) -> str:
    """Replace the characters of a line that a terminal would interpret."""
    return "".join(
        each if each.isprintable() or each == "\t" else "\N{REPLACEMENT CHARACTER}" for each in line
    )


def _print_clients(console: "Console", clients: list[dict[str, Any]]) -> None:
    over = [each for each in clients if each["over_before"] or each["over_after"]]
    if not over:
        console.print("\nno known client's limit is overrun, before or after")
        return
    table = _table(("client", "limit", "before", "after", "what is over the limit"))
    for each in over:
        sizes = (f"{each[when]:,}" + " over" * each[f"over_{when}"] for when in ("before", "after"))
        table.add_row(each["client"], f"{each['limit']:,}", *sizes, each["beyond"])
    console.print(table)


def _table(titles: tuple[str, ...]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
    for title in titles:
        number = title in ("on the wire", "visible", "limit", "before", "after")
        table.add_column(title, justify="right" if number else "left", overflow="fold")
    return table
