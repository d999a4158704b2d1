"""What a session asks for is carried out, in order, and whatever fails costs nobody an answer."""

import asyncio
import json
import threading
from collections.abc import Callable

import pytest

from proxy.errors import StoreError
from proxy.ruleset.rule import EMPTY, RuleSet
from proxy.session.active_rules import PeerInfo
from proxy.session.session import Session
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.storage.meter import Meters
from proxy.storage.snapshots import Key, Memory, Snapshot
from proxy.transports.aio import threaded
from proxy.transports.driver import Driver
from proxy.transports.log import Log
from proxy.transports.workers.pool import Workers
from tests.given import answer, call, document, line, rules, texts
from tests.threadless import threadless

PAGES = rules("- {name: pages, tools: list, response: [{paginate: {at: items, limit: 2}}]}")
DROPPED = rules(
    "- {name: pages, tools: list, response: [{paginate: {at: items, limit: 2, drop_on: [write]}}]}"
)
HIDDEN = rules("- {tools: gone, hide: true}")
ITEMS = answer(document({"items": [1, 2, 3]}))
LISTING = answer({"tools": [{"name": "list", "inputSchema": {"type": "object"}}]}, 9)


class Elsewhere(Memory):
    """A store that other replicas have as well; it may be out of reach."""

    remote = True

    def __init__(self) -> None:
        super().__init__()
        self.away = False

    def put(self, key: Key, snapshot: Snapshot) -> None:
        self._check()
        super().put(key, snapshot)

    def get(self, key: Key) -> Snapshot | None:
        self._check()
        return super().get(key)

    def drop(self, key: Key) -> None:
        self._check()
        super().drop(key)

    def _check(self) -> None:
        if self.away:
            raise StoreError("the store is away")


def driver(
    made: RuleSet | Callable[..., RuleSet] = EMPTY,
    store: Memory | None = None,
    aside: Callable[[bytes], None] | None = None,
) -> Driver:
    """Return a driver of a session with these rules."""
    asked = made if callable(made) else (lambda *_: made)
    log = Log("error")
    session = Session(asked, Meters().of, log.warning, scope="s")
    return Driver(session, Memory() if store is None else store, Workers(), log, aside)


@pytest.mark.parametrize("store", [Memory, Elsewhere])
async def test_what_a_call_makes_untrue_is_dropped(store: type[Memory]) -> None:
    made = driver(DROPPED, store())
    await made.from_client(line(id=9, method="tools/list"))
    await made.from_server(LISTING)
    await made.from_client(call("list", {}))
    await made.from_server(ITEMS)
    assert (await made.from_client(call("write", id=2))).to_server == [call("write", id=2)]
    sent = await made.from_client(call("list", {"offset": 2}, id=3))
    assert "nothing is kept" in texts(sent.to_client[0])[0]


async def test_a_store_out_of_reach_costs_pages_alone() -> None:
    store = Elsewhere()
    made = driver(DROPPED, store)
    store.away = True
    await made.from_client(call("list", {}))
    [first] = (await made.from_server(ITEMS)).to_client
    assert '"items":[1,2]' in texts(first)[0]
    [later] = (await made.from_client(call("list", {"offset": 2}))).to_client
    assert "the store is away" in texts(later)[0]
    assert (await made.from_client(call("write", id=2))).to_server == [call("write", id=2)]


async def test_replicas_learn_from_each_other_at_the_start_and_with_the_next_call() -> None:
    store, key = Elsewhere(), Key("s", "", "known")
    began, listed, late, last = (driver(PAGES, store) for _ in range(4))
    own = {"name": "list", "inputSchema": {"type": "object", "properties": {"offset": {}}}}
    await began.share(key)
    await late.recall(key)
    await listed.from_client(line(id=9, method="tools/list"))
    await listed.from_server(answer({"tools": [own]}, 9))
    await listed.share(key)
    await last.recall(key)
    # Where the server's own `offset` is not known, it is the proxy's.
    offset = call("list", {"offset": 7})
    assert (await driver(PAGES).from_client(offset)).to_server == []
    for made in (began, late, last):
        assert (await made.from_client(offset)).to_server == [offset]


