"""Settings of brokers and topics."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace

APPEND = 2
"""`AlterConfigOp.OpType`."""


@mutant(
    about="a broker applies the first change of a topic's settings and no later one",
    models="a watch on settings that is not set again",
    scenario="settings",
    guarantee="ack_below_min_isr",
    unsimulated="the patch shares its memory among the brokers of a process",
)
def topic_config_updated_once(mark: Mark) -> None:
    """Ignores every change of a topic's settings but the first."""
    changed: set[str] = set()

    def make(original: Function) -> Function:
        def take(settings: Any, topic: str, overrides: Any) -> None:
            if topic in changed:
                mark.hit()
            else:
                changed.add(topic)
                original(settings, topic, overrides)

        return take

    replace("urteil.broker.config.topic_settings:TopicSettings._apply", make)


@mutant(
    about="a broker that starts does not load the settings of topics",
    models="overrides that arrive by notifications only",
    scenario="retention",
    guarantee="segment_not_rolled",
)
def topic_configs_not_loaded(mark: Mark) -> None:
    """Loads no settings of topics at the start."""

    async def load(settings: Any, topics: Any) -> None:
        mark.hit()

    replace("urteil.broker.config.topic_settings:TopicSettings.load", lambda _: load)


@mutant(
    about="IncrementalAlterConfigs replaces a list setting where it should append to it",
    models="KIP-339: APPEND served as SET",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def config_append_replaces(mark: Mark) -> None:
    """Drops the existing list values before an APPEND."""

    def make(original: Function) -> Function:
        def change_setting(settings: Any, change: Any, key: Any) -> str:
            if change.operation != APPEND:
                return str(original(settings, change, key))
            mark.hit()
            return str(change.value)

        return change_setting

    replace("urteil.broker.config.incremental_changes:_change_list", make)


@mutant(
    about="a broker ignores dynamic settings that are set for all brokers",
    models="KIP-226 without cluster-wide defaults",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def cluster_defaults_ignored(mark: Mark) -> None:
    """Ignores settings of the default entity."""

    def make(original: Function) -> Function:
        def change_setting(dynamic: Any, entity: str, settings: Any) -> None:
            if entity == "<default>" and settings:
                mark.hit()
                return
            original(dynamic, entity, settings)

        return change_setting

    replace("urteil.broker.config.dynamic_settings:DynamicSettings._apply_change", make)


@mutant(
    about="topics lose their own settings when a default of all brokers changes again",
    models="KAFKA-9254: Overridden topic configs are reset after dynamic default change",
    scenario="changed-defaults",
    guarantee="ack_below_min_isr",
    unsimulated="no default of all brokers changes",
)
def topic_configs_reset_by_defaults(mark: Mark) -> None:
    """Applies the second and later changes of broker settings without overrides of topics."""
    is_changed = False

    def make(original: Function) -> Function:
        def configure(logs: Any, overrides: Any, topic: Any = None) -> None:
            nonlocal is_changed
            if topic is None and is_changed:
                mark.hit()
                original(logs, lambda _: {})
                return
            is_changed = is_changed or topic is None
            original(logs, overrides, topic)

        return configure

    replace("urteil.broker.log.log_manager:LogManager.configure", make)
