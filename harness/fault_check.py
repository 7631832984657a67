"""`urteil faults check`: a fault acts on an idle cluster, heals, and shows both."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

import msgspec

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.harness.run.topics import create_topics
from urteil.harness.scenario import ClusterSpec, Scenario, TopicSpec, WorkloadSpec

TOPIC = "urteil-fault-check"
RECOVERY_S = 60.0
BROKERS, ZOOKEEPERS = 3, 3
"""What an idle cluster needs that every fault can act on it."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """How one fault went. `why` says why it was not tried, where it cannot act.

    `healed` is true when the cluster was healthy again and nothing of the fault was to be seen.
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
    each: Callable[[Checked], None] = lambda _one: None,
) -> list[Checked]:  # fmt: skip
    """Every named fault in turn; `each` is told as soon as one is done."""
    found = []
    for name in names:
        fault = FAULTS[name]
        why = fault.unsupported_reason(runtime=runtime, target=target) or (
            "" if fault.sample else "needs clients at work: a scenario has them"
        )
        one = Checked(fault=name, why=why) if why else check_fault(controls, name, seed=seed)
        each(one)
        found.append(one)
    return found


def check_fault(controls: Controls, name: str, *, seed: int = 1) -> Checked:
    """Begin and heal a fault as its `sample` says. Whatever fails is in the texts, `acted` or
    `healed` is false then."""
    kind = FAULTS[name]
    arguments = FaultArguments(
        target=kind.sample, topic=TOPIC, seed=f"{seed}/{name}", options=dict(kind.sample_options)
    )
    fault = kind(arguments)
    began = time.monotonic()
    hold = controls.hold(name, expiry_s=kind.expiry_s)
    acted, proof = False, ""
    try:
        shown = fault.begin(controls)
        acted, proof = shown.acted, shown.text
        threading.Event().wait(kind.sample_s)
    except Exception as failure:
        proof = f"{type(failure).__name__}: {failure}"
    healed, healing = False, ""
    try:
        healing = fault.heal(controls)
        controls.release(hold)
        controls.await_healthy(deadline_s=RECOVERY_S)
        left = fault.find_residual_effects(controls)
        healed, healing = not left, healing if not left else f"{healing}; still there: {left}"
    except Exception as failure:
        healing += f"; {type(failure).__name__}: {failure}"
    return Checked(
        fault=name,
        target=kind.sample,
        targets=list(fault.targets),
        acted=acted,
        proof=proof,
        healed=healed,
        healing=healing,
        seconds=round(time.monotonic() - began, 2),
    )


def prepare(bootstrap: list[str], known: Iterable[str]) -> None:
    """The topic whose leader and followers are meant, unless it is there."""
    if TOPIC not in known:
        topic = TopicSpec(name=TOPIC, partitions=1, replication_factor=BROKERS)
        spec = ClusterSpec(brokers=len(bootstrap))
        load = WorkloadSpec(topics=(topic,))
        create_topics(bootstrap, Scenario(name="topic", cluster=spec, workload=load))
