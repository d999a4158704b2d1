"""tools/list as clients get it: tools hidden, arguments added, schemas that fit what comes out."""

import json
from typing import Any, ClassVar

import pytest
from msgspec import Raw, Struct
from msgspec.structs import replace

from proxy import arguments, definitions
from proxy.arguments import Plan
from proxy.definitions import Seen
from proxy.document import encode
from proxy.errors import DocumentError
from proxy.guard import Answer, Decision, Found
from proxy.rule import EMPTY, Rule, RuleSet
from proxy.transforms.base import Call, Parameter
from tests.given import file, rules

PAGES = "- {tools: list, response: [{paginate: {at: items, limit: 20}}]}"


class Listing:
    """A tools/list that was rewritten."""

    def __init__(self, chosen: RuleSet, result: Any) -> None:
        def plans(tool: str, fact: Seen) -> tuple[tuple[Rule, Plan], ...]:
            covering = chosen.covering(tool)
            return tuple((rule, arguments.plan(rule, fact.arguments)) for rule in covering)

        self.log: list[str] = []
        raw = Raw(result if isinstance(result, bytes) else encode(result))
        self.raw, self.facts = definitions.rewrite(raw, chosen, plans, self.log.append)

    @property
    def result(self) -> dict[str, Any]:
        assert self.raw is not None
        decoded: dict[str, Any] = json.loads(bytes(self.raw))
        return decoded

    @property
    def tool(self) -> dict[str, Any]:
        [only] = self.result["tools"]
        assert isinstance(only, dict)
        return only


