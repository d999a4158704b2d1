"""A server on stdio that answers what it likes when it likes; `python server.py SEED INDEX LOG`.

What it hears and says is written to the log, in order.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fuzz import speech
from tests.fuzz.dice import Dice
from tests.fuzz.heard import Request, requests


def main() -> None:
    seed, index, path = sys.argv[1:]
    dice, inbox, number = Dice.of(int(seed), "server", int(index)), list[Request](), 0
    with open(path, "wb") as log:

        def say(raw: bytes) -> None:
            log.write(b"<" + raw + b"\n")
            os.write(1, raw + b"\n")

        for line in sys.stdin.buffer:
            raw = line.removesuffix(b"\n")
            log.write(b">" + raw + b"\n")
            inbox += requests(raw, b"")
            while inbox and dice.one_in(2):
                number += 1
                asked = inbox.pop(dice.below(len(inbox)))
                say(_answer(dice, asked, number))
                if dice.one_in(25):
                    say(speech.garbled(dice, speech.line(("method", '"notifications/message"'))))
        for asked in inbox:
            if not dice.one_in(3):
                say(_answer(dice, asked, number))


def _answer(dice: Dice, asked: Request, number: int) -> bytes:
    raw = speech.answer(dice, asked.id, asked.method, number)
    if dice.one_in(10):
        # Long enough to be passed on in pieces, or to be thrown away.
        more = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}'
        raw = more % (asked.id.encode(), b"x" * dice.pick((40_000, 90_000, 250_000)))
    return raw.replace(b"\n", b" ")


if __name__ == "__main__":
    main()
