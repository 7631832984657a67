from tests.broker.zookeeper.conftest import chroot, zookeeper

__all__ = ["chroot", "zookeeper"]
