"""A broker whose session expired never registers again."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "after its session expired a broker takes its lost registration for still there"
MODELS = "KAFKA-7165: /brokers/ids/N not made again after an expiry"
SCENARIO = "sessions-expired"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    """Only the first registration of a process is made."""

    def make(original: Function) -> Function:
        async def register(registration: Any) -> Any:
            if registration.epoch < 0:
                return await original(registration)
            mark.hit()
            return registration.epoch

        return register

    replace("urteil.broker.zookeeper.registration:Registration.register", make)
