"""The cases of a rule file: what passes, and what is said of what does not."""

import json
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

from proxy.ruleset.loading import rulefile
from proxy.ruleset.rule import RuleFile
from proxy.testing import cases
from proxy.testing.cases import CaseError, CaseResult, expand
from tests.given import answer, call, document, file, line, said
from tests.rulecases import PYTHON


def ruled(rules: str, name: str = "rules.yaml") -> RuleFile:
    return file("version: 1\nrules:\n" + dedent(rules), name)


def verdict(rule: str, case: str, name: str = "rules.yaml") -> list[str]:
    """Run one case of a rule, which is for the tool `t` unless it says so; return what is wrong."""
    rule = dedent(rule).strip()
    rule = rule if "tools:" in rule else f"tools: t\n{rule}"
    text = f"- {indent(rule, '  ').strip()}\n  tests: [{case}]"
    [found] = cases.run(ruled(text, name))
    assert found.ok == (not found.message)
    return found.message.splitlines()


DROP = "response: [{drop: b}]"
PAGES = "response: [{paginate: {at: items, limit: 2}}]"
WINDOWS = "response: [{truncate: {max_length: 10}}]"


def guarded(case: str, guard: str = "careful") -> list[str]:
    """Run one case of a rule that has a guard; return what is wrong."""
    head = "version: 1\nguards: {careful: 'own:Careful', gate: 'own:Gate'}\nrules:\n"
    text = f"{head}- {{tools: t, guard: {guard}, tests: [{case}]}}"
    read = rulefile.read(str(PYTHON / "r.yaml"), text.encode(), allow_python=True)
    assert read.rules is not None, read.problems
    [found] = cases.run(read.rules)
    return found.message.splitlines()


# expect


@pytest.mark.parametrize(
    "case",
    [
        "{given: {a: 1, b: 2}, expect: {a: 1}}",
        "{given: {a: 1, b: 2}, expect: {a: 1.0}}",
        "{given: {a: [1, {c: null}], b: 2}, expect: {a: [1, {c: null}]}}",
        "{given: [{b: 1}, {c: 2}], expect: [{}, {c: 2}]}",
        "{given: {a: 12345678901234567890123, b: 1}, expect: {a: 12345678901234567890123}}",
        "{given: {a: 'ä', c: 'x', b: 1}, expect: {c: x, a: 'ä'}}",
        '{given_text: \'{"a": 1.50, "b": 2}\', expect: {a: 1.5}}',
    ],
)
def test_a_document_that_is_as_expected_passes(case: str) -> None:
    assert verdict(DROP, case) == []


@pytest.mark.parametrize(
    ("expect", "lines"),
    [
        ("{a: 2}", ["a: expected 2, found 1", 'c: expected nothing, found {"d":[true]}']),
        ("{a: true, c: {d: [1]}}", ["a: expected true, found 1", "c.d[0]: expected 1, found true"]),
        (
            "{a: 1, c: {d: [true, 2], e: 3}}",
            [
                "c.d[1]: expected 2, found nothing",
                "c.e: expected 3, found nothing",
            ],
        ),
        ("[1]", ['expected [1], found {"a":1,"c":{"d":[true]}}']),
        ("null", ['expected null, found {"a":1,"c":{"d":[true]}}']),
    ],
)
def test_each_difference_is_told_with_its_place(expect: str, lines: list[str]) -> None:
    assert verdict(DROP, f"{{given: {{a: 1, b: 2, c: {{d: [true]}}}}, expect: {expect}}}") == lines


def test_many_differences_are_cut_short() -> None:
    given = "{$repeat: x, times: 50}"

    lines = verdict(
        DROP, f"{{given: {{a: {given}, b: 1}}, expect: {{a: {{$repeat: y, times: 50}}}}}}"
    )

    assert lines[0] == 'a[0]: expected "y", found "x"'
    assert lines[-1] == "… and 38 more"


def test_a_text_is_expected_as_a_text() -> None:
    rule = "response: [{replace: {pattern: b, with: c}}]"

    assert verdict(rule, "{given_text: abc, expect: acc}") == []
    assert verdict(rule, "{given_text: abc, expect: abc}") == ['expected "abc", found "acc"']


