import json
from typing import Any

import pytest

from proxy.document.fuel import LITTLE, Fuel
from proxy.document.paths import Path
from proxy.document.patterns import Pattern
from proxy.document.tree import Document
from proxy.errors import OutOfFuel, TransformError
from proxy.ruleset.loading.rulefile import read
from proxy.transforms.base import Call, Transform, Warned
from proxy.transforms.drop import Drop
from proxy.transforms.parse import Parse
from proxy.transforms.recast import Recast
from proxy.transforms.rename import Rename
from tests.documents import call, shaped


def recast(options: str) -> Recast:
    """Read the options as a rule file has them."""
    reading = read("r.yaml", f"version: 1\nrules: [{{tools: t, response: [{options}]}}]".encode())
    assert reading.problems == ()
    assert reading.rules is not None
    [step] = reading.rules.rules[0].pipeline
    assert isinstance(step, Recast)
    return step


def made(options: str, raw: str, **arguments: Any) -> str:
    """Return what comes of a document, as it is written."""
    told = call(**arguments)
    return shaped(raw.encode(), recast(f"recast: {{{options}}}"), at=told).decode()


# What is made, of what, and what comes of it.
CASES: dict[str, tuple[str, str, str]] = {
    "a text becomes the shape of the first case that is found in it": (
        "cases: [{match: late, to: {n: 1}}, {match: 'a(?P<x>.)', to: {x: '{x}'}},"
        " {match: a, to: {n: 3}}]",
        '"do ab"',
        '{"x":"b"}',
    ),
    "a document becomes the shape of the first case whose condition holds": (
        "cases: [{where: b, to: {n: 1}}, {where: 'a > `1`', to: {n: 2}}]",
        '{"a": 1.50}',
        '{"n":2}',
    ),
    "no match is found in a document that is no text": (
        "cases: [{match: x, to: {n: 1}}, {to: {n: 2}}]",
        '{"x": "x"}',
        '{"n":2}',
    ),
    "where unless holds, the document stays as it is": (
        "unless: status, cases: [{to: {status: new}}]",
        '{"status": "ok",  "n": 1.0}',
        '{"status":"ok","n":1.0}',
    ),
    "shapes are laid over what is common: mappings are merged, anything else is replaced": (
        "common: {a: 1, b: {x: 1, y: {z: 1}, v: [1, 2]}, c: {d: 1}, e: [{f: 1}]},"
        " cases: [{to: {b: {y: {w: 2}, v: [3]}, c: null, e: [{g: 2}], h: 4}}]",
        '"x"',
        '{"a":1,"b":{"x":1,"y":{"z":1,"w":2},"v":[3]},"c":null,"e":[{"g":2}],"h":4}',
    ),
    "constants are of any kind": (
        "cases: [{to: {a: 1.5, b: true, c: null, d: [], e: {}, f: [1, [{g: x}]], h: '{{h}}'}}]",
        "1",
        '{"a":1.5,"b":true,"c":null,"d":[],"e":{},"f":[1,[{"g":"x"}]],"h":"{h}"}',
    ),
    "captures stand in texts, and the whole text": (
        "cases: [{match: '(?P<a>b+)', to: {one: 'x{a}-{a}', all: '<{text}>', bare: '{a}'}}]",
        '"abbc"',
        '{"one":"xbb-bb","all":"<abbc>","bare":"bb"}',
    ),
    "a group that took no part is null alone, and nothing among others": (
        "cases: [{match: 'a(?P<b>b)?', to: {alone: '{b}', among: 'x{b}y', twice: '{b}{b}'}}]",
        '"a"',
        '{"alone":null,"among":"xy","twice":""}',
    ),
    "the text of a document is its compact JSON, as it is spelled": (
        "cases: [{to: {was: '{text}'}}]",
        '{"a": [1.0, 1e400,\n "\\/"]}',
        '{"was":"{\\"a\\":[1.0,1e400,\\"\\\\/\\"]}"}',
    ),
    "paths pick values as they are spelled, and give null or a default where nothing stands": (
        "cases: [{to: {a: {path: a.n}, b: {path: b}, c: {path: c, default: [0]}, d: {path: d},"
        " e: {path: b, default: 1, over_null: true}, all: {path: ''}}}]",
        '{"a": {"n": 1e400}, "b": null}',
        '{"a":1e400,"b":null,"c":[0],"d":null,"e":1,"all":{"a":{"n":1e400},"b":null}}',
    ),
    "of a match, an expression sees the captures and the text": (
        "cases: [{match: '(?P<n>[0-9]+)', to: {n: {jmespath: to_number(n)}, s: {jmespath: '@'}}}]",
        '"took 12 s"',
        '{"n":12,"s":{"n":"12","text":"took 12 s"}}',
    ),
    "arguments come from the call, by dotted names too": (
        "cases: [{to: {id: {argument: id}, w: {argument: p.w}, no: {argument: q, default: {a: 1}},"
        " null: {argument: z, default: 5}, none: {argument: y}}}]",
        '"x"',
        '{"id":7,"w":["A"],"no":{"a":1},"null":5,"none":null}',
    ),
    "a mapping with any other word is a part of the shape": (
        "cases: [{to: {at: {path: a.py, row: 3}, b: {argument: x, reason: y}, c: {path: {d: 1}}}}]",
        '"x"',
        '{"at":{"path":"a.py","row":3},"b":{"argument":"x","reason":"y"},"c":{"path":{"d":1}}}',
    ),
    "words of the vocabulary stand at their paths, and null": (
        "vocabulary: {status: ok, 'w.code': [A, B], none: [x]}, cases:"
        " [{to: {status: {path: s}, w: [{code: A}, {code: {argument: code}}], none: null}}]",
        '{"s": "ok"}',
        '{"status":"ok","w":[{"code":"A"},{"code":"B"}],"none":null}',
    ),
}
ARGUMENTS = {"id": 7, "p": {"w": ["A"]}, "z": None, "code": "B"}


