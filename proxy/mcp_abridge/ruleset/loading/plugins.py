"""Loads the Python that a rule file names: `module:Class`, from a file beside it or installed.

Each file is loaded once per process. A package represents its folder, so two rule files may each
have a `hints.py`, and modules beside it are imported as `from .codes import CODES`.
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

from mcp_abridge.errors import BESIDE_RULES, AbridgeError, did_you_mean, raised
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.transforms import TRANSFORMS
from mcp_abridge.transforms.base import Parameter

KINDS = {
    "transforms": ("name", "shorthand", "window", "cuts", "parameters", "__call__"),
    "guards": ("name", "shorthand", "parameters", "__call__"),
}
"""The members of the classes of each kind, by the key at the top of a rule file."""

# `contract` is the name of a step that the pipeline adds itself.
_OWN_NAMES = frozenset((*TRANSFORMS, "contract"))
_PACKAGE = re.compile(rf"\b{BESIDE_RULES}\d+(?=\.)")
_REFERENCE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_TYPES = ("string", "integer", "number", "boolean", "array", "object")


_EARLIER = ("proxy", "proxy.plugin")  # the name of this package before it was published


class PythonError(AbridgeError):
    """Unusable Python that a rule file names; the message has the mistake and the remedy."""


class PluginLoader(Struct, frozen=True):
    """Loads the Python that rule files in `folder` may name, if it is `allowed`."""

    folder: Path
    allowed: bool

    def load(self, reference: str, key: str) -> type:
        """Return the class that `module:Class` names, checked for its key; raises PythonError."""
        if _REFERENCE.fullmatch(reference) is None or ".py:" in reference:
            advice = "write 'lib.noise:Noise' for the class Noise of lib/noise.py"
            raise PythonError(f"expected 'module:Class', found {reference!r}; {advice}")
        if not self.allowed:
            raise PythonError(f"{reference!r} is Python code, which runs only with --allow-python")
        module_name, _, name = reference.partition(":")
        file = self.folder.joinpath(*module_name.split(".")).with_suffix(".py")
        module = _load_module(module_name, file)
        if not hasattr(module, name):
            classes = [word for word, value in vars(module).items() if isinstance(value, type)]
            source = str(file) if file.is_file() else f"the module {module_name!r}"
            raise PythonError(f"{source} has no class {name!r}{did_you_mean(name, classes)}")
        cls: type = getattr(module, name)
        for mistake in _mistakes(cls, key):
            raise PythonError(f"{reference!r} {mistake}")
        return cls


def check_parameters(step: Any) -> None:
    """Raise PythonError if the arguments that a step or guard adds cannot be advertised."""
    parameters = step.parameters
    if not isinstance(parameters, Mapping):
        raise PythonError(f"its parameters are {parameters!r}, not a mapping of names to Parameter")
    for name, parameter in parameters.items():
        schema = parameter.schema if isinstance(parameter, Parameter) else None
        if not isinstance(schema, dict) or schema.get("type") not in _TYPES:
            expected = f"Parameter({{'type': T}}), T one of {', '.join(_TYPES)}"
            raise PythonError(f"its parameter {name!r} has no type: expected {expected}")
        try:
            Pattern(schema.get("pattern", ""))
        except AbridgeError as error:
            raise PythonError(f"the pattern of its parameter {name!r}: {error}") from None


def _mistakes(cls: Any, key: str) -> Iterator[str]:
    name = getattr(cls, "__name__", "Name")
    advice = f"write class {name}(Struct, frozen=True)"
    if not (isinstance(cls, type) and issubclass(cls, Struct)):
        yield f"is no msgspec Struct; {advice}"
    elif not cls.__struct_config__.frozen:
        yield f"can change while it is in use; {advice}"
    if hasattr(cls, "window") and "window" not in KINDS[key]:
        yield "is a transform, not a guard; name it under 'transforms'"
    # Not hasattr: every class can be called.
    members = {member for base in cls.__mro__ for member in vars(base)}
    if missing := [member for member in KINDS[key] if member not in members]:
        advice = "; name a guard under 'guards'" if "window" in missing else ""
        yield f"is no {key[:-1]}: it has no {', '.join(missing)}{advice}"
    if cls.name in _OWN_NAMES:
        yield f"has the name {cls.name!r}, which a step of the proxy's own has; choose another one"
    if "window" in KINDS[key] and cls.window:
        yield "cannot be a window: let 'paginate' or 'truncate' follow it"


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
    source = str(file) if file.is_file() else f"the module {name!r}"
    advice = ""
    if isinstance(error, ModuleNotFoundError) and file.with_name(f"{error.name}.py").is_file():
        advice = f"; what lies beside it is imported by 'from .{error.name} import ...'"
    elif isinstance(error, ModuleNotFoundError) and error.name in _EARLIER:
        advice = "; write 'from mcp_abridge.plugin import ...'"
    text = " ".join(_PACKAGE.sub("", raised(error)).split())
    return f"{source} raises {text}{advice}"


_packages: dict[Path, str] = {}
_lock = Lock()


def _package(folder: Path) -> str:
    # Not resolved: if a link changes while the proxy runs, a file would be loaded twice.
    folder = folder.absolute()
    with _lock:
        if folder not in _packages:
            name = _packages[folder] = f"{BESIDE_RULES}{len(_packages) + 1}"
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(folder)]
            sys.modules[name] = module_from_spec(spec)
        return _packages[folder]