def test_a_document_that_is_a_json_string_is_compared_as_what_it_encodes() -> None:
    rule = "response: [{replace: {pattern: b, with: c}}]"

    assert verdict(rule, "{given: abc, expect: acc}") == []


def test_blocks_are_compared_as_one_array() -> None:
    result = json.dumps(said('{"b":1,"c":1}', '{"b":2}', "[3]"))

    assert verdict(DROP, f"{{given_result: {result}, expect: [{{c: 1}}, {{}}, [3]]}}") == []


def test_structured_content_is_compared_and_must_agree_with_the_text() -> None:
    result = json.dumps(document({"a": 1, "b": 2}, structured=True))

    assert verdict(DROP, f"{{given_result: {result}, expect: {{a: 1}}}}") == []
    assert (
        verdict(f"copies: structured\n{DROP}", f"{{given_result: {result}, expect: {{a: 1}}}}")
        == []
    )
    assert verdict(f"copies: text\n{DROP}", f"{{given_result: {result}, expect: {{a: 1}}}}") == []


def test_copies_that_a_rule_lets_disagree_fail_whatever_is_expected() -> None:
    result = json.dumps(document({"a": 1, "b": 2}, structured=True))

    assert (
        verdict(f"document: text\n{DROP}", f"{{given_result: {result}, expect_at: {{a: 1}}}}") == []
    )
    wrapped = json.dumps(said("long text", structuredContent={"result": "long text"}))
    lines = verdict(
        "response: [{clip: {max_chars: 4}}]",
        f"{{given_result: {wrapped}, expect: 'long… (+5 chars)'}}",
    )
    assert lines == []


# expect_text


@pytest.mark.parametrize(
    ("case", "lines"),
    [
        ("{given_text: abcdef, expect_text: 'abc… (+3 chars)'}", []),
        ("{given_text: abcdef, expect_text: ['abc… (+3 chars)']}", []),
        ("{given_text: '{\"a\": 1.50}', expect_text: '{\"a\": 1.50}'}", []),
        (
            "{given_text: abc, expect_text: abd}",
            [
                "expect_text: the text is another one (- expected, + found):",
                "@@ -1 +1 @@",
                "-abd",
                "+abc",
            ],
        ),
        (
            f"{{given_result: {json.dumps(said('a', 'b'))}, expect_text: [a, c]}}",
            ['[1]: expected "c", found "b"'],
        ),
        ("{given_result: {content: []}, expect_text: a}", ["expect_text: the answer has no text"]),
    ],
)
def test_texts_are_compared_as_they_stand(case: str, lines: list[str]) -> None:
    assert verdict("response: [{clip: {max_chars: 3}}]", case) == lines


def test_the_lines_of_a_text_that_differ_are_shown_with_what_stands_around_them() -> None:
    rule = "response: [{replace: {pattern: '5', with: x}}]"
    given = '{$repeat: "line {n}\\n", times: 9}'

    lines = verdict(rule, f'{{given_text: {given}, expect_text: "line 0\\nline 1\\n"}}')

    assert lines[1:] == [
        "@@ -2 +2,8 @@",
        " line 1\\n",
        "+line 2\\n",
        "+line 3\\n",
        "+line 4\\n",
        "+line x\\n",
        "+line 6\\n",
        "+line 7\\n",
        "+line 8\\n",
    ]


# expect_at, expect_keys, absent

VALUE = "{a: {b: 1, c: [1, 2]}, items: [{id: 1, n: x}, {id: 2, n: y}], one: [{id: 7}]}"


@pytest.mark.parametrize(
    "expected",
    [
        "{a.b: 1, 'a.c[-1]': 2, 'items[1].n': y}",
        "{items.id: [1, 2]}",
        "{'items[].n': [x, y]}",
        "{one.id: 7}",
        "{one.id: [7]}",
        "{'a.*': [1, [1, 2]]}",
        "{'**.id': [1, 2, 7]}",
        "{a: {b: 1, c: [1, 2]}}",
        "{'': " + VALUE + "}",
    ],
)
def test_what_stands_at_paths_is_as_expected(expected: str) -> None:
    assert verdict(DROP, f"{{given: {VALUE}, expect_at: {expected}}}") == []


