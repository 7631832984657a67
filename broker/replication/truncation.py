"""The offset to which a follower truncates its log to agree with the leader (KIP-101, KIP-279)."""

from __future__ import annotations

from urteil.broker.log.partition_log import PartitionLog


def truncation_point(log: PartitionLog, leader_epoch: int, leader_end_offset: int) -> int:
    """The truncation offset, given the leader's end of the last epoch that both may share.

    If the follower does not have that epoch, it truncates to the end of its own largest smaller one
    and fetches again: several rounds may be needed. The high watermark decides only if neither has
    any epoch.
    """
    end = log.log_end_offset
    if leader_end_offset < 0:
        return min(log.high_watermark, end)
    if leader_epoch < 0:
        return min(leader_end_offset, end)
    own_epoch, own_end = log.epoch_end_offset(leader_epoch)
    if own_end < 0:
        return min(leader_end_offset, end)
    if own_epoch != leader_epoch:
        return min(own_end, end)
    return min(own_end, leader_end_offset, end)