async def test_what_a_client_says_waits_until_it_is_known_what_others_know() -> None:
    class Slow(Elsewhere):
        def get(self, key: Key) -> Snapshot | None:
            reached.set()
            assert go.wait(20)
            return super().get(key)

    reached, go = threading.Event(), threading.Event()
    store, key = Slow(), Key("s", "", "known")
    one, other = driver(PAGES, store), driver(PAGES, store)
    one.session.rules.recall(PeerInfo(server="known"))
    await one.share(key)
    first = asyncio.create_task(other.recall(key))
    await asyncio.to_thread(reached.wait, 20)
    # Whoever asked first goes away; the others learn it all the same.
    first.cancel()
    second = asyncio.create_task(other.from_client(line(id=1, method="ping")))
    await asyncio.wait([first])
    assert not second.done()
    go.set()
    await second
    assert other.session.server == "known"


async def test_nothing_is_left_of_a_call_whose_client_went_away_meanwhile() -> None:
    class Held(Elsewhere):
        def get(self, key: Key) -> Snapshot | None:
            reached.set()
            assert go.wait(20)
            return None

    class Stuck(Workers):
        async def shape(self, job: ShapeJob) -> ShapeResult:
            reached.set()
            await asyncio.Event().wait()
            raise AssertionError

    reached, go = threading.Event(), threading.Event()
    made = driver(PAGES, Held())
    await made.from_client(call("list", {}))
    made._workers = Stuck()
    for taking in (made.from_client(call("list", {"offset": 2}, 2)), made.from_server(ITEMS)):
        task = asyncio.create_task(taking)
        await asyncio.to_thread(reached.wait, 20)
        reached.clear()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    go.set()
    assert not made.session.suspended


async def test_what_no_replica_knows_or_can_say_is_no_matter() -> None:
    store, key = Elsewhere(), Key("s", "", "known")
    made = driver(PAGES, store)
    await made.recall(key)
    store.put(key, Snapshot(b"", b"no JSON"))
    await made.recall(key)
    store.away = True
    await made.recall(key)
    await made.share(key)
    assert (await made.from_client(call("list", {}))).to_server == [call("list", {})]


async def test_noise_goes_aside_and_never_out_in_place_of_a_message() -> None:
    aside: list[bytes] = []
    response = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert (await driver().from_server(b"noise")).to_client == [b"noise"]
    for noise in (b"\xef\xbb\xbf", b"<b>Warning</b>: deprecated\n", b"noise"):
        raw = noise if noise == b"noise" else noise + response
        sent = [] if noise == b"noise" else [response]
        assert (await driver(aside=aside.append).from_server(raw)).to_client == sent
        assert aside.pop() == noise
        assert not sent or (await driver().from_server(raw)).to_client == sent


async def test_workers_and_a_store_that_fail_in_any_way_cost_no_answer() -> None:
    class Overworked(Workers):
        async def shape(self, job: ShapeJob) -> ShapeResult:
            raise MemoryError

    class Broken(Memory):
        def put(self, key: Key, snapshot: Snapshot) -> None:
            raise MemoryError

    made = driver(PAGES, Broken())
    await made.from_client(call("list"))
    [line] = (await made.from_server(ITEMS)).to_client
    assert "pagination" in texts(line)[0]
    made._workers = Overworked()
    await made.from_client(call("list"))
    assert await made.from_server(ITEMS) == ([], [ITEMS], [], [])


async def test_without_threads_a_long_list_is_edited_and_noise_is_put_aside() -> None:
    aside: list[bytes] = []
    made = driver(HIDDEN, aside=aside.append)
    tools = [{"name": name, "description": "x" * 300_000} for name in ("gone", "list")]
    await made.from_client(line(id=1, method="tools/list"))
    await made.from_client(call("get", id=2))
    with threadless():
        listed = await made.from_server(answer({"tools": tools}, 1))
        heard = await made.from_server(b"debug " + answer(document({"a": 1}), 2))

    [raw] = listed.to_client
    assert [tool["name"] for tool in json.loads(raw)["result"]["tools"]] == ["list"]
    assert heard.to_client == [answer(document({"a": 1}), 2)]
    assert aside == [b"debug "]


async def test_what_takes_long_is_done_in_a_thread_or_here_where_there_is_none() -> None:
    elsewhere = await threaded(threading.get_ident)
    with threadless():
        # Two at once, since there may be a thread left for one.
        both = await asyncio.gather(threaded(threading.get_ident), threaded(threading.get_ident))

    assert elsewhere != threading.get_ident()
    assert threading.get_ident() in both