@pytest.mark.parametrize(
    ("expected", "lines"),
    [
        ("{a.b: 2}", ["a.b: expected 2, found 1"]),
        ("{a.b: [1]}", ["a.b: expected [1], found 1"]),
        ("{a.x: 2}", ["a.x: expected 2, found nothing"]),
        ("{a.x: null}", ["a.x: expected null, found nothing"]),
        ("{items.id: 1}", ["items.id: expected 1, found [1,2]"]),
        ("{items.id: [1, 3]}", ["items.id[1]: expected 3, found 2"]),
        ("{a: {b: 1}}", ["a.c: expected nothing, found [1,2]"]),
    ],
)
def test_what_stands_at_a_path_is_told(expected: str, lines: list[str]) -> None:
    assert verdict(DROP, f"{{given: {VALUE}, expect_at: {expected}}}") == lines


@pytest.mark.parametrize(
    ("expected", "lines"),
    [
        (
            "{a: 2, items: 2, '': 3}",
            ['items: expected 2 keys, found [{"id":1,"n":"x"},{"id":2,"n":"y"}]'],
        ),
        ("{'items[]': 2, a: 2}", []),
        ("{a: 3}", ["a: expected 3 keys, found 2: b, c"]),
        ("{x: 0}", ["x: expected 0 keys, found nothing"]),
        ("{a.b: 0}", ["a.b: expected 0 keys, found 1"]),
    ],
)
def test_keys_are_counted(expected: str, lines: list[str]) -> None:
    assert verdict(DROP, f"{{given: {VALUE}, expect_keys: {expected}}}") == lines


@pytest.mark.parametrize(
    ("paths", "lines"),
    [
        ("[x, a.x, items.x, '**.x', 'a.x*']", []),
        ("a.b", ["a.b: expected nothing, found 1"]),
        ("[items.id]", ["items.id: expected nothing, found 1 and in 1 more places"]),
        ("['**.i*d']", ["**.i*d: expected nothing, found 1 and in 2 more places"]),
    ],
)
def test_what_is_absent_is_nowhere(paths: str, lines: list[str]) -> None:
    assert verdict(DROP, f"{{given: {VALUE}, absent: {paths}}}") == lines


# max_bytes, min_reduction


def test_visible_bytes_are_bounded() -> None:
    assert verdict(DROP, "{given: {a: 1, b: 2}, max_bytes: 7}") == []
    assert verdict(DROP, "{given: {a: 1, b: 2}, max_bytes: 6}") == [
        "max_bytes: 7 visible bytes are more than 6"
    ]


def test_the_larger_copy_counts() -> None:
    result = json.dumps(said("12345678", structuredContent={"a": 1}))

    assert verdict(DROP, f"{{given_result: {result}, max_bytes: 7}}") == [
        "max_bytes: 8 visible bytes are more than 7"
    ]


def test_the_reduction_is_that_of_visible_bytes() -> None:
    given = "{a: 1, b: {$repeat: x, times: 100}}"

    assert verdict(DROP, f"{{given: {given}, min_reduction: 58}}") == []
    assert verdict(DROP, f"{{given: {given}, min_reduction: 60}}") == [
        "min_reduction: 413 visible bytes to 7 is 59.0 times, not 60"
    ]


# untouched


def test_what_is_untouched_is_the_same_bytes() -> None:
    assert verdict(DROP, "{given: {a: 1}, untouched: true}") == []
    assert verdict(DROP, "{given: {a: 1, b: 2}, untouched: true}")[0] == (
        "untouched: the response was changed:"
    )


def test_a_rule_that_does_not_apply_leaves_a_response_untouched() -> None:
    rule = f"when: \"op == 'x'\"\n{DROP}"

    assert verdict(rule, "{given: {b: 1}, untouched: true}") == []
    assert verdict(rule, "{given: {b: 1}, expect: {b: 1}}") == [
        "the rule does not apply to this call: `when` is not true of the arguments: op == 'x'; "
        "the arguments are {}"
    ]


