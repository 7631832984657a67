"""Damage to what a consumer group did: ownership and committed positions."""

from __future__ import annotations

from typing import Any

from urteil.harness.evidence.acts import KILL
from urteil.harness.verify.damage.copy import Copy, S, Untried, damage, first, has_value
from urteil.harness.verify.evidence import Row


@damage("assign a partition to two members", "two_owners", "one generation")
def assign_twice(copy: Copy) -> None:
    """A partition is assigned to a second member in the same generation."""
    assignment = _last_assignment(copy)
    other = assignment | {"client": "made up", "member_id": "made up"}
    copy.rows("assignments").extend([assignment, other])


@damage("let two members own a partition at once", "overlapping_owners", "at once")
def own_at_once(copy: Copy) -> None:
    """Two members of the protocol `consumer` are assigned a partition, and both commit in it."""
    assignment, end_ns = _last_assignment(copy), _end_ns(copy)
    for epoch, client in ((7, "made up owner"), (8, "made up heir")):
        member = {"group": "made up owners", "client": client, "session": 1, "member_id": client}
        assigned = (
            assignment
            | member
            | {"generation": None, "member_epoch": epoch, "at_ns": end_ns + epoch}
        )
        copy.rows("assignments").append(assigned)
        copy.rows("commits").append(_commit(assigned, 0, end_ns + S))


@damage("accept a commit of an old generation", "zombie_commit", "accepted")
def commit_in_old_generation(copy: Copy) -> int:
    """A member commits in its generation long after the next one has begun."""
    assignment = _last_assignment(copy)
    later = assignment | {"client": "made up", "generation": assignment["generation"] + 1}
    end_ns = _end_ns(copy)
    copy.rows("assignments").extend([assignment, later | {"at_ns": end_ns, "member_id": "made up"}])
    top = max(row["offset"] for row in _acknowledged_commits(copy))
    copy.rows("commits").append(_commit(assignment, top, end_ns + S))
    return int(top)


@damage("accept a commit of an old member epoch", "zombie_commit", "stale epoch")
def commit_in_old_epoch(copy: Copy) -> int:
    """A member of the protocol `consumer` commits in an epoch, after it had a later one."""
    assignment, end_ns = _last_assignment(copy) | {"group": "made up epochs"}, _end_ns(copy)
    old, new = (assignment | {"generation": None, "member_epoch": epoch} for epoch in (7, 8))
    copy.rows("assignments").extend([old | {"at_ns": end_ns}, new | {"at_ns": end_ns + S}])
    copy.rows("commits").append(_commit(old, 0, end_ns + 2 * S))
    return 0


@damage("accept a commit of a replaced member", "zombie_commit", "replaced")
def commit_as_replaced(copy: Copy) -> int:
    """A static member commits when a later session of it has its partitions."""
    assignment = _last_assignment(copy) | {"group": "made up static"}
    model, end_ns = first(copy.rows("clients")), _end_ns(copy)
    for session in (1, 2):
        member = {"client": f"made up {session}", "session": session}
        settings = {"kind": "made up", "group": assignment["group"], "instance": "made up"}
        copy.rows("clients").append(model | member | settings)
        at_ns = {"at_ns": end_ns + session * S}
        copy.rows("assignments").append(assignment | member | at_ns | {"event": "assigned"})
    top = max(row["offset"] for row in _acknowledged_commits(copy))
    stale = assignment | {"client": "made up 1", "session": 1}
    copy.rows("commits").append(_commit(stale, top, end_ns + 3 * S))
    return int(top)


@damage("forget a group's generation", "generation_went_back", "fell")
def forget_generation(copy: Copy) -> None:
    """The only member of a group is assigned a partition in the generation before its last one."""
    assignment = _last_assignment(copy) | {
        "group": "made up",
        "client": "made up member",
        "at_ns": _end_ns(copy),
    }
    before = {"generation": assignment["generation"] - 1, "at_ns": assignment["at_ns"] + S}
    copy.rows("assignments").extend([assignment, assignment | before])


