"""An operator acts on an application while it runs."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import text
from urteil.chaos.faults.base.fault import Fault, Proof


class OperateApp(Fault):
    """An act of the application's declaration (`Application.acts`), such as a new configuration of
    a connector or the restart of a task. It stays in force after healing."""

    name = "operate_app"
    about = "act on a running application as its operator would: reconfigure, restart a task"
    effects = frozenset({Effect.OPERATES_APPLICATIONS})
    proves = "the application confirmed the act"
    selectors = "the workload's application; the target is ignored"
    act: str = text("", "the act, by its name in `urteil list applications`")
    sample = ""

    def begin(self, controls: Controls) -> Proof:
        confirmation = controls.clients.operate_application(self.act)
        return Proof(acted=bool(confirmation), text=confirmation or "the act was not confirmed")

    def heal(self, controls: Controls) -> str:
        return "the act stays in force"

    def find_residual_effects(self, controls: Controls) -> str:
        return ""
