"""A cluster with a listener of each protocol and TLS between brokers."""

from __future__ import annotations

from pathlib import Path

from tests.broker.nodes import Nodes
from tests.broker.security.tls.certificates import LOCAL, pem_file
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.ports import free_port
from urteil.broker.security.sasl.scram import HASHES, credential
from urteil.broker.zookeeper.znodes import encode_config
from urteil.harness.cluster.certificates import Authority

CLIENT_RULES = "RULE:^CN=([a-z]+),OU=people$/$1/,DEFAULT"


class SecureNodes(Nodes):
    """`listeners` are names with their protocols; `addresses` has a port for each, by broker.

    Certificates and trust are PEM files in `folder`, those of brokers signed by `authority`.
    """

    def __init__(
        self,
        folder: Path,
        zookeeper: ZooKeeperServer,
        chroot: str,
        count: int,
        listeners: dict[str, str],
        inter_broker: str,
        **config: str,
    ) -> None:
        super().__init__(folder, zookeeper, chroot, count, **config)
        self.folder = folder
        self.authority = Authority()
        self.trust = pem_file(folder / "trust.pem", self.authority.pem)
        self._protocols = listeners
        self._inter_broker = inter_broker
        self.addresses = {
            broker: {name: free_port() for name in listeners} for broker in range(1, count + 1)
        }
        self.users: dict[str, str] = {}
        for broker in self.addresses:
            self.renew(broker)

    def __enter__(self) -> SecureNodes:
        """Brokers' credentials are in ZooKeeper before the first broker starts."""
        self.zk.start(timeout=60)
        for user, password in self.users.items():
            known = {name: credential(name, password).text() for name in HASHES}
            self.zk.create(f"/config/users/{user}", encode_config(known), makepath=True)
        self.zk.stop()
        super().__enter__()
        return self

    def renew(self, broker: int) -> None:
        """Replace a broker's certificate file."""
        issued = self.authority.issue(f"broker-{broker}", hosts=LOCAL)
        pem_file(self._identity(broker), issued.key_pem(), issued.pem)

    def _identity(self, broker: int) -> Path:
        return self.folder / f"broker-{broker}.pem"

    def address(self, broker: int, listener: str) -> str:
        return f"127.0.0.1:{self.addresses[broker][listener]}"

    def properties(self, broker: int) -> dict[str, str]:
        ports = self.addresses[broker]
        return super().properties(broker) | {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            "listener.security.protocol.map": ",".join(map(":".join, self._protocols.items())),
            "inter.broker.listener.name": self._inter_broker,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._identity(broker)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.trust,
            "ssl.principal.mapping.rules": CLIENT_RULES,
        }
