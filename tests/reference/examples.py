"""The doctests of transforms, run and shown as tests of a rule."""

import doctest
import inspect
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import msgspec
import yaml
from mcp_abridge.document.paths import Path
from mcp_abridge.document.tree import Slot
from mcp_abridge.query.call import Call
from mcp_abridge.query.patterns import Expression, Pattern
from mcp_abridge.ruleset.loading.convert import fields
from mcp_abridge.transforms.base import Transform
from msgspec import NODEFAULT, UNSET, Raw, Struct

from tests.reference.markdown import WIDTH, wrapped

_LARGEST = 400  # bytes of a document that is shown


class RunExample(Struct, frozen=True):
    """One call of a step in a doctest: the document before and after the call, as JSON."""

    step: Transform
    arguments: dict[str, Any]
    before: bytes
    after: bytes | None


class _Recorder(Struct):
    step: Transform
    runs: list[RunExample]

    def __call__(self, root: Slot, call: Call) -> None:
        document, arguments = root.document, dict(call.arguments)
        before = document.encode()
        self.step(root, call)
        # A document parsed from a text is incomplete until its closers have run.
        after = None if document.closers else document.encode()
        self.runs.append(RunExample(self.step, arguments, before, after))


def runs(kind: Any) -> list[RunExample]:
    examples: list[RunExample] = []
    names = dict(vars(sys.modules[kind.__module__]))
    names[kind.__name__] = lambda *values, **options: _Recorder(kind(*values, **options), examples)
    for line in doctest.DocTestParser().get_examples(inspect.getdoc(kind) or ""):
        exec(compile(line.source, kind.__module__, "exec"), names)
    return examples


def example(kind: Any) -> Iterator[str]:
    """Yield the doctest of a transform as tests of a rule, or as Python if that is impossible."""
    examples = runs(kind)
    if all(each.after is not None and len(each.before) <= _LARGEST for each in examples):
        yield "Example:"
        for _, calls in groupby(examples, key=lambda each: id(each.step)):
            yield "\n".join(["```yaml", *_rule(list(calls)), "```"])
        return
    _, mark, code = (inspect.getdoc(kind) or "").partition(">>>")
    yield "Example, as the code has it:"
    yield f"```python\n{mark}{code}\n```"


def _rule(calls: list[RunExample]) -> Iterator[str]:
    step = calls[0].step
    yield "response:"
    yield from _step_lines({step.name: _options(step)})
    yield "tests:"
    for call in calls:
        case = {"given": Raw(call.before), "expect": Raw(call.after or b"")}
        if call.arguments:
            case = {"arguments": Raw(msgspec.json.encode(call.arguments)), **case}
        for number, (name, value) in enumerate(case.items()):
            # JSON on one line with spaces (also valid YAML); numbers keep their spelling.
            text = msgspec.json.format(bytes(value), indent=0).decode()
            yield from wrapped(f"  {' ' if number else '-'} {name}: {text}", 6)


def _options(step: Any) -> Any:
    """Return the options of a step as a user would write them, in the short form if possible."""
    options = _plain(step)
    return options[step.shorthand] if list(options) == [step.shorthand] else options


def _plain(value: Any) -> Any:
    if isinstance(value, Path | Pattern | Expression):
        return value.text
    if isinstance(value, Struct):
        # `at` comes first, as a user would write it.
        ordered = sorted(fields(type(value)).items(), key=lambda pair: pair[0] != "at")
        members = ((key, field, getattr(value, field.name)) for key, field in ordered)
        return {key: _plain(each) for key, field, each in members if _is_set(field, each)}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {_plain(name): _plain(each) for name, each in value.items()}
    return value


def _is_set(field: msgspec.structs.FieldInfo, value: Any) -> bool:
    factory = field.default_factory
    return value is not UNSET and value != (field.default if factory is NODEFAULT else factory())


def _step_lines(step: dict[str, Any]) -> list[str]:
    """Return a step on one line, or else with only innermost collections on one line."""
    line = _yaml(step, True, 10_000)[0]
    lines = [f"- {line[1:-1]}"] if len(line) < WIDTH - 2 else _yaml([step], None, WIDTH - 2)
    return [f"  {line}" for line in lines]


def _yaml(value: Any, flow: bool | None, width: int) -> list[str]:
    text: str = yaml.safe_dump(
        value, default_flow_style=flow, width=width, sort_keys=False, allow_unicode=True
    )
    return text.splitlines()
