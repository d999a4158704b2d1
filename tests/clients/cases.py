"""Checks of each client, on its conversations directly and with the wrapper."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from mcp_abridge.cli.transcripts import ENDING, answers, files
from mcp_abridge.cli.weigh import weigh
from mcp_abridge.document.message import APPS
from mcp_abridge.ruleset.clients import client_for

from tests.clients.model import Step, VisibleResult, unescaped
from tests.clients.programs import Client, Talk, converse
from tests.clients.server import RESULTS, Json
from tests.wrapped import Tee

SMALL = ("marked", "small", "array", "number", "fail", "fail_both", "picture", "blocks", "embedded")
LONG = ("rows_text", "rows_both", "lines")
SHORT_PLAN = [Step(tool) for tool in SMALL]
COUNT, MANY, QUERY = 732, 1_028, "311850"  # rows of `rows_text`, and of `page_rows` of that size
LONG_PLAN = [
    step for tool in LONG for step in (Step(tool, {"query": "a"}), Step(tool, further=True))
]


class Check(NamedTuple):
    """One thing that must hold, and why it does not if `problem` is not empty."""

    title: str
    problem: str = ""


class Bench:
    """The conversations of one client; each takes place if a case needs it."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.hello: Json = {}

    def talk(
        self,
        name: str,
        plan: list[Step],
        *,
        direct: bool = False,
        options: Sequence[str] = (),
        env: Mapping[str, str] = MappingProxyType({}),
        words: Sequence[str] = (),
    ) -> Talk:
        folder = self.folder / name
        return converse(
            self.client, plan, folder, direct=direct, options=options, env=env, words=words
        )

    @cached_property
    def direct(self) -> Talk:
        return self.talk("direct", [*SHORT_PLAN, Step("rows_text")], direct=True)

    @cached_property
    def direct_both(self) -> Talk:
        # Alone, since some clients summarize a conversation that is too long for a model.
        return self.talk("direct both", [Step("rows_both")], direct=True)

    @cached_property
    def wrapped(self) -> Talk:
        return self.talk("wrapped", [*SHORT_PLAN, Step("bare"), *LONG_PLAN])

    @property
    def name(self) -> str:
        hello = self.hello if self.client.whole or self.client.starts else self.wrapped.hello
        return str(hello.get("clientInfo", {}).get("name", ""))

    def small(self) -> Iterator[Check]:
        """Small results, errors and pictures are shown as they are without the proxy."""
        for number, tool in enumerate(SMALL):
            direct, wrapped = self.direct.visible[number], self.wrapped.visible[number]
            same = shows(wrapped.text, RESULTS[tool]) or tool == "embedded"
            if tool not in self.client.refuses:
                same = untimed(direct) == untimed(wrapped)
            problem = f"{direct} became {wrapped}"
            yield Check(f"{tool} is shown as it is", "" if same else problem)

    def bare(self) -> Iterator[Check]:
        """An answer without content is shown to clients that show content alone."""
        if {"text", "block"} & {*client_for(self.name).needs}:
            text = self.wrapped.visible[len(SMALL)].text
            problem = "" if shows(text, RESULTS["bare"]) else f"the model reads {text!r}"
            yield Check("an answer without content is shown", problem)

    def long(self) -> Iterator[Check]:
        """No result of the proxy is cut by the client, and its notice's call works."""
        for number in range(len(SMALL) + 1, len(self.wrapped.visible)):
            step = [*SHORT_PLAN, Step("bare"), *LONG_PLAN][number]
            text, result = self.wrapped.visible[number].text, self.wrapped.results[number]
            title = f"{'the rest of ' if step.further else ''}{step.tool} is shown whole"
            yield Check(title, "" if shows(text, result) else ends(text))
            most = client_for(self.name).budget_bytes * (2 if self.client.doubles else 1)
            problem = "" if len(text) < most * 1.1 else f"{len(text)} of {most}"
            yield Check(f"{title}, and within the budget", problem)
            if step.further:
                yield Check(f"{step.tool}'s notice names a call that works", self._further(number))

    def _further(self, number: int) -> str:
        result = self.wrapped.results[number]
        tool = LONG_PLAN[number - len(SMALL) - 1].tool
        if result.get("isError"):
            return ends(json.dumps(result))
        if plain(self.wrapped.visible[number].text) in plain(self.wrapped.visible[number - 1].text):
            return "the second answer has nothing new"
        count = self.wrapped.ran.count(tool)
        return "" if count == 1 or self.client.stateless else f"the server ran it {count} times"

    def once(self) -> Iterator[Check]:
        """A first call with a view works, and one in a second session runs the tool no more."""
        talk = self.talk("once", [Step("add_row", {"view": "[0].title"})] * 2)
        first, second = (*(each.text for each in talk.visible), talk.stderr, talk.stderr)[:2]
        problem = "" if "Record number 0" in first else ends(first)
        yield Check("a first call with a view is answered", problem)
        problem = "" if talk.ran == ["add_row"] else f"{talk.ran} ran: {ends(second)}"
        yield Check("a tool with side effects ran once", problem)

    def widget(self) -> Iterator[Check]:
        """An answer for a widget is whole if the client says that it shows widgets (MCP Apps)."""
        talk = self.talk("widget", [Step("chart")])
        requests = Tee(self.folder / "widget" / "client.log").requests()
        shows_widgets = any(APPS in json.dumps(each) for each in requests)
        whole = talk.results == [RESULTS["chart"]]
        problem = f"{talk.visible}; {talk.stderr}" if whole != shows_widgets else ""
        yield Check("a chart has a budget, unless the client shows its widget", problem)

    def tokens(self) -> Iterator[Check]:
        """No result is cut by a client whose user has lowered its limit."""
        if variable := client_for(self.name).tokens_env:
            plan = [Step("rows_both"), Step("rows_both", further=True)]
            talk = self.talk("tokens", plan, env={variable: "2000"})
            whole = [*map(shows, (each.text for each in talk.visible), talk.results)]
            problem = "" if whole == [True, True] else f"{talk.visible}; {talk.stderr}"
            yield Check(f"{variable} is heeded", problem)

    def script(self) -> Iterator[Check]:
        """A script computes with the whole result."""
        plan = [Step("rows_text", {"sum": True}), Step("page_rows", {"query": QUERY, "sum": True})]
        totals = [f"{count * (count - 1) / 4:g}" for count in (COUNT, MANY)]
        options = self.client.script_options
        direct = self.talk("script direct", plan, direct=True)
        wrapped = self.talk("script wrapped", plan, options=options)
        self.hello = wrapped.hello
        for total, one, other in zip(totals, direct.visible, wrapped.visible, strict=False):
            same = untimed(one) == untimed(other) and total in other.text
            yield Check(f"a script's sum is {total}", "" if same else f"{one}, then {other}")
        yield Check("scripts ran", "" if len(wrapped.visible) == 2 else wrapped.stderr)

    def by_variable(self) -> Iterator[Check]:
        """Where the client's mode for scripts does not run, its variable is heeded all the same."""
        if variable := self.client.variable:
            talk = self.talk("variable", [Step("rows_both")], env={variable: "1"})
            whole = talk.results == [RESULTS["rows_both"]]
            yield Check(f"{variable}: nothing is cut", "" if whole else talk.stderr)

    def transcript(self) -> Iterator[Check]:
        """`weigh` reads in the client's transcript what the client sent to the model."""
        for way, talk in (("direct", self.direct), ("wrapped", self.wrapped)):
            folder = self.folder / way / "home" / self.client.transcripts
            unread: list[object] = []
            paths = files([str(folder)], 0, ENDING, unread.append)
            weights = weigh(each for path in paths for each in answers(path, unread.append))
            read = sum(weight.read for weight in weights)
            shown_bytes = sum(len(text_of(result).encode()) for result in talk.visible)
            # Codex cuts a stored answer once more to send it, and its note counts other tokens;
            # Claude Code takes the last line break off if a reminder of its own follows.
            spare = sum(
                8 * ("tokens truncated" in result.text) + ("<system-reminder>" in result.text)
                for result in talk.visible
            )
            problem = f"{read} bytes were weighed, and {shown_bytes} sent"
            problem = "" if shown_bytes > 0 and abs(read - shown_bytes) <= spare else problem
            yield Check(f"weigh finds the bytes of the {way} conversation", problem)

    def ending(self) -> Iterator[Check]:
        expected = len(SMALL) + 1 + len(LONG_PLAN)
        for talk, count in ((self.direct, len(SMALL) + 1), (self.wrapped, expected)):
            problem = f"{len(talk.visible)} of {count} results; {talk.stderr}"
            yield Check("the conversation ended", "" if len(talk.visible) == count else problem)


