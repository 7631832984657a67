"""PySpark, which judges large runs; the lab installs and works without it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from urteil.harness.dependencies.installation import Dependency, MissingDependency

NAME = "pyspark"
HOW = (
    "install it with `pip install 'urteil[spark]'`; without it leave out --engine spark and "
    "--master, and DuckDB judges"
)


def require_pyspark() -> None:
    """Raises MissingDependency without PySpark."""
    if pyspark_folder() is None:
        raise MissingDependency(NAME, HOW)


def pyspark_folder() -> Path | None:
    """The package's folder, found without importing it, which takes long."""
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent if spec and spec.origin else None


def describe_pyspark() -> Dependency:
    """One line of `urteil doctor`."""
    from importlib.metadata import version

    folder = pyspark_folder()
    return Dependency(
        name=NAME,
        found=folder is not None,
        version=version(NAME) if folder else "",
        where=str(folder or ""),
        how=HOW,
        required=False,
    )
