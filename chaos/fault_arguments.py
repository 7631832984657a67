"""The target and the options of one fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from urteil.chaos.fault_options import Option
from urteil.chaos.topology import EAST


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultArguments:
    """`target` is a selector, evaluated against the state of `cluster` when the fault begins.

    `topic` and `partition` define the roles `leader` and `follower`. `seed` feeds every random
    choice, so that the same seed and the same state select the same nodes. While the leader is a
    dead node, the selector waits for the next one, at most `election_deadline_s`. `event_link` is
    the link of the request or answer to which the fault is anchored, such as `client->b1`, for the
    roles `sender` and `receiver`. `options` are raw values; the fault reads them by its
    declarations (`fault_options`).
    """

    target: str
    cluster: str = EAST
    topic: str = ""
    partition: int = 0
    seed: str = ""
    election_deadline_s: float = 20.0
    event_link: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)

    @property
    def selector(self) -> str:
        """The target as a scenario declares it: `leader`, or `west:leader`."""
        return self.target if self.cluster == EAST else f"{self.cluster}:{self.target}"

    def random(self) -> Random:
        """A new generator in the same state at each call."""
        return Random(self.seed)
