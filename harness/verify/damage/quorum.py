"""Damage to the metadata logs of KRaft's controllers."""

from __future__ import annotations

import json
from typing import Any

from urteil.harness.verify.damage.copy import Copy, S, brokers, damage, leader, states

_CONTROLLERS = (1, 2, 3)
_SEEN = -1
_FAR = 1 << 40
"""Beyond the offsets of any run."""
_FIRST_EPOCH = 1 << 20
_STEP_NS = 1_000_000


@damage("elect two leaders of the quorum in one epoch", "quorum_log", "two leaders")
def elect_twice(copy: Copy) -> None:
    """Two controllers become leader in one epoch, each in its own log."""
    for controller in _CONTROLLERS[:2]:
        _add_batch(copy, controller, 10 * controller, 1, leader=controller)


@damage("let the quorum's epoch go back", "quorum_log", "epoch went back")
def append_of_former_epoch(copy: Copy) -> None:
    """A batch of a former epoch behind one of a later epoch."""
    _add_batch(copy, _CONTROLLERS[2], 40, 4)
    _add_batch(copy, _CONTROLLERS[2], 41, 3)


@damage("change a batch in one copy of the metadata log", "quorum_log", "different bytes")
def change_metadata(copy: Copy) -> None:
    """A copy has other bytes at an offset of the same epoch."""
    for controller in _CONTROLLERS:
        _add_batch(copy, controller, 60, 6, crc=int(controller == 1))


@damage("lose a committed batch of the metadata log", "quorum_log", "lost")
def lose_committed_metadata(copy: Copy) -> None:
    """A committed batch is in one of three copies after the run; the one before it is in all."""
    for controller in _CONTROLLERS:
        _add_batch(copy, controller, 79, 8)
    for holder in (_SEEN, _CONTROLLERS[0]):
        _add_batch(copy, holder, 80, 8)


@damage("change two voters of the quorum at once", "quorum_log", "two changes")
def change_two_voters(copy: Copy) -> None:
    """A record of voters adds one voter and removes another one."""
    for number, changed in enumerate((0, 1, 2)):
        _add_batch(copy, _CONTROLLERS[0], 95 + number, 10, changed_voters=changed)


def _add_batch(copy: Copy, holder: int, base: int, epoch: int, **columns: Any) -> None:
    place = {"broker": holder, "base": _FAR + base, "last": _FAR + base}
    rest = {"epoch": _FIRST_EPOCH + epoch, "crc": 7, "size": 70, "at_ns": copy.last_ns}
    copy.rows("metadata_logs").append(place | rest | columns)


@damage("let a controller vote twice", "quorum_votes", "voted twice")
def vote_twice(copy: Copy) -> None:
    """A controller's file has one vote, and later another one of the same epoch."""
    for number, candidate in enumerate(_CONTROLLERS[:2]):
        _add_vote(copy, _CONTROLLERS[2], number, 20, candidate=candidate)


@damage("let two leaders of the quorum be known", "quorum_votes", "two leaders")
def know_two_leaders(copy: Copy) -> None:
    """Two controllers store different leaders of one epoch."""
    for controller in _CONTROLLERS[:2]:
        _add_vote(copy, controller, 2, 22, leader=controller)


@damage("elect a leader of the quorum without a majority", "quorum_votes", "no majority")
def elect_without_majority(copy: Copy) -> None:
    """A leader of three voters lists its own vote alone."""
    own = {"candidate": _CONTROLLERS[0], "leader": _CONTROLLERS[0], "voters": len(_CONTROLLERS)}
    _add_vote(copy, _CONTROLLERS[0], 3, 24, **own)


@damage("let a controller forget its epoch", "quorum_votes", "epoch went back")
def forget_epoch(copy: Copy) -> None:
    """A controller's file returns to a former epoch."""
    for number, epoch in ((4, 27), (5, 26)):
        _add_vote(copy, _CONTROLLERS[1], number, epoch)


def _add_vote(copy: Copy, voter: int, number: int, epoch: int, **columns: Any) -> None:
    place = {"broker": voter, "position": _FAR + number, "epoch": _FIRST_EPOCH + epoch}
    vote = {"candidate": None, "leader": None, "voters": None, "at_ns": copy.last_ns}
    copy.rows("votes").append(place | vote | columns)


@damage("let a leader of the quorum go on", "deposed_controller", "not resigned")
def keep_deposed_leader(copy: Copy) -> None:
    """A controller's file names itself as leader, far longer than another one's later epoch."""
    first_ns = copy.last_ns + _FAR
    versions = ((3, 30, 3, 0), (2, 31, 2, 1), (3, 31, 2, 30))
    for number, (voter, epoch, elected, seconds) in enumerate(versions):
        at_ns = first_ns + seconds * S
        _add_vote(copy, voter, 10 + number, epoch, leader=elected, at_ns=at_ns)


@damage("let a fenced broker lead", "fenced_member", "leads")
def lead_while_fenced(copy: Copy) -> None:
    """A broker is fenced, and becomes leader afterwards."""
    _name_fenced(copy, 3000, leads=True)


@damage("keep a fenced broker in the ISR", "fenced_member", "in sync")
def fenced_in_sync(copy: Copy) -> None:
    """A broker is fenced, and comes into the ISR afterwards."""
    _name_fenced(copy, 4000, leads=False)


def _name_fenced(copy: Copy, offset: int, *, leads: bool) -> None:
    """A stranger is registered and fenced; one version of a state names it; it returns."""
    _add_batch(copy, _CONTROLLERS[0], 90, 9)
    stranger, isr = max(brokers(copy)) + offset, brokers(copy)
    last = states(copy)[-1]
    presence = dict.fromkeys(last) | {"path": f"/brokers/ids/{stranger}"}
    epoch = last["leader_epoch"] + 1
    named = {"leader": stranger if leads else last["leader"], "isr": json.dumps([*isr, stranger])}
    right = {"leader": leader(copy), "isr": json.dumps(isr)}
    rows = [
        presence | {"version": 0},
        presence | {"version": -1},
        last | named | {"leader_epoch": epoch, "version": last["version"] + 1},
        last | right | {"leader_epoch": epoch + 1, "version": last["version"] + 2},
        presence | {"version": 1},
    ]
    for number, row in enumerate(rows, 1):
        moment = {"zxid": last["zxid"] + number, "at_ns": last["at_ns"] + number * _STEP_NS}
        copy.rows("states").append(row | moment)
