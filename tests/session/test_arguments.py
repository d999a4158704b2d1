"""The arguments that rules add or bound: advertised names, checks, defaults, what is taken off."""

from random import Random
from typing import Any

import pytest
from msgspec import UNSET

from proxy.document.tree import encode, loads
from proxy.errors import Refusal
from proxy.session.tools import arguments
from proxy.session.tools.arguments import ArgumentPlan, Completed, complete, plan
from tests.given import rule

PAGES = "response: [{paginate: {limit: 20, max_limit: 50}}]"
NAMED = "response: [{paginate: {arguments: {limit: rows, offset: row}}}]"
BOUND = "max_bytes: 1000"


def completed(text: str, sent: dict[str, Any], taken: tuple[str, ...] = ()) -> Completed:
    return complete(plan(rule(text), taken), (), sent)


def refusal(text: str, sent: dict[str, Any]) -> str:
    with pytest.raises(Refusal) as caught:
        completed(text, sent)
    return str(caught.value)


def names(made: ArgumentPlan) -> dict[str, str]:
    return {entry.name: entry.client_name for entry in made.entries}


# Names


def test_a_window_adds_its_arguments() -> None:
    assert names(plan(rule(PAGES), ())) == {"limit": "limit", "offset": "offset"}


def test_a_default_name_gives_way_where_the_server_has_it() -> None:
    made = plan(rule(PAGES), ("limit", "path"))

    assert names(made) == {"limit": "page_limit", "offset": "offset"}
    assert made.names == {"limit": "page_limit"}


def test_a_name_that_the_rule_spells_out_is_the_rules() -> None:
    assert names(plan(rule(NAMED), ("rows", "row"))) == {"rows": "rows", "row": "row"}
    bounded = rule(f"arguments: {{limit: {{default: 10, upstream: false}}}}\n{PAGES}")
    assert names(plan(bounded, ("limit",)))["limit"] == "limit"


def test_the_view_gives_way_under_a_name_of_its_own() -> None:
    assert names(plan(rule(BOUND), ())) == {"view": "view"}
    assert names(plan(rule(BOUND), ("view",))) == {"view": "abridged_view"}


def test_a_rule_that_only_may_shrink_adds_no_view() -> None:
    assert plan(rule(f"{BOUND}\nview: false"), ()).entries == ()


def test_the_server_keeps_an_argument_of_a_name_that_gave_way() -> None:
    done = completed(PAGES, {"limit": 5, "page_limit": 3}, ("limit",))

    assert done.upstream == {"limit": 5}
    assert done.arguments["limit"] == 3


# Completing


def test_defaults_of_windows_are_filled_in_and_never_sent() -> None:
    sent = {"path": "a"}

    done = completed(PAGES, sent)

    assert done.arguments == {"path": "a", "limit": 20, "offset": 0}
    assert (done.upstream, done.changed) == (sent, False)
    assert sent == {"path": "a"}


def test_what_is_ours_is_taken_off() -> None:
    done = completed(PAGES, {"path": "a", "limit": 5, "offset": 10})

    assert done.arguments == {"path": "a", "limit": 5, "offset": 10}
    assert (done.upstream, done.changed) == ({"path": "a"}, True)
    assert done.resumes


def test_a_null_for_an_argument_of_ours_counts_as_absent() -> None:
    done = completed(PAGES, {"limit": None})

    assert done.arguments["limit"] == 20
    assert done.upstream == {}


def test_a_call_that_begins_at_the_start_does_not_resume() -> None:
    assert not completed(PAGES, {"limit": 5}).resumes
    assert not completed(PAGES, {"offset": 0}).resumes


def test_a_view_is_steering_but_resumes_no_window() -> None:
    done = completed(BOUND, {"view": "items[0]"})

    assert done.steering == {"view": "items[0]"}
    assert (done.upstream, done.resumes) == ({}, False)


def test_a_default_of_the_servers_own_argument_is_sent() -> None:
    done = completed("arguments: {limit: {default: 50}}", {"folder": "a"})

    assert (done.upstream, done.changed) == ({"folder": "a", "limit": 50}, True)


def test_a_dotted_name_reaches_into_objects() -> None:
    text = "arguments: {filter.limit: {default: 20}}"

    assert completed(text, {}).upstream == {"filter": {"limit": 20}}
    assert completed(text, {"filter": {"folder": "a"}}).upstream == {
        "filter": {"folder": "a", "limit": 20}
    }
    assert not completed(text, {"filter": {"limit": 5}}).changed


def test_a_window_in_an_object_is_taken_off_there() -> None:
    text = "response: [{paginate: {arguments: {limit: params.limit, offset: params.offset}}}]"

    done = completed(text, {"params": {"folder": "a", "limit": 2}})

    assert done.upstream == {"params": {"folder": "a"}}
    assert done.arguments == {"params": {"folder": "a", "limit": 2, "offset": 0}}


