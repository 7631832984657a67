"""A violation of each guarantee as a scene in text, which `guarantee_pictures.py` draws.

The first line names the lanes, from top to bottom; `faults` takes bands. Every other line is

    T FROM>TO text        an arrow that leaves at T (0 to 10) and arrives 0.8 later
    T LANE text           a moment
    T-U LANE text         a stretch
    LANE = a b . c        a log, a cell an offset; `.` is an empty one

A `*` at the end of a text or cell marks what breaks the promise, a `!` a fault.
"""

from __future__ import annotations

SCENES = {
    "lost_write": """producer, b1 (leader), b2, log of b2
1 producer>b1 send x
3 b1>producer ok
4.5-6 b1 crash!
6-10 b2 leads in epoch 1
log of b2 = a b .* c""",
    "unseen": """producer, leader, final reader
1 producer>leader send x
2.4 leader>producer ok, offset 7
6-9 final reader reads 0 to 6, the end*""",
    "loss_not_a_suffix": """leader before, leader after, epochs
leader before = a b c d e
leader after = a .* c d f
5.4-9 epochs epoch 1""",
    "phantom": """producer, leader, consumer
1 producer>leader send x
5 leader>consumer x
7 leader>consumer y: nobody sent it*""",
    "corrupt": """producer, leader, consumer
1 producer>leader x, CRC 5a3f
6 leader>consumer x', CRC 91c0*""",
    "future_read": """producer, leader, consumer
2 leader>consumer x*
6 producer>leader send x""",
    "aborted_read": """writer, leader, consumer
1 writer>leader x in a transaction
3.4 writer>leader abort
7 leader>consumer x, read_committed*""",
    "duplicate": """producer, leader, log
1 producer>leader x, sequence 5
4 leader>producer ok (lost)!
6 producer>leader x, sequence 5
log = a x b x* c""",
    "inconsistent_offset": """consumer 1, leader, consumer 2
2 leader>consumer 1 offset 7 is x
6 leader>consumer 2 offset 7 is y*""",
    "misplaced_ack": """producer, leader, log
1 producer>leader send x
4 leader>producer ok, offset 2
log = a b c x*""",
    "vanished_read": """pass 1, pass 2
0.5-4 pass 1 a b c
5-9.5 pass 2 a c: b is gone*""",
    "reordered_send": """producer, leader, log
1 producer>leader x, sequence 5
4 producer>leader y, sequence 6
log = a y* x*""",
    "sequence_gap": """producer, log
0.5 producer sends 1
2.5 producer sends 2
4.5 producer sends 3
log = 1 3* .""",
    "stale_append": """client 1, leader, client 2, log
1 client 1>leader send a
3 leader>client 1 ok
6 client 2>leader send b
log = . b* a*""",
    "poll_skip": """log, leader, consumer
log = a b c d
2 leader>consumer a
6 leader>consumer c: b was there*""",
    "nonmonotonic_poll": """leader, consumer
2 leader>consumer 5, 6
6 leader>consumer 4: no seek, no rebalance*""",
    "hole": """log of b1, log of b2
log of b1 = 0 1 2 3 4
log of b2 = 0 1 .* 3 4""",
    "time_index_wrong": """client, leader, log
1 client>leader first offset from 12:00 on?
6 leader>client 4*
log = 11:58 11:59 12:00 12:01 12:02""",
    "index_wrong": """index, log
index = 0 2 5*
log = 0 1 2 3 4""",
    "replica_divergence": """b1 (leader), b2, b3, high watermark
b1 = a b c d
b2 = a b c d
b3 = a b x* d
0.4-5.3 high watermark all four are below it""",
    "epoch_lineage": """b1 (leader), b2
2-6 b1 (leader) epoch 3 starts at 12
2-6 b2 epoch 3 starts at 9*""",
    "two_leaders": """b1, producer, b2
0.5-4 b1 leads in epoch 4
4-9.5 b2 leads in epoch 5
5 b1 hears of epoch 5
7.6 b1>producer ok in epoch 4*""",
    "quorum_log": """controller 1, controller 2, controller 3
0.5-4 controller 1 leads in epoch 4
2 controller 1>controller 2 batch 7
3 controller 1>controller 3 batch 7
4.2-10 controller 1 crash!
5.4-10 controller 2 leads in epoch 5 without batch 7*""",
    "quorum_votes": """controller 1, controller 2, controller 3
0.5-3 controller 1 candidate in epoch 5
1.5 controller 1>controller 3 vote?
2.5 controller 3>controller 1 yes
3.5-5 controller 3 crash!
5-10 controller 2 candidate in epoch 5
6 controller 2>controller 3 vote?
7.5 controller 3>controller 2 yes, in epoch 5*""",
    "deposed_controller": """controller 1, controller 2, controller 3
0.5-2 controller 1 leads in epoch 3
2-9.5 controller 1 is cut off and leads in epoch 3*
4-9.5 controller 2 leads in epoch 5
5 controller 3>controller 2 Fetch
7.5 controller 3>controller 2 Fetch""",
    "fenced_member": """controller 1, b1 (leader), b2
0.5-4 controller 1 leader 1, ISR 1 2
3-9 b1 pause!
5-9 controller 1 b1 fenced, leader 2, ISR 1 2*""",
    "unclean_leader": """ZooKeeper, b1 (leader)
0.5-4 ZooKeeper leader 1, ISR 1
3.5-9 b1 crash!
4.5-9 ZooKeeper leader 2, not in the ISR*""",
    "epoch_went_back": """ZooKeeper
0.5-3 ZooKeeper version 7, epoch 5
4-6.5 ZooKeeper version 8, epoch 4*""",
    "ack_below_min_isr": """producer, leader, ZooKeeper
1-9 ZooKeeper ISR 1 of min.insync.replicas 2
2 producer>leader send x, acks=all
6 leader>producer ok*""",
    "no_progress": """producer, b1
2-9 b1 crash!
0.3-2 producer ok ok ok
2-4.5 producer time to elect
4.5-9 producer nothing is acknowledged*""",
    "generation_went_back": """coordinator, member, next coordinator
0.5 coordinator>member p0, generation 7
2.5-9 coordinator crash!
5 next coordinator>member p0, generation 1*""",
    "stalled_partition": """producer, b1 (leader), b2
1-10 b2 does not reach b1!
0.3-1 producer ok ok
1-5.5 producer replica.lag.time.max.ms
5.5-10 producer nothing is acknowledged*
0.3-10 b1 up, b2 still in its ISR""",
    "stalled_producer": """producer 1, leader, producer 2
0.6 producer 1>leader send x
2-4 leader answer lost!
4.4 producer 1>leader send x
5.6-10 producer 1 no answer*
0.6-10 producer 2 ok ok ok""",
    "slow_acknowledgement": """producer, leader, follower
0.8 producer>leader send x
2 leader>follower x
3 follower>leader fetch after x
3.2-9 leader forgets to answer
9 leader>producer ok, late*""",
    "slow_fetch": """producer, leader, reader
0.8 reader>leader fetch, wait 200 ms
2.4 producer>leader send x
4.4 leader>producer ok
8 leader>reader x, late*""",
    "no_delivery": """member 1, coordinator, member 2
0.5-2.5 member 1 processes a b
2.5-9 member 1 killed!
3-9 member 2 polls
2.5-5 coordinator session
5-9 coordinator member 1 has p0, still*""",
    "slow_recovery": """faults, cluster
1-3 faults partition!
3-5 cluster deadline
5-9 cluster a partition has no full ISR*""",
    "two_owners": """member 1, coordinator, member 2
1 coordinator>member 1 p0, generation 3
4 coordinator>member 2 p0, generation 3*""",
    "overlapping_owners": """member 1, coordinator, member 2
0.5 coordinator>member 1 p0, epoch 3
3 coordinator>member 2 p0, epoch 4
5 member 2>coordinator commit 9
7 member 1>coordinator commit 8*
8.4 coordinator>member 1 ok*""",
    "zombie_commit": """member 1, coordinator, member 2
0.5 coordinator>member 1 p0, generation 3
3 coordinator>member 2 p0, generation 4
4.6 member 1>coordinator commit 7, generation 3
8.4 coordinator>member 1 ok*""",
    "commit_beyond_processed": """log, member, coordinator
log = a b c d
4-6 member processes a b
6.5 member>coordinator commit 4*""",
    "commit_went_back": """member, coordinator, asker
1 member>coordinator commit 9
2.6 coordinator>member ok
6 coordinator>asker committed: 5*""",
    "commit_register": """client 1, coordinator, client 2
1 client 1>coordinator commit 9
3 coordinator>client 2 9
6 coordinator>client 2 5*""",
    "unprocessed": """input, output
input = a b c d
output = a b .* d""",
    "processed_twice": """input, output
input = a b c d
output = a b b* c""",
    "wrong_result": """input, application, output
input = a b a a
5-8 application counts each key
output = a=1 b=1 a=2*""",
    "reordered_copy": """input, output
input = k1 k2 k3
output = k1 k3* k2""",
    "torn_txn": """p0, writer, p1
1 writer>p0 a
1 writer>p1 b
4 writer>p0 commit
4 writer>p1 commit
7-10 p0 a is visible
7-10 p1 b is not*""",
    "precommitted_read": """writer, leader, consumer
1 writer>leader x in a transaction
4 leader>consumer x, read_committed*
7 writer>leader commit""",
    "zombie_write": """writer 1, leader, writer 2
1 writer 1>leader x, epoch 0
3 writer 2>leader the same id, epoch 1
5.5 writer 1>leader y, epoch 0
7.2 leader>writer 1 ok*""",
    "hanging_txn": """writer, leader
0.5 writer>leader x in a transaction
3.4-4.6 writer dies!
3.6-6.4 leader transaction.timeout.ms
6.4-10.3 leader last stable offset stays at x*""",
    "offsets_not_atomic": """input, output, group
input = a b c d
output = a b
5-9.5 group stands at 3, c has no copy*""",
    "g1c": """T1, between, T2
0.5 T1 sends a
0.5 T2 sends b
3 T2>T1 reads b
6.5 T1>T2 reads a*""",
    "g0": """p0, p1
p0 = T1 T2
p1 = T2* T1*""",
    "g_single": """T1, between, T2
0.5 T1 sends a to p0
3 T1 sends b to p1
5.5 T1>T2 reads b
7.5 T2 polls p0, no a*""",
    "g1b": """T1, p0, T2
p0 = T1 T3 T1
0.5 T2 reads p0 to offset 0
3-9 p0 T3 is open
5.5 T2 has not seen offset 2*""",
    "lost_update": """T1, p0, T2
p0 = a T2* T1
0.5 T1 reads p0 to offset 0
3 T2>p0 append
6 T1>p0 append""",
    "fractured_read": """T1, p0, p1, reader
0.5 T1>p0 append a
2 T1>p1 append b
4 p0>reader a
6 p1>reader the record after b*""",
    "stale_end": """T1, p0, reader
0.5 T1>p0 append a at 7, commit
3.5 T1>p0 next transaction: accepted
5.5 reader>p0 end of committed records?
7.5 p0>reader 7*""",
    "g1c_realtime": """T1, between, T2
0.5-4 T1 begin to end
5.5-10 T2 begin to end
3 T1 reads b*
6.5 T2 sends b""",
    "g2_item": """T1, between, T2
0.5 T1 reads p0
0.5 T2 reads p1
3.5 T1 sends a to p1: T2 has not seen it*
5.5 T2 sends b to p0: T1 has not seen it*""",
    "latest_went_back": """client, leader
1 leader>client latest 9, epoch 4
6 leader>client latest 7, epoch 4*""",
    "end_below_ack": """producer, leader, client
1 producer>leader send x
2.4 leader>producer ok, offset 9
6 leader>client latest 9, x is not below it*""",
    "causal_loss": """client, leader, log
1 leader>client reads a
5 client>leader sends b
log = . .* b""",
    "disagreement": """ZooKeeper, b1, b2
1-9 ZooKeeper leader 1, epoch 5
1-9 b1 leader 1, epoch 5
1-9 b2 says: leader 3, epoch 4*""",
    "latest_value_lost": """written, after cleaning
written = k1=1 k2=5 k1=2 k3=7
after cleaning = k1=1* k2=5 . k3=7""",
    "stale_value_visible": """written, reader
written = k1=1 k2=5 k1=2 k3=7
6.5-9.5 reader k1 is 1 in the end*""",
    "resurrected_key": """written, after cleaning
written = k1=1 k2=5 k1=null k3=7
after cleaning = k1=1* k2=5 . k3=7""",
    "tombstone_too_early": """written, after cleaning, clock
written = k1=1 k2=5 k1=null k3=7
after cleaning = . k2=5 .* k3=7
1-7 clock delete.retention.ms is not over""",
    "compacted_too_early": """written, after cleaning, segments
written = k1=1 k2=5 k1=2 k2=6
after cleaning = . .* k1=2 k2=6
1.6-5.4 segments the active segment""",
    "offset_renumbered": """written, after cleaning
written = a b c d
after cleaning = a c* d .""",
    "retained_too_short": """log, clock
log = .* .* c d e
0.4-6.6 clock all are younger than retention.ms""",
    "kept_too_long": """log, clock
log = a* b* c d e
0.4-4.4 clock a and b are older than retention.ms""",
    "unauthorised": """client, broker
1-4 broker DENY is what it shows
5 client>broker produce
6.4 broker>client ok*""",
    "quota_exceeded": """client, broker
0.3-10.2 broker its quota, in bytes a second
1.5 client>broker produce
2.5 broker>client ok, wait
5.5 client>broker far more*
6.5 broker>client ok, at once*""",
    "wrong_answer": """client, broker
0.3-10.2 broker group.max.size is 3
1.5 client>broker a fourth member*
3.5 broker>client welcome*""",
    "unexpected_exit": """broker, others
0.3-5.4 broker serves
6-8 broker exit code 1*
0.3-10.2 others serve""",
    "unfinished_administration": """administrator, controller, replicas
1 administrator>controller move p0 to b3
2.6 controller>administrator ok
0.3-10.2 replicas b1 b2: never b3*""",
    "undone_administration": """administrator, controller 1, controller 2
1 administrator>controller 1 create p
2.6 controller 1>administrator ok
4-10 controller 1 crash!
5-10 controller 2 leads, without p*""",
    "preferred_leader_ignored": """administrator, controller, p0
1 administrator>controller elect b1, preferred
3 controller>administrator elected
0.3-10.2 p0 b2 leads all the while*""",
    "leadership_not_handed_over": """b1, b2
0.3-5.5 b1 leads p0, shuts down!
5.5 b1 gone, still the leader*
0.3-10.2 b2 in sync""",
    "leaderless_partition": """b1, b2, p0
0.3-3 b1 leads
3-10.2 b1 crash!
0.3-10.2 b2 alive and in sync
3.4-10.2 p0 no leader*""",
    "shrunken_isr": """faults, follower, ISR
0.3-10.2 faults none
0.3-10.2 follower runs
0.3-4 ISR b1 b2 b3
4.2-10.2 ISR b1 b2*""",
    "dead_replica_in_isr": """b1, controller, ISR
0.3-3 b1 leads
3-10.2 b1 crash!
5 controller elects b2
0.3-5 ISR b1 b2
5.4-10.2 ISR b1 b2: b1 is dead*""",
    "wrong_log_start": """leader, reader
1 reader>leader where does p0 begin?
2.6 leader>reader at 7
4.4 reader>leader fetch from 7
6.4 leader>reader out of range*""",
    "commits_stand_still": """member, coordinator
0.3-10.2 member polls
1.5 member>coordinator commit 7
3 coordinator>member loading*
5 member>coordinator commit 7
6.5 coordinator>member loading*""",
    "member_expelled": """member, coordinator
0.3-10.2 member polls, sends heartbeats
2.5 coordinator>member unknown member*
7 coordinator>member unknown member*""",
    "departed_member_kept": """member 1, coordinator, member 2
0.5-2.5 member 1 processes p0
3 member 1>coordinator leave
4.5-10.2 coordinator p0 is member 1's*
0.3-10.2 member 2 polls""",
    "static_member_rebalanced": """member i1, coordinator
0.3-3 member i1 generation 3
3-5 member i1 restarts!
5.4 member i1>coordinator join as i1
7 coordinator>member i1 generation 4*""",
    "undeleted_records": """administrator, leader, reader
1 administrator>leader DeleteRecords, below 5
3 leader>administrator low watermark 5
5 reader>leader fetch from 4
7 leader>reader d*""",
    "segment_not_rolled": """segment, clock
segment = a b c d e*
0.3-4 clock segment.ms
4.2-10.2 clock still the same segment*""",
    "mirror_gap": """east, MirrorMaker, west
east = a b c
2 east>MirrorMaker a b c
5 MirrorMaker>west a c*
west = a c*""",
    "mirror_order": """east, MirrorMaker, west
east = a b c
2 east>MirrorMaker a b c
5 MirrorMaker>west b a c*
west = b* a* c""",
    "translated_too_far": """member, east, MirrorMaker, west
east = a b c d
1.5 member>east commit 2
4 MirrorMaker>west commit 4*
west = a b c* d*""",
    "leftover_log": """administrator, b1, disk of b1
1 administrator>b1 delete the topic
3-10.2 b1 no such topic
disk of b1 = a* b* c*""",
    "settled_redelivered": """member 1, leader, member 2
0.5 leader>member 1 x, delivery 1
2.5 member 1>leader accept x
4.5 leader>member 1 ok
7 leader>member 2 x, delivery 2*""",
    "unsettled_record": """log, leader, member
log = a b c
1 leader>member a
3.5 member>leader accept a
6 leader>member c: b was there*""",
    "two_holders": """member 1, leader, member 2
1 leader>member 1 x
1.9-9 member 1 lock on x
5 leader>member 2 x*""",
    "delivery_over_limit": """leader, member
1 leader>member x, delivery 5 of 5
4 member>leader release x
7 leader>member x, delivery 6*""",
}
