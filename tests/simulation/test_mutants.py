"""Every bug that concerns replication is found, where the broker without it is found sound."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor

import pytest

from tests.simulation.mutation import simulate_mutant
from tests.simulation.scenario import Run
from urteil.suites.mutants import MUTANTS

ELSEWHERE = {
    "no_crc_check",  # no fault here damages what is on the way
    "recovered_without_crc",  # nor closed segments
    "generation_not_checked",  # nor are there consumer groups
    "generation_not_replicated",
    "assignments_not_loaded",
    "rebalance_without_revocation",
    "offsets_acked_before_replication",
    "last_commits_not_loaded",
    "session_never_expires",
    "static_member_not_fenced",
    "static_return_disturbs",
    "isr_changes_untold",  # nor is Metadata compared
    "codec_not_applied",  # nor does anybody ask what it knows the answer of
    "uncommitted_held_back",
    "nulls_packed_as_empty",
    "positions_outlive_topics",
    "timed_from_last_step",
    "settings_of_all_unheard",
    "positions_expire_with_their_log",
    "decisions_on_one_replica",
    "commit_note_lost",
    "groups_share_positions",
    "failed_commit_is_success",
    "heartbeats_unheard",
    "leaving_unheard",
    "sessions_last_thrice",
    "pending_members_stay",
    "strangers_commit",
    "unstable_told",
    "positions_never_expire",
    "positions_expire_early",
    "txn_coordinator_keeps_office",
    "groups_not_loaded",
    "sessions_over_at_takeover",
    "settings_heard_once",  # nor settings that change
    "notices_end_with_session",
    "topic_settings_forgotten",
    "append_after_io_error",  # nor disks that fill up
    "flush_ms_ignored",  # nor settings that flush by time
    "cached_zk_version_forever",  # nor deadlines for recovery
    "epochs_not_cut",
    "watermarks_not_noted",
    "ephemeral_lost_after_expiry",
    "watch_not_rearmed",
    "epoch_zero_not_recovered",  # nor checkpoints judged in the end
    "isr_shrink_not_persisted",  # nor its scenario's order of faults
    "isr_joined_too_early",  # nor a narrow link
    "isr_joined_below_epoch",
    "preferred_outside_isr",  # nor leaders that are given back
    "imbalance_not_mended",
    "shutdown_not_controlled",  # nor a look at who leads when it leaves
    "handed_over_outside_isr",  # nor an ISR whose last member shuts down
    "isr_never_shrinks",  # nor a deadline for going on
    "abort_marker_on_some_partitions",  # nor transactions
    "aborted_index_lost_on_restart",
    "hw_read_twice_in_read_committed",
    "zombie_not_fenced",
    "txn_commit_before_prepare_persisted",
    "list_offsets_ignores_lso",
    "lso_off_by_one",
    "cleaner_cleans_active_segment",  # nor compaction
    "cleaner_counts_aborted",
    "cleaner_drops_latest",
    "cleaner_drops_tombstone_at_once",
    "cleaner_renumbers",
    "offset_gap_breaks_cleaner",
    "cleaner_loses_of_compressed",
    "cleaned_of_nobody",
    "retention_by_wrong_clock",  # nor retention
    "retention_never_runs",
    "begin_told_too_early",
    "deleted_records_served",
    "size_limit_ignored",
    "compacted_never_deleted",
    "compacted_expires",
    "tombstones_not_removed",
    "segments_not_removed",
    "folders_not_removed",
    "retention_change_unheard",
    "deletion_answered_at_once",
    "log_starts_not_read",
    "producers_deleted_with_segments",
    "fetch_skips_batch_at_segment_roll",  # nor segments that roll
    "segments_not_rolled_by_time",
    "index_off_by_one",
    "begin_told_too_late",
    "acl_cached_forever",  # nor ACLs
    "dedup_window_of_one",  # nor producers that repeat what was acknowledged
    "duplicate_answered_as_newest",
    "idle_producers_forgotten",
    "acl_removal_unheard",
    "denials_not_read_at_start",
    "acl_prefix_by_equality",
    "implied_denied",
    "old_password_works",
    "deletion_unasked",
    "transactions_unasked",
    "produce_unthrottled",  # nor quotas
    "fetches_unthrottled",
    "quotas_twice_as_large",
    "producer_expired_by_marker_time",
    "sequence_does_not_wrap",
    "one_partition_answers_for_all",  # nor partitions with different replicas
    "stale_control_request_after_bounce",  # nor a controller's request that is held up
    "stale_controller_accepted",  # nor a /controller that is deleted by hand
    "end_told_late",  # nor a client that asks where logs end, and who leads
    "end_told_too_soon",
    "newcomer_untold",
    "own_metadata_not_updated",
    "epoch_end_off_by_one",
    "time_found_too_late",
    "newest_taken_for_last",
    "found_in_present_epoch",
    "ids_given_twice",
    "size_unlimited",  # nor clients that lie, or delete
    "times_unlimited",
    "election_never_held",
    "assignments_swapped",
    "transactions_cut_short",
    "positions_not_deleted",
    "deletion_not_logged",
    "transactional_id_kept",  # nor transactions
    "partition_not_verified",
    "timed_out_keeps_epoch",
    "marker_not_replicated",
    "pending_positions_loaded",
    "zombie_offsets_taken",
    "additions_not_replicated",
    "marker_forgotten_in_takeover",
    "shut_out_ends_successor",
    "overdue_forgotten",
    "epoch_kept_in_memory",
    "ids_expire_early",
    "markers_cleaned_at_once",
    "old_epoch_appended",
    "old_epoch_marked",
    "deposed_coordinator_heard",
    "open_transactions_cleaned",
    "open_transactions_forgotten",
    "aborted_told_in_part",
    "repacked_at_one_time",  # nor topics whose batches are packed anew
    "repacked_without_headers",
    "converted_lacks_last",  # nor old clients
    "rest_of_batch_skipped",  # nor readers that stop in the middle of a batch
    "lagging_reader_sent_away",  # nor readers that are ahead of a new leader
    "reassigned_at_once",  # nor reassignments
    "reassignment_forgotten",
    "moved_replica_stays",
    "cancellation_ignored",
    "deletion_not_taken_over",
    "moved_log_lacks_tail",  # nor a second log directory
    "move_forgets_producers",
    "lost_directory_untold",
    "follower_serves_its_end",  # nor readers of followers
    "snapshot_lacks_last_batch",  # nor a partition of one replica
    "group_size_unlimited",  # nor a client that asks what it knows the answer of
    "rebalances_untold",
    "first_leaves_alone",
    "session_takes_none_in",
    "waits_are_slept",
    "appended_values_alone",
    "added_where_they_fit",
    "hints_at_itself",
    "transactions_of_any_length",
    "added_in_part",
    "moved_in_part",
    "idle_watermarks_untold",
    "replication_unthrottled",
    "requests_unthrottled",
    "stamped_as_sent",
    "syncs_never_expire",
    "absent_stay",
    "first_sequence_free",
    "sessions_in_any_epoch",
    "groups_not_deleted",
    "racks_ignored",
    "answered_as_ready",
    "duplicate_nowhere",
    "idle_producers_cleaned",
    "instances_not_loaded",
    "unclean_allowed_unheard",  # nor settings of topics that change
    "departed_stay_in_sync",  # nor whether who left is in sync
    "snapshots_of_nobody",  # nor producers that are idle while segments roll
    "active_positions_expire",
    "session_end_is_fatal",  # nor a process that may end by itself
    "torn_tail_is_fatal",
    "delayed_produces_forgotten",  # nor the question whether work goes on undisturbed
    "commits_always_wait",
    "ends_never_known",
    "transactions_always_concurrent",
    "moves_with_transactions_refused",
}
FIRST = {
    *("ack_before_replication", "elect_any_replica", "truncate_to_high_watermark"),
    *("dedup_state_lost_on_leader_change", "offset_reused_after_recovery"),
    "serve_reads_beyond_hw",
}
"""A bug of each kind; the others are thorough."""
HERE = sorted(MUTANTS.keys() - ELSEWHERE)
FOUND_AS = {
    "stale_leader_accepts_writes": "no_progress",
    "truncated_batch_remembered": "lost_write",
    "timeout_is_success": "lost_write",
}
"""Where not as in the lab: these clients wait for all replicas, which do not follow a stale leader;
so it acknowledges nothing that could be lost, and for ever is no replica of its successor.
What was cut is acknowledged here, for others go on writing behind it. Nobody asks here where logs
end, but leaders that acknowledged too much do die."""
SEEDS = (2, 3, 1, 5, 8, 13, 21, 34)
"""Tried in this order until one finds the bug: which one does moves with every change of timing."""

Mutated = Callable[[str, int], tuple[Run, int]]


@pytest.fixture(scope="module")
def mutated(
    request: pytest.FixtureRequest, pool: ProcessPoolExecutor, twin: Callable[[int], Run]
) -> Mutated:
    """The run of a mutant at a seed; all that are asked for begin with the first, in that order."""
    asked = [
        item.callspec.params["name"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and "mutated" in item.fixturenames
    ]
    begun: dict[tuple[str, int], Future[tuple[Run, int]]] = {
        (name, SEEDS[0]): pool.submit(simulate_mutant, name, SEEDS[0]) for name in asked
    }

    def run_of(name: str, seed: int) -> tuple[Run, int]:
        if (name, seed) not in begun:
            begun[name, seed] = pool.submit(simulate_mutant, name, seed)
        return begun[name, seed].result()

    return run_of


@pytest.fixture(scope="module")
def twin(sound: Callable[[int], Future[Run]]) -> Callable[[int], Run]:
    """The run of the unmutated broker at a seed; that of the first seed begins at once."""
    sound(SEEDS[0])
    return lambda seed: sound(seed).result()


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in FIRST else [pytest.mark.thorough]) for n in HERE]
)
def test_a_mutant_is_caught(name: str, mutated: Mutated, twin: Callable[[int], Run]) -> None:
    guarantee, tried = FOUND_AS.get(name, MUTANTS[name].guarantee), []
    for seed in SEEDS:
        run, hits = mutated(name, seed)
        if guarantee in run.guarantees():
            assert hits, f"found without the bug having acted: {run}"
            assert not twin(seed).findings, twin(seed)
            return
        tried.append(f"seed {seed}: acted {hits} times, {sorted(run.guarantees())}")
    pytest.fail(f"{guarantee} was found at none of the seeds: {'; '.join(tried)}")
