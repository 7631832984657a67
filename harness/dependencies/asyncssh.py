"""asyncssh, which the runtime ssh needs: an optional Python package."""

from __future__ import annotations

import importlib.util

from urteil.harness.dependencies.installation import MissingDependency

NAME = "asyncssh"
HOW = "for --runtime ssh only; install it with `pip install 'urteil[ssh]'`"


def require_asyncssh() -> None:
    """Raises MissingDependency without it."""
    if importlib.util.find_spec(NAME) is None:
        raise MissingDependency(NAME, HOW)
