"""Installation of dependencies: cache folder, locks, and installs that are complete or absent."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from urteil.harness.dependencies import apt


class MissingDependency(Exception):
    """A dependency is missing and could not be installed. `how` is the remedy for the user."""

    def __init__(self, name: str, how: str) -> None:
        super().__init__(f"{name} is missing: {how}")
        self.name = name
        self.how = how


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One line of `urteil doctor`. `how` is the remedy when it was not found.

    Only some targets need a dependency that is not `required`.
    """

    name: str
    found: bool
    version: str
    where: str
    how: str
    required: bool = True


def describe_folders(name: str, version: str, *folders: Path, how: str) -> Dependency:
    """The line of a dependency that consists of folders of the cache, none of which is required."""
    is_installed = all(folder.exists() for folder in folders)
    return Dependency(
        name=name,
        found=is_installed,
        version=version if is_installed else "",
        where=str(folders[0]) if is_installed else "",
        how=how,
        required=False,
    )


def cache_dir() -> Path:
    """The folder of all dependencies, once a machine and user."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "urteil"


@contextmanager
def install_lock(name: str) -> Iterator[None]:
    """One installer of `name` at a time on this machine. The lock ends with its process."""
    folder = cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def install_once(target: Path, install: Callable[[Path], None]) -> Path:
    """`target`, made by `install(temporary folder)` and one rename if it is missing.

    A killed or failed install leaves nothing under `target`'s name; two at once make one. Size and
    time are reported on standard error.
    """
    if target.exists():
        return target
    with install_lock(target.name):
        if target.exists():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.part.", dir=target.parent))
        begin = time.monotonic()
        try:
            install(temporary)
            temporary.rename(target)
            seconds = time.monotonic() - begin
            apt.print_progress(f"{target.name}: {_megabytes(target):.0f} MB, {seconds:.0f} s")
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return target


def _megabytes(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*")) / 1e6


def _sweep(target: Path) -> None:
    """Remove remains of killed installs of `target`. The caller holds its lock."""
    for remains in target.parent.glob(f".{target.name}.part.*"):
        shutil.rmtree(remains, ignore_errors=True)


def run(
    name: str,
    argv: Sequence[str],
    *,
    how: str,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run a command of an installation and return its output.

    Raises MissingDependency, with the last lines of the output, if the command fails.
    """
    try:
        process = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingDependency(name, f"{how} ({error})") from error
    if process.returncode != 0:
        tail = "\n".join((process.stdout + process.stderr).strip().splitlines()[-8:])
        raise MissingDependency(name, f"{how}\n{tail}")
    return process.stdout + process.stderr


def can_apt() -> bool:
    """Whether the system's packages can be installed from here (Debian, as root)."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(name: str, package: str, *, how: str) -> None:
    """Install one Debian package. Raises MissingDependency when that fails."""
    with install_lock("apt"):
        try:
            apt.install(package)
        except apt.AptError as error:
            raise MissingDependency(name, f"{how}\n{error}") from error
