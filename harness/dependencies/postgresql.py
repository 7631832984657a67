"""PostgreSQL: the server programs that are installed, or Debian's package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from urteil.harness.dependencies.installation import (
    Dependency,
    MissingDependency,
    apt_install,
    can_apt,
)

PACKAGE = "postgresql"
HOW = (
    f"install PostgreSQL's server, for example with `apt-get install {PACKAGE}`; only scenarios "
    "with a database need it"
)
DEBIAN = Path("/usr/lib/postgresql")
USER = "nobody"
"""The user of a server that root starts: PostgreSQL refuses to run as root."""
REACH = "dac_override"
"""The capability by which this user enters folders of root, such as that of a run."""


def postgresql(program: str) -> str:
    """Path of `postgres`, `initdb` or another program of one release. Root on Debian installs it.

    Raises MissingDependency.
    """
    folder = _find()
    if folder is None and can_apt():
        apt_install("postgresql", PACKAGE, how=HOW)
        folder = _find()
    if folder is None:
        raise MissingDependency("postgresql", HOW)
    return str(folder / program)


def as_server_user() -> list[str]:
    """The beginning of a command that runs as USER if this process is root's, else empty."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        raise MissingDependency("setpriv", "install util-linux, or run the lab as another user")
    user = [f"--reuid={USER}", f"--regid={_group()}", "--clear-groups"]
    return ["setpriv", *user, f"--inh-caps=+{REACH}", f"--ambient-caps=+{REACH}"]


def _group() -> str:
    import grp
    import pwd

    return grp.getgrgid(pwd.getpwnam(USER).pw_gid).gr_name


def describe_postgresql() -> Dependency:
    """One line of `urteil doctor`."""
    folder = _find()
    return Dependency(
        name="postgresql",
        found=folder is not None,
        version=_version(folder / "postgres") if folder else "",
        where=str(folder or ""),
        how=HOW,
        required=False,
    )


def _find() -> Path | None:
    """The folder of the newest Debian release, else that of the programs on PATH."""
    releases = [path for path in DEBIAN.glob("*/bin/initdb") if path.parts[-3].isdigit()]
    if releases:
        return max(releases, key=lambda path: int(path.parts[-3])).parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


def _version(program: Path) -> str:
    try:
        process = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"\d[\d.]*", process.stdout)
    return match[0] if match else ""
