"""Unconditional writes: they store a state in full, so they may be repeated."""

from __future__ import annotations

from urteil.broker.zookeeper.session import LOST, NodeExistsError, NoNodeError, Session


async def put(zk: Session, path: str, data: bytes) -> None:
    """Write a node of any version, or create it; again after a lost connection."""
    there = True
    while True:
        try:
            if there:
                await zk.set(path, data)
            else:
                await zk.create(path, data, make_parents=True)
            return
        except NoNodeError:
            there = False
        except NodeExistsError:
            there = True
        except LOST:
            continue
