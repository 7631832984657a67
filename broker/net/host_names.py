"""Resolution of host names, by the broker's own hosts file if it has one."""

from __future__ import annotations

from pathlib import Path


class Resolver:
    """Resolves names by `urteil.hosts.file`, or by the system without one.

    Like a JVM with `jdk.net.hosts.file`, a broker with such a file resolves no other names. Literal
    addresses are returned as they are. Raises OSError for a name that the file lacks.
    """

    def __init__(self, hosts_file: str | None = None) -> None:
        self._names = None if not hosts_file else parse_hosts(Path(hosts_file).read_text("utf-8"))

    def resolve(self, host: str) -> str:
        if self._names is None or _is_address(host):
            return host
        name = self._names.get(host.lower())
        if name is None:
            raise OSError(f"{host}: not in the hosts file")
        return name


def parse_hosts(text: str) -> dict[str, str]:
    """Parse lines `address name...` with # comments; the first line with a name wins."""
    names: dict[str, str] = {}
    for line in text.splitlines():
        fields = line.split("#", 1)[0].split()
        for name in fields[1:]:
            names.setdefault(name.lower(), fields[0])
    return names


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()
