"""The parts of a broker that request handlers use.

`broker.broker.Broker` builds them. Handlers import these declarations alone, so that imports run in
one direction: from the process down to the handlers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urteil.broker.base.clock import Clock
    from urteil.broker.base.offload import Offload
    from urteil.broker.config.broker_config import BrokerConfig
    from urteil.broker.config.topic_settings import TopicSettings
    from urteil.broker.controller.client import ControllerClient
    from urteil.broker.controller.config_administration import ConfigAdministration
    from urteil.broker.controller.controller import Controller
    from urteil.broker.groups.coordinator import GroupCoordinator
    from urteil.broker.groups.maintenance import GroupMaintenance
    from urteil.broker.log.log_manager import LogManager
    from urteil.broker.net.channels import Channels
    from urteil.broker.quotas.alterations import QuotaAdmin
    from urteil.broker.quotas.throttle import Throttle
    from urteil.broker.replication.fetch_sessions import FetchSessions
    from urteil.broker.replication.metadata_cache import MetadataCache
    from urteil.broker.replication.replica_manager import ReplicaManager
    from urteil.broker.replication.role_changes import RoleChanges
    from urteil.broker.security.acls.cluster_acls import ClusterAcls
    from urteil.broker.security.authorizer import Authorizer
    from urteil.broker.security.sasl.scram_alterations import ScramAdmin
    from urteil.broker.security.tokens.cluster_tokens import ClusterTokens
    from urteil.broker.transactions.coordinator import TransactionCoordinator
    from urteil.broker.transactions.marker_writer import MarkerWriter
    from urteil.broker.transactions.partition_verifier import PartitionVerifier
    from urteil.broker.transactions.producer_ids import ProducerIds
    from urteil.broker.zookeeper.registration import Registration
    from urteil.broker.zookeeper.session import Session


class BrokerParts:
    """All attributes are set before the first request is read."""

    broker_id: int
    cluster_id: str
    config: BrokerConfig
    clock: Clock
    offload: Offload
    zk: Session
    registration: Registration

    cluster_acls: ClusterAcls | None
    authorizer: Authorizer | None
    channels: Channels
    config_admin: ConfigAdministration
    control: RoleChanges
    controller: Controller
    controller_client: ControllerClient
    fetch_sessions: FetchSessions
    group_maintenance: GroupMaintenance
    groups: GroupCoordinator
    marker_writer: MarkerWriter
    logs: LogManager
    metadata: MetadataCache
    producer_ids: ProducerIds
    quota_admin: QuotaAdmin
    replicas: ReplicaManager
    scram_admin: ScramAdmin
    throttle: Throttle
    tokens: ClusterTokens
    topic_settings: TopicSettings
    transactions: TransactionCoordinator
    verifier: PartitionVerifier