@damage("forget an assignment", "generation_went_back", "forgotten")
def forget_assignment(copy: Copy) -> None:
    """The only member of a group requests its assignment again, and the response has none."""
    assignment = _last_assignment(copy) | {
        "group": "made up",
        "client": "made up asker",
        "at_ns": _end_ns(copy),
    }
    copy.rows("assignments").append(assignment | {"event": "forgotten"})


@damage("swap two assignments", "two_owners", "of another")
def swap_assignments(copy: Copy) -> None:
    """A member receives the partitions that the group's leader assigned to another one."""
    assignment = _last_assignment(copy) | {
        "group": "made up swapped",
        "client": "made up",
        "at_ns": _end_ns(copy),
    }
    by_leader = {"event": "given", "client": "made up leader", "member_id": "made up other"}
    copy.rows("assignments").extend(
        [assignment | {"member_id": "made up member"}, assignment | by_leader]
    )


@damage("forget a committed position", "commit_went_back", "went back")
def forget_commit(copy: Copy) -> None:
    """A returned position is below an acknowledged one that was not reset."""
    top = max(_acknowledged_commits(copy), key=lambda row: int(row["offset"]))
    copy.rows("commit_reads").append(_answer(top, None, _end_ns(copy)))


@damage("resume below a committed position", "commit_went_back", "resumed")
def resume_below(copy: Copy) -> Row:
    """The only member of a group is assigned a partition and reads a record again, long after a
    position beyond it was committed."""
    assignment, victim = _last_assignment(copy), copy.take()
    member = {"group": "made up reader", "client": "made up reader", "session": 1, "member_id": "m"}
    assignment, end_ns = assignment | member, _end_ns(copy)
    copy.rows("clients").append(first(copy.rows("clients")) | {**member, "kind": "made up"})
    beyond = victim["offset"] + 1
    copy.rows("commits").append(_commit(assignment, beyond, end_ns) | {"error": None, "txn": None})
    copy.rows("assignments").append(assignment | {"at_ns": end_ns + S})
    again = first(copy.of("reads", victim))
    position = {
        "generation": assignment["generation"],
        "read_ns": end_ns + 2 * S,
        "pass": 1,
        "poll": 1,
    }
    copy.rows("reads").append(again | member | position)
    return victim


@damage("answer a position that was never committed", "commit_register", "register")
def invent_commit(copy: Copy) -> int:
    """A returned position was never committed."""
    top = max(_acknowledged_commits(copy), key=lambda row: int(row["offset"]))
    copy.rows("commit_reads").append(_answer(top, top["offset"] + 7, _end_ns(copy)))
    return int(top["offset"] + 7)


@damage("lose the metadata of a committed position", "commit_register", "note")
def lose_metadata(copy: Copy) -> Row:
    """A returned position lacks the metadata that was committed with it."""
    top = max(_acknowledged_commits(copy), key=lambda row: int(row["offset"]))
    answer = _answer(top, top["offset"], _end_ns(copy))
    copy.rows("commit_reads").append(answer | {"intact": False})
    return top


@damage("commit past an unprocessed record", "commit_beyond_processed", "not processed")
def skip_processing(copy: Copy) -> Row:
    """No member processed a record below the position that the group committed."""
    last = max(_acknowledged_commits(copy), key=lambda row: int(row["offset"]))
    members = {
        row["client"]
        for table in ("clients", "assignments", "commits")
        for row in copy.rows(table)
        if row.get("group") == last["group"]
    }
    victim = first(
        row
        for row in copy.victims
        if row["offset"] < last["offset"]
        and any(read["client"] in members for read in copy.of("reads", row))
    )
    at = copy.victims.index(victim)
    del copy.victims[at : at + 3]
    copy.drop("reads", lambda row: has_value(victim)(row) and row["client"] in members)
    return victim


@damage("deliver nothing to a group", "no_delivery", "group stands still")
def deliver_nothing(copy: Copy) -> Row:
    """Long before the other events, a group polled and did not receive the only record."""
    victim = copy.take()
    early_ns = min(row["invoke_ns"] for row in copy.rows("sends")) - 100 * S
    victim |= {"invoke_ns": early_ns, "complete_ns": early_ns + 1}
    _add_polling_group(copy, "made up", early_ns)
    return victim


