"""Programs of hosts from Debian's packages, for tests: hosts are reached by ssh."""

from __future__ import annotations

import shutil
from functools import cache

from urteil.harness.dependencies.installation import MissingDependency, apt_install, can_apt

PATH = "/usr/sbin:/usr/bin"


def sshd_binary() -> str:
    """Path of sshd. Installed if missing."""
    return _program("sshd", "openssh-server")


def nft_binary() -> str:
    """Path of nft, the packet filter. Installed if missing."""
    return _program("nft", "nftables")


@cache
def _program(name: str, package: str) -> str:
    how = f"for tests of hosts only; Debian: apt install {package}"
    path = shutil.which(name, path=PATH)
    if path is None and can_apt():
        apt_install(name, package, how=how)
        path = shutil.which(name, path=PATH)
    if path is None:
        raise MissingDependency(name, how)
    return path
