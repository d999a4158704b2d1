"""Checks of whole answers: asked for by a view, within the client's limit, by an author's hint."""

import json
from collections.abc import Iterator

from mcp_abridge.ruleset.clients import client_for

from tests.clients.cases import Bench, Case, Check, ends, plain, shows, untimed
from tests.clients.model import Step
from tests.clients.programs import Client, Talk
from tests.clients.server import PAGE, RESULTS


def views(bench: Bench) -> Iterator[Check]:
    """All of an answer comes in one call, as far as the client shows it; the list names it."""
    tools = ("page", "page_rows")
    plan = [Step(tool, more) for tool in tools for more in ({}, {"view": "all"})]
    plan += [Step("small", {"view": "kept"}), Step("page_rows", {"view": "help"})]
    talk = bench.talk("views", plan)
    yield uncut(talk, len(plan))
    if shows_pages(bench.name):
        for number, tool in ((1, "page"), (3, "page_rows")):
            yield whole(talk, number, tool)
    if not bench.client.stateless:
        rows = json.loads(talk.results[4]["content"][0]["text"])["view"]
        calls = [(row["tool"], row["arguments"]) for row in rows]
        both = [(tool, {"view": "help"}) for tool in reversed(tools)]
        problem = "" if calls == both else f"it has {rows}"
        yield Check("the list has the calls for both answers", problem)
        problem = "" if talk.ran == [*tools] else f"the server ran {talk.ran}"
        yield Check("no view ran a tool", problem)


def limit(bench: Bench) -> Iterator[Check]:
    """With `--budget client`, an answer at the limit is whole, and one byte more is cut."""
    talk = bench.talk("limit", [Step("page"), Step("longer")], options=("--budget", "client"))
    yield uncut(talk, 2)
    if shows_pages(bench.name) and client_for(bench.name).limit_bytes:
        yield whole(talk, 0, "page")
        size = len(talk.visible[1].text.encode())
        problem = f"{size} bytes were shown" if size > PAGE // 2 else ""
        yield Check("one byte more than the limit is cut by the proxy", problem)


def author(bench: Bench) -> Iterator[Check]:
    """An answer that its author wants to be whole is as the client alone would show it."""
    if client_for(bench.name).author_bytes:
        plan = [Step("hinted"), Step("hinted_long"), Step("hinted_long", {"view": "all"})]
        talk = bench.talk("author", plan)
        direct = bench.talk("author direct", plan[:2], direct=True)
        yield uncut(talk, len(plan))
        for number, other in ((0, 0), (2, 1)):
            one, two = untimed(direct.visible[other]), untimed(talk.visible[number])
            problem = "" if one == two else f"{ends(one.text)} became {ends(two.text)}"
            yield Check(f"{plan[number].tool} is as without the proxy", problem)


def shows_pages(name: str) -> bool:
    """Tell whether a client shows PAGE bytes of a result whole, without escapes."""
    client = client_for(name)
    return client.whole_bytes >= PAGE and client.shows in ("structured", "text")


def uncut(talk: Talk, count: int) -> Check:
    pairs = zip(talk.visible, talk.results, strict=False)
    cut = [ends(visible.text) for visible, result in pairs if not shows(visible.text, result)]
    problem = "; ".join(cut) if len(talk.visible) == count else talk.stderr
    return Check(f"no result of {count} is cut by the client", problem)


def whole(talk: Talk, number: int, tool: str) -> Check:
    """Check that the model reads all that the tool said, in a spelling of JSON."""
    result, text = RESULTS[tool], talk.visible[number].text
    content = result.get("structuredContent")
    expected = result["content"][0]["text"] if content is None else json.dumps(content)
    problem = "" if plain(expected) in plain(text) else ends(text)
    return Check(f"all of {tool} is read", problem)


def whole_cases(client: Client) -> list[Case]:
    return [] if client.whole else [views, limit, author]
