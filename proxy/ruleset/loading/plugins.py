"""Loads the Python that a rule file names: `module:Class`, from a file beside it or installed.

Each file is loaded once per process under a unique name. A package represents its folder, so two
rule files may each have a `hints.py`, and modules beside it are imported as
`from .codes import CODES`. Nothing runs unless the user who started the proxy allowed it.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module, invalidate_caches
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from itertools import chain
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

from msgspec import Struct

from proxy.document.patterns import Pattern
from proxy.errors import BESIDE_RULES, AbridgeError, did_you_mean
from proxy.ruleset.guard import Guard
from proxy.ruleset.loading.convert import fields, unreadable
from proxy.transforms import TRANSFORMS
from proxy.transforms.base import Parameter, Transform

FLAG = "--allow-python"


class PythonError(AbridgeError):
    """Unusable Python that a rule file names; the message has the mistake and the remedy."""


class PluginKind(Struct, frozen=True):
    """A kind of plugin: its `noun`, its Protocol, and the parameters of its methods."""

    noun: str
    protocol: type
    takes: Mapping[str, tuple[str, ...]]

    @property
    def members(self) -> tuple[str, ...]:
        """The members that every class of this kind has."""
        own = [name for name in vars(self.protocol) if name in self.takes or name == "parameters"]
        return (*self.protocol.__annotations__, *own)


ROLES = {
    "transforms": PluginKind(
        "transform", Transform, {"__call__": ("root", "call"), "reshape": ("schema",)}
    ),
    "guards": PluginKind("guard", Guard, {"__call__": ("call", "found")}),
}
"""The kinds of plugins, by the key at the top of a rule file."""

# `contract` is the name of a step that the pipeline adds itself.
_TAKEN = frozenset((*TRANSFORMS, "contract"))
_PACKAGE = re.compile(rf"\b{BESIDE_RULES}\d+(?=\.)")
_REFERENCE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_TYPES = ("string", "integer", "number", "boolean", "array", "object")


class Python:
    """The Python that rule files in one folder may name, if it is `allowed`."""

    def __init__(self, folder: Path, *, allowed: bool) -> None:
        self._folder = folder
        self._allowed = allowed
        self._loaded: dict[str, ModuleType | PythonError] = {}

    def load(self, reference: str, key: str) -> type:
        """Return the class that `module:Class` names, checked for its role; raises PythonError."""
        if _REFERENCE.fullmatch(reference) is None or ".py:" in reference:
            raise PythonError(f"expected 'module:Class', found {reference!r}{_meant(reference)}")
        if not self._allowed:
            said = f"{reference!r} is Python code, which runs only with {FLAG}"
            raise PythonError(said)
        module, _, name = reference.partition(":")
        kind: type = _named(self._module(module), name, self._shown(module))
        check(kind, ROLES[key], reference)
        return kind

    def _module(self, name: str) -> ModuleType:
        # A module that failed is not run again for its next class.
        if name not in self._loaded:
            try:
                self._loaded[name] = self._imported(name)
            except PythonError as wrong:
                self._loaded[name] = wrong
        found = self._loaded[name]
        if isinstance(found, PythonError):
            raise found
        return found

    def _imported(self, name: str) -> ModuleType:
        file = self._file(name)
        whole = f"{_package(file.parent)}.{file.stem}" if file.is_file() else name
        try:
            invalidate_caches()
            return import_module(whole)
        except (Exception, SystemExit) as error:
            if isinstance(error, ModuleNotFoundError) and error.name in _opening(whole):
                raise PythonError(self._missing(name)) from None
            raise PythonError(_raised(error, self._shown(name), file)) from error

    def _file(self, name: str) -> Path:
        return self._folder.joinpath(*name.split(".")).with_suffix(".py")

    def _shown(self, name: str) -> str:
        file = self._file(name)
        return str(file) if file.is_file() else f"the module {name!r}"

    def _missing(self, name: str) -> str:
        beside = sorted(path.stem for path in self._file(name).parent.glob("*.py"))
        advice = did_you_mean(name, beside)
        return f"no module {name!r}: no file {self._file(name)}, and none is installed{advice}"


def check(kind: Any, role: PluginKind, reference: str) -> None:
    """Raise PythonError if a class does not meet the requirements of its role."""
    # Each check relies on the checks before it.
    found = chain(_struct(kind), _lacks(kind, role), _wrong(kind, role), _options(kind))
    for wrong in found:
        raise PythonError(f"{reference!r} {wrong}")


def check_parameters(step: Any) -> None:
    """Raise PythonError if the arguments that a step or guard adds cannot be advertised."""
    parameters = step.parameters
    if not isinstance(parameters, Mapping):
        raise PythonError(f"its parameters are {parameters!r}, not a mapping of names to Parameter")
    for name, parameter in parameters.items():
        if not isinstance(parameter, Parameter) or not isinstance(parameter.schema, dict):
            raise PythonError(f"its parameter {name!r} is {parameter!r}, not a Parameter(schema)")
        if parameter.schema.get("type") not in _TYPES:
            known = ", ".join(_TYPES)
            raise PythonError(f"the schema of its parameter {name!r} has no type; known: {known}")
        try:
            Pattern(parameter.schema.get("pattern", ""))
        except AbridgeError as wrong:
            raise PythonError(f"the pattern of its parameter {name!r}: {wrong}") from None


def _struct(kind: Any) -> Iterator[str]:
    if not (isinstance(kind, type) and issubclass(kind, Struct)):
        name = getattr(kind, "__name__", "Name")
        yield f"is no msgspec Struct; write class {name}(Struct, frozen=True)"
    elif not kind.__struct_config__.frozen:
        yield f"can change while it is in use; write class {kind.__name__}(Struct, frozen=True)"


def _lacks(kind: type, role: PluginKind) -> Iterator[str]:
    lacking = [name for name in role.members if not _has(kind, name)]
    if not lacking:
        others = [name for name in ROLES["transforms"].members if name not in role.members]
        if others and all(_has(kind, name) for name in others):
            yield f"is no guard: it has {_listed(others)}; name a transform under 'transforms'"
        return
    other = next(each for each in ROLES.values() if each is not role)
    if all(_has(kind, name) for name in other.members):
        said = f"; if it is a {other.noun}, name it under '{other.noun}s'"
    else:
        said = ""
    yield f"is no {role.noun}: it has no {_listed(lacking, 'or')}{said}"


def _wrong(kind: Any, role: PluginKind) -> Iterator[str]:
    name, shorthand = kind.name, kind.shorthand
    if not isinstance(name, str) or not name:
        yield "has no text as its name; write name: ClassVar[str] = ..."
    elif name in _TAKEN:
        yield f"has the name {name!r}, which a step of the proxy's own has; choose another one"
    if not isinstance(shorthand, str | None):
        yield "has a shorthand that is no option; write shorthand: ClassVar[str | None] = None"
    for word in ("window", "cuts"):
        if word in role.members and not isinstance(getattr(kind, word), bool):
            yield f"has no true or false in {word}; write {word}: ClassVar[bool] = False"
    if "window" in role.members and kind.window is True:
        yield (
            "cannot be a window (window = True): only the proxy's own are; let 'paginate' or "
            "'truncate' follow it"
        )
    for method, names in role.takes.items():
        yield from _method(getattr(kind, method), method, names)


def _method(method: Any, name: str, names: tuple[str, ...]) -> Iterator[str]:
    import inspect

    wanted = f"def {name}(self, {', '.join(names)})"
    if not callable(method):
        yield f"has a {name} that is no method; write {wanted}"
        return
    if inspect.iscoroutinefunction(method):
        yield f"has an async {name}, but nothing waits for it; write {wanted}"
    try:
        inspect.signature(method).bind(None, *names)
    except TypeError:
        yield f"has a {name} that takes other arguments; write {wanted}"


def _options(kind: type[Struct]) -> Iterator[str]:
    try:
        known = fields(kind)
    except Exception as error:  # an annotation may be any expression
        yield f"has options whose types cannot be read: {type(error).__name__}: {error}"
        return
    for word, option in known.items():
        strange = unreadable(option.type)
        if strange is not None:
            said = getattr(strange, "__qualname__", None) if isinstance(strange, type) else None
            yield f"has an option {word!r} of type {said or strange}, which no rule file can hold"
    shorthand = kind.shorthand  # type: ignore[attr-defined]
    if shorthand is not None and shorthand not in known:
        yield f"has the shorthand {shorthand!r}, which is no option{did_you_mean(shorthand, known)}"


def _has(kind: type, name: str) -> bool:
    # Not hasattr: every class can be called.
    return any(name in vars(each) for each in kind.__mro__)


def _named(module: ModuleType, name: str, shown: str) -> Any:
    found = getattr(module, name, None)
    if found is None:
        own = [word for word, each in vars(module).items() if _is_own(each, module)]
        advice = did_you_mean(name, own) or (f"; known: {', '.join(own)}" if own else "")
        raise PythonError(f"{shown} has no class {name!r}{advice}")
    return found


def _is_own(found: Any, module: ModuleType) -> bool:
    return isinstance(found, type) and found.__module__ == module.__name__


_packages: dict[Path, str] = {}
_lock = Lock()


def _package(folder: Path) -> str:
    """Return the name of the package that represents a folder in this process."""
    # Not resolved: if a link changes while the proxy runs, a file would be loaded twice.
    folder = folder.absolute()
    with _lock:
        name = _packages.get(folder)
        if name is None:
            name = _packages[folder] = f"{BESIDE_RULES}{len(_packages) + 1}"
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(folder)]
            sys.modules[name] = module_from_spec(spec)
        return name


def _opening(name: str) -> set[str]:
    """Return a module's name and those of the packages that hold it."""
    parts = name.split(".")
    return {".".join(parts[: count + 1]) for count in range(len(parts))}


