"""The release of each node of a cluster, and the steps of a rolling upgrade."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping

from urteil.harness.cluster.administration.release_acts import Releases
from urteil.harness.dependencies.kafka_releases import parse_version
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import BrokerNode, Target
from urteil.harness.targets.target import PROTOCOL

NEWER_CODE, NEWER_PROTOCOL = 1, 2


class ClusterReleases(Releases):
    """With `spec.older` every node starts as the release before that of its kind. Brokers with
    ZooKeeper use the older protocol among themselves until step 2; without it, the features in the
    metadata log have the older levels until they are raised."""

    def __init__(
        self,
        nodes: Mapping[str, BrokerNode],
        kinds: MutableMapping[str, Target],
        spec: ClusterSpec,
        write: Callable[[BrokerNode], None],
    ) -> None:
        self._nodes = nodes
        self._kinds = kinds
        self.newest: Mapping[str, Target] = dict(kinds)
        self._write = write
        self._held_back = set(nodes) if spec.older else set[str]()
        if spec.older:
            kinds.update({name: kind.previous_release() for name, kind in kinds.items()})

    def properties(self, node: str) -> dict[str, str]:
        """The broker's protocol settings."""
        return self.newest[node].older_protocol() if node in self._held_back else {}

    def release(self, node: str) -> str:
        kind = self._kinds[node]
        protocol = self.properties(node).get(PROTOCOL, "")
        return f"{kind.name} {kind.version}" + (f", protocol {protocol}" if protocol else "")

    def upgrade(self, node: str, step: int) -> str:
        self._kinds[node] = self.newest[node]
        if step == NEWER_PROTOCOL:
            self._held_back.discard(node)
        self._write(self._nodes[node])
        return self.release(node)

    def features(self) -> Mapping[str, int]:
        return newest_kind(self.newest.values()).features()


def newest_kind(kinds: Iterable[Target]) -> Target:
    """The kind of the highest release."""
    return max(kinds, key=lambda kind: parse_version(kind.version))
