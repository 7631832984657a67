"""A share of the packets between hosts is lost."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.fault import Proof
from urteil.chaos.faults.base.packet_fault import Counts, PacketFault, describe_counts


class PacketLoss(PacketFault):
    """Drops packets at random. TCP sends them again, so data arrives late, and in bursts."""

    name = "packet_loss"
    about = "drop a share of the packets between hosts"
    effects = frozenset({Effect.SLOWS_LINKS})
    proves = "the counters of the packet filter: packets that it saw, and those that it dropped"
    acts_later = True
    percent: int = whole_number(20, "packets dropped", unit="%", least=1, most=90)

    def begin(self, controls: Controls) -> Proof:
        disturbed = self.choose(controls)
        controls.packets.drop(self.links, percent=self.percent, owner=self.owner)
        return _proof(self.count_until(controls, disturbed, _any_lost))

    def current_proof(self, controls: Controls, proof: Proof) -> Proof:
        return _proof(controls.packets.counts(owner=self.owner))

    def final_proof(self, proof: Proof) -> Proof:
        return _proof(self.last_counts)


def _any_lost(counts: Counts) -> bool:
    return any(count.lost for count in counts.values())


def _proof(counts: Counts) -> Proof:
    return Proof(acted=_any_lost(counts), text=describe_counts(counts))