def test_a_rule_whose_paths_match_nothing_says_so() -> None:
    lines = verdict("name: r\nresponse: [{keep: [x.y]}]", "{given: {b: 1}, expect: {}}")

    assert lines[0] == "b: expected nothing, found 1"
    assert lines[1].startswith("note: r: t: left as it came: ")


# refused, upstream


def test_a_refusal_has_its_words_and_never_reaches_the_server() -> None:
    said = "limit: 21 is greater than the maximum of 20"

    assert verdict(PAGES, f"{{arguments: {{limit: 21}}, refused: '{said}'}}") == []
    assert verdict(PAGES, "{arguments: {limit: 21}, refused: no}") == [
        f'refused: expected "no", found "{said}"'
    ]
    assert verdict(PAGES, "{arguments: {limit: 20}, refused: no}") == [
        "refused: the call reached the server, with {}"
    ]


def test_an_offset_out_of_range_is_refused_without_a_first_call() -> None:
    said = "offset: -1 is less than the minimum of 0"

    assert verdict(PAGES, f"{{arguments: {{offset: -1}}, refused: '{said}'}}") == []


def test_a_hidden_tool_is_refused_as_an_unknown_one() -> None:
    assert verdict("hide: true", "{refused: 'Unknown tool: t'}") == []


def test_a_refusal_that_is_not_expected_fails_whatever_else_is() -> None:
    assert verdict(PAGES, "{arguments: {limit: 21}, given: {items: []}, max_bytes: 1000}") == [
        "nothing reached the server: limit: 21 is greater than the maximum of 20; where that is "
        "meant, write `refused` or `upstream: null`"
    ]


def test_what_the_server_sees_is_compared() -> None:
    rule = f"arguments: {{n: {{default: 5}}}}\n{PAGES}"

    assert verdict(rule, "{arguments: {limit: 1, x: y}, upstream: {n: 5, x: y}}") == []
    assert verdict(rule, "{arguments: {limit: 1}, upstream: {limit: 1}}") == [
        "upstream.limit: expected 1, found nothing",
        "upstream.n: expected nothing, found 5",
    ]


# Pages and views

ITEMS = "{items: [1, 2, 3, 4, 5], n: 0}"


ASKED = "asks: {tool: may, arguments: {path: a}}"


@pytest.mark.parametrize(
    "case",
    [
        f"{{arguments: {{path: a}}, found: yes, given: {{a: 1}}, expect: {{a: 1}}, {ASKED}}}",
        "{arguments: {path: a}, found: no, upstream: null, expect: {status: blocked}, warns: []}",
        "{arguments: {path: a}, found_error: odd, upstream: {path: a, careful: true}}",
        "{arguments: {path: a}, found_error: odd, given: {}, warns: [not asked]}",
        "{arguments: {path: a}, found_nothing: true, given_text: b, expect: b, warns: [not asked]}",
    ],
)
def test_a_guard_is_given_an_answer_to_its_question(case: str) -> None:
    assert guarded(case) == []


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("{found: yes, asks: {tool: other}}", 'asks.tool: expected "other", found "may"'),
        ("{found: yes, upstream: null}", "upstream: the call reached the server, with {}"),
        ("{found: no, upstream: {}}", "upstream: nothing reached the server"),
        ("{found: no, expect: {}}", "nothing reached the server: "),
        (
            "{found_nothing: true, warns: [other]}",
            'warns: expected ["other"], found ["not asked"]',
        ),
    ],
)
def test_a_guard_that_does_something_else_fails_its_case(case: str, said: str) -> None:
    assert guarded(case)[0].startswith(said)


HASTY = """
from typing import ClassVar
from msgspec import Struct

class Hasty(Struct, frozen=True):
    name: ClassVar[str] = "hasty"
    shorthand: ClassVar[None] = None
    parameters: ClassVar[dict] = {}

    def __call__(self, call, found):
        raise KeyError(call.tool)
"""


