"""strace from Debian's package, which delays the writes of a process."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

from urteil.harness.dependencies.installation import (
    Dependency,
    MissingDependency,
    apt_install,
    can_apt,
)

NAME = "strace"
HOW = "for slow disks only; Debian: apt install strace"


@cache
def strace_binary() -> str:
    """Path of strace. Installed if missing."""
    found = shutil.which(NAME)
    if found is None and can_apt():
        apt_install(NAME, NAME, how=HOW)
        found = shutil.which(NAME)
    if found is None:
        raise MissingDependency(NAME, HOW)
    return found


def describe_strace() -> Dependency:
    """One line of `urteil doctor`."""
    found = shutil.which(NAME)
    version = ""
    if found:
        output = subprocess.run([found, "-V"], capture_output=True, text=True, timeout=20).stdout
        version = output.partition("version ")[2].partition("\n")[0]
    return Dependency(
        name=NAME,
        found=found is not None,
        version=version,
        where=found or "",
        how=HOW,
        required=False,
    )