def tool(name: str = "list", **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": {}}, **members}


def listed(text: str, *tools: Any, **members: Any) -> Listing:
    return Listing(rules(text), {"tools": list(tools), **members})


def properties(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    found = listed(text, tool(inputSchema=schema)).tool["inputSchema"]["properties"]
    assert isinstance(found, dict)
    return found


# What stays


def test_a_list_that_ends_names_all_its_tools() -> None:
    def names(**members: Any) -> frozenset[str] | None:
        return definitions.names(Raw(encode(members)))

    assert names(tools=[tool("a"), {"name": 5}, tool("b")]) == frozenset("ab")
    assert names(tools=[], nextCursor=None) == frozenset()
    assert names(tools=[tool("a")], nextCursor="") is None
    assert names(tools=5) is None


def test_a_list_that_no_rule_touches_is_left_alone() -> None:
    assert listed("- {tools: other, hide: true}", tool()).raw is None
    assert Listing(EMPTY, {"tools": [tool()]}).raw is None


def test_a_tool_that_no_rule_touches_stays_the_bytes_that_came() -> None:
    kept = b'{ "name" : "kept", "x": 1.0, "inputSchema": {"type": "object"} }'
    raw = b'{"tools": [' + kept + b', {"name": "gone"}], "nextCursor": ""}'

    found = Listing(rules("- {tools: gone, hide: true}"), raw)

    assert found.raw is not None
    assert bytes(found.raw) == b'{"tools":[' + kept + b'],"nextCursor":""}'


def test_the_order_of_tools_and_members_of_the_list_stays() -> None:
    found = listed(
        "- {tools: b, hide: true}",
        tool("c"),
        tool("b"),
        tool("a"),
        nextCursor="x",
        ttlMs=5,
        _meta={"a": 1},
    )

    assert [each["name"] for each in found.result["tools"]] == ["c", "a"]
    assert list(found.result) == ["tools", "nextCursor", "ttlMs", "_meta"]


def test_a_page_that_becomes_empty_keeps_its_cursor() -> None:
    found = listed("- {tools: list, hide: true}", tool(), nextCursor="")

    assert found.result == {"tools": [], "nextCursor": ""}


@pytest.mark.parametrize("tools", [None, {}, 5, "tools"])
def test_a_list_that_is_none_is_left_alone(tools: Any) -> None:
    assert Listing(rules(PAGES), {"tools": tools}).raw is None


def test_a_result_that_is_no_object_cannot_be_read() -> None:
    with pytest.raises(DocumentError):
        Listing(rules(PAGES), [])


@pytest.mark.parametrize("odd", [None, 5, [], {}, {"name": None}, {"name": 5}])
def test_an_entry_that_is_no_tool_stays_beside_tools_that_are_edited(odd: Any) -> None:
    found = listed("- {tools: gone, hide: true}", odd, tool("gone"))

    assert found.result["tools"] == [odd]


# What goes


def test_a_tool_in_shadow_mode_is_neither_hidden_nor_given_arguments() -> None:
    assert listed("- {tools: list, hide: true, mode: shadow}", tool()).raw is None
    shadow = "- {tools: list, mode: shadow, response: [{paginate: {at: items}}]}"
    assert listed(shadow, tool()).raw is None


def test_only_exposed_tools_are_shown() -> None:
    chosen = RuleSet((file("version: 1\nexpose: [get_*]\nrules: []"),))

    found = Listing(chosen, {"tools": [tool("get_a"), tool("set_a"), tool("get_b")]})

    assert [each["name"] for each in found.result["tools"]] == ["get_a", "get_b"]


# Arguments


def test_window_arguments_are_advertised_as_optional() -> None:
    own = {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    }

    schema = listed(PAGES, tool(inputSchema=own)).tool["inputSchema"]

    assert list(schema["properties"]) == ["path", "limit", "offset"]
    assert schema["properties"]["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 200,
        "default": 20,
        "description": "How many of `items` to return",
    }
    assert (schema["required"], schema["additionalProperties"]) == (["path"], False)


@pytest.mark.parametrize("own", [{}, {"type": "object"}, {"properties": None}, {"required": 5}])
def test_a_schema_without_properties_gains_them(own: dict[str, Any]) -> None:
    schema = listed(PAGES, tool(inputSchema=own)).tool["inputSchema"]

    assert list(schema["properties"]) == ["limit", "offset"]
    assert schema["type"] == "object"


def test_a_tool_without_an_input_schema_gains_one() -> None:
    schema = listed(PAGES, {"name": "list"}).tool["inputSchema"]

    assert list(schema["properties"]) == ["limit", "offset"]


def test_a_servers_own_argument_stays_under_its_name_and_ours_gives_way() -> None:
    own = {"type": "string", "description": "own"}

    found = properties(PAGES, {"type": "object", "properties": {"limit": own}})

    assert found["limit"] == own
    assert list(found) == ["limit", "page_limit", "offset"]


def test_an_argument_that_the_rule_spells_out_replaces_the_servers_and_is_not_required() -> None:
    text = "- {tools: list, response: [{paginate: {arguments: {limit: n, offset: at}}}]}"
    own = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}

    schema = listed(text, tool(inputSchema=own)).tool["inputSchema"]

    assert schema["properties"]["n"]["type"] == "integer"
    assert "required" not in schema


def test_bounds_are_advertised_beside_what_the_server_says() -> None:
    text = "- {tools: list, arguments: {n: {minimum: 1, maximum: 9, default: 5}}}"
    own = {"type": "object", "properties": {"n": {"type": "integer", "description": "own"}}}

    assert properties(text, own)["n"] == {
        "type": "integer",
        "description": "own",
        "minimum": 1,
        "maximum": 9,
        "default": 5,
    }


def test_what_has_a_default_is_no_longer_required() -> None:
    text = "- {tools: list, arguments: {n: {default: 5}}}"
    own = {"type": "object", "properties": {"n": {}, "m": {}}, "required": ["n", "m"]}

    assert listed(text, tool(inputSchema=own)).tool["inputSchema"]["required"] == ["m"]


def test_a_dotted_name_is_advertised_inside_its_object() -> None:
    text = "- {tools: list, arguments: {filter.limit: {default: 20}}}"
    own = {"type": "object", "properties": {"filter": {"type": "object", "properties": {"a": {}}}}}

    assert properties(text, own)["filter"]["properties"] == {"a": {}, "limit": {"default": 20}}
    assert properties(text, {"type": "object"})["filter"] == {
        "type": "object",
        "properties": {"limit": {"default": 20}},
    }


def test_an_alias_is_not_advertised() -> None:
    assert listed("- {tools: list, arguments: {path: {alias_of: prefix}}}", tool()).raw is None


def test_rules_with_different_conditions_show_the_union_of_their_arguments() -> None:
    text = """
        - tools: list
          when: "operation == 'list'"
          response: [{paginate: {at: files, limit: 100, max_limit: 100}}]
        - tools: list
          when: "operation == 'search'"
          response: [{paginate: {as: results, limit: 20, max_limit: 500}}]
        - tools: list
          when: "operation == 'read'"
          response: [truncate]
    """

    found = properties(text, {"type": "object"})

    assert list(found) == ["limit", "offset", "maxLength", "startIndex"]
    assert found["limit"]["maximum"] == 500
    assert "default" not in found["limit"]
    assert found["maxLength"]["description"].endswith("(where operation == 'read')")


def test_a_bound_that_holds_for_some_calls_only_is_not_advertised_for_all() -> None:
    text = "- {tools: list, when: \"op == 'a'\", arguments: {n: {maximum: 5, default: 1}}}"

    assert listed(text, tool()).raw is None


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {}}},
        {"allOf": [{"type": "object", "additionalProperties": False}]},
        {"anyOf": [{"additionalProperties": False}, {}]},
        5,
        None,
        "object",
    ],
)
def test_a_schema_that_leaves_no_place_stays_and_the_log_says_so(schema: Any) -> None:
    found = listed(PAGES, tool(inputSchema=schema))

    assert found.tool["inputSchema"] == schema
    assert found.log == ["list: its inputSchema leaves no place for the arguments of a rule"]