@pytest.mark.parametrize(("options", "raw", "expected"), CASES.values(), ids=CASES)
def test_what_comes_of_a_document(options: str, raw: str, expected: str) -> None:
    assert made(options, raw, **ARGUMENTS) == expected


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('"what no case knows"', "no case fits what begins with 'what no case knows'"),
        (json.dumps("x" * 200), f"no case fits what begins with {'x' * 80!r}"),
        ('{"a": [1.0]}', "no case fits what begins with '{\"a\": [1.0]}'"),
    ],
)
def test_what_no_case_fits_stays_as_it_is_and_is_counted(raw: str, said: str) -> None:
    step = recast("recast: {cases: [{match: done, to: {}}, {where: 'b', to: {}}]}")
    document = Document.read(raw.encode())
    told = Call("t", warnings=[])
    step(document.root, told)

    assert bytes(document.cell[0]) == raw.encode()
    assert not document.changed
    assert told.warnings == [Warned("recast: no case fits", said)]


@pytest.mark.parametrize(
    ("options", "raw", "message"),
    [
        (
            "vocabulary: {status: [ok]}, cases: [{to: {status: '{text}'}}]",
            '"fine"',
            "recast: ValueError: 'fine' is none of the words of 'status'",
        ),
        (
            "vocabulary: {w.code: [A]}, cases: [{to: {w: {path: ''}}}]",
            '[{"code": "A"}, {"code": ["A", 1.0]}]',
            "recast: ValueError: 1.0 is none of the words of 'w.code'",
        ),
        (
            "vocabulary: {w: [A]}, cases: [{to: {w: {jmespath: '@', default: A}}}]",
            '{"A": "A"}',
            "recast: ValueError: a mapping is none of the words of 'w'",
        ),
        (
            "cases: [{match: x, to: {n: {jmespath: sum(text)}}}]",
            '"x"',
            "recast: Refusal: In function sum(), invalid type for value: x, expected one of: "
            "['array-number'], received: \"string\"",
        ),
    ],
)
def test_what_cannot_be_filled_right_fails(options: str, raw: str, message: str) -> None:
    with pytest.raises(TransformError) as failed:
        made(options, raw)
    assert str(failed.value) == message


def test_a_document_that_fails_is_not_half_changed() -> None:
    step = recast("recast: {vocabulary: {s: [ok]}, cases: [{to: {n: 1, s: '{text}'}}]}")
    document = Document("bad")
    with pytest.raises(TransformError):
        step(document.root, call())
    assert document.encode() == b'"bad"'


def test_steps_that_follow_change_what_was_made_and_nothing_else() -> None:
    options = (
        "recast: {cases: [{to: {a: {path: x}, b: {path: x}, c: {argument: c}, d: {k: [{m: 1}]}}}]}"
    )
    step = recast(options)
    given = {"m": 1, "n": 2}
    told = call(c=given)
    steps: list[Transform] = [
        step,
        Drop((Path.parse("a.m"), Path.parse("c.m"), Path.parse("d.k.m"))),
        Rename({Path.parse("d"): "e"}),
    ]
    expected = b'{"a":{},"b":{"m":1},"c":{"n":2},"e":{"k":[{}]}}'
    for _ in range(2):
        assert shaped(b'{"x": {"m": 1}}', *steps, at=told) == expected
    assert given == {"m": 1, "n": 2}


def test_structure_read_from_a_text_is_written_back_into_it() -> None:
    step = recast("recast: {cases: [{where: id, to: {n: {path: id}}}]}")
    parse = Parse(as_="json", after=Pattern("got "))
    assert json.loads(shaped(b'"got {\\"id\\": 1.0}"', parse, step)) == 'got {"n":1.0}'


@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize(
    ("to", "raw"),
    [
        (f"{{a: {{jmespath: '{' | '.join(['[@, @]'] * 30)}'}}}}", b"1"),
        (f"{{a: '{'{text}' * 200}'}}", b'"%s"' % (b"x" * 10_000)),
        (f"{{a: [{', '.join(['{jmespath: length(v)}'] * 500)}]}}", b'{"v":"%s"}' % (b"x" * 9000)),
    ],
)
def test_a_shape_that_grows_without_end_fails_where_the_fuel_ends(to: str, raw: bytes) -> None:
    told = call()
    told.fuel = Fuel(LITTLE)
    with pytest.raises(OutOfFuel):
        shaped(raw, recast(f"recast: {{cases: [{{to: {to}}}]}}"), at=told)
