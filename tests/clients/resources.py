"""Checks of resources: one of 300 kB is cut by a rule, and the URI in its notice reads the rest."""

from collections.abc import Iterator

from mcp_abridge.ruleset.clients import client_for

from tests.clients.cases import Bench, Case, Check, ends, plain
from tests.clients.model import Step
from tests.clients.programs import Client, Talk, write
from tests.clients.server import RESOURCES, WORD
from tests.wrapped import Tee

RULES = "version: 1\nrules: [{resources: '*'}]\n"


def resources(bench: Bench) -> Iterator[Check]:
    """A resource is cut by the client directly, by the proxy if a rule says so, and read on."""
    tool = bench.client.reads
    firsts = [Step(tool, {"server": "probe", "uri": uri}) for uri in RESOURCES]
    direct = bench.talk("resources direct", firsts, direct=True, words=[WORD])
    rules = write(bench.folder / "resources.yaml", RULES)
    plan = [step for first in firsts for step in (first, Step(tool, further=True))]
    talk = bench.talk("resources", plan, options=["--rules", str(rules)], words=[WORD])
    problem = "" if len(talk.visible) == len(plan) and len(direct.visible) == 2 else talk.stderr
    yield Check("each read is answered", problem)
    for number, (uri, whole) in enumerate(RESOURCES.items()):
        before, first, second = direct.visible[number], *talk.visible[2 * number : 2 * number + 2]
        sizes = f"{len(before.text.encode()):,} bytes, wrapped {len(first.text.encode()):,}"
        print(f"{bench.client.name}: of {uri}, {len(whole):,} bytes, the model reads {sizes}")
        most = client_for(bench.client.name).budget_bytes
        fits = "_abridged" in first.text and len(first.text.encode()) < most
        yield Check(f"{uri} is cut to the budget", "" if fits else ends(first.text))
        news = plain(second.text) not in plain(first.text) and "rror" not in second.text
        yield Check(f"the rest of {uri} is read", "" if news else ends(second.text))
    yield once(bench, talk)


def once(bench: Bench, talk: Talk) -> Check:
    requests = Tee(bench.folder / "resources" / "server.log").requests()
    uris = [each["params"]["uri"] for each in requests if each.get("method") == "resources/read"]
    problem = "" if uris == [*RESOURCES] else f"the server was asked for {uris}; {talk.stderr}"
    return Check("the server is asked once for each, by its own URI", problem)


def resource_cases(client: Client) -> list[Case]:
    return [resources] if client.reads and not client.whole else []
