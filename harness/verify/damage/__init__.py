"""Every way in which the verifier can damage evidence, each with the finding it must cause.

The canary of a run uses them on a copy of a piece of its own evidence, the tests on made-up runs.
A damage takes victims: healthy records of one partition, whose places it may change.
"""

from __future__ import annotations

from urteil.harness.verify.damage import (
    answers,
    cluster,
    groups,
    records,
    replicas,
    rights,
    tables,
    transactions,
)
from urteil.harness.verify.damage.copy import Copy, Damage, Trace, Untried

DAMAGES: tuple[Damage, ...] = (
    Damage(name="end a follower's log too early", apply=replicas.cut_follower, replicas=2),
    Damage(name="let a high watermark run ahead", apply=replicas.run_ahead, replicas=2),
    Damage(name="end the final passes too early", apply=records.shorten_passes),
    Damage(name="drop a record everywhere", apply=records.lose),
    Damage(name="keep a record on one follower only", apply=records.lose_on_leader, replicas=2),
    Damage(name="drop a record from the final passes", apply=records.stop_serving),
    Damage(name="drop an invocation", apply=records.forget_invocation),
    Damage(name="change a key", apply=records.change_key),
    Damage(name="break the checksum of a read", apply=records.break_read),
    Damage(name="break the checksum of a replica's record", apply=records.break_disk),
    Damage(name="append a record again", apply=records.append_again),
    Damage(name="show another record at an offset", apply=records.show_another),
    Damage(name="swap the offsets of two acknowledgements", apply=records.swap_acks),
    Damage(name="swap two records of one producer", apply=records.swap_order),
    Damage(name="hide a record from one final pass", apply=records.hide_from_one_pass),
    Damage(name="drop a read of a consumer", apply=records.skip_in_tail, tail=True),
    Damage(name="give a consumer a record again", apply=records.go_back_in_tail, tail=True),
    Damage(name="drop a record of one follower", apply=replicas.miss_on_follower, replicas=2),
    Damage(name="change a batch's CRC on one follower", apply=replicas.other_bytes, replicas=2),
    Damage(name="change a leader epoch on one follower", apply=replicas.other_epoch, replicas=2),
    Damage(name="change a record on one follower", apply=replicas.other_content, replicas=2),
    Damage(name="open a hole in one log", apply=replicas.open_hole, replicas=2),
    Damage(name="repeat an offset in one log", apply=replicas.repeat_on_disk, replicas=2),
    Damage(name="break a sequence", apply=replicas.break_sequence),
    Damage(name="let an epoch start at two offsets", apply=replicas.fork_epoch, replicas=2),
    Damage(name="begin a send after later ones ended", apply=records.send_later),
    Damage(name="read a record before its send", apply=records.read_earlier),
    Damage(name="deny a send that is there", apply=records.deny),
    Damage(name="let another broker acknowledge", apply=records.other_node),
    Damage(name="send a record to another partition", apply=records.other_partition),
    Damage(name="give a partition to two members", apply=groups.assign_twice),
    Damage(name="accept a commit of an old generation", apply=groups.commit_as_zombie),
    Damage(name="forget a group's generation", apply=groups.forget_generation),
    Damage(name="forget a committed position", apply=groups.forget_commit),
    Damage(name="tell a position nobody committed", apply=groups.invent_commit),
    Damage(name="commit past an unprocessed record", apply=groups.leave_unprocessed),
    Damage(name="give a group nothing", apply=groups.leave_waiting),
    Damage(name="shrink the ISR below its minimum", apply=cluster.shrink_isr, replicas=2),
    Damage(name="lower a controller epoch", apply=cluster.lower_controller_epoch),
    Damage(name="repeat a partition epoch", apply=cluster.repeat_version),
    Damage(name="lower a leader epoch", apply=cluster.lower_epoch),
    Damage(name="elect a leader from outside the ISR", apply=cluster.elect_outsider),
    Damage(name="acknowledge nothing during a crash", apply=cluster.stall, replicas=2),
    Damage(name="leave the ISR short after healing", apply=cluster.stay_broken),
    Damage(name="lose a record that its client knew of", apply=answers.lose_what_was_known),
    Damage(name="let the end fall", apply=answers.let_the_end_fall),
    Damage(name="tell an end below an acknowledgement", apply=answers.tell_an_old_end),
    Damage(name="serve what was deleted", apply=answers.serve_what_was_deleted),
    Damage(name="tell an epoch's end too late", apply=answers.tell_an_epoch_too_long),
    Damage(name="find a time too late", apply=answers.find_a_time_too_late),
    Damage(name="name another leader", apply=answers.name_another_leader),
    Damage(name="misplace an index entry", apply=answers.misplace_an_entry),
    Damage(name="drop the last value of a key", apply=tables.drop_latest),
    Damage(name="show an older value of a key", apply=tables.show_stale),
    Damage(name="let a deleted key come back", apply=tables.resurrect),
    Damage(name="drop a young tombstone", apply=tables.drop_tombstone),
    Damage(name="clean a young record", apply=tables.clean_too_early),
    Damage(name="renumber a record", apply=tables.renumber),
    Damage(name="delete young records", apply=tables.delete_too_early),
    Damage(name="do what nobody granted", apply=rights.do_what_nobody_granted),
    Damage(name="do what was taken back", apply=rights.do_what_was_taken_back),
    Damage(name="do what is long over", apply=rights.do_what_is_long_over),
    Damage(name="refuse what is granted", apply=rights.refuse_what_is_granted),
    Damage(name="hide a record of a committed transaction", apply=transactions.tear),
    Damage(name="show a record of an aborted transaction", apply=transactions.show_aborted),
    Damage(name="read a record before its commit", apply=transactions.read_before_commit),
    Damage(name="tell an end beyond an open transaction", apply=transactions.tell_an_end_too_far),
    Damage(name="write with a taken transactional id", apply=transactions.write_as_zombie),
    Damage(name="leave an input of an output unconsumed", apply=transactions.forget_to_consume),
    Damage(name="consume an input without an output", apply=transactions.consume_only),
    Damage(name="process an input twice", apply=transactions.process_twice),
    Damage(name="write over each other", apply=transactions.write_over_each_other),
    Damage(name="read in a circle", apply=transactions.read_in_a_circle),
    Damage(name="read the first half of a transaction", apply=transactions.read_the_first_half),
    Damage(name="leave a transaction open", apply=transactions.leave_open),
    Damage(name="keep a transactional id for ever", apply=transactions.keep_an_id),
)
"""Every damage, in an order in which all of them may be done to one copy."""

MADE_UP_TOPICS = tables.TOPICS
"""Topics that some damages make up; whoever judges the copy must be told of them."""

__all__ = ["DAMAGES", "MADE_UP_TOPICS", "Copy", "Damage", "Trace", "Untried"]
