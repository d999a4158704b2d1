"""The rules of the sessions that are fuzzed: each tool is named for what its rule does."""

from functools import lru_cache

from mcp_abridge.ruleset.guard import Allow, Decision, QueryResult, Respond
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.rule_set import RuleFile, RuleSet
from msgspec.structs import replace

from tests.builders import file
from tests.fuzz.grammar import Dice
from tests.transports.guarded import querying

FREE = ("get", "echo")
"""Tools that no rule covers."""

TOOLS = (
    *("get", "echo", "list", "list", "bound", "drop", "gone", "strict", "contract", "fails"),
    *("when", "shadow", "asks", "asks", "says", "breaks", "errors", "text", "write"),
)

_BASE = """
version: 1
rules:
  - {name: pages, tools: list, response: [{paginate: {at: items, limit: 2, drop_on: [write]}}]}
  - {name: bound, tools: bound, max_bytes: 600}
  - {name: drop, tools: drop, response: [{drop: [items.body, text]}], on_failure: refuse}
  - {name: gone, tools: gone, hide: true}
  - name: strict
    tools: strict
    arguments: {limit: {maximum: 10}, path: {alias_of: file}, ours: {default: 1, upstream: false}}
    response: [{keep: [items.id, items.title]}]
  - name: contract
    tools: contract
    output_schema: {type: object, properties: {total: {type: integer}}, required: [total]}
    validate: refuse
  - {name: fails, tools: fails, response: [{jmespath: "sum(items)"}]}
  - {name: whenx, tools: when, when: "action == 'x'", response: [{elide: {at: items, first: 1}}]}
  - {name: wheny, tools: when, when: "limit > `5`", arguments: {limit: {maximum: 50}}}
  - {name: shadow, tools: shadow, mode: shadow, response: [{keep: total}]}
  - {name: errors, tools: errors, errors: [{recast: {cases: {to: {error: "{text}"}}}}]}
  - {name: text, tools: text, response: [{truncate: {max_length: 30}}]}
  - {name: asks, tools: asks, response: [{elide: {at: items, last: 1}}]}
  - {name: says, tools: says}
  - {name: breaks, tools: breaks, arguments: {limit: {maximum: 10}}}
"""
_OTHER = """
version: 1
rules:
  - {name: pages, tools: list, response: [{keep: items}, {paginate: {at: items, limit: 3}}]}
  - {name: gone, tools: [gone, write], hide: {code: -32601, message: "no {tool}"}}
  - {name: strict, tools: strict, arguments: {limit: {maximum: 10, clamp: true}}, max_bytes: 900}
  - {name: asks, tools: asks, on_failure: pass}
  - {name: bound, tools: [bound, drop, contract], max_bytes: 400, view: false}
"""
_EXPOSED = """
version: 1
expose: [get, echo, list, strict, asks]
rules:
  - {name: strict, tools: strict, arguments: {limit: {maximum: 10}}}
  - {name: asks, tools: asks}
"""
_NONE = "version: 1\nrules: []\n"


def rulesets(dice: Dice) -> list[RuleSet]:
    """Return the rules that hold one after the other, made anew: some keep count of failures."""
    texts = [_BASE, dice.pick((_BASE, _BASE, _OTHER, _EXPOSED, _NONE)), _BASE, _OTHER]
    return [_fresh(_file(text)) for text in texts[: dice.within(1, 4)]]


@lru_cache
def _file(text: str) -> RuleFile:
    return file(text)


def _fresh(file: RuleFile) -> RuleSet:
    rules = tuple(_guarded(replace(rule)) for rule in file.rules)
    return RuleSet((replace(file, rules=rules),))


def _guarded(rule: Rule) -> Rule:
    then = {"asks": _allow, "says": _respond, "breaks": _broken}.get(rule.name)
    if then is None:
        return rule
    return replace(rule, guard=querying(then))


def _allow(result: QueryResult) -> Decision:
    """Let the call go unless the answer to the question was no document."""
    if result.failure is None:
        return Allow({"seen": True}, {"found": "yes"})
    return Respond(f"no: {result.failure[:40]}", error=True)


def _respond(result: QueryResult) -> Decision:
    return Respond({"status": "blocked", "found": result.failure is None})


def _broken(result: QueryResult) -> Decision:
    raise KeyError("on purpose")
