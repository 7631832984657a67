"""Damage to a generated history beyond the self-test's: each returns the finding that is due, and
its place."""

from __future__ import annotations

from collections.abc import Callable

from tests.harness.verify.histories.damage.answers import (
    answer_as_another_leader,
    find_a_time_too_early,
    find_no_time,
    let_the_end_fall,
    let_the_stable_end_fall,
    tell_an_end_below_an_ack,
)
from tests.harness.verify.histories.damage.cleaned import (
    bring_back_a_key,
    clean_a_committed_value,
    clean_a_key_beside_an_unknown_send,
    clean_the_active_segment,
    clean_the_active_segment_of_a_follower,
    clean_the_last_value,
    clean_the_last_value_on_a_follower,
    drop_a_tombstone,
    end_otherwise_on_a_follower,
    lose_far_out,
    miss_a_young_marker,
    receive_a_deleted_record_twice,
    renumber,
    serve_a_committed_value_to_others_alone,
    serve_an_aborted_record_that_was_cleaned,
    skip_a_last_value,
    write_a_record_in_another_epoch,
)
from tests.harness.verify.histories.damage.disks import (
    delete_too_early,
    end_in_a_hole,
    forget_an_epoch,
    miss_a_marker,
    miss_on_a_follower,
    run_ahead_of_the_end,
    write_on_after_an_end_in_a_later_epoch,
)
from tests.harness.verify.histories.damage.groups import (
    accept_a_late_commit,
    commit_in_an_old_epoch,
    commit_past_a_committed_record,
    commit_past_a_record,
    forget_a_commit,
    invent_a_commit,
    own_at_once,
    own_twice,
)
from tests.harness.verify.histories.damage.lost import (
    lose_at_the_leader,
    lose_in_the_middle,
    lose_the_tail,
    lose_under_acks_one,
    lose_what_was_read_once,
    lose_without_an_offset,
    serve_no_more,
)
from tests.harness.verify.histories.damage.piece import Piece, Tables, Unfit
from tests.harness.verify.histories.damage.positions import (
    go_back_in_a_poll,
    skip_a_committed_record,
    skip_after_a_rebalance,
    skip_after_a_seek,
    skip_first_of_a_new_process,
    turn_a_position_back,
)
from tests.harness.verify.histories.damage.reads import (
    break_a_read,
    change_a_key,
    change_a_time,
    change_a_time_on_all_disks,
    change_an_epoch,
    deliver_twice_in_a_pass,
    read_before_the_send,
    show_an_aborted_record,
    show_another_record,
)
from tests.harness.verify.histories.damage.sent import (
    acknowledge_before_it_was_sent,
    acknowledge_one_offset_twice,
    acknowledge_too_far,
    deny_what_is_there,
    forget_the_send,
    keep_an_unknown_one_on_one_disk,
    lower_a_producer_epoch,
    repeat_a_sequence,
    show_an_unknown_one_to_some,
    write_an_unknown_one_twice,
    write_to_another_partition,
)
from tests.harness.verify.histories.damage.states import (
    acknowledge_below_min_isr,
    acknowledge_by_another,
    elect_from_outside,
    lead_from_outside_its_isr,
    lead_twice_in_an_epoch,
    lower_an_epoch,
)
from urteil.harness.verify.damage import Trace

Apply = Callable[[Piece], Trace]


ANY: tuple[Apply, ...] = (
    lose_the_tail, lose_in_the_middle, lose_what_was_read_once, lose_without_an_offset,
    lose_at_the_leader, serve_no_more, write_an_unknown_one_twice,
    keep_an_unknown_one_on_one_disk, show_an_unknown_one_to_some, deny_what_is_there,
    forget_the_send, write_to_another_partition, acknowledge_one_offset_twice,
    acknowledge_too_far, acknowledge_before_it_was_sent, repeat_a_sequence,
    lower_a_producer_epoch, skip_first_of_a_new_process, skip_after_a_seek, go_back_in_a_poll,
    turn_a_position_back, skip_after_a_rebalance, commit_past_a_record, show_another_record,
    break_a_read, change_a_key, change_a_time, change_a_time_on_all_disks, change_an_epoch,
    read_before_the_send, deliver_twice_in_a_pass,
    miss_on_a_follower, run_ahead_of_the_end, end_in_a_hole, forget_an_epoch, find_no_time,
    find_a_time_too_early, let_the_end_fall, let_the_stable_end_fall, tell_an_end_below_an_ack,
    answer_as_another_leader,
    acknowledge_below_min_isr,
    elect_from_outside, lead_from_outside_its_isr,
    lead_twice_in_an_epoch, lower_an_epoch, acknowledge_by_another, own_twice,
    accept_a_late_commit, forget_a_commit, invent_a_commit, own_at_once, commit_in_an_old_epoch,
)  # fmt: skip
"""Done to plain topics."""

OF_KIND: dict[str, tuple[Apply, ...]] = {
    "plain": ANY,
    "lax": (lose_under_acks_one,),
    "transactional": (
        show_an_aborted_record, miss_a_marker, write_on_after_an_end_in_a_later_epoch,
        skip_a_committed_record, commit_past_a_committed_record,
    ),
    "compacted": (
        clean_the_last_value, clean_the_last_value_on_a_follower, lose_far_out, bring_back_a_key,
        drop_a_tombstone, clean_a_key_beside_an_unknown_send, skip_a_last_value,
        clean_the_active_segment, clean_the_active_segment_of_a_follower, renumber,
    ),
    "tables": (
        clean_a_committed_value, serve_a_committed_value_to_others_alone, miss_a_young_marker,
        end_otherwise_on_a_follower, write_a_record_in_another_epoch,
        serve_an_aborted_record_that_was_cleaned,
    ),
    "retained": (delete_too_early, receive_a_deleted_record_twice),
}  # fmt: skip
"""Damage by the kind of topic that it is done to."""

__all__ = ["OF_KIND", "Apply", "Piece", "Tables", "Unfit"]
