"""Import the broker from changed source: every module of `urteil.broker` is compiled by a function.

A launcher installs the hook before it starts the broker. Files on disk stay as they are, and no
bytecode is cached unless the compiler does so itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

PACKAGE = "urteil.broker"
BROKER = Path(__file__).resolve().parents[1] / "broker"
"""The sources of the broker."""

Compile = Callable[[Path], CodeType | None]
"""The code of a source file, or None for the code that Python would use without the hook."""


def install(compile_file: Compile) -> None:
    """Compile the broker's modules by `compile_file`. None of them may be imported yet."""
    if PACKAGE in sys.modules:
        raise RuntimeError(f"{PACKAGE} is imported already")
    sys.meta_path.insert(0, _Finder(compile_file))


def relative(path: Path) -> str:
    """The name of a source file of the broker, as `broker/groups/group.py`."""
    return f"broker/{path.resolve().relative_to(BROKER)}"


class _Finder(MetaPathFinder):
    def __init__(self, compile_file: Compile) -> None:
        self._compile_file = compile_file

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != PACKAGE and not fullname.startswith(f"{PACKAGE}."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path, self._compile_file)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, compile_file: Compile) -> None:
        super().__init__(fullname, path)
        self._compile_file = compile_file

    def get_code(self, fullname: str) -> CodeType | None:
        return self._compile_file(Path(self.path)) or super().get_code(fullname)
