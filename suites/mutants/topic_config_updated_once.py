"""Ignores every change of a topic's settings but the first."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker applies the first change of a topic's settings and no later one"
MODELS = "a watch on settings that is not set again"
SCENARIO = "settings"
GUARANTEE = "ack_below_min_isr"


def apply(mark: Mark) -> None:
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
