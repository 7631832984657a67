"""A Kerberos realm for tests: MIT's KDC from Debian's packages, on a loopback port."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

from tests.ports import free_port
from tests.waiting import until
from urteil.harness.dependencies.installation import MissingDependency, apt_install, can_apt

REALM = "URTEIL.TEST"
PACKAGES = {
    "krb5kdc": "krb5-kdc",
    "kadmin.local": "krb5-admin-server",
    "kinit": "krb5-user",
    "kcat": "kcat",
}
GSSAPI_OF_SASL = "libsasl2-modules-gssapi-mit"
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))


def program(name: str) -> str:
    """Return the path of one of MIT's programs, or kcat; install its package if necessary and
    possible."""
    package = PACKAGES[name]
    how = f"install it, on Debian by `apt-get install {package}`"
    if shutil.which(name, path=_PATH) is None and can_apt():
        apt_install(name, package, how=how)
    path = shutil.which(name, path=_PATH)
    if path is None:
        raise MissingDependency(name, how)
    return path


def kcat() -> str:
    """Return Debian's kcat, whose librdkafka has GSSAPI by libsasl2 and its plugin."""
    plugins = Path("/usr/lib").glob("*/sasl2/libgssapiv2.so*")
    if not any(plugins) and can_apt():
        how = f"install it, on Debian by `apt-get install {GSSAPI_OF_SASL}`"
        apt_install(GSSAPI_OF_SASL, GSSAPI_OF_SASL, how=how)
    return program("kcat")


class Kdc:
    """Serves `REALM` from `folder` until closed. `env` makes a process its client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._port = free_port()
        self.config = folder / "krb5.conf"
        self.config.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n"
            " dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n"
            f" default_ccache_name = FILE:{folder}/ccache\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self._port}\n }}\n"
        )
        (folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self._port}\n"
            f" kdc_tcp_listen = 127.0.0.1:{self._port}\n[realms]\n {REALM} = {{\n"
            f"  database_name = {folder}/principal\n  key_stash_file = {folder}/stash\n"
            f"  acl_file = {folder}/acl\n }}\n[logging]\n kdc = FILE:{folder}/kdc.log\n"
        )
        self.env = {"KRB5_CONFIG": str(self.config), "KRB5RCACHEDIR": str(folder)}
        self._run(program("krb5kdc").replace("krb5kdc", "kdb5_util"),
                  "create", "-s", "-r", REALM, "-P", "master")  # fmt: skip
        self._process = subprocess.Popen(
            [program("krb5kdc"), "-n", "-r", REALM],
            env=self._own_env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until(self._serves, "the KDC")

    def _own_env(self) -> dict[str, str]:
        profile = {"KRB5_KDC_PROFILE": str(self.folder / "kdc.conf")}
        return {**os.environ, "PATH": _PATH, **self.env, **profile}

    def _serves(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def _run(self, *argv: str) -> str:
        done = subprocess.run(
            argv, env=self._own_env(), capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def keytab(self, *names: str) -> Path:
        """Write a keytab with new keys of new principals, `alice` or `kafka/host`."""
        path = self.folder / f"{names[0].replace('/', '-')}.keytab"
        for name in names:
            self._run(program("kadmin.local"), "-r", REALM, "addprinc", "-randkey", name)
            self._run(program("kadmin.local"), "-r", REALM, "ktadd", "-k", str(path), name)
        return path

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(10)
