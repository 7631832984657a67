"""The process that plays seeds of the simulation, also as a task of Spark.

Workers of Spark get the package as an archive and have none of its dependencies, so this module
imports nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

MODULE = "urteil.suites.simulation.play"


class Child(NamedTuple):
    """How a process ended; `exit_code` is None if it did not within its limit."""

    exit_code: int | None
    output: str
    errors: str
    seconds: float


def seed_arguments(seeds: Sequence[int], mixes: Sequence[str], mutant: str | None) -> list[str]:
    arguments = [*(f"--seed={seed}" for seed in seeds), *(f"--mix={mix}" for mix in mixes)]
    return arguments + ([] if mutant is None else [f"--mutant={mutant}"])


def run_child(arguments: Sequence[str], *, limit_s: float, source: Path | None = None) -> Child:
    """Run the simulation with these arguments; with the package in `source`, if given."""
    environment = os.environ if source is None else os.environ | {"PYTHONPATH": str(source)}
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, *arguments], env=environment, cwd=source,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        errors="replace",
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=limit_s)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        code = None
    except BaseException:
        process.kill()
        process.wait()
        raise
    return Child(code, output, errors, time.monotonic() - began)


def play_task(archive: str, task: tuple[Sequence[str], float]) -> Child:
    """On a worker of Spark, which got the package as the file `archive`: `task` has arguments and
    the limit in seconds."""
    from pyspark import SparkFiles

    arguments, limit_s = task
    return run_child(arguments, limit_s=limit_s, source=_unpack(Path(SparkFiles.get(archive))))


def _unpack(archive: Path) -> Path:
    """The folder of the archive's contents, made once for all tasks of a machine's worker."""
    folder = archive.with_suffix("")
    if not folder.exists():
        part = archive.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(archive) as contents:
            contents.extractall(part)
        try:
            part.rename(folder)
        except OSError:
            if not folder.exists():
                raise
    return folder
