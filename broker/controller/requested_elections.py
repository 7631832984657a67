"""Elections on request: ElectLeaders, and `/admin/preferred_replica_election`.

Source: `KafkaController.processReplicaLeaderElection`, KIP-460.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from urteil.broker.base.offload import yield_items
from urteil.broker.controller.admin_znodes import AdminZnodes
from urteil.broker.controller.api_error import NO_PARTITION, ApiError
from urteil.broker.controller.services import Services
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.zookeeper.session import Watch

log = logging.getLogger("controller")

ELECTION_NOT_NEEDED = ApiError(
    ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
)
BEING_DELETED = ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")

ElectionOutcomes = dict[TopicPartition, int | ApiError]


class RequestedElections:
    """Called by the event handlers of one term."""

    def __init__(self, services: Services, znodes: AdminZnodes) -> None:
        self._services = services
        self._znodes = znodes

    async def elect(
        self, tps: Iterable[TopicPartition] | None, *, unclean: bool
    ) -> ElectionOutcomes:
        """The new leader of each partition, or the error. `tps` None means all partitions."""
        context = self._services.context
        requested = list(context.statuses) if tps is None else list(dict.fromkeys(tps))
        errors = {tp: self._find_error(tp, unclean=unclean) async for tp in yield_items(requested)}
        batch = self._services.batch()
        electable = [tp for tp, error in errors.items() if error is None]
        await self._services.machine.elect(electable, batch, unclean=unclean)
        self._services.send(batch)
        return {
            tp: self._outcome(tp, unclean=unclean) if error is None else error
            async for tp, error in yield_items(errors.items())
        }

    def _find_error(self, tp: TopicPartition, *, unclean: bool) -> ApiError | None:
        context = self._services.context
        if tp not in context.statuses:
            return NO_PARTITION
        if context.is_deletion_requested(tp[0]):
            return BEING_DELETED
        state = context.states.get(tp)
        if state is None:
            return None
        if unclean:
            return ELECTION_NOT_NEEDED if state.leader in context.live_brokers else None
        return ELECTION_NOT_NEEDED if state.leader == context.replicas(tp)[0] else None

    def _outcome(self, tp: TopicPartition, *, unclean: bool) -> int | ApiError:
        """The result of an election that ran."""
        state = self._services.context.states.get(tp)
        if state is not None and self._find_error(tp, unclean=unclean) is ELECTION_NOT_NEEDED:
            return state.leader
        if unclean:
            return ApiError(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                f"Failed to elect leader for partition {tp[0]}-{tp[1]}: no replica is alive",
            )
        return ApiError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"Failed to elect leader for partition {tp[0]}-{tp[1]}: the preferred replica "
            "is not alive or not in sync",
        )

    async def process_znode(self, watch: Watch) -> None:
        """Run the elections that old tools requested, and delete the znode for the next request.

        The znode is read again after each round: a tool may have created it before the watch.
        """
        while (requested := await self._znodes.elections(watch)) is not None:
            for tp, outcome in (await self.elect(requested, unclean=False)).items():
                if isinstance(outcome, ApiError) and outcome is not ELECTION_NOT_NEEDED:
                    log.warning("preferred leader of %s-%d: %s", *tp, outcome.message)
            await self._znodes.delete_elections()