Case = Callable[[Bench], Iterator[Check]]


def cases(client: Client) -> list[Case]:
    if client.starts:
        return []
    if client.whole:
        return [Bench.script, *[Bench.transcript] * bool(client.transcripts)]
    every: list[Case] = [Bench.ending, Bench.small, Bench.bare, Bench.long]
    every += [Bench.widget, Bench.tokens, Bench.by_variable, *[Bench.script] * client.sums]
    every += [Bench.transcript] * bool(client.transcripts)
    return [*every, Bench.once] if client.stateless else every


def plain(text: str) -> str:
    """Return a text without white space and escapes, its numbers as JavaScript spells them."""
    bare = "".join(unescaped(text).replace("\\", "").split())
    return re.sub(r"(\d)\.0(?=[,}\]])", r"\1", bare)


def shows(text: str, result: Json) -> bool:
    """Tell whether a text has one copy of a result, all of it, in any spelling of JSON."""
    structured = result.get("structuredContent")
    with suppress(ValueError):
        if structured is not None and json.loads(text) == structured:
            return True  # Mistral Vibe sorts the members
    copies = [[json.dumps(structured)]] if structured is not None else []
    copies.append([each["text"] for each in result["content"] if each["type"] == "text"])
    text = plain(text)
    return any(copy and all(plain(part) in text for part in copy) for copy in copies)


def text_of(result: VisibleResult) -> str:
    """Return the text of a result without the words of Claude Code and Codex around it."""
    head = r"^(Script [^\n]*\n)?Wall time:? [^\n]*\nOutput:\n?"
    text = re.sub(head, "", result.text).removeprefix("\n")
    return re.sub(r"\n\n<system-reminder>.*", "", text, flags=re.DOTALL)


def untimed(result: VisibleResult) -> VisibleResult:
    """Return a result without times, and the places of a session's files."""
    noise = r"Wall time:? [\d.]+ seconds|\S*/home/\S*"
    return result._replace(text=re.sub(noise, "", result.text))


def ends(text: str) -> str:
    return text if len(text) < 800 else f"{text[:400]} … {text[-400:]}"
