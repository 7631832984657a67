"""The library that records what a process has flushed, compiled once a machine from
`chaos/flush_recorder`."""

from __future__ import annotations

import hashlib
import shutil
from functools import cache
from pathlib import Path

import urteil.chaos
from urteil.harness.dependencies.installation import (
    Dependency,
    MissingDependency,
    apt_install,
    cache_dir,
    can_apt,
    describe_folders,
    install_once,
    run,
)

NAME = "flush-recorder"
LIBRARY = "flush_recorder.so"
RECORD_VARIABLE = "URTEIL_FLUSHES"
"""The environment variable with the path of the record."""
SOURCE = Path(urteil.chaos.__file__).parent / "flush_recorder" / "flush_recorder.c"
COMPILERS = ("cc", "tcc")
COMPILE_S = 60.0
HOW = "for power cuts only: a C compiler on PATH; Debian: apt install tcc"


@cache
def flush_recorder() -> Path:
    """Path of the library. Compiled on first use; a small compiler is installed if there is
    none."""

    def compile_library(folder: Path) -> None:
        options = ["-shared", "-fPIC", "-o", str(folder / LIBRARY), str(SOURCE), "-ldl"]
        run(NAME, [_compiler(), *options], how=HOW, timeout_s=COMPILE_S)

    return install_once(_target(), compile_library) / LIBRARY


def describe_flush_recorder() -> Dependency:
    """One line of `urteil doctor`."""
    return describe_folders(NAME, _digest(), _target(), how=HOW)


def _compiler() -> str:
    if _find_compiler() is None and can_apt():
        apt_install(NAME, "tcc", how=HOW)
    if (compiler := _find_compiler()) is None:
        raise MissingDependency(NAME, HOW)
    return compiler


def _find_compiler() -> str | None:
    return next(filter(None, map(shutil.which, COMPILERS)), None)


def _target() -> Path:
    return cache_dir() / f"{NAME}-{_digest()}"


def _digest() -> str:
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
