"""Election of leaders and of the controller."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace


@mutant(
    about="a replica outside the ISR is elected although unclean election is disabled",
    models="unclean election with unclean.leader.election.enable=false",
    scenario="unclean-off",
    guarantee="unclean_leader",
)
def elect_any_replica(mark: Mark) -> None:
    """Elects as if unclean election were enabled."""

    def make(original: Function) -> Function:
        def after_failure(state: Any, replicas: Any, **kwargs: Any) -> Any:
            clean = original(state, replicas, **kwargs)
            dirty = original(state, replicas, **(kwargs | {"unclean": True}))
            if clean != dirty:
                mark.hit()
            return dirty

        return after_failure

    replace("urteil.broker.controller.leader_selection:after_failure", make)


@mutant(
    about="a replaced controller continues, and ZooKeeper and brokers accept its requests",
    models="controller epochs unchecked, as before the multis of KAFKA-6082",
    scenario="controller-deleted",
    guarantee="epoch_went_back",
    unsimulated="nothing deletes /controller",
)
def stale_controller_accepted(mark: Mark) -> None:
    """Keeps a replaced controller active and compares no controller epoch."""

    def make_still_won(original: Function) -> Function:
        async def still_won(election: Any, won: Any) -> bool:
            if not await original(election, won):
                mark.hit()
            return True

        return still_won

    def make_fenced(_original: Function) -> Function:
        async def write_unfenced(store: Any, ops: Any) -> None:
            await store._zk.multi(list(ops))

        return write_unfenced

    def make_fence(original: Function) -> Function:
        def fence(control: Any, controller_epoch: int, broker_epoch: int) -> Any:
            return original(
                control, max(controller_epoch, control._replicas.controller_epoch), broker_epoch
            )

        return fence

    replace(
        "urteil.broker.controller.controller_election:ControllerElection.still_won", make_still_won
    )
    replace("urteil.broker.controller.metadata_store:MetadataStore.write_fenced", make_fenced)
    replace("urteil.broker.replication.role_changes:RoleChanges.fence", make_fence)


@mutant(
    about="leadership returns to a preferred replica that is not in the ISR",
    models="a leader rebalance that checks liveness only",
    scenario="early-return",
    guarantee="unclean_leader",
    mix="administration",
)
def preferred_outside_isr(mark: Mark) -> None:
    """Counts the preferred replica as a member of the ISR."""

    def make(original: Function) -> Function:
        def to_preferred(state: Any, replicas: Any, live: Any, controller_epoch: int) -> Any:
            from dataclasses import replace as changed

            first = replicas[0]
            if state.leader != first and first in live and first not in state.isr:
                mark.hit()
                state = changed(state, isr=(*state.isr, first))
            return original(state, replicas, live, controller_epoch)

        return to_preferred

    replace("urteil.broker.controller.leader_selection:to_preferred", make)


@mutant(
    about="a controlled shutdown elects a live replica that is not in sync, though unclean "
    "election is off",
    models="an election at shutdown that ignores the ISR",
    scenario="lone-shutdown",
    guarantee="unclean_leader",
    unsimulated="no last member of an ISR shuts down",
)
def shutdown_elects_outside_isr(mark: Mark) -> None:
    """Elects the first live replica where no other ISR member lives."""

    def make(original: Function) -> Function:
        def for_shutdown(
            state: Any, replicas: Sequence[int], live: Collection[int], controller_epoch: int
        ) -> Any:
            result = original(state, replicas, live, controller_epoch)
            alive = [replica for replica in replicas if replica in live]
            if result is not None or state.leader in live or not alive:
                return result
            mark.hit()
            isr = (*alive[:1], *state.isr)
            return original(changed(state, isr=isr), replicas, live, controller_epoch)

        return for_shutdown

    replace("urteil.broker.controller.leader_selection:for_shutdown", make)


@mutant(
    about="ElectLeaders is answered with the preferred leaders, and none of them is elected",
    models="an answer that does not wait for the controller",
    scenario="preferred",
    guarantee="preferred_leader_ignored",
    mix="administration",
)
def preferred_election_not_held(mark: Mark) -> None:
    """Answers with the preferred leaders and changes no leader."""

    def make(original: Function) -> Function:
        async def elect(elections: Any, tps: Any, *, unclean: bool) -> Any:
            if unclean or tps is None:
                return await original(elections, tps, unclean=unclean)
            mark.hit()
            return {tp: elections._services.context.replicas(tp)[0] for tp in tps}

        return elect

    def at_once(original: Function) -> Function:
        async def skip_wait(broker: Any, outcomes: Any, timeout_ms: int) -> Any:
            return outcomes

        return skip_wait

    replace("urteil.broker.controller.requested_elections:RequestedElections.elect", make)
    replace("urteil.broker.api.elect_leaders:_wait_for_metadata", at_once)


@mutant(
    about="a controller elects a new leader and keeps the dead broker in the ISR",
    models="an offline leader that is not removed from the ISR",
    scenario="leader-crash",
    guarantee="dead_replica_in_isr",
)
def dead_replica_kept_in_isr(mark: Mark) -> None:
    """Keeps the previous ISR when an election follows a broker's end."""

    def make(original: Function) -> Function:
        def keep_isr(state: Any, replicas: Any, **kwargs: Any) -> Any:
            chosen = original(state, replicas, **kwargs)
            if chosen is None or chosen.leader not in state.isr or chosen.isr == state.isr:
                return chosen
            mark.hit()
            return changed(chosen, isr=state.isr)

        return keep_isr

    replace("urteil.broker.controller.leader_selection:after_failure", make)
