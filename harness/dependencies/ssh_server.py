"""sshd from Debian's package, for tests: hosts are reached by ssh."""

from __future__ import annotations

import shutil
from functools import cache

from urteil.harness.dependencies.installation import MissingDependency, apt_install, can_apt

NAME = "sshd"
PACKAGE = "openssh-server"
HOW = f"for tests of hosts only; Debian: apt install {PACKAGE}"
PATH = "/usr/sbin:/usr/bin"


@cache
def sshd_binary() -> str:
    """Path of sshd. Installed if missing."""
    path = shutil.which(NAME, path=PATH)
    if path is None and can_apt():
        apt_install(NAME, PACKAGE, how=HOW)
        path = shutil.which(NAME, path=PATH)
    if path is None:
        raise MissingDependency(NAME, HOW)
    return path
