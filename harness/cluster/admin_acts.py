"""Administrative acts through a real admin client. Implements
`chaos.admin_controls.AdminControls`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import not_
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import (
    InvalidUpdateVersionError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    RequestTimedOutError,
    RetriableError,
    UnknownBrokerIdError,
)
from kafka.structs import TopicPartition

from urteil.chaos.admin_controls import ActFailed, Directories, Replicas
from urteil.chaos.capabilities import (
    CONFIG_INCREMENTS,
    ELECTIONS,
    PARTITION_GROWTH,
    QUOTAS,
    REASSIGNMENT,
    Capability,
)
from urteil.chaos.waiting import retry, until
from urteil.harness.clients.kafka_python_fixes import retry_missing_partitions
from urteil.harness.cluster import admin_znodes
from urteil.harness.cluster.act_log import ActLog
from urteil.harness.cluster.client_quotas import alter_quotas
from urteil.harness.cluster.cluster_state import ClusterState
from urteil.harness.evidence.acts import DEFAULT_CLIENT, RAISE_FEATURES

DEADLINE_S = 30.0
REQUEST_TIMEOUT_MS = 5_000
POLL_S = 0.1
REPEAT_S = 5.0
ELECTION_S = 5.0
PREFERRED, UNCLEAN = 0, 1
DELETE_CONFIG = "DELETE"
DEFAULT_OF_ALL = "DYNAMIC_DEFAULT_BROKER_CONFIG"
DECIDED = ("PrepareCommit", "PrepareAbort")
"""States of a transaction whose end is in its coordinator's log, and not yet in all partitions."""


class Releases:
    """The brokers' releases, for acts that change them. They are known only for clusters of the
    lab's own."""

    def release(self, node: str) -> str:
        raise ActFailed(f"the lab did not start {node} and does not know its version")

    def upgrade(self, node: str, step: int) -> str:
        raise ActFailed(f"the lab did not start {node} and cannot upgrade it (step {step})")

    def features(self) -> Mapping[str, int]:
        """The level of each feature in a new cluster of the newest release."""
        raise ActFailed("the lab did not start this cluster and does not know its release")