@damage("fail all commits of a group", "commits_stand_still", "commits stand still")
def fail_commits(copy: Copy) -> None:
    """Long before the other events, a group polled, and each of its commits failed."""
    first_ns = min(row["invoke_ns"] for row in copy.rows("sends"))
    begin_ns = first_ns - 100 * S - 2 * copy.still_ns
    member = _add_polling_group(copy, "made up committers", begin_ns)
    model = (
        first(_acknowledged_commits(copy)) | member | {"group": "made up committers", "txn": None}
    )
    for number in range(3):
        at_ns = begin_ns + copy.still_ns - number * S
        times = {"invoke_ns": at_ns, "complete_ns": at_ns + 1}
        copy.rows("commits").append(model | times | {"outcome": "fail"})


def _add_polling_group(copy: Copy, group: str, begin_ns: int) -> Row:
    """Add a group with one member that polls every second, for a little longer than a group may
    make no progress. Returns its client and session."""
    lived = {"begin_ns": begin_ns - S, "end_ns": begin_ns + copy.still_ns + 2 * S}
    member = _add_client(copy, f"{group} member", 1, kind="group", group=group, **lived)
    _add_polls(copy, member, range(begin_ns, begin_ns + copy.still_ns + 2 * S, S))
    return member


def _add_polls(copy: Copy, member: Row, times_ns: range) -> None:
    """Add empty polls of a client, at these times."""
    absent = ("error", "topic_id", "topic", "partition", "event")
    empty = dict.fromkeys((*absent, "position_before", "position_after")) | {"outcome": "ok"}
    for number, at_ns in enumerate(times_ns):
        times = {"invoke_ns": at_ns, "complete_ns": at_ns + 1}
        copy.rows("polls").append(member | {"poll": number} | times | empty)


@damage("remove a member again and again", "member_expelled", "member put out")
def remove_again_and_again(copy: Copy) -> None:
    """Long before the other events, a member polled every second and lost its membership thrice."""
    model, assigned = first(copy.rows("clients")), _last_assignment(copy)
    session_ns = _session_timeout_ns(copy)
    begin_ns = min(row["invoke_ns"] for row in copy.rows("sends")) - 10 * copy.still_ns
    member = {"client": "made up outsider", "session": 1}
    lived = {"kind": "made up", "group": "made up too", "begin_ns": begin_ns - S}
    copy.rows("clients").append(model | member | lived | {"end_ns": begin_ns + 5 * session_ns})
    _add_polls(copy, member, range(begin_ns, begin_ns + 5 * session_ns, S))
    for number in range(2, 5):
        loss = {"group": "made up too", "event": "lost", "at_ns": begin_ns + number * session_ns}
        copy.rows("assignments").append(assigned | member | loss)


@damage("wait for a killed member", "departed_member_kept", "kept dead")
def wait_for_killed_member(copy: Copy) -> None:
    """Long before the other events, a member is killed, and its partition is not assigned to the
    other member of its group."""
    died_ns = min(row["invoke_ns"] for row in copy.rows("sends")) - 30 * copy.still_ns
    lived = {"kind": "group", "group": "made up survivors", "begin_ns": died_ns - 20 * S}
    killed = _add_client(copy, "made up killed", 1, **lived)
    mate = _add_client(
        copy, "made up mate", 1, **lived, end_ns=died_ns + _session_timeout_ns(copy) + 20 * S
    )
    _add_assignment(copy, killed, "made up survivors", 1, died_ns - 10 * S)
    _add_polls(copy, mate, range(died_ns, died_ns + 20 * S, S))
    _add_kill(copy, killed["client"], died_ns)


