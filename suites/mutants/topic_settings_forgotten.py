"""A broker that starts knows nothing of what topics were set to."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Mark, replace

ABOUT = "settings of topics are not read at the start"
MODELS = "overrides loaded by notices alone"
SCENARIO = "retention"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    """Nothing is read."""

    async def know(settings: Any, topics: Any) -> None:
        mark.hit()

    replace("urteil.broker.server.topic_settings:TopicSettings.know", lambda _: know)
