"""Acts on the brokers' releases and on the features of a quorum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka.errors import InvalidUpdateVersionError, RetriableError

from urteil.chaos.admin_controls import ActFailed
from urteil.harness.cluster.administration.act_log import ActLog
from urteil.harness.cluster.administration.admin_requests import AdminRequests
from urteil.harness.cluster.cluster_state import ClusterState
from urteil.harness.evidence.acts import RAISE_FEATURES


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


class ReleaseActs(AdminRequests):
    """Brokers are upgraded, and features raised."""

    def __init__(
        self,
        bootstrap: Callable[[], Sequence[str]],
        state: ClusterState,
        acts: ActLog,
        releases: Releases,
    ) -> None:
        super().__init__(bootstrap, state, acts)
        self._releases = releases

    def release(self, node: str) -> str:
        return self._releases.release(node)

    def upgrade(self, node: str, *, step: int) -> str:
        with self._acts.act("upgrade", node, {"release": self.release(node)}) as after:
            after["release"] = self._releases.upgrade(node, step)
        return self.release(node)

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
