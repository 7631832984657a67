"""Seeded bugs of the broker, by subject. The lab must find every one of them."""

import importlib
import pkgutil

from urteil.suites.mutants.declaration import MUTANTS, Mutant

__all__ = ["MUTANTS", "Mutant"]

for _module in pkgutil.iter_modules(__path__):
    if _module.name != "launch" and not _module.name.startswith("test_"):
        importlib.import_module(f"urteil.suites.mutants.{_module.name}")  # pytest: suites.mutants