def test_an_alias_stands_for_the_argument_it_names() -> None:
    text = "arguments: {path: {alias_of: prefix}}"

    assert completed(text, {"path": "a"}).upstream == {"prefix": "a"}
    assert completed(text, {"path": "a"}).arguments == {"prefix": "a"}


def test_an_alias_gives_way_to_the_argument_it_names() -> None:
    done = completed("arguments: {path: {alias_of: prefix}}", {"path": "a", "prefix": "b"})

    assert done.upstream == {"prefix": "b"}


def test_an_alias_is_checked_as_the_argument_it_names() -> None:
    text = "arguments: {size: {alias_of: limit}, limit: {maximum: 10}}"

    assert refusal(text, {"size": 11}) == "limit: 11 is greater than the maximum of 10"


def test_what_further_rules_add_to_the_tool_is_taken_off_too() -> None:
    done = complete(ArgumentPlan(), [plan(rule(PAGES), ())], {"limit": 5, "path": "a"})

    assert (done.upstream, done.arguments) == ({"path": "a"}, {"limit": 5, "path": "a"})


def test_what_has_a_say_in_the_answer_is_told_from_what_only_moves_a_window() -> None:
    text = f"arguments: {{pattern: {{type: string, upstream: false}}}}\n{PAGES}"

    done = completed(text, {"pattern": "*.md", "limit": 5, "path": "a"})

    assert done.own == {"pattern": "*.md"}
    assert done.upstream == {"path": "a"}


def test_an_argument_that_is_not_looked_at_keeps_its_spelling() -> None:
    sent = loads(b'{"limit": 5, "n": 1.0, "big": 12345678901234567890123}')

    done = completed(PAGES, sent)

    assert encode(done.upstream) == b'{"n":1.0,"big":12345678901234567890123}'


# Checks


@pytest.mark.parametrize(
    ("bounds", "value", "said"),
    [
        ("maximum: 100", 101, "n: 101 is greater than the maximum of 100"),
        ("maximum: 0.5", 0.75, "n: 0.75 is greater than the maximum of 0.5"),
        ("minimum: 1", 0, "n: 0 is less than the minimum of 1"),
        ("minimum: 1", -5, "n: -5 is less than the minimum of 1"),
        ("enum: [a, b]", "c", 'n: "c" is not one of "a", "b"'),
        ("max_length: 3", "abcd", "n: 4 characters are more than the maximum of 3"),
        ("pattern: '^a+$'", "b", "n: \"b\" does not match '^a+$'"),
        ("type: integer", "5", 'n: "5" is not an integer'),
        ("type: integer", 5.5, "n: 5.5 is not an integer"),
        ("type: integer", True, "n: true is not an integer"),
        ("type: integer", [1], "n: [1] is not an integer"),
        ("type: number", "5", 'n: "5" is not a number'),
        ("type: number", False, "n: false is not a number"),
        ("type: string", 5, "n: 5 is not a string"),
        ("type: string", None, "n: null is not a string"),
        ("type: boolean", 1, "n: 1 is not true or false"),
        ("type: array", {}, "n: {} is not an array"),
        ("type: object", [], "n: [] is not an object"),
        ("{maximum: 3, message: too many}", 4, "too many"),
        ("{minimum: 0, maximum: 3, message: {maximum: too many}}", 4, "too many"),
        (
            "{minimum: 0, maximum: 3, message: {maximum: too many}}",
            -1,
            "n: -1 is less than the minimum of 0",
        ),
        ("{minimum: 0, message: {minimum: too few}}", -1, "too few"),
        ("{type: integer, message: {type: a count}}", "4", "a count"),
        ("{enum: [a], message: {enum: 'a, nothing else'}}", "b", "a, nothing else"),
        ("{max_length: 2, message: {max_length: too long}}", "abc", "too long"),
        ("{pattern: '^a', message: {pattern: begin with a}}", "b", "begin with a"),
        ("type: integer", "x" * 100, f'n: "{"x" * 76}... is not an integer'),
    ],
)
def test_what_a_rule_does_not_admit_is_refused_in_words(bounds: str, value: Any, said: str) -> None:
    bounds = bounds if bounds.startswith("{") else f"{{{bounds}}}"

    assert refusal(f"arguments: {{n: {bounds}}}", {"n": value}) == said


@pytest.mark.parametrize(
    ("bounds", "value"),
    [
        ("minimum: 1, maximum: 100", 1),
        ("minimum: 1, maximum: 100", 100),
        ("enum: [1, 2]", 2),
        ("max_length: 3", "abc"),
        ("max_length: 1", "\U0001d4b3"),
        ("pattern: b", "abc"),
        ("type: number", 5),
        ("type: boolean", False),
        ("maximum: 5", "a text, which has no maximum"),
    ],
)
def test_what_a_rule_admits_passes_as_it_came(bounds: str, value: Any) -> None:
    done = completed(f"arguments: {{n: {{{bounds}}}}}", {"n": value})

    assert (done.upstream, done.changed) == ({"n": value}, False)


