"""The lab's processes find compiled modules, whatever the user's environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import subprocess, sys
from urteil.harness.reaper import start_reaper
start_reaper()
subprocess.run([sys.executable, "-c", "import urteil.broker.wire.errors"], check=True)
"""


def test_bytecode_goes_to_the_cache_folder_when_disabled(tmp_path: Path) -> None:
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": str(tmp_path)}
    env.pop("PYTHONPYCACHEPREFIX", None)
    subprocess.run([sys.executable, "-c", PROGRAM], env=env, check=True, timeout=240)
    (compiled,) = (tmp_path / "urteil" / "bytecode").rglob("errors.*.pyc")
    assert compiled.parent.name == "wire"


def test_command_line_imports_no_part_and_no_engine() -> None:
    program = "import sys, urteil.cli.main; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    imported = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=240
    ).stdout
    heavy = {"bokeh", "docker", "duckdb", "numpy", "psutil", "pyarrow", "pyspark", "rich"}
    heavy |= {"urteil.harness.dependencies.chromium", "urteil.suites.mutants"}
    assert heavy.isdisjoint(imported.split())
