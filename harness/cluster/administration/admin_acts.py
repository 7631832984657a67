"""Administrative acts through a real admin client. Implements
`chaos.admin_controls.AdminControls`."""

from __future__ import annotations

from kafka.errors import KafkaError

from urteil.chaos.admin_controls import ActFailed
from urteil.harness.cluster.administration.release_acts import ReleaseActs
from urteil.harness.cluster.administration.replica_acts import ReplicaActs
from urteil.harness.cluster.administration.setting_acts import SettingActs
from urteil.harness.cluster.administration.topic_acts import TopicActs

DECIDED = ("PrepareCommit", "PrepareAbort")
"""States of a transaction whose end is in its coordinator's log, and not yet in all partitions."""


class AdminActs(TopicActs, ReplicaActs, SettingActs, ReleaseActs):
    """The acts of one administrator on a cluster."""

    def decided_transactions(self) -> list[str]:
        try:
            with self._client() as admin:
                listings = admin.list_transactions(state_filters=DECIDED)
        except KafkaError as error:
            raise ActFailed(f"{type(error).__name__}: {error}") from error
        return sorted(
            transaction.transactional_id for listing in listings.values() for transaction in listing
        )