@pytest.mark.parametrize(
    ("on_failure", "case", "message"),
    [
        (
            "pass",
            "{given: {a: 1}, expect: {a: 1}}",
            "t: the guard 'hasty' failed: KeyError: 't' (hasty.py:11)",
        ),
        ("refuse", "{refused: \"the call was withheld: the guard of rule 't' failed\"}", ""),
    ],
)
def test_a_guard_that_fails_and_lets_the_call_go_on_fails_its_case(
    tmp_path: Path, on_failure: str, case: str, message: str
) -> None:
    (tmp_path / "hasty.py").write_text(HASTY)
    rule = f"{{tools: t, guard: hasty, on_failure: {on_failure}, tests: [{case}]}}"
    text = f"version: 1\nguards: {{hasty: 'hasty:Hasty'}}\nrules: [{rule}]"
    read = rulefile.read(str(tmp_path / "r.yaml"), text.encode(), allow_python=True)
    assert read.rules is not None, read.problems
    [found] = cases.run(read.rules)
    assert found.message == message


def test_a_guard_that_asks_nothing_fails_a_case_with_a_question() -> None:
    assert guarded("{given: {b: 1}, asks: {tool: a}}", "gate") == ["asks: nothing was asked"]


ERRORS = """
arguments: {n: {maximum: 1}}
errors: [{recast: {unless: error, cases: [{match: '^n', to: {error: {message: '{text}'}}}]}}]
"""


@pytest.mark.parametrize(
    "case",
    [
        "{given_error: no, expect_error: {error: {message: no}}}",
        "{given_error: yes, expect_error: yes, warns: ['recast: no case fits']}",
        "{given_error: {error: 1}, expect_error: {error: 1}, untouched: true, warns: []}",
        "{arguments: {n: 2}, refused: {error: {message: 'n: 2 is greater than the maximum of 1'}}}",
    ],
)
def test_an_error_and_a_refusal_are_compared(case: str) -> None:
    assert verdict(ERRORS, case) == []


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("{given: {}, expect_error: no}", "expect_error: the answer is not an error"),
        ("{given_error: no, expect_error: {}}", "error: expected nothing, found "),
        ("{arguments: {n: 2}, refused: {}}", "refused.error: expected nothing, found "),
    ],
)
def test_another_error_fails(case: str, said: str) -> None:
    assert verdict(ERRORS, case)[0].startswith(said)


def test_a_later_page_follows_a_first_call() -> None:
    case = (
        f"{{arguments: {{offset: 4}}, given: {ITEMS}, expect_at: {{items: [5]}}, upstream: {{}}}}"
    )

    assert verdict(PAGES, case) == []


def test_a_view_follows_a_first_call() -> None:
    given = "{items: {$repeat: 'a rather long element {n}', times: 100}}"

    assert (
        verdict(
            "max_bytes: 1000",
            f"{{arguments: {{view: 'items[99]', a: 1}}, given: {given}, upstream: {{a: 1}}, "
            "expect: a rather long element 99}",
        )
        == []
    )


