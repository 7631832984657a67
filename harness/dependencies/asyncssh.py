"""asyncssh, which the runtime ssh needs: an optional Python package."""

from __future__ import annotations

import importlib.util
from importlib import metadata

from urteil.harness.dependencies.installation import Dependency, MissingDependency

NAME = "asyncssh"
HOW = "for --runtime ssh only; install it with `pip install 'urteil[ssh]'`"


def require_asyncssh() -> None:
    """Raises MissingDependency without it."""
    if importlib.util.find_spec(NAME) is None:
        raise MissingDependency(NAME, HOW)


def describe_asyncssh() -> Dependency:
    """One line of `urteil doctor`."""
    spec = importlib.util.find_spec(NAME)
    return Dependency(
        name=NAME,
        found=spec is not None,
        version=metadata.version(NAME) if spec else "",
        where=str(spec.origin) if spec else "",
        how=HOW,
        required=False,
    )
