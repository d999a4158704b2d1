"""Checks of whole answers: asked for by a view, within the client's limit, by an author's hint."""

import json
from collections.abc import Iterator

from mcp_abridge.ruleset.clients import client_for

from tests.clients.cases import Bench, Case, Check, ends, plain, shows, untimed
from tests.clients.model import Step
from tests.clients.programs import Client, Talk
from tests.clients.server import sized

ROOMY = 30_000  # bytes of an answer to clients that show no more than the budget


def views(bench: Bench) -> Iterator[Check]:
    """All of an answer comes in one call, as far as the client shows it; the list names it."""
    size = most_bytes(bench.name)
    calls = [(tool, {"query": f"{size or ROOMY}"}) for tool in ("page", "page_rows")]
    plan = [Step(tool, own | more) for tool, own in calls for more in ({}, {"view": "all"})]
    looks = [(tool, {**own, "view": "help"}) for tool, own in reversed(calls)]
    plan += [Step("small", {"view": "kept"}), *(Step(*call) for call in looks)]
    talk = bench.talk("views", plan)
    yield uncut(talk, len(plan))
    if size:
        yield whole(talk, 1, "page", size)
    if size and client_for(bench.name).shows in ("structured", "text"):
        yield whole(talk, 3, "page_rows", size)
    if not bench.client.stateless:
        rows = json.loads(talk.results[4]["content"][0]["text"])["view"]
        same = [(row["tool"], row["arguments"]) for row in rows] == looks
        yield Check("the list has a call for each answer", "" if same else f"it has {rows}")
        problem = "" if talk.ran == ["page", "page_rows"] else f"the server ran {talk.ran}"
        yield Check("no view ran a tool", problem)


def limit(bench: Bench) -> Iterator[Check]:
    """With `--budget client`, an answer at the limit is whole, and one byte more is cut."""
    if (size := most_bytes(bench.name)) and client_for(bench.name).limit_bytes:
        plan = [Step("page", {"query": f"{each}"}) for each in (size, size + 1)]
        talk = bench.talk("limit", plan, options=("--budget", "client"))
        yield uncut(talk, len(plan))
        yield whole(talk, 0, "page", size)
        shorter = len(talk.visible[1].text) < size // 2
        problem = "" if shorter else ends(talk.visible[1].text)
        yield Check("an answer of one byte more is cut by the proxy", problem)


def author(bench: Bench) -> Iterator[Check]:
    """An answer that its author wants to be whole is as the client alone would show it."""
    if client_for(bench.name).author_bytes:
        short, long = ({"query": f"{size}"} for size in (most_bytes(bench.name), 150_000))
        plan = [Step("hinted", each) for each in (short, long, {**long, "view": "all"})]
        talk = bench.talk("author", plan)
        direct = bench.talk("author direct", plan[:2], direct=True)
        yield uncut(talk, len(plan))
        for one, other in zip(direct.visible, talk.visible[::2], strict=True):
            problem = "" if untimed(one) == untimed(other) else f"{one} became {other}"
            yield Check("it is as without the proxy", problem)


def most_bytes(name: str) -> int:
    """Return the most bytes of a text that the client shows in one answer; 0 if that is no more."""
    client = client_for(name)
    more = client.whole_bytes > client.budget_bytes and client.shows not in ("blocks", "result")
    return client.whole_bytes if more else 0


def uncut(talk: Talk, count: int) -> Check:
    pairs = zip(talk.visible, talk.results, strict=False)
    cut = [ends(visible.text) for visible, result in pairs if not shows(visible.text, result)]
    problem = "; ".join(cut) if len(talk.visible) == count else talk.stderr
    return Check(f"no answer of {count} is cut by the client", problem)


def whole(talk: Talk, number: int, tool: str, size: int) -> Check:
    """Check that the model reads all that the tool said, in a spelling of JSON."""
    result, text = sized(tool, size), talk.visible[number].text
    content = result.get("structuredContent")
    expected = result["content"][0]["text"] if content is None else json.dumps(content)
    problem = "" if plain(expected) in plain(text) else ends(text)
    return Check(f"all of {tool} is read", problem)


def whole_cases(client: Client) -> list[Case]:
    return [] if client.whole or client.starts else [views, limit, author]
