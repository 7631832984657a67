"""Preloading beside a load: imports and parsed queries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COMPLETE = """
import sys
from urteil.harness.preload import Preload

preload = Preload(["colorsys", "no_such_module"])
preload._thread.join()
assert "colorsys" in sys.modules
assert "urteil.harness.verify.self_test" in sys.modules
from urteil.harness.verify.engines import engine
from urteil.harness.verify.guarantees import GUARANTEES

assert len(engine._PARSED) == 2 * len(GUARANTEES)
assert next(iter(GUARANTEES.values())).tally() in engine._PARSED
preload.stop()
"""
STOPPED = """
import os
import sys
import threading
from urteil.harness import preload

preload.JUDGING = ("colorsys",)
began, released = threading.Event(), threading.Event()
begun = preload.Preload(["slow", "never"])
assert began.wait(60)
stopping = threading.Thread(target=begun.stop)
stopping.start()
assert begun._over.wait(60)
released.set()
stopping.join()
assert not begun._thread.is_alive()
assert "never" not in sys.modules
assert sys.modules["slow"].PRIORITY == os.getpriority(os.PRIO_PROCESS, 0)
"""
SLOW = """
import __main__
import os
import threading
PRIORITY = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
__main__.began.set()
assert __main__.released.wait(60)
"""
"""A module that is being imported until the preload is stopped."""


def test_modules_are_imported_and_queries_are_parsed() -> None:
    subprocess.run([sys.executable, "-c", COMPLETE], check=True)


def test_stopped_preload_ends_with_its_module_at_ordinary_priority(
    tmp_path: Path,
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "never.py").write_text("")
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    subprocess.run([sys.executable, "-c", path + STOPPED], check=True)
