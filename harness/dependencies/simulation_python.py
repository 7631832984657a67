"""A Python for the simulation (suites/simulation), which needs a newer one than the lab."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from urteil.harness.dependencies.installation import Dependency

NAME = "Python 3.12+"
MINORS = range(14, 11, -1)  # newest first; what the locked packages are built for
HOW = (
    "for the simulation only; Debian 13: apt install python3 python3-venv, pyenv: "
    "pyenv install 3.13, uv: uv python install 3.13; or URTEIL_SIMULATION_PYTHON=/path"
)
_ASK = "import ensurepip, sys, venv; print(*sys.version_info[:3], sys.executable)"


def simulation_python() -> tuple[str, str] | None:
    """Path and version of the newest one: on PATH, pyenv's, uv's. None without any.

    A name on PATH may be a shim that starts nothing, so each candidate is run.
    """
    answers = [answer for path in _candidates() if (answer := _read_version(path)) is not None]
    if not answers:
        return None
    version, path = max(answers)
    return path, ".".join(map(str, version))


def describe_simulation() -> Dependency:
    """One line of `urteil doctor`."""
    python = simulation_python()
    return Dependency(
        name=NAME,
        found=python is not None,
        version=python[1] if python else "",
        where=python[0] if python else "",
        how=HOW,
        required=False,
    )


def _candidates() -> Iterator[str]:
    requested = os.environ.get("URTEIL_SIMULATION_PYTHON")
    if requested:
        yield requested
        return
    home = Path.home()
    versions = [home / ".pyenv" / "versions"]
    roots = [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part]
    versions += [root.parent / "versions" for root in roots if root.name == "shims"]
    for minor in MINORS:
        name = f"python3.{minor}"
        folders = [
            *roots,
            *(bins for version in versions for bins in sorted(version.glob(f"3.{minor}.*/bin"))),
            *sorted(home.glob(f".local/share/uv/python/cpython-3.{minor}.*/bin")),
        ]
        yield from dict.fromkeys(
            str(folder / name) for folder in folders if (folder / name).exists()
        )
    yield from (str(root / "python3") for root in roots if (root / "python3").exists())


def _read_version(path: str) -> tuple[tuple[int, ...], str] | None:
    try:
        process = subprocess.run([path, "-c", _ASK], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = process.stdout.split(maxsplit=3)
    if process.returncode != 0 or len(words) != 4:
        return None
    version = tuple(map(int, words[:3]))
    return (version, words[3].strip()) if version[0] == 3 and version[1] in MINORS else None
