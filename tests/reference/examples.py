"""The doctests of transforms, run and shown as tests of a rule."""

import doctest
import inspect
import sys
from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from typing import Any

import msgspec
from msgspec import NODEFAULT, UNSET, Raw, Struct

from proxy.document.paths import Path
from proxy.document.patterns import Expression, Pattern
from proxy.document.tree import Slot
from proxy.ruleset.loading.convert import fields
from proxy.transforms.base import Call, Transform
from tests.reference.markdown import WIDTH, wrapped

_LARGEST = 400  # bytes of a document that is shown


class RunExample(Struct, frozen=True):
    """One call of a step in a doctest: the document before and after the call, as JSON."""

    step: Transform
    arguments: dict[str, Any]
    before: bytes
    after: bytes | None


class _Recorder(Struct):
    """Records each call of a step."""

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
            yield f"```yaml\n{_rule(list(calls))}\n```"
        return
    _, mark, code = (inspect.getdoc(kind) or "").partition(">>>")
    yield "Example, as the code has it:"
    yield f"```python\n{mark}{code}\n```"


def _rule(calls: list[RunExample]) -> str:
    lines = ["response:", *_response(calls[0].step), "tests:"]
    return "\n".join([*lines, *(line for each in calls for line in _case(each))])


def _response(step: Any) -> list[str]:
    line = f"  - {flow({step.name: options(step)})}"
    if len(line) <= WIDTH:
        return [line]
    import yaml

    # Only innermost collections are written on one line.
    lines = yaml.safe_dump(
        [{step.name: options(step)}],
        default_flow_style=None,
        width=WIDTH - 2,
        sort_keys=False,
        allow_unicode=True,
    )
    return [f"  {line}" for line in lines.splitlines()]


def _case(run: RunExample) -> Iterator[str]:
    assert run.after is not None
    case = [
        ("arguments", msgspec.json.encode(run.arguments)) if run.arguments else None,
        ("given", run.before),
        ("expect", run.after),
    ]
    first, *rest = [f"{pair[0]}: {_spaced(pair[1])}" for pair in case if pair is not None]
    yield from wrapped(f"  - {first}", 6)
    for line in rest:
        yield from wrapped(f"    {line}", 6)


def options(step: Any) -> Any:
    """Return the options of a step as a user would write them, in the short form if possible."""
    options = _plain(step)
    if list(options) == [step.shorthand]:
        return options[step.shorthand]
    return options


def _plain(value: Any) -> Any:
    if isinstance(value, Path | Pattern | Expression):
        return value.text
    if isinstance(value, Struct):
        # `at` comes first, as a user would write it.
        ordered = sorted(_fields(value), key=lambda pair: pair[0] != "at")
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


def _fields(value: Struct) -> Collection[tuple[str, msgspec.structs.FieldInfo]]:
    return fields(type(value)).items()


def flow(value: dict[str, Any]) -> str:
    import yaml

    ((name, inner),) = value.items()
    text: str = yaml.safe_dump(
        inner, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True
    )
    return f"{name}: {text.removesuffix('...' + chr(10)).strip()}"


def _spaced(raw: bytes) -> str:
    """Return JSON on one line with spaces (also valid YAML); numbers keep their spelling."""
    return msgspec.json.format(bytes(Raw(raw)), indent=0).decode()
