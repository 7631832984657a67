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
    path = shutil.which(NAME)
    if path is None and can_apt():
        apt_install(NAME, NAME, how=HOW)
        path = shutil.which(NAME)
    if path is None:
        raise MissingDependency(NAME, HOW)
    return path


def describe_strace() -> Dependency:
    """One line of `urteil doctor`."""
    path = shutil.which(NAME)
    version = ""
    if path:
        output = subprocess.run([path, "-V"], capture_output=True, text=True, timeout=20).stdout
        version = output.partition("version ")[2].partition("\n")[0]
    return Dependency(
        name=NAME,
        found=path is not None,
        version=version,
        where=path or "",
        how=HOW,
        required=False,
    )