def _raised(error: BaseException, shown: str, file: Path) -> str:
    """Return the message on an exception from the import of a module, with its line."""
    said, line = str(error), _line(error, file)
    if isinstance(error, SyntaxError) and error.filename == str(file.absolute()):
        said, line = error.msg, error.lineno
    said = " ".join(_PACKAGE.sub("", f"{type(error).__name__}: {said}".removesuffix(": ")).split())
    return f"{shown}{f':{line}' if line else ''} raises {said}{_advice(error, file)}"


def _line(error: BaseException, file: Path) -> int | None:
    """Return the line of `file` that ran last."""
    last, frame = None, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == str(file.absolute()):
            last = frame.tb_lineno
        frame = frame.tb_next
    return last


def _advice(error: BaseException, file: Path) -> str:
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return ""
    if _PACKAGE.match(error.name):
        return ""
    if file.with_name(f"{error.name}.py").is_file():
        return f"; what lies beside it is imported by 'from .{error.name} import ...'"
    return "; it must be installed where mcp-abridge is"


def _meant(reference: str) -> str:
    """Return advice on an invalid reference, empty if the intended one is not plain."""
    # Python itself has a dot in place of the colon.
    dotted = ":" not in reference and not reference.endswith(".py")
    path, _, name = reference.rpartition("." if dotted else ":")
    module = path.removeprefix("./").removesuffix(".py").replace("/", ".")
    meant = f"{module}:{name}"
    return f"; write {meant!r}" if _REFERENCE.fullmatch(meant) else ""


def _listed(words: list[str], last: str = "and") -> str:
    *most, end = words
    return f"{', '.join(most)} {last} {end}" if most else end
