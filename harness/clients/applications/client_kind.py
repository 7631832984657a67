"""The client kind of all processes of an application: programs of their own without a journal."""

from __future__ import annotations

from urteil.harness.clients.applications import application_of
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.options import ApplicationOptions
from urteil.harness.scenario import Scenario


def _names(scenario: Scenario) -> list[str]:
    application = application_of(scenario.workload)
    return application.names(scenario) if application else []


KIND = ClientKind(
    name="app",
    about="A process of an application, a program of its own without a journal.",
    stage=Stage.APPLICATION,
    judged_by=(
        *("unprocessed", "processed_twice", "reordered_copy", "wrong_result"),
        *("mirror_gap", "mirror_order", "translated_too_far"),
    ),
    prefix="a",
    count=lambda scenario: len(_names(scenario)),
    names=_names,
    options=(ApplicationOptions,),
)
