"""Nobody hears that a log directory is gone."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker tells nobody that a log directory is gone: it stays leader of what lay there"
MODELS = "a log directory's failure that does not reach the controller (KIP-112)"
SCENARIO = "disk-gone"
GUARANTEE = "no_progress"


def apply(mark: Mark) -> None:
    """The controller is not told."""

    def make(original: Function) -> Function:
        async def tell(failures: Any) -> None:
            mark.hit()

        return tell

    replace("urteil.broker.server.directory_failures:DirectoryFailures._tell_controller", make)
