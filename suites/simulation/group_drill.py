"""A drill of a group that no fault disturbs: clients that are no members of its generation commit,
a static member dies and returns within its session, one member leaves, and one dies."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable

from urteil.suites.simulation.copiers import LateCopier
from urteil.suites.simulation.groups import SESSION_MS, Member, Rejoin
from urteil.suites.simulation.history import Departure, History, StaticReturn
from urteil.suites.simulation.loop import SimulatedLoop
from urteil.suites.simulation.waiting import holds_within

BEAT_S = 0.3
SETTLES_S = 2 * SESSION_MS / 1000
"""For the last members of the load to time out, and a rebalance."""
LEFT_S = SESSION_MS / 2000
"""A coordinator that ignored the leave would wait for a session's timeout."""
REBALANCE_S = 2.0
"""How long a rebalance of members takes at most that all send heartbeats every `BEAT_S`."""
RETURN_S = 1.0
SLACK_S = 0.5
INSTANCE = "drilled"


class Drilled(Member):
    """A member that only sends heartbeats and joins again, until it leaves or dies."""

    @property
    def partitions(self) -> tuple[int, ...]:
        return tuple(self._assigned)

    @property
    def generation(self) -> int:
        return self._generation

    @property
    def member_id(self) -> str:
        return self._member_id

    def begin(self, topic: str, partitions: int) -> None:
        self.is_stable = False
        self._living = self.host.create_task(self._live(topic, partitions))

    def die(self) -> None:
        """Send nothing any more."""
        self.is_stable = False
        self._living.cancel()

    async def leave(self) -> None:
        """Raises Rejoin without an answer."""
        self.die()
        await self.host.create_task(self._leave())

    async def _live(self, topic: str, partitions: int) -> None:
        while True:
            try:
                await self._join(topic, partitions)
                self.is_stable = True
                while True:
                    await asyncio.sleep(BEAT_S)
                    self._check(await self._beat())
            except Rejoin:
                self.is_stable = False
                await self.back_off()


class GroupDrill:
    """Members of the load's group, after the load."""

    def __init__(
        self,
        loop: SimulatedLoop,
        history: History,
        rng: random.Random,
        topic: str,
        partitions: int,
    ) -> None:
        self._loop, self._history, self._rng = loop, history, rng
        self._topic, self._partitions = topic, partitions
        self._members: list[Drilled] = []
        self._count = 0

    async def play(self) -> str:
        """Each act begins when the group is stable. Returns what kept the drill from its end; empty
        when all acts were played."""
        try:
            await self._pass_by()
            for instance in (INSTANCE, None, None):
                self._add(instance)
            for act in (
                self._intrude,
                self._return,
                self._leave,
                self._commit_late,
                self._die,
            ):
                if not await self._is_stable():
                    return (
                        f"the group of {', '.join(member.name for member in self._members)} is not "
                        f"stable at {self._loop.time():.3f} s, though no fault disturbs it"
                    )
                try:
                    await act()
                except Rejoin:
                    return f"a LeaveGroup has no answer at {self._loop.time():.3f} s"
            return ""
        finally:
            for member in self._members:
                member.die()

    async def _pass_by(self) -> None:
        """A client gets a member id, and does not join with it. Rebalances wait for that client for
        a session's timeout."""
        passer = Member(self._loop, "passer", self._history, self._rng.getrandbits(64))
        with contextlib.suppress(Rejoin):
            await passer.host.create_task(passer.request_member_id())
        await asyncio.sleep(SESSION_MS / 1000 + SLACK_S)

    async def _intrude(self) -> None:
        """A client without a generation commits an offset of the group. Before and after, the
        members request their assignments."""
        stranger = Member(self._loop, "stranger", self._history, self._rng.getrandbits(64))
        await self._sync_again()
        await stranger.host.create_task(stranger.commit_without_membership(self._topic))
        await self._sync_again()

    async def _sync_again(self) -> None:
        for member in self._members:
            with contextlib.suppress(Rejoin):
                await member.host.create_task(member.sync_again(self._topic))

    async def _commit_late(self) -> None:
        """A transaction commits an offset in the generation before the last rebalance."""
        copier = LateCopier(
            self._loop, "late", self._history, self._rng.getrandbits(64), transactional_id="late"
        )
        member = self._members[-1]
        committing = copier.commit_as(member.member_id, member.generation - 1, self._topic)
        await copier.host.create_task(committing)

    def _add(self, instance: str | None) -> Drilled:
        member = Drilled(
            self._loop, f"d{self._count}", self._history, self._rng.getrandbits(64),
            instance=instance,
        )  # fmt: skip
        self._count += 1
        self._members.append(member)
        member.begin(self._topic, self._partitions)
        return member

    async def _is_stable(self) -> bool:
        """Once all members are in one generation, and all partitions are assigned."""
        return await self._holds_in_time(
            lambda: (
                all(member.is_stable for member in self._members)
                and len({member.generation for member in self._members}) == 1
                and self._assigned() == set(range(self._partitions))
            )
        )

    def _assigned(self) -> set[int]:
        return {partition for member in self._members for partition in member.partitions}

    async def _holds_in_time(self, condition: Callable[[], bool]) -> bool:
        return await holds_within(condition, SETTLES_S + REBALANCE_S, poll_s=0.1)

    async def _return(self) -> None:
        static = self._members.pop(0)
        before, died_s = static.generation, self._loop.time()
        static.die()
        await asyncio.sleep(RETURN_S)
        successor = self._add(INSTANCE)
        if await self._holds_in_time(lambda: successor.is_stable):
            self._history.returns.append(
                StaticReturn(
                    successor.name, died_s, self._loop.time(), before, successor.generation
                )
            )

    async def _leave(self) -> None:
        member = self._members.pop(0)
        partitions, at_s = member.partitions, self._loop.time()
        await member.leave()
        self._depart(member, partitions, at_s, LEFT_S, has_died=False)
        await asyncio.sleep(LEFT_S)
        self._add(None)

    async def _die(self) -> None:
        member = self._members.pop(0)
        partitions, at_s = member.partitions, self._loop.time()
        member.die()
        lasts_s = SESSION_MS / 1000 + REBALANCE_S
        self._depart(member, partitions, at_s, lasts_s, has_died=True)
        await asyncio.sleep(lasts_s)

    def _depart(
        self,
        member: Drilled,
        partitions: tuple[int, ...],
        at_s: float,
        within_s: float,
        *,
        has_died: bool,
    ) -> None:
        self._history.departures.append(
            Departure(member.name, has_died, partitions, at_s, at_s + within_s)
        )
