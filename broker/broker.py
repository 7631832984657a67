"""The broker: it builds all parts, starts them in order and stops them in order."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from uuid import UUID

from urteil.broker.acl_session import AclSession
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.dispatch import Dispatcher
from urteil.broker.api.registry import load_handlers
from urteil.broker.base.clock import Clock
from urteil.broker.config.broker_config import BrokerConfig
from urteil.broker.config.dynamic_settings import DynamicSettings
from urteil.broker.config.topic_settings import TopicSettings
from urteil.broker.config.values import ConfigError
from urteil.broker.controller.client import ControllerClient
from urteil.broker.controller.config_administration import ConfigAdministration
from urteil.broker.controller.controller import Controller
from urteil.broker.environment import Environment
from urteil.broker.groups.coordinator import GroupCoordinator
from urteil.broker.groups.maintenance import GroupMaintenance
from urteil.broker.log.cleaner.cleaner import Cleaner
from urteil.broker.log.cleaner.cleaner_settings import CleanerSettings
from urteil.broker.log.log_manager import LogManager
from urteil.broker.metrics import broker_metrics
from urteil.broker.metrics.scrape_server import ScrapeServer
from urteil.broker.net.channels import Channels
from urteil.broker.net.connection_limits import ConnectionLimits
from urteil.broker.net.endpoints import advertised_addresses, endpoints
from urteil.broker.net.host_names import Resolver
from urteil.broker.net.listener_security import SecureListeners
from urteil.broker.net.socket_server import SocketServer
from urteil.broker.quotas.alterations import QuotaAdmin
from urteil.broker.quotas.quota_table import QuotaTable
from urteil.broker.quotas.stored_quotas import QuotaConfigs
from urteil.broker.quotas.throttle import make_throttle
from urteil.broker.replication.directory_failures import DirectoryFailures
from urteil.broker.replication.fetch_sessions import FetchSessions
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.replication.replica_manager import ReplicaManager
from urteil.broker.replication.role_changes import RoleChanges
from urteil.broker.scheduled_tasks import ScheduledTasks
from urteil.broker.security.acls.cluster_acls import ClusterAcls
from urteil.broker.security.authorizer import Authorizer, make_authorizer
from urteil.broker.security.sasl.scram_alterations import ScramAdmin
from urteil.broker.security.sasl.scram_users import ScramUsers
from urteil.broker.security.tokens.cluster_tokens import make_cluster_tokens
from urteil.broker.transactions.coordinator import TransactionCoordinator
from urteil.broker.transactions.marker_sender import MarkerSender
from urteil.broker.transactions.marker_writer import MarkerWriter
from urteil.broker.transactions.partition_verifier import PartitionVerifier
from urteil.broker.transactions.producer_ids import ProducerIds
from urteil.broker.zookeeper.registration import (
    Registration,
    check_addresses,
    cluster_id,
    create_persistent_paths,
)
from urteil.broker.zookeeper.znodes import BrokerInfo

log = logging.getLogger("broker")


class Broker(BrokerParts):
    """The attributes are complete once `start` returned."""

    cleaner: Cleaner
    failures: DirectoryFailures

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        rng: random.Random,
        environment: Environment | None = None,
    ) -> None:
        self.config = config
        self._environment = environment or Environment()
        self.broker_id = config.broker_id
        self.clock = clock
        self._rng = rng
        self.offload = self._environment.offload(config.num_io_threads)
        self.began_s = 0.0  # when the broker began to serve, in s of the loop's clock
        self._scheduled_tasks: ScheduledTasks | None = None
        self._make_outgoing()
        self._make_security()
        self._make_controller()
        self._make_settings()
        self._make_servers()

    def _make_outgoing(self) -> None:
        """Build the ZooKeeper session and the channels to other brokers."""
        config = self.config
        self._resolver = Resolver(config.urteil_hosts_file)
        self.metadata = MetadataCache()
        self.users = ScramUsers()
        self.security = SecureListeners(config, self.users, self.clock.now_ms)
        self.channels = Channels(
            f"broker-{config.broker_id}",
            self._resolver,
            self.security.secure_listeners.get(config.inter_broker_listener),
            config.socket_connection_setup_timeout_ms,
        )
        self.zk = self._environment.session(
            config.zookeeper_connect, config.zookeeper_session_timeout_ms, self._resolver.resolve
        )

    def _make_security(self) -> None:
        """Build the delegation tokens and the authorizer."""
        properties, now_ms = self.config.properties, self.clock.now_ms
        self.tokens = make_cluster_tokens(self.zk, properties.value, now_ms)
        self.users.find_token = self.tokens.table.find
        self.cluster_acls: ClusterAcls | None = None
        self.authorizer: Authorizer | None = None
        resolve = self._resolver.resolve
        self._acl_session = AclSession(self.config, self.zk, self._environment, resolve)
        if self.config.authorizer_class_name:
            self.cluster_acls = ClusterAcls(self._acl_session.zk, now_ms)
            try:
                self.authorizer = make_authorizer(properties, self.cluster_acls.table)
            except ValueError as error:
                raise ConfigError(str(error)) from None

    def _make_controller(self) -> None:
        """Build the controller, inactive until elected, and the client of the active controller."""
        config = self.config
        self.registration = Registration(
            self.zk,
            _info(config),
            self.clock.now_ms,
            patience_s=1.5 * config.zookeeper_session_timeout_ms / 1000,
        )
        self.controller = Controller(
            config, self.zk, self.registration, self.channels, self.clock, self._rng
        )
        self.controller_client = ControllerClient(
            config, self.controller, self.channels, self.metadata
        )
        self.producer_ids = ProducerIds(
            lambda: self.controller_client.allocate_producer_ids(self.broker_epoch)
        )

    def _make_settings(self) -> None:
        """Build the settings that ZooKeeper holds: of topics, brokers, quotas and users."""
        config, configs = self.config, self.controller.configs
        self.quota_configs = QuotaConfigs(configs, QuotaTable())
        self.quota_admin = QuotaAdmin(self.quota_configs)
        self.throttle = make_throttle(self.quota_configs.table, config.properties)
        self.topic_settings = TopicSettings(configs, self._on_topic_settings_changed)
        self.dynamic = DynamicSettings(config.broker_id, config.properties, configs)
        self.config_admin = ConfigAdministration(
            config.broker_id,
            config.properties,
            configs,
            self.dynamic,
            self.metadata,
            config.request_timeout_ms,
        )
        self.scram_admin = ScramAdmin(configs)

    def _make_servers(self) -> None:
        """Build the socket server and the metrics server."""
        config = self.config
        self.fetch_sessions = FetchSessions(
            config.max_incremental_fetch_session_cache_slots, self._rng
        )
        self._dispatcher = dispatcher = Dispatcher(self)
        self.requests = dispatcher.requests
        self._scrapes = ScrapeServer(lambda: broker_metrics.blocks(self))
        self._sockets = SocketServer(
            max_frame_bytes=config.socket_request_max_bytes,
            max_idle_ms=config.connections_max_idle_ms,
            backlog=config.socket_listen_backlog_size,
            answer=dispatcher.answer,
            secure_listeners=self.security.secure_listeners,
            max_queued_bytes=config.queued_max_request_bytes,
            limits=ConnectionLimits(
                config.properties,
                config.inter_broker_listener,
                config.socket_listen_backlog_size,
                self.throttle.connect,
            ),
        )

    @property
    def is_busy(self) -> bool:
        """Whether a large request is in progress."""
        return self._dispatcher.large > 0

    @property
    def broker_epoch(self) -> int:
        """The czxid of this broker's `/brokers/ids/N`; -1 before registration."""
        return self.registration.epoch

    async def start(self) -> None:
        """Recover the logs, listen, register, stand for election as controller.

        Raises OSError (data folder, address), TimeoutError (ZooKeeper), ConfigError (keys and
        certificates) and AlreadyRegistered.
        """
        load_handlers()
        await self.zk.connect(self.config.zookeeper_patience_ms / 1000)
        await create_persistent_paths(self.zk)
        self.cluster_id = await cluster_id(self.zk, self._make_uuid)
        await self.dynamic.load()
        self.security.reload()
        await self.users.load(self.controller.configs)
        self.dynamic.follow(self.security.check, self.security.reload_or_log)
        if self.cluster_acls is not None:
            await self._acl_session.connect()
            await self.cluster_acls.start()
        await self.tokens.start(lambda: self.controller.is_active)
        await self.quota_configs.load()
        await self._open_logs()
        self._make_replicas()
        await self._listen()
        self.registration.info = replace(
            self.registration.info,
            endpoints=endpoints(self.config.listeners, self._sockets.bound_port),
        )
        await check_addresses(self.zk, self.broker_id, advertised_addresses(self.config.listeners))
        await self.registration.register()
        await self.controller.start()
        self.failures.begin()
        self._scheduled_tasks = ScheduledTasks(
            self.config, self.clock, self.logs, self.cleaner, self.replicas, self.failures
        )
        self._scheduled_tasks.start()
        self.transactions.start()
        self.group_maintenance.start(
            self.config.offsets_retention_check_interval_ms, self.config.offsets_retention_minutes
        )
        log.info("broker %d is up, epoch %d", self.broker_id, self.broker_epoch)

    async def _listen(self) -> None:
        self.began_s = asyncio.get_running_loop().time()
        if self.config.metrics_listener is not None:
            host, port = self.config.metrics_listener
            await self._scrapes.listen(self._resolver.resolve(host), port)
        await self._sockets.listen(self.config.listeners, self._resolver)

    async def _open_logs(self) -> None:
        await self.topic_settings.load(await self.zk.children("/config/topics"))
        self._syncing = self._environment.background()
        self.logs = LogManager(
            self.config.log_dirs,
            self.config.properties,
            self.clock,
            storage=self._environment.storage,
            background=self._syncing.submit,
        )
        self.logs.load(self.cluster_id, self.topic_settings.overrides)
        self._cleaning = self._environment.background()
        self.cleaner = Cleaner(
            self.logs.compactable_logs,
            CleanerSettings.from_properties(self.config.properties),
            self.logs.checkpoint_cleaner_offsets,
            background=self._clean_in_thread,
        )

    def _clean_in_thread(self, job: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()

        def run() -> None:
            job()
            loop.call_soon_threadsafe(self._on_cleaned)

        self._cleaning.submit(run)

    def _on_cleaned(self) -> None:
        if self._scheduled_tasks is not None:
            self._scheduled_tasks.clean_on()

    def _make_replicas(self) -> None:
        self.replicas = ReplicaManager(
            config=self.config,
            clock=self.clock,
            logs=self.logs,
            metadata=self.metadata,
            channels=self.channels,
            broker_epoch=lambda: self.broker_epoch,
            ask_controller=self.controller_client.alter_partition,
            topic_overrides=self.topic_settings.overrides,
            offload=self.offload,
        )
        self.control = RoleChanges(
            self.replicas,
            self.metadata,
            lambda: self.broker_epoch,
            self.config.inter_broker_listener,
        )
        self.failures = DirectoryFailures(
            self.logs, self.replicas, self.zk, self.broker_id, self.halt
        )
        self.config.properties.subscribe(self._on_properties_changed)
        self.groups = GroupCoordinator(
            self.config, self.replicas, self.metadata, self.clock, self._rng
        )
        self.group_maintenance = GroupMaintenance(self.groups, self.clock)
        self._make_transactions()

    def _make_transactions(self) -> None:
        self.marker_writer = MarkerWriter(self.config, self.replicas, self.groups, self.clock)
        markers = MarkerSender(
            me=self.broker_id,
            listener=self.config.inter_broker_listener,
            metadata=self.metadata,
            channels=self.channels,
            write_here=self.marker_writer.write,
            timeout_ms=self.config.request_timeout_ms,
        )
        self.transactions = TransactionCoordinator(
            self.config, self.replicas, self.metadata, self.clock, self.producer_ids, markers
        )
        self.verifier = PartitionVerifier(
            self.config,
            self.replicas,
            self.metadata,
            self.channels,
            self.transactions,
            self.clock,
        )

    def _make_uuid(self) -> UUID:
        return UUID(int=self._rng.getrandbits(128), version=4)

    def _on_properties_changed(self, _names: frozenset[str]) -> None:
        """Apply changed broker properties to the cleaner and to the defaults of all topics."""
        self.cleaner.settings = CleanerSettings.from_properties(self.config.properties)
        self.logs.configure(self.topic_settings.overrides)

    def _on_topic_settings_changed(self, topic: str, overrides: Mapping[str, str]) -> None:
        self.logs.configure(lambda _: overrides, topic)

    async def stop(self) -> None:
        """Controlled shutdown: move leaderships away, then close the logs cleanly."""
        log.info("broker %d goes down", self.broker_id)
        if self.config.controlled_shutdown_enable:
            await self.controller_client.shut_down(lambda: self.broker_epoch)
        if self._scheduled_tasks is not None:
            await self._scheduled_tasks.stop()
        await self._sockets.close()
        self._scrapes.close()
        self.transactions.stop()
        self.group_maintenance.stop()
        self.groups.stop()
        self.failures.close()
        self.topic_settings.close()
        await self.replicas.close()
        await self.controller.stop()
        if self.cluster_acls is not None:
            await self.cluster_acls.stop()
            await self._acl_session.close()
        await self.tokens.stop()
        self.channels.close()
        self.replicas.checkpoint_high_watermarks()
        self.offload.close()
        self.cleaner.stop()
        self._cleaning.shutdown()
        self.cleaner.close()
        self._syncing.shutdown()
        self.logs.shutdown(self.broker_epoch)
        await self.zk.close()
        log.info("broker %d is down", self.broker_id)

    def halt(self, error: OSError) -> None:
        """Stop at once, without a clean shutdown marker: the last log directory has failed.

        Records in memory may not be on disk. A broker that went on would acknowledge records that
        it has lost (KAFKA-10778).
        """
        log.critical("broker %d halts: %s", self.broker_id, error)
        self._environment.end()


def _info(config: BrokerConfig) -> BrokerInfo:
    """The registration without endpoints; they follow once the sockets are bound."""
    return BrokerInfo(id=config.broker_id, rack=config.broker_rack, endpoints=())
