"""Elections that are asked for: ElectLeaders, and `/admin/preferred_replica_election`.

Source: `KafkaController.processReplicaLeaderElection`, KIP-460.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from urteil.broker.base.offload import paced
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
    """Runs in the events of one term."""

    def __init__(self, services: Services, nodes: AdminZnodes) -> None:
        self._services = services
        self._nodes = nodes

    async def elect(
        self, tps: Iterable[TopicPartition] | None, *, unclean: bool
    ) -> ElectionOutcomes:
        """The new leader of each partition, or why there is none. None stands for all."""
        context = self._services.context
        asked = list(context.statuses) if tps is None else list(dict.fromkeys(tps))
        refused = {tp: self._refusal(tp, unclean=unclean) async for tp in paced(asked)}
        batch = self._services.batch()
        wanted = [tp for tp, refusal in refused.items() if refusal is None]
        await self._services.machine.elect(wanted, batch, unclean=unclean)
        self._services.send(batch)
        return {
            tp: self._outcome(tp, unclean=unclean) if refusal is None else refusal
            async for tp, refusal in paced(refused.items())
        }

    def _refusal(self, tp: TopicPartition, *, unclean: bool) -> ApiError | None:
        context = self._services.context
        if tp not in context.statuses:
            return NO_PARTITION
        if context.is_going(tp[0]):
            return BEING_DELETED
        state = context.states.get(tp)
        if state is None:
            return None
        if unclean:
            return ELECTION_NOT_NEEDED if state.leader in context.live else None
        return ELECTION_NOT_NEEDED if state.leader == context.replicas(tp)[0] else None

    def _outcome(self, tp: TopicPartition, *, unclean: bool) -> int | ApiError:
        """Of an election that was held."""
        state = self._services.context.states.get(tp)
        if state is not None and self._refusal(tp, unclean=unclean) is ELECTION_NOT_NEEDED:
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

    async def take_in_node(self, watch: Watch) -> None:
        """What old tools ask for; the node goes whatever comes of it, so that they can ask again.

        Then it is looked at anew: it may have been made again before the watch was set.
        """
        while (asked := await self._nodes.elections(watch)) is not None:
            for tp, outcome in (await self.elect(asked, unclean=False)).items():
                if isinstance(outcome, ApiError) and outcome is not ELECTION_NOT_NEEDED:
                    log.warning("preferred leader of %s-%d: %s", *tp, outcome.message)
            await self._nodes.forget_elections()
