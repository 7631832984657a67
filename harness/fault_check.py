"""`urteil faults check`: plays faults on an idle cluster, and checks that each acts and heals."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

import msgspec

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS, Proof
from urteil.harness.run.topics import create_topics, fit_topic
from urteil.harness.scenario import TopicSpec

TOPIC = "urteil-fault-check"
RECOVERY_S = 60.0
BROKERS, ZOOKEEPERS = 3, 3
"""What an idle cluster needs that every fault can act on it."""


class FaultCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one fault. `why` says why it was not tried, where it cannot act.

    `healed`: the cluster was healthy again without a trace of the fault.
    """

    fault: str
    target: str = ""
    targets: list[str] = []
    acted: bool = False
    proof: str = ""
    healed: bool = False
    healing: str = ""
    seconds: float = 0.0
    why: str = ""

    @property
    def good(self) -> bool:
        return bool(self.why) or (self.acted and self.healed)


def check_all(
    controls: Controls, names: Iterable[str], *, runtime: str, target: str, seed: int = 1,
    each: Callable[[FaultCheck], None] = lambda _one: None,
) -> list[FaultCheck]:  # fmt: skip
    """Check every named fault in turn. `each` is called after each of them."""
    checks = []
    for name in names:
        fault = FAULTS[name]
        why = fault.unsupported_reason(runtime=runtime, target=target) or (
            "" if fault.sample else "needs clients at work: a scenario has them"
        )
        check = FaultCheck(fault=name, why=why) if why else check_fault(controls, name, seed=seed)
        each(check)
        checks.append(check)
    return checks


def check_fault(controls: Controls, name: str, *, seed: int = 1) -> FaultCheck:
    """Begin and heal a fault as its `sample` says.

    Failures are in the texts; `acted` or `healed` is false then.
    """
    kind = FAULTS[name]
    arguments = FaultArguments(
        target=kind.sample, topic=TOPIC, seed=f"{seed}/{name}", options=dict(kind.sample_options)
    )
    fault = kind(arguments)
    began = time.monotonic()
    hold = controls.hold(name, expiry_s=kind.expiry_s)
    proof = Proof(acted=False, text="")
    try:
        proof = fault.begin(controls)
        threading.Event().wait(kind.sample_s)
    except Exception as failure:
        proof = Proof(acted=False, text=f"{type(failure).__name__}: {failure}")
    healed, healing = False, ""
    try:
        healing = fault.heal(controls)
        proof = fault.final_proof(proof)
        controls.release(hold)
        controls.await_healthy(deadline_s=RECOVERY_S)
        residual_effects = fault.find_residual_effects(controls)
        healed, healing = (
            not residual_effects,
            healing if not residual_effects else f"{healing}; still there: {residual_effects}",
        )
    except Exception as failure:
        healing += f"; {type(failure).__name__}: {failure}"
    return FaultCheck(
        fault=name,
        target=kind.sample,
        targets=list(fault.targets),
        acted=proof.acted,
        proof=proof.text,
        healed=healed,
        healing=healing,
        seconds=round(time.monotonic() - began, 2),
    )


def prepare(bootstrap: list[str], topics: Iterable[str]) -> None:
    """Create the topic that targets by role refer to, unless it exists."""
    if TOPIC not in topics:
        topic = TopicSpec(name=TOPIC, partitions=1, replication_factor=BROKERS)
        create_topics(bootstrap, [fit_topic(topic, len(bootstrap))])
