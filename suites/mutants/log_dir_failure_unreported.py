"""Sends no notification of the failure to the controller."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = (
    "a broker with a failed log directory does not report it, and stays leader of its partitions"
)
MODELS = "KIP-112: a log directory failure that does not reach the controller"
SCENARIO = "disk-gone"
GUARANTEE = "no_progress"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def report(failures: Any) -> None:
            mark.hit()

        return report

    replace(
        "urteil.broker.replication.directory_failures:DirectoryFailures._notify_controller", make
    )
