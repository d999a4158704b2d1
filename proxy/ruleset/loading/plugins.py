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
from pathlib import Path
from threading import Lock
from typing import Any

from msgspec import Struct

from proxy.document.patterns import Pattern
from proxy.errors import BESIDE_RULES, AbridgeError, did_you_mean
from proxy.transforms import TRANSFORMS
from proxy.transforms.base import Parameter

FLAG = "--allow-python"


class PluginKind(Struct, frozen=True):
    """A kind of plugin: its noun, its class variables, and its methods with their parameters."""

    noun: str
    variables: tuple[str, ...]
    methods: Mapping[str, tuple[str, ...]]

    @property
    def members(self) -> tuple[str, ...]:
        """The members that every class of this kind has."""
        return (*self.variables, "parameters", *self.methods)


KINDS = {
    "transforms": PluginKind(
        "transform",
        ("name", "shorthand", "window", "cuts"),
        {"__call__": ("root", "call"), "reshape": ("schema",)},
    ),
    "guards": PluginKind("guard", ("name", "shorthand"), {"__call__": ("call", "result")}),
}
"""The kinds of plugins, by the key at the top of a rule file."""

_VARIABLES: dict[str, tuple[Any, str]] = {
    "name": (str, "ClassVar[str] = ..."),
    "shorthand": (str | None, "ClassVar[str | None] = None"),
    "window": (bool, "ClassVar[bool] = False"),
    "cuts": (bool, "ClassVar[bool] = False"),
}
# `contract` is the name of a step that the pipeline adds itself.
_OWN_NAMES = frozenset((*TRANSFORMS, "contract"))
_PACKAGE = re.compile(rf"\b{BESIDE_RULES}\d+(?=\.)")
_REFERENCE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_TYPES = ("string", "integer", "number", "boolean", "array", "object")


class PythonError(AbridgeError):
    """Unusable Python that a rule file names; the message has the mistake and the remedy."""


class PluginLoader(Struct, frozen=True):
    """Loads the Python that rule files in `folder` may name, if it is `allowed`."""

    folder: Path
    allowed: bool

    def load(self, reference: str, key: str) -> type:
        """Return the class that `module:Class` names, checked for its key; raises PythonError."""
        if _REFERENCE.fullmatch(reference) is None or ".py:" in reference:
            raise PythonError(f"expected 'module:Class', found {reference!r}{_advice(reference)}")
        if not self.allowed:
            raise PythonError(f"{reference!r} is Python code, which runs only with {FLAG}")
        module_name, _, name = reference.partition(":")
        file = self.folder.joinpath(*module_name.split(".")).with_suffix(".py")
        module = _load_module(module_name, file)
        if not hasattr(module, name):
            classes = [word for word, value in vars(module).items() if isinstance(value, type)]
            source = str(file) if file.is_file() else f"the module {module_name!r}"
            raise PythonError(f"{source} has no class {name!r}{did_you_mean(name, classes)}")
        cls: type = getattr(module, name)
        for mistake in _mistakes(cls, KINDS[key]):
            raise PythonError(f"{reference!r} {mistake}")
        return cls


def check_parameters(step: Any) -> None:
    """Raise PythonError if the arguments that a step or guard adds cannot be advertised."""
    parameters = step.parameters
    if not isinstance(parameters, Mapping):
        raise PythonError(f"its parameters are {parameters!r}, not a mapping of names to Parameter")
    for name, parameter in parameters.items():
        if not isinstance(parameter, Parameter) or not isinstance(parameter.schema, dict):
            raise PythonError(f"its parameter {name!r} is {parameter!r}, not a Parameter(schema)")
        if parameter.schema.get("type") not in _TYPES:
            types = ", ".join(_TYPES)
            raise PythonError(f"the schema of its parameter {name!r} has no type; known: {types}")
        try:
            Pattern(parameter.schema.get("pattern", ""))
        except AbridgeError as error:
            raise PythonError(f"the pattern of its parameter {name!r}: {error}") from None


