"""Sessions through the wrapper as a real process, between a client and a server that misbehave."""

import os
import sys
import tempfile
from collections.abc import Hashable, Iterator
from pathlib import Path

from tests.fuzz import covered, speech
from tests.fuzz.account import Account
from tests.fuzz.dice import Dice
from tests.fuzz.fuzzer import Wrong
from tests.wire import Wire
from tests.wrapped import wrapped

LINES = 60
SERVER = Path(__file__).with_name("server.py")
LIMIT = 100_000


def check(seed: int, index: int) -> Iterator[Hashable]:
    """Speak with a server through the wrapper, and count who got what. Raises Wrong."""
    dice = Dice.of(seed, "relaying", index)
    account = Account()
    with tempfile.TemporaryDirectory() as folder:
        rules, log = Path(folder, "rules.yaml"), Path(folder, "log")
        rules.write_text(covered.PLAIN)
        server = [sys.executable, str(SERVER), str(seed), str(index), str(log)]
        options = ("--rules", str(rules), "--ledger", "off", "--max-message", "100kB")
        state = {**os.environ, "XDG_STATE_HOME": folder}
        with Wire(wrapped(server, *options), env=state) as wire:
            for raw in _lines(dice):
                account.client_says(raw, b"")
                if len(raw) > LIMIT:
                    # Whose id does not stand at one of its ends, that is told on stderr only.
                    account.excused |= account.slots(raw)
                wire.write(raw + b"\n")
            ended = wire.close()
        if ended.code != 0:
            raise Wrong("the wrapper ends as its server does", f"{ended}")
        for line in log.read_bytes().split(b"\n"):
            if line[:1] == b">":
                list(account.server_hears(line[1:], b""))
            elif line[:1] == b"<":
                account.server_says(line[1:], b"")
    long = [line for line in account.of_server.get(b"", ()) if len(line) > LIMIT]
    for line in ended.rest.split(b"\n")[:-1]:
        # The start of a line may be on its way before it is found to be too long.
        if not (len(line) > 1000 and any(each.startswith(line) for each in long)):
            account.client_hears(line, b"")
    account.settle()
    if b"the proxy failed" in ended.stderr:
        raise Wrong("the proxy never fails on a message", ended.stderr.decode(errors="replace"))
    yield "relayed", min(sum(account.got.values()) // 10, 9)


def _lines(dice: Dice) -> Iterator[bytes]:
    ids: list[str] = []
    for mark in range(1, LINES):
        ids.append(str(mark))
        raw = speech.request(dice, str(mark), mark)
        kind = dice.below(20)
        if kind == 0:
            raw = speech.notice(dice, ids)
        elif kind == 1:
            raw = speech.garbled(dice, raw)
        elif kind == 2:
            raw = b"[" + raw + b"," + speech.request(dice, f'"{mark}"', mark + LINES) + b"]"
        elif kind == 3:
            raw = raw[:-1] + b',"x":"' + b"y" * dice.pick((40_000, 120_000)) + b'"}'
        yield raw.replace(b"\n", b" ")
