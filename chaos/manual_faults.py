"""Single faults around a block of code, for tests of a user's own service."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import Option
from urteil.chaos.faults import FAULTS, Proof
from urteil.chaos.nemesis import Injection, append_link_events
from urteil.chaos.observations import LabFailure
from urteil.chaos.similar_names import suggest

RECOVERY_DEADLINE_S = 60.0
EXPIRY_S = 600.0


class ManualFaults:
    """Injects faults around a block of code and writes them into faults.jsonl. `seed` decides every
    random choice. With the same seed, the n-th faults of two tests select the same way."""

    def __init__(self, controls: Controls, record: Path, *, seed: int = 1) -> None:
        self.controls = controls
        self.injections: list[Injection] = []
        self._record = record
        self._seed = seed

    @contextmanager
    def fault(
        self,
        name: str,
        target: str = "leader",
        *,
        topic: str = "",
        partition: int = 0,
        recovery_deadline_s: float = RECOVERY_DEADLINE_S,
        expiry_s: float = EXPIRY_S,
        **options: Option,
    ) -> Iterator[Proof]:
        """Inject a fault for the length of a `with` block, then heal it and wait for health.

        `target` is a role (`leader` and `follower` of `topic` and `partition`) or a node's name. On
        a cluster that outlives this process the fault ends after `expiry_s` at the latest.
        ValueError for an unknown name or option; LabFailure if the fault has no proof that it
        acted; NotHealthy if the cluster does not recover in time.
        """
        if name not in FAULTS:
            raise ValueError(f"no fault named {name!r}; {suggest(name, FAULTS)}")
        seed = f"{self._seed}/{len(self.injections)}/{name}"
        arguments = FaultArguments(
            target=target, topic=topic, partition=partition, seed=seed, options=options
        )
        fault = FAULTS[name](arguments)
        injection = Injection(fault=name, begin_ns=time.monotonic_ns())
        self.injections.append(injection)
        hold = self.controls.hold(name, expiry_s=expiry_s)
        proof = Proof(acted=False, text="")
        try:
            proof = fault.begin(self.controls)
            injection.targets = fault.targets or (target,)
            injection.proof, injection.acted = proof.text, proof.acted
            injection.harm = proof.harm
            injection.effects = fault.injected_effects()
            self._write()
            _require_acted(name, target, proof)
            yield proof
        finally:
            injection.end_ns = time.monotonic_ns()
            fault.heal(self.controls)
            self.controls.release(hold)
            injection.healed_ns = time.monotonic_ns()
            final = fault.final_proof(proof)
            append_link_events(self._record.parent, fault)
            injection.proof, injection.acted = final.text, final.acted
            self._write()
        _require_acted(name, target, final)
        self.controls.await_healthy(deadline_s=recovery_deadline_s)

    def _write(self) -> None:
        part = self._record.with_name(self._record.name + ".part")
        part.write_text("".join(json.dumps(i.row()) + "\n" for i in self.injections))
        part.replace(self._record)


def _require_acted(name: str, target: str, proof: Proof) -> None:
    if not proof.acted:
        raise LabFailure(f"{name} on {target} left no proof that it acted: {proof.text}")