def _mistakes(cls: Any, kind: PluginKind) -> Iterator[str]:
    """Yield the mistakes in a class; each check relies on the checks before it."""
    name = getattr(cls, "__name__", "Name")
    if not (isinstance(cls, type) and issubclass(cls, Struct)):
        yield f"is no msgspec Struct; write class {name}(Struct, frozen=True)"
    elif not cls.__struct_config__.frozen:
        yield f"can change while it is in use; write class {name}(Struct, frozen=True)"
    if hasattr(cls, "reshape") and "reshape" not in kind.members:
        yield f"is a transform, not a {kind.noun}; name it under 'transforms'"
    # Not hasattr: every class can be called.
    members = {member for base in cls.__mro__ for member in vars(base)}
    if missing := [member for member in kind.members if member not in members]:
        advice = "; name a guard under 'guards'" if "reshape" in missing else ""
        yield f"is no {kind.noun}: it has no {', '.join(missing)}{advice}"
    for variable in kind.variables:
        expected, declaration = _VARIABLES[variable]
        if not isinstance(getattr(cls, variable), expected):
            yield f"has no usable {variable}; write {variable}: {declaration}"
    if cls.name in _OWN_NAMES:
        yield f"has the name {cls.name!r}, which a step of the proxy's own has; choose another one"
    if "window" in kind.members and cls.window:
        yield "cannot be a window: let 'paginate' or 'truncate' follow it"
    for method, parameters in kind.methods.items():
        if not _takes(getattr(cls, method), parameters):
            yield f"has no usable {method}; write def {method}(self, {', '.join(parameters)})"
    options = cls.__struct_encode_fields__
    if cls.shorthand not in (None, *options):
        advice = did_you_mean(cls.shorthand, options)
        yield f"has the shorthand {cls.shorthand!r}, which is no option{advice}"


def _takes(method: Any, parameters: tuple[str, ...]) -> bool:
    import inspect

    try:
        inspect.signature(method).bind(None, *parameters)
    except TypeError:  # not callable, or with other parameters
        return False
    # Nothing would wait for it.
    return not inspect.iscoroutinefunction(method)


def _load_module(name: str, file: Path) -> Any:
    full_name = f"{_package(file.parent)}.{file.stem}" if file.is_file() else name
    try:
        invalidate_caches()
        return import_module(full_name)
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{full_name}.".startswith(f"{missing}."):
            advice = did_you_mean(name, sorted(path.stem for path in file.parent.glob("*.py")))
            message = f"no module {name!r}: no file {file}, and none is installed{advice}"
            raise PythonError(message) from None
        raise PythonError(_import_failure(error, name, file)) from error


def _import_failure(error: BaseException, name: str, file: Path) -> str:
    from traceback import extract_tb

    trace = extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in trace if frame.filename == str(file.absolute())]
    source = str(file) if file.is_file() else f"the module {name!r}"
    position = f"{source}:{lines[-1]}" if lines else source
    text = _PACKAGE.sub("", f"{type(error).__name__}: {error}".removesuffix(": "))
    advice = ""
    if isinstance(error, ModuleNotFoundError) and file.with_name(f"{error.name}.py").is_file():
        advice = f"; what lies beside it is imported by 'from .{error.name} import ...'"
    return f"{position} raises {' '.join(text.split())}{advice}"


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


def _advice(reference: str) -> str:
    """Return advice on an invalid reference, empty if the intended one is not plain."""
    # Python itself has a dot in place of the colon.
    dotted = ":" not in reference and not reference.endswith(".py")
    path, _, name = reference.rpartition("." if dotted else ":")
    module = path.removeprefix("./").removesuffix(".py").replace("/", ".")
    corrected = f"{module}:{name}"
    return f"; write {corrected!r}" if _REFERENCE.fullmatch(corrected) else ""