class AdminActs:
    """Acts through `bootstrap`, and logs every act in `acts`. Reads the current state from
    ZooKeeper."""

    def __init__(
        self,
        bootstrap: Callable[[], Sequence[str]],
        state: ClusterState,
        acts: ActLog,
        releases: Releases,
    ) -> None:
        self._bootstrap = bootstrap
        self._state = state
        self._acts = acts
        self._releases = releases

    # Topics

    def topic_id(self, topic: str) -> str | None:
        return self._state.topic_id(topic)

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int,
        replication_factor: int,
        config: Mapping[str, str] | None = None,
    ) -> str:
        settings = {
            "num_partitions": partitions,
            "replication_factor": replication_factor,
            "configs": dict(config or {}),
        }
        with self._acts.act("create", topic) as after:
            self._send_until(
                lambda admin: admin.create_topics({topic: settings}),
                lambda: self._has_leaders(topic),
            )
            topic_id = self._state.topic_id(topic) or ""
            after.update(settings, topic_id=topic_id)
        return topic_id

    def delete_topic(self, topic: str, *, wait: bool = True) -> None:
        before = {"topic_id": self._state.topic_id(topic)}
        with self._acts.act("delete", topic, before):
            self._send_until(
                lambda admin: admin.delete_topics([topic]),
                lambda: (
                    self._state.is_deleted(topic)
                    or (not wait and self._state.is_being_deleted(topic))
                ),
            )

    def fill(self, topic: str, records: int) -> int:
        producer = KafkaProducer(
            bootstrap_servers=list(self._bootstrap()),
            acks="all",
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            delivery_timeout_ms=int(DEADLINE_S * 1000),
        )
        try:
            futures = [producer.send(topic, b"%s %d" % (topic.encode(), n)) for n in range(records)]
            for future in futures:
                future.get(timeout=DEADLINE_S)
        except KafkaError as error:
            raise ActFailed(
                f"{topic} accepts no records: {type(error).__name__}: {error}"
            ) from error
        finally:
            producer.close()
        return len(futures)

    def record_count(self, topic: str) -> int:
        return sum(end - start for start, end in self.offsets(topic).values())

    def offsets(self, topic: str) -> dict[int, tuple[int, int]]:
        slots = [TopicPartition(topic, replica) for replica in self.replicas(topic)]
        consumer = KafkaConsumer(
            bootstrap_servers=list(self._bootstrap()), request_timeout_ms=REQUEST_TIMEOUT_MS
        )
        retry_missing_partitions(consumer._fetcher)

        def read() -> dict[int, tuple[int, int]]:
            begins, ends = consumer.beginning_offsets(slots), consumer.end_offsets(slots)
            return {slot.partition: (begins[slot], ends[slot]) for slot in slots}

        try:
            return retry(read, KafkaError, is_transient, deadline_s=DEADLINE_S, poll_s=POLL_S)
        except KafkaError as error:
            raise ActFailed(f"{topic} returns no offsets: {type(error).__name__}") from error
        finally:
            consumer.close()

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        offsets = {TopicPartition(topic, partition): offset for partition, offset in before.items()}
        with self._acts.act("delete records", topic) as after:
            after["offsets"] = {str(partition): offset for partition, offset in before.items()}
            answers = self._request(lambda admin: admin.delete_records(offsets))
            starts = {
                slot.partition: int(answer["low_watermark"]) for slot, answer in answers.items()
            }
            after["low_watermarks"] = {
                str(partition): offset for partition, offset in starts.items()
            }
        return starts

    def add_partitions(self, topic: str, total: int) -> None:
        before = {"partitions": len(self.replicas(topic))}
        with self._acts.act("add partitions", topic, before) as after:
            after["partitions"] = total
            self._send_until(
                lambda admin: self._create_partitions(admin, topic, total),
                lambda: len(self.replicas(topic)) == total and self._has_leaders(topic),
            )

    def _create_partitions(self, admin: Any, topic: str, total: int) -> None:
        if not self._lacks(PARTITION_GROWTH):
            admin.create_partitions({topic: total})
        elif len(self.replicas(topic)) < total:
            brokers = [_id(node) for node in self._state.registered_brokers()]
            admin_znodes.write_partitions(self._state.client, topic, total, brokers)

    # Replicas and leaders

    def replicas(self, topic: str) -> dict[int, tuple[str, ...]]:
        return {view.partition: view.replicas for view in self._state.partitions(topic)}

    def reassign(self, topic: str, new_replicas: Replicas) -> None:
        replicas = {
            TopicPartition(topic, partition): [_id(node) for node in nodes]
            for partition, nodes in new_replicas.items()
        }
        with self._acts.act("reassign", topic, _plain(self.replicas(topic))) as after:
            after.update(_plain(new_replicas))
            if self._lacks(REASSIGNMENT):
                self._reassign_by_znode(replicas)
            else:
                self._request(
                    lambda admin: _raise_first(admin.alter_partition_reassignments(replicas))
                )

    def _reassign_by_znode(self, replicas: Mapping[TopicPartition, Sequence[int]]) -> None:
        order = {tuple(slot): nodes for slot, nodes in replicas.items()}
        if not until(
            lambda: admin_znodes.request_reassignment(self._state.client, order),
            deadline_s=DEADLINE_S,
            poll_s=POLL_S,
        ):
            raise ActFailed(f"another reassignment goes on after {DEADLINE_S:g} s")

    def cancel_moves(self, topic: str, origin: Replicas) -> list[int]:
        moves = {TopicPartition(topic, partition): None for partition in origin}
        with self._acts.act("cancel moves", topic, _plain(self.replicas(topic))) as after:
            answers = self._request(lambda admin: admin.alter_partition_reassignments(moves))
            cancelled = sorted(slot.partition for slot, error in answers.items() if error is None)
            after.update(
                {
                    str(partition): origin[partition] if partition in cancelled else None
                    for partition in origin
                }
            )
        return cancelled

    def await_reassigned(self, topic: str, replicas: Replicas, *, deadline_s: float) -> None:
        if problem := until(
            lambda: self._describe_misplaced(topic, replicas),
            not_,
            deadline_s=deadline_s,
            poll_s=POLL_S,
        ):
            raise ActFailed(f"{problem} after {deadline_s:g} s")

    def _describe_misplaced(self, topic: str, replicas: Replicas) -> str:
        """A partition whose replicas are not the requested ones, all in sync; empty if there is
        none."""
        if self._state.is_reassigning(topic):
            return f"{topic} is still being reassigned"
        for view in self._state.partitions(topic):
            nodes = replicas.get(view.partition)
            if nodes is not None and view.replicas != tuple(nodes):
                return f"{topic}-{view.partition} is on {', '.join(view.replicas)}"
            if nodes is not None and set(view.isr) != set(nodes):
                return f"{topic}-{view.partition} has only {', '.join(view.isr)} in sync"
        return ""

    def directories(self, topic: str) -> dict[tuple[str, int], tuple[list[str], str]]:
        nodes = sorted({_id(node) for nodes in self.replicas(topic).values() for node in nodes})
        answers = self._request(lambda admin: admin.describe_log_dirs([topic], brokers=nodes))
        directories: dict[tuple[str, int], tuple[list[str], str]] = {}
        for broker in answers:
            paths = sorted(log_dir["log_dir"] for log_dir in broker["log_dirs"])
            for log_dir in broker["log_dirs"]:
                for part in (part for entry in log_dir["topics"] for part in entry["partitions"]):
                    if not part["is_future_key"]:
                        where = f"b{broker['broker']}", part["partition_index"]
                        directories[where] = paths, log_dir["log_dir"]
        return directories

    def move_logs(self, topic: str, directories: Directories) -> None:
        paths = {
            (topic, partition, _id(node)): path for (node, partition), path in directories.items()
        }

        def are_moved() -> bool:
            places = self.directories(topic)
            return all(
                where in places and places[where][1] == directories[where] for where in directories
            )

        with self._acts.act("move logs", topic) as after:
            after.update(
                {f"{node}/{partition}": path for (node, partition), path in directories.items()}
            )
            self._send_until(lambda admin: admin.alter_replica_log_dirs(paths), are_moved)

    def elect(self, topic: str, partitions: Sequence[int], *, unclean: bool) -> dict[int, str]:
        kind = "unclean" if unclean else "preferred"
        answers: dict[int, str] = {}
        before = self.replicas(topic)
        suffix = f"-{partitions[0]}" if len(partitions) == 1 else ""
        with self._acts.act(f"elect {kind}", f"{topic}{suffix}", self._leaders(topic)) as after:
            slots = {topic: list(partitions)}
            election = UNCLEAN if unclean else PREFERRED
            if self._lacks(ELECTIONS):
                answers = self._elect_by_znode(topic, partitions)
            else:
                answer = self._request(
                    lambda admin: admin.elect_leaders(election, slots, raise_errors=False)
                )
                for result in answer.replica_election_results:
                    for partition_result in result.partition_result:
                        failure = (
                            partition_result.error_message or f"error {partition_result.error_code}"
                        )
                        answers[partition_result.partition_id] = (
                            failure if partition_result.error_code else ""
                        )
            after.update(self._leaders(topic), partitions=sorted(partitions))
            if not unclean:
                now = self.replicas(topic)
                unmoved = [replica for replica in now if before.get(replica) == now[replica]]
                after["elected"] = {
                    str(replica): now[replica][0]
                    for replica in unmoved
                    if answers.get(replica) == ""
                }
        return answers

    def _elect_by_znode(self, topic: str, partitions: Sequence[int]) -> dict[int, str]:
        """An election by znode has no answer: a partition whose first replica leads soon was
        elected."""
        admin_znodes.request_election(
            self._state.client, [(topic, partition) for partition in partitions]
        )

        def find_others() -> set[int]:
            views = [view for view in self._state.partitions(topic) if view.replicas]
            others = {view.partition for view in views if view.leader != view.replicas[0]}
            return others & set(partitions)

        others = until(find_others, not_, deadline_s=ELECTION_S, poll_s=POLL_S)
        return {partition: "not elected" if partition in others else "" for partition in partitions}

    def _leaders(self, topic: str) -> dict[str, Any]:
        return {"leaders": {str(v.partition): v.leader for v in self._state.partitions(topic)}}

    def _has_leaders(self, topic: str) -> bool:
        views = self._state.partitions(topic)
        return bool(views) and all(view.leader is not None for view in views)

    # Settings

    def config(self, topic: str) -> dict[str, str]:
        return self._state.topic_config(topic)

    def set_config(self, topic: str, settings: Mapping[str, str | None]) -> None:
        resource = _config_resource(topic, settings)
        before = {name: self.config(topic).get(name) for name in settings}
        with self._acts.act("config", topic, before) as after:
            after.update(settings)
            self._send_until(
                lambda admin: self._alter_config(admin, resource, settings),
                lambda: all(
                    self.config(topic).get(name) == value for name, value in settings.items()
                ),
            )

    def request_config(self, topic: str, settings: Mapping[str, str], *, wait_s: float) -> bool:
        resource = _config_resource(topic, settings)
        with self._acts.act("request settings", topic) as after, self._client(wait_s) as admin:
            after.update(settings)
            try:
                admin.alter_configs([resource])
            except (KafkaConnectionError, KafkaTimeoutError, RequestTimedOutError):
                return False
        return True

    def _alter_config(
        self, admin: Any, resource: ConfigResource, settings: Mapping[str, str | None]
    ) -> None:
        """Change settings by znode if the request would replace all other settings of the topic."""
        if self._lacks(CONFIG_INCREMENTS):
            admin_znodes.write_settings(self._state.client, f"topics/{resource.name}", settings)
        else:
            admin.alter_configs([resource])

    def defaults(self) -> dict[str, str]:
        return self._state.broker_defaults()

    def set_defaults(self, settings: Mapping[str, str | None]) -> None:
        """Changes the settings by znode: kafka-python cannot name the entity of all brokers."""
        with self._acts.act("defaults", "brokers", self.defaults()) as after:
            after.update(settings)
            admin_znodes.write_settings(self._state.client, "brokers/<default>", settings)
            self._send_until(lambda _: None, lambda: self._have_defaults(settings))

    def _have_defaults(self, settings: Mapping[str, str | None]) -> bool:
        """Whether each present broker reports these values as set for all brokers."""
        ids = [_id(node) for node in self._state.registered_brokers()]
        brokers = [
            ConfigResource(ConfigResourceType.BROKER, str(broker), dict.fromkeys(settings))
            for broker in ids
        ]
        answers = self._request(lambda admin: admin.describe_configs(brokers, config_filter="all"))
        reports = answers["broker"].values()
        return len(reports) == len(ids) and all(
            _default_of(report[name]) == value
            for report in reports
            for name, value in settings.items()
        )

    # Quotas

    def quotas(self, client: str | None) -> dict[str, str]:
        return self._state.client_quotas(client)

    def set_quotas(self, client: str | None, quotas: Mapping[str, float | None]) -> None:
        before = self.quotas(client)
        with self._acts.act("quota", client or DEFAULT_CLIENT, before) as after:
            self._send_until(
                lambda _: self._alter_quotas(client, quotas),
                lambda: all(
                    _is_set(self.quotas(client).get(quota), quotas[quota]) for quota in quotas
                ),
            )
            after.update(self.quotas(client))

    def _alter_quotas(self, client: str | None, quotas: Mapping[str, float | None]) -> None:
        if not self._lacks(QUOTAS):
            return alter_quotas(self._bootstrap(), client, quotas)
        changes = {name: None if rate is None else str(rate) for name, rate in quotas.items()}
        entity = f"clients/{DEFAULT_CLIENT if client is None else client}"
        admin_znodes.write_settings(self._state.client, entity, changes)
        return None

    # Transactions

    def decided_transactions(self) -> list[str]:
        try:
            with self._client() as admin:
                listings = admin.list_transactions(state_filters=DECIDED)
        except KafkaError as error:
            raise ActFailed(f"{type(error).__name__}: {error}") from error
        return sorted(
            transaction.transactional_id for listing in listings.values() for transaction in listing
        )

    # Brokers

    def release(self, node: str) -> str:
        return self._releases.release(node)

    def upgrade(self, node: str, *, step: int) -> str:
        with self._acts.act("upgrade", node, {"release": self.release(node)}) as after:
            after["release"] = self._releases.upgrade(node, step)
        return self.release(node)

    # Features

    def features(self) -> dict[str, int]:
        answer = self._request(lambda admin: admin.describe_features())
        levels = {name: feature.get("finalized") for name, feature in answer.items()}
        return {name: level[1] for name, level in sorted(levels.items()) if level is not None}

    def raise_features(self) -> dict[str, int]:
        before = self.features()
        goal = self._releases.features()
        higher = {name: level for name, level in goal.items() if level > before.get(name, 0)}
        if not higher:
            return before
        with self._acts.act(RAISE_FEATURES, "features", before) as after:
            self._send_until(
                lambda admin: _update_features(admin, higher),
                lambda: higher.items() <= self.features().items(),
            )
            after.update(self.features())
        return self.features()

    # Requests

    def _lacks(self, capability: Capability) -> bool:
        return capability.name in self._state.lacks

    def _send_until(self, send: Callable[[Any], object], is_done: Callable[[], bool]) -> None:
        """Repeat the request until `is_done`: a response may be lost, a controller may be new."""
        failure, due = "", 0.0

        def check_and_send() -> bool:
            nonlocal failure, due
            if is_done():
                return True
            if time.monotonic() > due:
                due = time.monotonic() + REPEAT_S
                failure = self._send_once(send, is_done)
            return False

        if not until(check_and_send, deadline_s=DEADLINE_S, poll_s=POLL_S):
            raise ActFailed(f"not done after {DEADLINE_S:g} s; {failure or ActFailed.UNHEEDED}")

    def _send_once(self, send: Callable[[Any], object], is_done: Callable[[], bool]) -> str:
        """Send the request and return the cluster's error. Raises ActFailed for a permanent
        one."""
        try:
            with self._client() as admin:
                send(admin)
        except KafkaError as error:
            failure = f"{type(error).__name__}: {error}"
            if not is_transient(error) and not is_done():
                raise ActFailed(failure) from error
            return failure
        return ""

    def _request(self, send: Callable[[Any], Any]) -> Any:
        """The response to a request. It is repeated only after a lost response, if that is
        harmless."""

        def send_once() -> Any:
            with self._client() as admin:
                return send(admin)

        try:
            return retry(send_once, KafkaError, is_transient, deadline_s=DEADLINE_S, poll_s=POLL_S)
        except KafkaError as error:
            raise ActFailed(f"{type(error).__name__}: {error}") from error

    @contextmanager
    def _client(self, wait_s: float = REQUEST_TIMEOUT_MS / 1000) -> Iterator[Any]:
        admin = KafkaAdminClient(
            bootstrap_servers=list(self._bootstrap()), request_timeout_ms=int(wait_s * 1000)
        )
        try:
            yield admin
        finally:
            admin.close()


