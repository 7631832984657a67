"""Plain writes, which say what stands and may therefore be done again."""

from __future__ import annotations

from urteil.broker.zookeeper.session import LOST, NodeExistsError, NoNodeError, Session


async def put(zk: Session, path: str, data: bytes) -> None:
    """Write a node whatever its version, made if it is not there, after a lost connection again."""
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
