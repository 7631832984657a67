"""Applications: one declaration each, found here without a list (`declaration.py`)."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from urteil.chaos.similar_names import suggest
from urteil.harness.clients.applications.declaration import Application
from urteil.harness.clients.options import ApplicationOptions
from urteil.harness.clients.workload_kinds import APPLICATION as APPLICATION
from urteil.harness.clients.workload_kinds import PIPELINE as PIPELINE
from urteil.harness.scenario import WorkloadSpec


@cache
def applications() -> Mapping[str, Application]:
    """All declared applications by name."""
    modules = (
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
    )
    declared = (getattr(module, "APPLICATION", None) for module in modules)
    instances = [instance for instance in declared if isinstance(instance, Application)]
    return {
        application.name: application
        for application in sorted(instances, key=lambda application: application.name)
    }


def application_of(load: WorkloadSpec) -> Application | None:
    """The application of a workload. ValueError for one that does not exist, and for a variant
    that it does not have."""
    if load.kind == PIPELINE:
        return applications()[PIPELINE]
    if load.kind != APPLICATION:
        return None
    options, known = ApplicationOptions.of(load), applications()
    if options.application not in known:
        hint = suggest(options.application, known)
        raise ValueError(f"application {options.application!r} does not exist; {hint}")
    application = known[options.application]
    if options.variant and options.variant not in application.variants:
        hint = suggest(options.variant, application.variants)
        raise ValueError(
            f"application {application.name} has no variant {options.variant!r}; {hint}"
        )
    return application


def promise_of(load: WorkloadSpec) -> str:
    """The promise by which the outputs of a workload's application are judged."""
    if load.kind != APPLICATION or "promise" in load.options:
        return ApplicationOptions.of(load).promise
    application = application_of(load)
    return application.promise if application else ""


def is_ordered(load: WorkloadSpec) -> bool:
    """Whether the workload's application promises to keep the order of each key."""
    application = application_of(load) if load.kind == APPLICATION else None
    return application is not None and application.is_ordered