@damage("rebalance for a static member", "static_member_rebalanced", "rebalanced")
def rebalance_for_static_member(copy: Copy) -> None:
    """Long before the other events, a static member is killed and returns at once, in another
    generation."""
    limit_ns = _session_timeout_ns(copy) * 2 // 3 - S
    if limit_ns < 2 * S:
        raise Untried("sessions are too short to return within them")
    died_ns = min(row["invoke_ns"] for row in copy.rows("sends")) - 20 * copy.still_ns
    lived = {"kind": "made up", "group": "made up static", "instance": "made up returning"}
    for session, begin_ns, assigned_ns in (
        (1, died_ns - 20 * S, died_ns - 10 * S),
        (2, died_ns + S // 2, died_ns + S),
    ):
        member = _add_client(
            copy, f"made up returning {session}", session, **lived, begin_ns=begin_ns
        )
        _add_assignment(copy, member, "made up static", session, assigned_ns)
        _add_polls(copy, member, range(assigned_ns, assigned_ns + S, S))
    _add_kill(copy, "made up returning 1", died_ns)


def _session_timeout_ns(copy: Copy) -> int:
    return (copy.still_ns - 10 * S) // 2


def _add_client(copy: Copy, client: str, session: int, **columns: Any) -> Row:
    """Add a client that reads uncommitted records. Returns its client and session."""
    member: Row = {"client": client, "session": session}
    own = {"isolation": "read_uncommitted", "end_ns": None} | columns
    copy.rows("clients").append(first(copy.rows("clients")) | member | own)
    return member


def _add_assignment(copy: Copy, member: Row, group: str, generation: int, at_ns: int) -> None:
    """Assign the partition of the copy's records to a member."""
    place = {name: copy.rows("sends")[0][name] for name in ("topic_id", "topic", "partition")}
    event = {"event": "assigned", "generation": generation, "at_ns": at_ns}
    copy.rows("assignments").append(
        member | place | event | {"group": group, "member_id": member["client"]}
    )


def _add_kill(copy: Copy, client: str, at_ns: int) -> None:
    times = {"invoke_ns": at_ns - 1, "complete_ns": at_ns, "outcome": "ok"}
    copy.rows("admin_ops").append(times | {"act": KILL, "subject": client, "after": "{}"})


def _last_assignment(copy: Copy) -> Row:
    """The assignment of the last generation. If members have epochs instead, the assignment of the
    last epoch, with the epoch as its generation. Raises Untried without an assignment."""
    assigned = [row for row in copy.rows("assignments") if row["event"] == "assigned"]
    known = [row for row in assigned if (row["generation"] or -1) >= 0]
    known = known or [
        row | {"generation": row["member_epoch"], "member_epoch": None}
        for row in assigned
        if row.get("member_epoch") is not None
    ]
    if not known:
        raise Untried("no group, or one whose client does not journal its generation")
    return max(known, key=lambda row: int(row["generation"]))


def _acknowledged_commits(copy: Copy) -> list[Row]:
    acked = [row for row in copy.rows("commits") if row["outcome"] == "ok"]
    if not acked:
        raise Untried("no group committed anything")
    return acked


def _end_ns(copy: Copy) -> int:
    """A time after all events of the group."""
    known = [copy.last_ns]
    for table, column in (
        ("assignments", "at_ns"),
        ("commits", "complete_ns"),
        ("commits", "invoke_ns"),
        ("commit_reads", "complete_ns"),
    ):
        known += [row[column] for row in copy.rows(table) if row[column] is not None]
    return max(known) + S


def _commit(member: Row, offset: int, at_ns: int) -> dict[str, Any]:
    kept = {name: value for name, value in member.items() if name not in ("event", "at_ns")}
    times = {"invoke_ns": at_ns, "complete_ns": at_ns + 1}
    return kept | times | {"offset": offset, "processed_to": offset, "outcome": "ok"}


def _answer(commit: Row, offset: int | None, at_ns: int) -> dict[str, Any]:
    dropped = ("processed_to", "txn", "offset")
    kept = {name: value for name, value in commit.items() if name not in dropped}
    times = {"invoke_ns": at_ns, "complete_ns": at_ns + 1}
    return kept | times | {"offset": offset, "outcome": "ok", "error": None}
