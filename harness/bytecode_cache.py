"""Redirects Python's bytecode to the lab's cache folder where PYTHONDONTWRITEBYTECODE is set.

Without bytecode each process of the lab would compile hundreds of modules for itself.
"""

from __future__ import annotations

import os
import sys


def keep_bytecode() -> None:
    """Redirect for later imports of this process and for its child processes. Repeatable."""
    if not os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        return
    from urteil.harness.dependencies.installation import cache_dir

    folder = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(cache_dir() / "bytecode"))
    sys.pycache_prefix, sys.dont_write_bytecode = folder, False