REJOINING = r"""
- tools: pages
  response: [{paginate: {at: items, limit: 2}}]
  tests:
    - {given: {items: [1, 2, 3, 4, 5]}, rejoins: true}
    - {arguments: {offset: 2, limit: 1}, given: {items: [1, 2, 3]}, upstream: {}, rejoins: true}
    - given_result:
        content: [{type: text, text: '{"items": [1, 2, 3]}'}]
        structuredContent: {items: [1, 2, 3]}
      rejoins: true
- tools: root array
  response: [{drop: b}, {paginate: {limit: 2, as: rows}}]
  tests: [{given: [{b: 1, c: 1}, {c: 2}, {c: 3}], rejoins: true}]
- tools: other words
  response: [{paginate: {at: a.items, limit: 1, page_info: {next: nextOffset}}}]
  tests: [{given: {a: {items: [1, 2, 3]}}, rejoins: true}]
- tools: two arrays
  response: [{paginate: {at: [a, b], limit: 2}}]
  tests: [{given: {a: [1, 2, 3], b: [1, 2, 3, 4, 5, 6]}, rejoins: true}]
- tools: two holders
  response: [{paginate: {at: [a.items, b.items], limit: 2}}]
  tests: [{given: {a: {items: [1]}, b: {items: [1, 2, 3]}}, rejoins: true}]
- tools: tables
  response: [{paginate: {at: a, limit: 1}}, {table: {at: a}}]
  tests: [{given: {a: [{x: 1, y: 2}, {x: 3, y: 4}]}, rejoins: true}]
- tools: clipped pages
  response: [{paginate: {at: a, limit: 1}}, {clip: {at: a.x, max_chars: 1}}]
  tests: [{given: {a: [{x: long}, {x: text}]}, rejoins: true}]
- tools: bounded pages
  max_bytes: 600
  response: [{paginate: {at: items, limit: 50}}]
  tests: [{given: {items: {$repeat: 'a rather long element {n}', times: 60}}, rejoins: true}]
- tools: nested arguments
  response: [{paginate: {at: items, limit: 2, arguments: {limit: p.limit, offset: p.offset}}}]
  tests: [{arguments: {p: {x: 1}}, given: {items: [1, 2, 3]}, upstream: {p: {x: 1}}, rejoins: true}]
- tools: lines
  response: [{parse: {as: lines}}, {paginate: {limit: 2}}]
  tests: [{given_text: "a\nb\nc\nd\n", rejoins: true}]
- tools: records
  response: [{parse: {as: records}}, {paginate: {limit: 1}}]
  tests: [{given_text: "a\n\nb\n\nc", rejoins: true}]
- tools: fenced lines
  response: [{parse: {as: lines, fence: yaml}}, {paginate: {limit: 1}}]
  tests: [{given_text: "at x\n```yaml\n- a\n- b\n```\n", rejoins: true}]
- tools: python
  response: [{parse: {as: python}}, {paginate: {as: rows, limit: 1}}]
  tests: [{given_text: "[{'a': None}, {'a': 1}]", rejoins: true}]
- tools: windows
  response: [{truncate: {max_length: 10}}]
  tests:
    - {given_text: one two three four five six, rejoins: true}
    - {given_text: "a\u0301\n\U0001f469\u200d\U0001f469 and so on, further than ten", rejoins: true}
    - given_result:
        content: [{type: text, text: a long text of words}]
        structuredContent: {result: a long text of words}
      rejoins: true
- tools: inline hint
  response: [{truncate: {max_length: 10, hint: inline}}]
  tests: [{given_text: one two three four five six, rejoins: true}]
- tools: from the end
  response: [{truncate: {max_length: 10, from: end}}]
  tests: [{given_text: one two three four five six, rejoins: true}]
- tools: windows of a member
  response: [{truncate: {at: a.text, max_length: 5}}]
  tests: [{given: {a: {text: one two three, x: 1}}, rejoins: true}]
"""


@pytest.mark.parametrize(
    "verdict",
    [pytest.param(each, id=f"{each.rule}: {each.case}") for each in cases.run(ruled(REJOINING))],
)
def test_pages_and_windows_rejoin(verdict: CaseResult) -> None:
    assert verdict.ok, verdict.message


def test_one_page_proves_nothing() -> None:
    assert verdict(PAGES, "{given: {items: [1, 2]}, rejoins: true}") == [
        "rejoins: one page holds everything; ask for shorter pages, or give more"
    ]


def test_a_rule_without_a_window_has_nothing_to_rejoin() -> None:
    assert verdict(DROP, "{given: {items: [1, 2], b: 1}, rejoins: true}") == [
        "rejoins: one page holds everything; ask for shorter pages, or give more"
    ]


def test_pages_that_do_not_say_what_follows_fail() -> None:
    rule = "response: [{paginate: {at: items, limit: 2, page_info: {count: returned}}}]"

    assert verdict(rule, f"{{given: {ITEMS}, rejoins: true}}") == [
        "rejoins: page_info has no nextOffset, so no page says what follows"
    ]


# What is given


def test_repeated_values_are_written_out() -> None:
    assert expand({"$repeat": "f-{n}", "times": 3}) == ["f-0", "f-1", "f-2"]
    assert expand({"a": {"$repeat": {"id": "{n}", "x": [1, "n{n}"]}, "times": 2}, "b": [{}]}) == {
        "a": [{"id": "0", "x": [1, "n0"]}, {"id": "1", "x": [1, "n1"]}],
        "b": [{}],
    }
    nested = {"$repeat": {"$repeat": "{n}", "times": 2}, "times": 2}
    assert expand(nested) == [["0", "1"], ["0", "1"]]