@pytest.mark.parametrize("branches", [None, 5, {"a": 1}, [5, None]])
def test_odd_branches_of_a_schema_do_no_harm(branches: Any) -> None:
    assert "limit" in properties(PAGES, {"type": "object", "anyOf": branches})


def test_a_schema_that_grows_beyond_what_a_client_takes_is_logged() -> None:
    own = {"type": "object", "properties": {"a": {"description": "x" * 16_384}}}

    [line] = listed(PAGES, tool(inputSchema=own)).log

    assert line.startswith("list: inputSchema is 16")
    assert line.endswith(" bytes; claude.ai drops tools above 16384")


# Descriptions


def test_the_description_gains_a_sentence_on_how_to_go_on() -> None:
    assert listed(PAGES, tool(description="Lists.")).tool["description"] == (
        "Lists. Returns `items` in pages of 20 (`limit`, at most 200); while "
        "`pagination.hasMore` is true, call again with `offset` = `pagination.nextOffset`."
    )


def test_the_sentence_names_the_arguments_that_clients_know() -> None:
    own = {"type": "object", "properties": {"limit": {}, "offset": {}}}

    said = listed(PAGES, tool(inputSchema=own)).tool["description"]

    assert "`page_limit`" in said
    assert "`page_offset`" in said


def test_a_description_can_be_replaced_and_shortened() -> None:
    text = "- {tools: list, definition: {description: Lists documents.}}"
    assert listed(text, tool(description="long")).tool["description"] == "Lists documents."
    text = "- {tools: list, definition: {max_description: 6}}"
    assert listed(text, tool(description="Lists documents.")).tool["description"] == "Lists…"
    assert listed(text, tool(description="Lists.")).raw is None


def test_keywords_are_dropped_at_any_depth_but_never_properties_of_that_name() -> None:
    text = "- {tools: list, definition: {drop: [examples, title]}}"
    own = {
        "title": "t",
        "type": "object",
        "properties": {
            "examples": {"type": "array", "items": {"title": "i", "examples": [1]}},
            "title": {"title": "t", "default": {"title": "kept"}},
        },
        "anyOf": [{"title": "t"}, True],
    }

    schema = listed(text, tool(inputSchema=own, outputSchema={"title": "o"})).tool["inputSchema"]

    assert schema == {
        "type": "object",
        "properties": {
            "examples": {"type": "array", "items": {}},
            "title": {"default": {"title": "kept"}},
        },
        "anyOf": [{}, True],
    }


def test_members_of_meta_are_added_to_those_that_are_there() -> None:
    text = '- {tools: list, definition: {meta: {"anthropic/maxResultSizeChars": 500000}}}'

    assert listed(text, tool(_meta={"a": 1})).tool["_meta"] == {
        "a": 1,
        "anthropic/maxResultSizeChars": 500000,
    }


# Output schemas

OWN = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "string"}}},
    "required": ["items"],
    "additionalProperties": False,
}


def test_an_output_schema_admits_what_the_rule_yields_and_what_passes_untouched() -> None:
    schema = listed(PAGES, tool(outputSchema=OWN)).tool["outputSchema"]

    assert schema["type"] == "object"
    assert OWN in schema["anyOf"]
    assert accepts(schema, {"items": ["a"]})
    assert accepts(schema, {"items": ["a"], "pagination": {"total": 1}})
    assert not accepts(schema, {"items": "a"})
    assert not accepts(schema, {"other": 1})


def test_a_tool_without_an_output_schema_gains_none() -> None:
    assert "outputSchema" not in listed(PAGES, tool()).tool


def test_an_output_schema_that_cannot_be_derived_goes() -> None:
    text = "- {tools: list, response: [{jmespath: 'items[0]'}]}"

    assert "outputSchema" not in listed(text, tool(outputSchema=OWN)).tool


def test_an_output_schema_goes_where_only_the_text_is_sent() -> None:
    text = "- {tools: list, copies: text, response: [{drop: a}]}"

    assert "outputSchema" not in listed(text, tool(outputSchema=OWN)).tool


