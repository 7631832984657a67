"""Hosts that do not receive each other's packets, in one direction or both, until healing."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import flag
from urteil.chaos.faults.base.cut_links import prove_silence
from urteil.chaos.faults.base.fault import Proof
from urteil.chaos.faults.base.packet_fault import PacketFault, all_lost, describe_counts


class PacketCut(PacketFault):
    """Drops every packet, so that connections hang and TCP retransmits. Unlike a cut of a proxy,
    `b1->b2` loses answers of b1 to b2 too, and acknowledgements of TCP."""

    name = "packet_cut"
    about = "drop all packets from the left hosts to the right ones, or both ways"
    effects = frozenset({Effect.CUTS_LINKS})
    proves = (
        "a probe through each link, answered before and silent after, and the counters of the "
        "packet filter"
    )
    reject: bool = flag("answer requests by a reset rather than drop packets: connections break")

    def begin(self, controls: Controls) -> Proof:
        disturbed = self.choose(controls)
        silence = prove_silence(controls, disturbed, lambda: self._drop(controls))
        counts = self.count_until(controls, disturbed, all_lost)
        return Proof(
            acted=silence.acted and all_lost(counts),
            text=f"{silence.text}; {describe_counts(counts)}",
        )

    def _drop(self, controls: Controls) -> None:
        controls.packets.drop(self.links, reject=self.reject, owner=self.owner)

    def final_proof(self, proof: Proof) -> Proof:
        until_healed = describe_counts(self.last_counts)
        return Proof(acted=proof.acted, text=f"{proof.text}; when healed, {until_healed}")