WRITE = "write {$repeat: value, times: number}, and no other key beside it"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"$repeat": 1}, WRITE),
        ({"$repeat": 1, "times": "3"}, WRITE),
        ({"$repeat": 1, "times": 1, "x": 1}, WRITE),
        ({"$repeat": 1, "times": -1}, "$repeat: times: -1 is not between 0 and 1000000"),
        ({"$repeat": 1, "times": 10**9}, "$repeat: times: 1000000000 is not between 0 and 1000000"),
        (
            {"$repeat": {"$repeat": {"a": 1}, "times": 4000}, "times": 4000},
            "$repeat: 32004000 values are more than 10000000",
        ),
    ],
)  # fmt: skip
def test_a_repetition_that_is_none_is_told(value: Any, said: str) -> None:
    with pytest.raises(CaseError) as caught:
        expand(value)
    assert str(caught.value) == said
    assert verdict(DROP, f"{{given: {json.dumps(value)}, untouched: true}}") == [said]


def test_a_text_may_be_repeated_too() -> None:
    given = "{$repeat: '{n};', times: 12}"

    assert verdict(DROP, f"{{given_text: {given}, expect_text: 0;1;2;3;4;5;6;7;8;9;10;11;}}") == []


FORMS: dict[str, Any] = {
    "exchange": {
        "request": call("t", {"x": 1}, id=7).decode(),
        "response": answer(document({"a": 1, "b": 2}), 7).decode(),
    },
    "messages": {
        "request": json.loads(call("t", {"x": 1}, id="z")),
        "response": json.loads(answer(document({"a": 1, "b": 2}), "z")),
    },
    "response": json.loads(answer(document({"a": 1, "b": 2}), 9)),
    "result": document({"a": 1, "b": 2}),
    "document": {"a": 1, "b": 2},
}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_given_may_be_recorded_in_a_file_beside_the_rules(
    tmp_path: Path, form: str
) -> None:
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "a.json").write_text(json.dumps(FORMS[form], indent=1))
    name = str(tmp_path / "rules.yaml")
    upstream = "{x: 1}" if form in ("exchange", "messages") else "{}"

    assert (
        verdict(
            DROP, f"{{given_file: fixtures/a.json, expect: {{a: 1}}, upstream: {upstream}}}", name
        )
        == []
    )
    assert (
        verdict(DROP, "{given_file: fixtures/a.json, arguments: {y: 2}, upstream: {y: 2}}", name)
        == []
    )


def test_a_recorded_response_is_untouched_to_the_byte(tmp_path: Path) -> None:
    raw = '{ "jsonrpc": "2.0", "id": 7.0, "result": {"content": [], "x": 1e400} }'
    request = call("t").decode().replace('"id":1', '"id":7.0')
    (tmp_path / "a.json").write_text(json.dumps({"request": request, "response": raw}))

    assert verdict(DROP, "{given_file: a.json, untouched: true}", str(tmp_path / "r.yaml")) == []


def test_a_recorded_error_is_untouched(tmp_path: Path) -> None:
    recorded = {
        "request": call("t").decode(),
        "response": line(id=1, error={"code": -32603, "message": "Not Found"}).decode(),
    }
    (tmp_path / "a.json").write_text(json.dumps(recorded))
    name = str(tmp_path / "r.yaml")

    assert verdict(DROP, "{given_file: a.json, untouched: true}", name) == []
    assert verdict(DROP, "{given_file: a.json, expect: {}}", name) == [
        "the answer is an error: Not Found"
    ]


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    [said] = verdict(DROP, "{given_file: none.json, untouched: true}", str(tmp_path / "r.yaml"))

    assert said == f"given_file: '{tmp_path}/none.json': No such file or directory"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/dev/zero", "given_file: '/dev/zero': a pipe, a device or a directory, not a file"),
        (r'"/a\0b"', r"given_file: '/a\x00b': embedded null byte"),
    ],
)
def test_what_is_no_file_is_told_and_not_read(name: str, expected: str) -> None:
    assert verdict(DROP, f"{{given_file: {name}, untouched: true}}") == [expected]


# Which rule


