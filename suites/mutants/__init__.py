"""Seeded bugs of the broker, one module each: what the lab must find to be believed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from urteil.suites.mutants.patching import Mark

NAMES = (
    "ack_before_replication",
    "ack_ignores_min_isr",
    "elect_any_replica",
    "truncate_to_high_watermark",
    "no_truncation_on_new_epoch",
    "hw_before_isr_ack",
    "dedup_state_lost_on_leader_change",
    "dedup_state_lost_on_restart",
    "offset_reused_after_recovery",
    "no_crc_check",
    "generation_not_checked",
    "rebalance_without_revocation",
    "offsets_acked_before_replication",
    "append_after_io_error",
    "cached_zk_version_forever",
    "ephemeral_lost_after_expiry",
    "epoch_zero_not_recovered",
    "isr_shrink_not_persisted",
    "watch_not_rearmed",
    "abort_marker_on_some_partitions",
    "list_offsets_ignores_lso",
    "lso_off_by_one",
    "hw_read_twice_in_read_committed",
    "aborted_index_lost_on_restart",
    "serve_reads_beyond_hw",
    "dedup_window_of_one",
    "out_of_order_sequence_accepted",
    "one_step_truncation",
    "stale_leader_accepts_writes",
    "cleaner_drops_latest",
    "cleaner_drops_tombstone_at_once",
    "cleaner_cleans_active_segment",
    "cleaner_renumbers",
    "offset_gap_breaks_cleaner",
    "index_off_by_one",
    "fetch_skips_batch_at_segment_roll",
    "retention_by_wrong_clock",
    "producer_expired_by_marker_time",
    "epoch_not_checked_on_fetch",
    "zombie_not_fenced",
    "txn_commit_before_prepare_persisted",
    "acl_cached_forever",
    "stale_controller_accepted",
    "end_told_late",
    "own_metadata_not_updated",
    "time_found_too_late",
    "last_commits_not_loaded",
    "isr_joined_too_early",
    "session_never_expires",
    "isr_shrunk_before_consent",
    "groups_not_loaded",
    "cleaner_counts_aborted",
    "retention_never_runs",
    "isr_never_shrinks",
    "epoch_end_off_by_one",
    "deleted_records_served",
    "transactional_id_kept",
    "reassigned_at_once",
    "partition_not_verified",
    "open_transactions_cleaned",
    "truncated_batch_remembered",
    "snapshot_lacks_last_batch",
    "follower_serves_its_end",
    "acl_removal_unheard",
    "acl_prefix_by_equality",
    "one_partition_answers_for_all",
    "sequence_does_not_wrap",
    "cleaner_loses_of_compressed",
    "repacked_at_one_time",
    "repacked_without_headers",
    "begin_told_too_late",
    "timeout_is_success",
    "open_transactions_forgotten",
    "aborted_told_in_part",
    "size_limit_ignored",
    "preferred_outside_isr",
    "static_member_not_fenced",
    "timed_out_keeps_epoch",
    "handed_over_outside_isr",
    "commit_note_lost",
    "moved_log_lacks_tail",
    "txn_coordinator_keeps_office",
    "heartbeats_unheard",
    "settings_heard_once",
    "groups_share_positions",
    "converted_lacks_last",
    "rest_of_batch_skipped",
    "failed_commit_is_success",
    "marker_not_replicated",
    "move_forgets_producers",
    "deletion_not_taken_over",
    "reassignment_forgotten",
    "lost_directory_untold",
    "producers_deleted_with_segments",
    "pending_positions_loaded",
    "quorum_watermark",
    "old_password_works",
    "deletion_unasked",
    "newest_taken_for_last",
    "found_in_present_epoch",
    "assignments_not_loaded",
    "ids_given_twice",
    "cancellation_ignored",
    "election_never_held",
    "assignments_swapped",
    "transactions_cut_short",
    "positions_not_deleted",
    "deletion_not_logged",
    "compacted_never_deleted",
    "size_unlimited",
    "times_unlimited",
    "additions_not_replicated",
    "duplicate_answered_at_once",
    "zombie_offsets_taken",
    "generation_not_replicated",
    "marker_forgotten_in_takeover",
    "shut_out_ends_successor",
    "end_told_too_soon",
    "recovered_without_crc",
    "newcomer_untold",
    "imbalance_not_mended",
    "shutdown_not_controlled",
    "flush_ms_ignored",
    "tombstones_not_removed",
    "compacted_expires",
    "deletion_answered_at_once",
    "log_starts_not_read",
    "folders_not_removed",
    "segments_not_removed",
    "moved_replica_stays",
    "retention_change_unheard",
    "segments_not_rolled_by_time",
    "produce_unthrottled",
    "fetches_unthrottled",
    "unstable_told",
    "strangers_commit",
    "leaving_unheard",
    "positions_never_expire",
    "positions_expire_early",
    "overdue_forgotten",
    "epoch_kept_in_memory",
    "markers_cleaned_at_once",
    "ids_expire_early",
    "sessions_last_thrice",
    "lagging_reader_sent_away",
    "transactions_unasked",
    "old_epoch_appended",
    "old_epoch_marked",
    "deposed_coordinator_heard",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A bug: what it does, the real one it is modelled on, and who must find it where.

    `apply` patches the broker of this process. Nothing of the broker is imported before.
    """

    name: str
    about: str
    models: str
    scenario: str
    guarantee: str
    apply: Callable[[Mark], None]


def _mutant(name: str) -> Mutant:
    module: ModuleType = importlib.import_module(f"urteil.suites.mutants.{name}")
    return Mutant(
        name=name,
        about=module.ABOUT,
        models=module.MODELS,
        scenario=module.SCENARIO,
        guarantee=module.GUARANTEE,
        apply=module.apply,
    )


MUTANTS: dict[str, Mutant] = {name: _mutant(name) for name in NAMES}
"""Every mutant by name."""