def test_an_output_schema_that_goes_is_not_brought_back_by_dropping_keywords() -> None:
    text = """
        - tools: list
          copies: text
          definition: {drop: [title]}
          response: [{drop: a}]
    """

    assert "outputSchema" not in listed(text, tool(outputSchema=OWN)).tool


def test_the_answer_to_a_view_fits_the_output_schema() -> None:
    text = "- {tools: list, max_bytes: 1000}"

    schema = listed(text, tool(outputSchema=OWN)).tool["outputSchema"]

    assert accepts(schema, {"view": [1, 2]})


@pytest.mark.parametrize("response", ["", "response: [{drop: a}], "])
def test_an_output_schema_admits_the_note_on_blocks_that_were_dropped(response: str) -> None:
    strict = {**OWN, "additionalProperties": False}
    text = f"- {{tools: list, {response}blocks: {{drop: [image]}}}}"

    schema = listed(text, tool(outputSchema=strict)).tool["outputSchema"]

    assert accepts(schema, {"items": ["a"], "_dropped": {"image": 1}})
    assert not accepts(schema, {"items": ["a"], "other": 1})


def test_a_text_held_in_a_member_may_be_cut_and_told_about() -> None:
    own = {
        "type": "object",
        "properties": {"content": {"type": "string"}},
        "required": ["content"],
        "additionalProperties": False,
    }
    text = "- {tools: list, response: [truncate]}"

    schema = listed(text, tool(outputSchema=own)).tool["outputSchema"]

    assert accepts(schema, {"content": "a", "truncation": {"truncated": True}})


def test_a_text_that_is_the_whole_output_may_be_cut_and_told_about() -> None:
    text = "- {tools: list, max_bytes: 1000}"

    schema = listed(text, tool(outputSchema={"type": "string"})).tool["outputSchema"]

    assert accepts(schema, "a")
    assert accepts(schema, {"text": "a", "_abridged": {"text": "1 of 2"}})
    assert not accepts(schema, 5)


@pytest.mark.parametrize("schema", [5, "object", [], None])
def test_an_output_schema_that_is_none_stays(schema: Any) -> None:
    assert listed(PAGES, tool(outputSchema=schema)).tool["outputSchema"] == schema


# Contracts

CONTRACT = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "at": {"type": ["string", "null"]},
        "log": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    },
    "required": ["id"],
    "additionalProperties": False,
}
WRITTEN = """output_schema:
            type: object
            properties:
              id: {type: string}
              at: {type: string, nullable: true}
              log: {type: array, items: {type: string}, minItems: 1}
            required: [id]
            additionalProperties: false
"""
ALL = f"""
        - tools: list
          {WRITTEN}"""
KEPT = f"{ALL}          validate: refuse\n"
ANYTHING = {"description": "What does not keep to the contract passes as the server sent it."}


def promised(text: str, **members: Any) -> dict[str, Any]:
    found = listed(text, tool(**members))
    assert found.log == []
    schema = found.tool["outputSchema"]
    assert isinstance(schema, dict)
    return schema


def test_a_contract_that_is_always_kept_is_advertised_as_it_is() -> None:
    assert promised(KEPT) == CONTRACT


@pytest.mark.parametrize("text", [ALL, f"{ALL}          validate: warn\n"])
def test_a_contract_that_may_be_broken_stands_beside_what_breaks_it(text: str) -> None:
    assert promised(text) == {"type": "object", "anyOf": [CONTRACT, ANYTHING]}


def test_what_is_abridged_or_viewed_fits_a_contract_that_is_always_kept() -> None:
    schema = promised(f"{KEPT}          max_bytes: 500\n")

    assert schema["type"] == "object"
    assert accepts(schema, {"id": "a", "log": [], "_abridged": {"log": "0 of 9"}})
    assert accepts(schema, {"view": ["a"]})
    assert not accepts(schema, {"id": 5})
    assert len(schema["anyOf"]) == 2
    assert "anyOf" not in promised(f"{KEPT}          max_bytes: 500\n          view: false\n")


def test_the_note_on_dropped_blocks_fits_a_contract() -> None:
    schema = promised(f"{KEPT}          blocks: {{drop: [image]}}\n")

    assert accepts(schema, {"id": "a", "_dropped": {"image": 1}})
    assert not accepts(schema, {"id": "a", "other": 1})


