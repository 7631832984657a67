"""Acts on settings of topics, defaults of brokers and quotas of clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaConnectionError, KafkaTimeoutError, RequestTimedOutError

from urteil.chaos.capabilities import CONFIG_INCREMENTS, QUOTAS
from urteil.chaos.topology import node_id
from urteil.harness.cluster.administration import admin_znodes
from urteil.harness.cluster.administration.admin_requests import AdminRequests
from urteil.harness.cluster.administration.client_quotas import alter_quotas
from urteil.harness.evidence.acts import DEFAULT_CLIENT

DELETE_CONFIG = "DELETE"
DEFAULT_OF_ALL = "DYNAMIC_DEFAULT_BROKER_CONFIG"


class SettingActs(AdminRequests):
    """Settings and quotas are changed and restored."""

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
        ids = [node_id(node) for node in self._state.registered_brokers()]
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


def _config_resource(topic: str, settings: Mapping[str, str | None]) -> ConfigResource:
    changes = {
        name: (DELETE_CONFIG, None) if value is None else ("SET", value)
        for name, value in settings.items()
    }
    return ConfigResource(ConfigResourceType.TOPIC, topic, configs=changes)


def _default_of(setting: Mapping[str, Any]) -> str | None:
    """The value, if it is set for all brokers."""
    is_default = setting["config_source"] == DEFAULT_OF_ALL
    return setting["value"] if is_default else None


def _is_set(current: str | None, requested: float | None) -> bool:
    return (None if current is None else float(current)) == requested
