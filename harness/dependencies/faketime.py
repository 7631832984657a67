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
    found = _find_library()
    if found is None and can_apt():
        apt_install(NAME, "faketime", how=HOW)
        found = _find_library()
    if found is None:
        raise MissingDependency(NAME, HOW)
    return found


def describe_faketime() -> Dependency:
    """One line of `urteil doctor`."""
    found = _find_library()
    return Dependency(
        name=NAME,
        found=found is not None,
        version=_version() if found else "",
        where=str(found or ""),
        how=HOW,
        required=False,
    )


def _find_library() -> Path | None:
    places = (Path(one) for one in FOLDERS)
    return next((path for one in places for path in sorted(one.glob(f"*/{FILE}"))), None)


def _version() -> str:
    try:
        asked = ["dpkg-query", "-W", "-f", "${Version}", NAME]
        return subprocess.run(asked, capture_output=True, text=True, timeout=20).stdout
    except OSError:
        return ""
