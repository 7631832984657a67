"""ISR proposals of a leader to the controller."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.broker.replication.plain import TOPIC_ID, Plain, state
from tests.waiting import wait_until
from urteil.broker.replication.isr_proposals import IsrProposals
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import AlterPartitionRequest, AlterPartitionResponse


def test_proposal_carries_the_followers_broker_epoch(tmp_path: Path) -> None:
    """It caught up, its machine lost power, and it is back with less while the controller is
    away: the controller must detect that (KIP-903)."""
    plain = Plain(tmp_path / "t-0")
    asked: list[dict[int, int]] = []

    async def ask(request: AlterPartitionRequest) -> AlterPartitionResponse:
        proposal = request.topics[0].partitions[0]
        asked.append(
            {
                broker_state.broker_id: broker_state.broker_epoch
                for broker_state in proposal.new_isr_with_epochs
            }
        )
        if len(asked) == 1:
            plain.partition.record_follower_fetch(3, 0, 0, 1.0, 11)
            raise ConnectionError
        refused = AlterPartitionResponse.PartitionData(
            partition_index=0, error_code=ErrorCode.INELIGIBLE_REPLICA
        )
        topic = AlterPartitionResponse.TopicData(topic_id=TOPIC_ID, partitions=[refused])
        return AlterPartitionResponse(topics=[topic])

    async def scenario() -> None:
        proposals = IsrProposals(1, lambda: 5, ask, lambda: 0.0)
        plain.partition.propose = proposals.propose
        plain.partition.become_leader(state(1, 1, (1, 2)), 0.0)
        plain.append()
        plain.partition.record_follower_fetch(2, 1, 0, 0.0, 8)
        plain.partition.record_follower_fetch(3, 1, 0, 0.0, 9)
        await wait_until(lambda: not plain.partition.isr.is_in_flight)
        assert asked == [{1: -1, 2: -1, 3: 9}] * 2
        proposals.close()

    asyncio.run(scenario())
