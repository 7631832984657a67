"""Where Python writes no bytecode, it goes to the lab's own folder: without any, each process of
the lab would compile hundreds of modules for itself."""

from __future__ import annotations

import os
import sys


def keep_bytecode() -> None:
    """For this process's further imports, and for all that it starts from now on; repeatable."""
    if not os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        return
    from urteil.harness.dependencies.installation import cache_dir

    folder = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(cache_dir() / "bytecode"))
    sys.pycache_prefix, sys.dont_write_bytecode = folder, False
