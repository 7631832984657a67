"""The guarantees by name, one a file."""

from __future__ import annotations

from urteil.harness.verify.guarantees import (
    aborted_read,
    ack_below_min_isr,
    commit_beyond_processed,
    commit_register,
    commit_went_back,
    corrupt,
    duplicate,
    epoch_lineage,
    epoch_went_back,
    future_read,
    hole,
    inconsistent_offset,
    loss_not_a_suffix,
    lost_write,
    misplaced_ack,
    no_progress,
    nonmonotonic_poll,
    phantom,
    poll_skip,
    processed_twice,
    reordered_send,
    replica_divergence,
    sequence_gap,
    slow_recovery,
    stale_append,
    two_leaders,
    two_owners,
    unclean_leader,
    unprocessed,
    unseen,
    vanished_read,
    zombie_commit,
)
from urteil.harness.verify.guarantees.base import Guarantee

_MODULES = (
    lost_write,
    unseen,
    loss_not_a_suffix,
    phantom,
    corrupt,
    future_read,
    aborted_read,
    duplicate,
    inconsistent_offset,
    misplaced_ack,
    vanished_read,
    reordered_send,
    sequence_gap,
    stale_append,
    poll_skip,
    nonmonotonic_poll,
    hole,
    replica_divergence,
    epoch_lineage,
    two_leaders,
    unclean_leader,
    epoch_went_back,
    ack_below_min_isr,
    two_owners,
    zombie_commit,
    commit_beyond_processed,
    commit_went_back,
    commit_register,
    unprocessed,
    processed_twice,
    no_progress,
    slow_recovery,
)

GUARANTEES: dict[str, Guarantee] = {module.GUARANTEE.name: module.GUARANTEE for module in _MODULES}
"""Every guarantee that is judged, in the order in which reports show them."""

__all__ = ["GUARANTEES", "Guarantee"]