def test_the_answers_of_a_guard_fit_what_is_advertised() -> None:
    class Closed(Struct, frozen=True):
        name: ClassVar[str] = "closed"
        shorthand: ClassVar[str | None] = None
        parameters: ClassVar[dict[str, Parameter]] = {}

        def __call__(self, call: Call, found: Found | None) -> Decision:
            return Answer({"status": "closed"})

    [held] = rules(KEPT).files
    guarded = replace(held, rules=tuple(replace(each, guard=Closed()) for each in held.rules))

    schema = Listing(RuleSet((guarded,)), {"tools": [tool()]}).tool["outputSchema"]

    assert schema["anyOf"][0] == CONTRACT
    assert accepts(schema, {"status": "closed"})
    assert not accepts(schema, "closed")
    own = Listing(RuleSet((guarded,)), {"tools": [tool(outputSchema=OWN)]}).tool["outputSchema"]
    assert accepts(own, {"status": "closed"})


def test_rules_for_the_calls_of_a_tool_promise_what_either_of_them_does() -> None:
    text = """
        - {tools: list, when: a, validate: refuse, output_schema: {type: object, required: [a]}}
        - {tools: list, validate: refuse, output_schema: {type: object, required: [b]}}
    """

    assert promised(text) == {
        "type": "object",
        "anyOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}],
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "- {tools: list, when: a, output_schema: {type: object}}",
            "no rule takes the calls for which each 'when' is false",
        ),
        (
            """
            - {tools: list, when: a, output_schema: {type: object}}
            - {tools: list, name: rest}
            """,
            "the rule 'rest' of the same tool has none",
        ),
        (
            """
            - {tools: list, when: a, name: try, output_schema: {type: object}, mode: shadow}
            - {tools: list, output_schema: {type: object}}
            """,
            "the rule 'try' changes nothing (mode: shadow)",
        ),
        (
            "- {tools: list, output_schema: {type: object}, copies: text}",
            "the rule 'list' sends only texts (copies: text)",
        ),
        (
            """
            - tools: list
              when: a
              output_schema: {type: object, $schema: "http://json-schema.org/draft-07/schema#"}
            - tools: list
              output_schema:
                {type: object, $schema: "https://json-schema.org/draft/2020-12/schema", title: b}
            """,
            "two dialects",
        ),
    ],
)
def test_what_not_every_result_could_keep_is_not_advertised(text: str, why: str) -> None:
    found = listed(text, tool())

    assert found.raw is None
    assert found.log == [f"list: output_schema is not advertised: {why}"]


def test_a_rule_in_shadow_mode_promises_nothing() -> None:
    found = listed("- {tools: list, output_schema: {type: object}, mode: shadow}", tool())

    assert (found.raw, found.log) == (None, [])


def test_a_contract_stands_beside_what_the_server_declares() -> None:
    schema = promised(KEPT, outputSchema=OWN)

    assert schema == {"type": "object", "anyOf": [CONTRACT, OWN]}
    warned = promised(f"{ALL}          validate: warn\n", outputSchema=OWN)
    assert warned == {"type": "object", "anyOf": [CONTRACT, ANYTHING, OWN]}
    # Where some calls are no rule's, their results are what the server declares.
    assert promised(KEPT.replace("tools: list", "tools: list\n          when: a"), outputSchema=OWN)


def test_what_is_abridged_after_it_fits_a_contract_beside_the_servers_schema() -> None:
    schema = promised(f"{KEPT}          max_bytes: 500\n", outputSchema=OWN)

    assert accepts(schema, {"id": "a", "log": [], "_abridged": {"log": "0 of 9"}})


def test_keywords_are_dropped_from_an_advertised_contract_too() -> None:
    text = """
        - tools: list
          definition: {drop: [examples]}
          validate: refuse
          output_schema: {type: object, examples: [{}], properties: {examples: {type: array}}}
    """

    assert promised(text) == {"type": "object", "properties": {"examples": {"type": "array"}}}


def accepts(schema: dict[str, Any], value: Any) -> bool:
    import jsonschema

    return jsonschema.Draft202012Validator(schema).is_valid(value)


# What is seen on the way


def test_the_arguments_and_the_hints_of_each_tool_are_seen() -> None:
    own = {"properties": {"a": {}, "p": {"type": "object", "properties": {"limit": {}}}}}

    found = listed(
        "- {tools: x, hide: true}",
        tool("a", inputSchema=own, annotations={"readOnlyHint": True}),
        tool("b", annotations={"readOnlyHint": False}),
        {"name": "c"},
        tool("d", inputSchema=5, annotations=7, outputSchema={"type": "object"}),
        tool("f", outputSchema={"type": "object"}),
        tool("e", inputSchema={"properties": {"a": 5}}),
    )

    assert found.facts == {
        "a": Seen(frozenset({"a", "p", "p.limit"}), True),
        "b": Seen(),
        "c": Seen(),
        "d": Seen(structured=True),
        "f": Seen(structured=True),
        "e": Seen(frozenset({"a"})),
    }
