"""The folder of a run."""

from __future__ import annotations

import contextlib
import os
import time
from itertools import count
from pathlib import Path

from urteil.harness.scenario import Scenario, save

LONGEST = 200
"""Maximum length of a name: a file name has at most 255 bytes, some of them for the time and a
number."""


def new_run_dir(out: Path, scenario: Scenario) -> Path:
    """Make `out/<time>-<scenario>-<seed>/` with its scenario.json; `out/latest` links to it."""
    run_dir = dated_folder(out, f"{scenario.name}-{scenario.seed}")
    save(run_dir / "scenario.json", scenario)
    _point_latest(run_dir)
    return run_dir


def dated_folder(out: Path, name: str) -> Path:
    """Make `out/<time>-<name>/`, with a number appended where that name is taken."""
    out.mkdir(parents=True, exist_ok=True)
    stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{name[:LONGEST]}"
    for attempt in count():
        folder = (out / (stem if not attempt else f"{stem}-{attempt}")).resolve()
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            break
    return folder


def _point_latest(run_dir: Path) -> None:
    link = run_dir.parent / f".latest-{os.getpid()}"
    link.unlink(missing_ok=True)
    link.symlink_to(run_dir.name)
    link.replace(run_dir.parent / "latest")
