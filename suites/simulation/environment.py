"""The environment of the simulation: a newer Python (simloop needs 3.12) with locked packages.

It is made once a machine and user, in the cache of dependencies, and found by its lock's checksum.
"""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path

import urteil
from urteil.harness.dependencies.installation import cache_dir, install_once

SOURCE = Path(urteil.__path__[0]).parent
"""The folder that holds the package: the checkout, or where the wheel is installed."""
LOCK = Path(__file__).with_name("requirements.lock")
_RUN = """
import runpy, sys
sys.path.append({source!r})
sys.argv = [{module!r}, *sys.argv[1:]]
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""


def environment(python: str, version: str) -> Path:
    """The folder of the environment of that Python."""
    mark = zlib.crc32(LOCK.read_bytes() + python.encode())
    target = cache_dir() / f"simulation-{version}-{mark:08x}"
    return install_once(target, lambda folder: _install(python, folder))


def interpreter(python: str, version: str) -> str:
    """The program of the environment of that Python."""
    return str(environment(python, version) / "bin" / "python")


def module_command(program: str, module: str) -> list[str]:
    """Run a module of ours by that program. The source comes last on the path: packages of the
    lab's older Python must not hide those of the environment."""
    return [program, "-P", "-c", _RUN.format(source=str(SOURCE), module=module)]


def _install(python: str, folder: Path) -> None:
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    subprocess.run(
        [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet",
         "--disable-pip-version-check", "--require-hashes", "-r", str(LOCK)],
        check=True,
    )  # fmt: skip
