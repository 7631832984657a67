"""Every guarantee that is judged, by subject.

A guarantee is one module with one `GUARANTEE` in the folder of its subject. All modules below this
package are imported here, so that a new file is a new guarantee; modules without a `GUARANTEE` hold
SQL that several guarantees of a subject share.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from urteil.harness.verify.guarantees.base import Guarantee

_ORDER = (
    *("delivery", "replication", "elections", "groups", "share_groups", "transactions"),
    *("applications", "metadata", "compaction", "retention", "security", "availability"),
)
"""Subjects in the order of reports: what users lose first."""


def _find_declarations(subject: str) -> Iterator[Guarantee]:
    package = import_module(f"{__name__}.{subject}")
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        declared = getattr(import_module(module.name), "GUARANTEE", None)
        if isinstance(declared, Guarantee):
            yield declared


SUBJECTS: dict[str, tuple[Guarantee, ...]] = {
    subject: tuple(
        sorted(
            _find_declarations(subject),
            key=lambda declaration: (declaration.rank, declaration.name),
        )
    )
    for subject in sorted(
        (module.name for module in pkgutil.iter_modules(__path__) if module.ispkg),
        key=_ORDER.index,
    )
}
"""Subject (a folder of this package) to its guarantees."""

GUARANTEES: dict[str, Guarantee] = {
    guarantee.name: guarantee for guarantees in SUBJECTS.values() for guarantee in guarantees
}
"""Name to guarantee, in the order of reports."""

__all__ = ["GUARANTEES", "SUBJECTS", "Guarantee"]
