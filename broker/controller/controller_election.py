"""Election of the controller: the ephemeral `/controller`, and `/controller_epoch` raised with it.

Source: `KafkaZkClient.registerControllerAndIncrementControllerEpoch`, `KafkaController.elect`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.session import (
    LOST,
    Check,
    Create,
    Delete,
    MultiFailed,
    NodeExistsError,
    NoNodeError,
    Session,
    Set,
    Stat,
)
from urteil.broker.zookeeper.session_types import Op

log = logging.getLogger("controller")


@dataclass(frozen=True, slots=True)
class ElectedEpoch:
    """The epoch of an election that this broker won, and the version of the epoch's znode."""

    epoch: int
    epoch_version: int


class ControllerElection:
    """Stands for controller in the name of one broker and its current session."""

    def __init__(
        self,
        zk: Session,
        broker_id: int,
        now_ms: Callable[[], int],
        on_change: Callable[[str], None],
    ) -> None:
        """`on_change` is called when `/controller` is created, changed or deleted."""
        self._zk = zk
        self._broker_id = broker_id
        self._now_ms = now_ms
        self._on_change = on_change
        self._tried_epoch = -1

    async def stand(self) -> ElectedEpoch | None:
        """The epoch that this broker won; None while another broker is controller.

        Watches `/controller` in either case.
        """
        while True:
            holder = await self._holder()
            if holder is None:
                await self._try()
                continue
            broker_id, stat = holder
            if stat.ephemeral_owner == self._zk.session_id:
                won = await self._epoch()
                if won.epoch == self._tried_epoch:
                    return won
            elif broker_id != self._broker_id:
                return None
            # The node is an earlier session's, or of an epoch that this broker did not win.
            await self._remove(stat)

    async def still_won(self, won: ElectedEpoch) -> bool:
        """Whether this session still holds the newest epoch. Watches `/controller` again."""
        holder = await self._holder()
        mine = holder is not None and holder[1].ephemeral_owner == self._zk.session_id
        return mine and await self._epoch() == won

    async def resign(self) -> None:
        """Delete `/controller`, so that the brokers (this one included) hold a new election."""
        holder = await self._holder()
        if holder is not None and holder[1].ephemeral_owner == self._zk.session_id:
            await self._remove(holder[1])

    async def _holder(self) -> tuple[int, Stat] | None:
        while True:
            try:
                data, stat = await self._zk.get(znodes.CONTROLLER, self._on_change)
            except NoNodeError:
                if await self._zk.exists(znodes.CONTROLLER, self._on_change) is None:
                    return None
                continue
            return znodes.decode_controller(data), stat

    async def _epoch(self) -> ElectedEpoch:
        data, stat = await self._zk.get(znodes.CONTROLLER_EPOCH)
        return ElectedEpoch(int(data), stat.version)

    async def _try(self) -> None:
        """Try once to become controller; the caller reads the result from ZooKeeper."""
        try:
            now = await self._epoch()
        except NoNodeError:
            await self._first_epoch()
            return
        self._tried_epoch = now.epoch + 1
        me = znodes.encode_controller(self._broker_id, self._now_ms())
        ops: list[Op] = [
            Create(znodes.CONTROLLER, me, ephemeral=True),
            Set(znodes.CONTROLLER_EPOCH, str(self._tried_epoch).encode(), now.epoch_version),
        ]
        try:
            await self._zk.multi(ops)
        except (MultiFailed, *LOST) as why:
            log.info("not elected: %s", why)

    async def _first_epoch(self) -> None:
        try:
            await self._zk.create(znodes.CONTROLLER_EPOCH, b"0")
        except (NodeExistsError, *LOST) as why:
            log.info("%s: %r", znodes.CONTROLLER_EPOCH, why)

    async def _remove(self, stat: Stat) -> None:
        """Delete `/controller` of one session, unless a newer election was won meanwhile."""
        epoch = await self._epoch()
        holder = await self._holder()
        if holder is None or holder[1].ephemeral_owner != stat.ephemeral_owner:
            return
        try:
            await self._zk.multi(
                [
                    Check(znodes.CONTROLLER_EPOCH, epoch.epoch_version),
                    Delete(znodes.CONTROLLER, holder[1].version),
                ]
            )
        except (MultiFailed, *LOST) as why:
            log.info("%s was not deleted: %r", znodes.CONTROLLER, why)