def test_a_whole_number_may_be_written_as_a_fraction() -> None:
    assert completed(PAGES, {"limit": 5.0}).arguments["limit"] == 5


@pytest.mark.fault(37, "inside")
def test_a_value_that_takes_long_to_match_is_refused_as_one_that_does_not() -> None:
    slow, value = "(?:a|b)*a(?:a|b){1000}c", "".join(Random(1).choices("ab", k=100_000))
    said = f'a: "{value[:76]}... takes too much work to match with {slow!r}'
    assert refusal(f"arguments: {{a: {{pattern: '{slow}'}}}}", {"a": value}) == said
    own = f"arguments: {{a: {{pattern: '{slow}', message: no}}}}"
    assert refusal(own, {"a": value}) == "no"


@pytest.mark.parametrize(("value", "kept"), [(0, 1), (500, 100), (50, 50)])
def test_a_clamped_number_is_moved_to_the_nearest_bound(value: int, kept: int) -> None:
    text = "arguments: {n: {minimum: 1, maximum: 100, clamp: true}}"

    assert completed(text, {"n": value}).upstream == {"n": kept}


def test_a_clamped_text_is_cut() -> None:
    text = "arguments: {n: {max_length: 3, clamp: true}}"

    assert completed(text, {"n": "abcd"}).upstream == {"n": "abc"}


@pytest.mark.fault(39, "inside")
@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"limit": 51}, "limit: 51 is greater than the maximum of 50"),
        ({"limit": 10**30}, f"limit: {10**30} is greater than the maximum of 50"),
        ({"limit": 0}, "limit: 0 is less than the minimum of 1"),
        ({"limit": "5"}, 'limit: "5" is not an integer'),
        ({"limit": True}, "limit: true is not an integer"),
        ({"offset": -1}, "offset: -1 is less than the minimum of 0"),
        ({"offset": 1.5}, "offset: 1.5 is not an integer"),
    ],
)
def test_a_window_out_of_range_is_refused(sent: dict[str, Any], said: str) -> None:
    assert refusal(PAGES, sent) == said


def test_a_refusal_speaks_of_the_name_that_the_client_knows() -> None:
    with pytest.raises(Refusal, match="page_limit: 51 is greater"):
        completed(PAGES, {"page_limit": 51}, ("limit",))


def test_a_bound_of_the_rule_holds_for_the_window_argument_of_the_same_name() -> None:
    text = f"arguments: {{offset: {{maximum: 10000, message: too far}}}}\n{PAGES}"

    assert refusal(text, {"offset": 10001}) == "too far"


def test_a_message_for_one_bound_of_a_window_leaves_the_others_their_own_words() -> None:
    text = f"arguments: {{offset: {{message: {{minimum: begin at 0}}}}}}\n{PAGES}"

    assert refusal(text, {"offset": -1}) == "begin at 0"
    assert refusal(text, {"limit": 0}) == "limit: 0 is less than the minimum of 1"
    assert refusal(text, {"offset": "1"}) == 'offset: "1" is not an integer'


def test_what_a_refusal_says_is_not_advertised() -> None:
    silent = "{minimum: 0, maximum: 9}"
    said = "{minimum: 0, maximum: 9, message: {maximum: too far}}"
    made = [plan(rule(f"arguments: {{n: {each}}}"), ()).entries for each in (silent, said)]

    assert [entry.schema for entry in made[0]] == [entry.schema for entry in made[1]]


# Nested arguments


def test_put_makes_the_objects_on_the_way_and_leaves_what_it_is_given_as_it_is() -> None:
    held = {"a": 1, "d": {"e": 1}}

    assert arguments.with_value(held, "b.c", 2) == {"a": 1, "d": {"e": 1}, "b": {"c": 2}}
    assert arguments.with_value(held, "a.c", 3) == {"a": {"c": 3}, "d": {"e": 1}}
    assert arguments.with_value(held, "d.c", 4) == {"a": 1, "d": {"e": 1, "c": 4}}
    assert held == {"a": 1, "d": {"e": 1}}


def test_get_tells_null_from_absent() -> None:
    held = {"a": {"b": None}}

    assert arguments.value_at(held, "a.b") is None
    assert arguments.value_at(held, "a.c") is UNSET
    assert arguments.value_at(held, "a.b.c") is UNSET


def test_without_leaves_what_it_is_given_as_it_is() -> None:
    held = {"a": {"b": 1, "c": 2}, "d": 3}

    assert arguments.without(held, "a.b") == {"a": {"c": 2}, "d": 3}
    assert arguments.without(held, "d") == {"a": {"b": 1, "c": 2}}
    assert arguments.without(held, "x.y") is held
    assert arguments.without(held, "d.y") is held
    assert held == {"a": {"b": 1, "c": 2}, "d": 3}
