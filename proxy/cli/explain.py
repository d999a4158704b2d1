"""`mcp-abridge explain`: one recorded response through its rule, step by step."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from proxy.cli import takes_rules
from proxy.clients import CLIENTS
from proxy.document import Document, plain
from proxy.errors import AbridgeError, RuleErrors
from proxy.pipeline import Job, shape
from proxy.result import Copy, Reading
from proxy.rule import RuleSet
from proxy.ruleset import load
from proxy.testing import answer as answers
from proxy.testing.answer import Answer
from proxy.testing.choice import choices
from proxy.testing.exchange import recorded
from proxy.testing.play import Play
from proxy.transforms.base import Call

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_MOST_LINES = 8
_WIDEST = 160


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
    """Explain the response; 2 where the rules or the recording cannot be used."""
    try:
        files = load(arguments.rules)
        with open(arguments.file, "rb") as held:
            exchange = recorded(held.read(), arguments.tool, arguments.arguments)
        found = explained(Play(RuleSet(files), exchange), arguments.file)
    except RuleErrors as errors:
        for problem in errors.problems:
            print(problem, file=sys.stderr)
        return 2
    except OSError as error:
        return _refuse(f"{arguments.file}: {error.strerror or error}")
    except AbridgeError as error:
        return _refuse(f"{arguments.file}: {error}")
    if arguments.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _print(found)
    return 0


def _refuse(message: str) -> int:
    print(f"mcp-abridge explain: {message}", file=sys.stderr)
    return 2


def explained(play: Play, name: str = "") -> dict[str, Any]:
    """Return all there is to say of a call and its answer; the keys stay the same."""
    exchange, rule, before = play.exchange, play.applied, play.before
    job, outcome = play.shaped[-1] if play.shaped else (None, None)
    reading = None if rule is None else play.reading(rule)
    told = _Told()
    return {
        "file": name,
        "tool": exchange.tool,
        "arguments": exchange.arguments,
        "upstream": play.seen[0] if play.seen else None,
        "rule": None if rule is None else rule.name,
        "rules": [
            {
                "name": each.rule.name,
                "place": each.rule.place,
                "applies": each.applies,
                "reason": each.reason,
            }
            for each in choices(play.rules, exchange.tool, exchange.arguments)
        ],
        "document": _document(reading),
        "outcome": _outcome(play) if outcome is None else outcome.word,
        "steps": [] if job is None else list(_steps(_at_once(play), told)),
        "missing": list(dict.fromkeys(told.missing)),
        "notices": told.notices,
        "log": list(dict.fromkeys(play.log)),
        "before": _sizes(before),
        "after": _sizes(play.answer),
        "shown": _shown(play.answer),
        "clients": list(_clients(before, play.answer)),
    }


def _outcome(play: Play) -> str:
    if not play.seen:
        return "refused"
    return "error" if play.before.failed else "untouched"


def _document(reading: Reading | None) -> dict[str, Any] | None:
    if reading is None:
        return None
    copies = reading.frame.copies
    kind = "text" if reading.document.textual else "JSON"
    return {"kind": kind, "copies": [_place(copy) for copy in copies]}


def _place(copy: Copy) -> str:
    """Say in words where a copy of the document stands."""
    if copy.where == "structured":
        return "structuredContent"
    if copy.where == "member":
        return f"the member {copy.member!r} of structuredContent"
    numbers = ", ".join(str(at + 1) for at in copy.blocks)
    if len(copy.blocks) > 1:
        return f"content blocks {numbers}, an element each"
    return f"content block {numbers}{', as a JSON string' if copy.quoted else ''}"


class _Told:
    """What the steps said of the call: paths that matched nothing, and notices."""

    def __init__(self) -> None:
        self.missing: list[str] = []
        self.notices: list[Any] = []

    def observe(self, step: str, document: Document, call: Call) -> None:
        """Take what `step` has to say beside what earlier ones said."""
        self.missing = list(call.missing)
        self.notices = [{each.name: plain(each.value)} for each in call.notices]


def _at_once(play: Play) -> Job:
    """Return the job that makes the answer from the whole response, also that of a later page."""
    first, last = play.shaped[0][0], play.shaped[-1][0]
    return replace(first, arguments=last.arguments, names=last.names, view=last.view)


def _steps(job: Job, told: _Told) -> Iterator[dict[str, Any]]:
    """Yield what the response weighs as received, and after each step, were it the last one."""
    rule = job.rule
    assert job.raw is not None
    yield {"step": "received", **_sizes(answers.read(job.raw)), "missing": [], "said": None}
    earlier: list[str] = []
    for count, step in enumerate(rule.pipeline, 1):
        part = replace(rule, pipeline=rule.pipeline[:count], mode="active")
        told.missing = []
        outcome = shape(replace(job, rule=part), told.observe)
        yield {
            "step": step.name,
            **_sizes(answers.read(outcome.raw)),
            "missing": told.missing[len(earlier) :],
            "said": outcome.said,
        }
        earlier = told.missing


def _sizes(answer: Answer) -> dict[str, int | None]:
    return {
        "wire": len(answer.line),
        "visible": answer.shown.most,
        "structured": answer.shown.structured,
        "text": answer.shown.text,
    }


def _shown(answer: Answer) -> dict[str, Any]:
    """Return what the model reads where structuredContent is shown, and where the text is."""
    structured = answer.said if answer.structured is None else bytes(answer.structured).decode()
    sizes = answer.shown
    return {
        "structured": {"bytes": sizes.to("structured"), "lines": _first_lines(structured)},
        "text": {"bytes": sizes.to("text"), "lines": _first_lines(answer.said)},
    }


def _first_lines(said: str) -> list[str]:
    lines = [
        line if len(line) <= _WIDEST else f"{line[:_WIDEST]}… (+{len(line) - _WIDEST} chars)"
        for line in said.split("\n")
    ]
    if len(lines) > _MOST_LINES:
        return [*lines[:_MOST_LINES], f"… (+{len(lines) - _MOST_LINES} lines)"]
    return lines


def _clients(before: Answer, after: Answer) -> Iterator[dict[str, Any]]:
    """Yield every client with a known limit, and whether the answer overruns it."""
    for client in CLIENTS:
        limit = client.limit_bytes
        if limit is not None:
            was, is_ = before.shown.to(client.shows), after.shown.to(client.shows)
            yield {
                "client": client.name,
                "limit": limit,
                "beyond": client.beyond,
                "before": was,
                "after": is_,
                "over_before": was > limit,
                "over_after": is_ > limit,
            }


def _print(found: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=False)
    if not console.is_terminal:
        # Nobody wraps a pipe at 80 columns: what reads it wants whole lines.
        console = Console(highlight=False, markup=False, width=max(console.width, 160))
    asked = json.dumps(found["arguments"], ensure_ascii=False)
    console.print(f"{found['tool']}({asked})")
    if found["upstream"] not in (None, found["arguments"]):
        console.print(f"the server sees: {json.dumps(found['upstream'], ensure_ascii=False)}")
    _print_rules(console, found)
    _print_document(console, found)
    if found["steps"]:
        _print_steps(console, found["steps"])
    told = {step["said"] for step in found["steps"]}
    for line in found["log"]:
        if line not in told:
            console.print(f"log: {line}")
    for path in found["missing"]:
        console.print(f"matched nothing: {path}")
    for notice in found["notices"]:
        console.print(f"notice beside the document: {json.dumps(notice)}")
    _print_shown(console, found["shown"])
    _print_clients(console, found["clients"])


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


def _print_document(console: "Console", found: dict[str, Any]) -> None:
    document = found["document"]
    if document is not None:
        console.print(f"document: {document['kind']}, {' and '.join(document['copies'])}")
    elif found["rule"] is not None:
        console.print("document: none that a transform could work on")
    console.print(f"outcome: {found['outcome']}")


def _print_steps(console: "Console", steps: list[dict[str, Any]]) -> None:
    from rich.text import Text

    table = _table(("after the step", "on the wire", "visible", "paths that matched nothing"))
    for step in steps:
        missing = ", ".join(step["missing"])
        table.add_row(step["step"], f"{step['wire']:,}", f"{step['visible']:,}", Text(missing))
    console.print(table)
    # Steps behind one that does not fit say the same again.
    first = {step["said"]: step["step"] for step in reversed(steps) if step["said"] is not None}
    for said, name in reversed(first.items()):
        console.print(f"at {name}: {said}")


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
            console.print(f"  {_printable(line)}", soft_wrap=True)


def _printable(line: str) -> str:
    """Take out of a response what a terminal would obey."""
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
