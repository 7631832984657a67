"""Loads no settings of topics at the start."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Mark, replace

ABOUT = "a broker that starts does not load the settings of topics"
MODELS = "overrides that arrive by notifications only"
SCENARIO = "retention"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    async def load(settings: Any, topics: Any) -> None:
        mark.hit()

    replace("urteil.broker.config.topic_settings:TopicSettings.load", lambda _: load)