def test_a_case_of_several_tools_says_which() -> None:
    rule = f"tools: [a, b]\n{DROP}"

    assert verdict(rule, "{tool: b, given: {a: 1, b: 1}, expect: {a: 1}}") == []
    assert verdict(rule, "{given: {b: 1}, expect: {}}") == ["tool: which one? The rule is for a, b"]


def test_a_case_of_a_glob_says_which() -> None:
    rule = f"tools: 'get_*'\n{DROP}"

    assert verdict(rule, "{tool: get_a, given: {a: 1, b: 1}, expect: {a: 1}}") == []
    assert verdict(rule, "{given: {b: 1}, expect: {}}") == [
        "tool: which one? The rule is for get_*"
    ]


def test_a_case_that_another_rule_takes_fails() -> None:
    found = ruled(
        """
        - {name: first, tools: t, when: "op == 'x'", response: [{drop: b}]}
        - name: second
          tools: t
          response: [{drop: c}]
          tests: [{arguments: {op: x}, given: {b: 1, c: 1}, expect: {b: 1}}]
        """
    )

    [verdict] = cases.run(found)

    assert verdict.message == "the rule 'first' (rules.yaml:4) takes this call"


def test_a_rule_in_shadow_mode_is_tested_as_if_it_were_active() -> None:
    assert verdict(f"mode: shadow\n{DROP}", "{given: {a: 1, b: 2}, expect: {a: 1}}") == []


def test_a_rule_that_fails_fails_its_case_even_though_the_original_goes_out() -> None:
    rule = "name: r\nresponse: [{jmespath: 'abs(a)'}]"

    [said, *_] = verdict(rule, "{given: {a: text}, untouched: true}")

    assert "abs" in said


@pytest.mark.parametrize(
    ("rule", "case"),
    [
        ("allow_growth: false, response: [{project: [a, b]}]", "given: {a: 1}, untouched: true"),
        ("allow_growth: true, response: [{project: [a, b]}]", "given: {a: 1}, absent: c"),
        ("response: [{drop: a}]", "given: {a: 1}, untouched: true"),
        (
            "name: r, on_failure: refuse, response: [{drop: a}]",
            "given: {a: 1}, expect_error: everything was removed by rule 'r'",
        ),
        (
            "name: r, on_failure: refuse, response: [{keep: a}]",
            "given: {b: 1}, expect_error: \"the response was withheld: rule 'r' does not fit it\"",
        ),
    ],
)
def test_what_becomes_of_a_response_that_a_rule_does_not_fit_can_be_tested(
    rule: str, case: str
) -> None:
    [found] = cases.run(ruled(f"- {{tools: t, {rule}, tests: [{{{case}}}]}}"))
    assert found.message == ""


def test_a_case_that_expects_nothing_fails() -> None:
    assert verdict(DROP, "{given: {a: 1}}") == [
        "nothing is expected: write one of refused, expect_error, asks, upstream, untouched, "
        "expect, expect_text, expect_at, expect_keys, absent, max_bytes, min_reduction, rejoins, "
        "warns"
    ]


# Running


SEVERAL = """
    - name: one
      tools: a
      response: [{drop: b}]
      tests:
        - {name: drops, given: {a: 1, b: 1}, expect: {a: 1}}
        - {given: {a: 1, b: 1}, expect: {b: 1}}
    - tools: c
      tests: [{name: Keeps, given: {b: 1}, untouched: true}]
"""


def test_every_case_has_a_verdict_with_its_place() -> None:
    found = list(cases.run(ruled(SEVERAL)))

    assert [(each.rule, each.case, each.place, each.ok) for each in found] == [
        ("one", "drops", "rules.yaml:8", True),
        ("one", "case 2", "rules.yaml:9", False),
        ("c", "Keeps", "rules.yaml:11", True),
    ]
    assert all(each.seconds >= 0 for each in found)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [("", 3), ("one", 2), ("one: case", 1), ("KEEPS", 1), ("c", 2), ("nothing", 0)],
)
def test_cases_are_picked_by_a_part_of_their_name(wanted: str, names: int) -> None:
    assert len(list(cases.run(ruled(SEVERAL), wanted))) == names