def _config_resource(topic: str, settings: Mapping[str, str | None]) -> ConfigResource:
    changes = {
        name: (DELETE_CONFIG, None) if value is None else ("SET", value)
        for name, value in settings.items()
    }
    return ConfigResource(ConfigResourceType.TOPIC, topic, configs=changes)


def is_transient(error: KafkaError) -> bool:
    """Whether the error is transient: a broker may be away for a moment."""
    return error.retriable or isinstance(error, UnknownBrokerIdError)


def _raise_first(errors: Mapping[Any, Any]) -> None:
    for slot, error in errors.items():
        if error is not None:
            raise error(f"{slot.topic}-{slot.partition}")


class FeaturesRefused(RetriableError):  # type: ignore[misc]
    """The controller refused to raise features. A node that has just started may not have
    registered the levels that its release supports."""


def _update_features(admin: Any, levels: Mapping[str, int]) -> None:
    """Raise FeaturesRefused for a refusal. UpdateFeatures before version 2 has an error for each
    feature, which kafka-python returns as text."""
    try:
        answers = admin.update_features(levels)
    except InvalidUpdateVersionError as error:
        raise FeaturesRefused(str(error)) from error
    if refused := {feature: text for feature, text in answers.items() if text != "OK"}:
        raise FeaturesRefused(str(refused))


def _default_of(setting: Mapping[str, Any]) -> str | None:
    """The value, if it is set for all brokers."""
    is_default = setting["config_source"] == DEFAULT_OF_ALL
    return setting["value"] if is_default else None


def _is_set(current: str | None, requested: float | None) -> bool:
    return (None if current is None else float(current)) == requested


def _plain(replicas: Replicas) -> dict[str, Any]:
    return {str(partition): list(nodes) for partition, nodes in sorted(replicas.items())}


def _id(node: str) -> int:
    return int(node.removeprefix("b"))
