"""libfaketime from Debian's package: separate clocks for processes."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from urteil.harness.dependencies.installation import (
    Dependency,
    MissingDependency,
    apt_install,
    can_apt,
)

NAME = "libfaketime"
FILE = "faketime/libfaketimeMT.so.1"
FOLDERS = ("/usr/lib", "/usr/local/lib")
HOW = "for faults of clocks only; Debian: apt install faketime"


@cache
def faketime_library() -> Path:
    """Path of the library for programs with threads. Installed if missing."""
    library = _find_library()
    if library is None and can_apt():
        apt_install(NAME, "faketime", how=HOW)
        library = _find_library()
    if library is None:
        raise MissingDependency(NAME, HOW)
    return library


def describe_faketime() -> Dependency:
    """One line of `urteil doctor`."""
    library = _find_library()
    return Dependency(
        name=NAME,
        found=library is not None,
        version=_version() if library else "",
        where=str(library or ""),
        how=HOW,
        required=False,
    )


def _find_library() -> Path | None:
    places = (Path(folder) for folder in FOLDERS)
    return next((path for place in places for path in sorted(place.glob(f"*/{FILE}"))), None)


def _version() -> str:
    try:
        argv = ["dpkg-query", "-W", "-f", "${Version}", NAME]
        return subprocess.run(argv, capture_output=True, text=True, timeout=20).stdout
    except OSError:
        return ""
