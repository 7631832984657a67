"""Property files to put to two brokers: every setting, every form of listeners, rules between
settings, and text that only java.util.Properties understands."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from urteil.broker.config.values import ConfigKey, known_keys

BASE = {"broker.id": "1", "zookeeper.connect": "zk:2181"}

_NUMBERS = (
    "", " 5 ", "-2", "-1", "0", "1", "2", "3", "9", "10", "1000", "1001", "32767", "32768",
    "2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807",
    "9223372036854775808", "1.5", "+5", "-0", "007", "0x10", "1_000", "1e3", "5L", "ten", "\\u0663",
)  # fmt: skip
_BY_TYPE: Mapping[str, tuple[str, ...]] = {
    "boolean": ("true", "FALSE", " True ", "", "yes", "1", "null"),
    "double": (
        "0", "-1", "1", "1.01", "0.5", ".5", "5.", "1e3", "1E400", "-0.0", "NaN", "Infinity",
        "-Infinity", "inf", "nan", "0.5d", "0.5f", "0x1p-1", "1,5", "", "x", "1_0", "1e",
    ),
    "list": ("", "a", "a,b", " a , b ", ",", "a,,b", "a,"),
    "string": ("", " ", "x", "a,b", "latest", "1", "3.9", "\\u00e9"),
    "class": ("", "no.such.Class", "java.lang.String", " x "),
    "password": ("", "x", " x ", "\\u00e9"),
}  # fmt: skip
_WORDS: Mapping[str, tuple[str, ...]] = {
    "compression.type": ("gzip", "GZIP", "none", "uncompressed", "producer", "zstd"),
    "group.consumer.migration.policy": ("disabled", "UPGRADE", "Bidirectional"),
    "group.coordinator.rebalance.protocols": (
        "classic", "consumer", "classic,consumer", "CLASSIC", "unknown", "classic,share",
    ),
    "inter.broker.protocol.version": (
        "0.8.0", "0.8", "0.8.3", "0.10.2", "0.11.0-IV0", "1.0", "2.8", "2.8.1", "2.8-IV1",
        "2.8-IV2", "3.9", "3.9.1", "3.9-IV0", "3.9-IV1", "3.9-IV0.x", "4.0", "4.0-IV1", "4.1", "3.",
        "3", "3.9.", "0.10",
    ),
    "log.cleanup.policy": ("compact", "delete", "compact,delete", "DELETE", "delete,"),
    "log.message.format.version": ("0.9", "0.9.0", "2.8", "3.9", "4.0", "5.0"),
    "log.message.timestamp.type": ("CreateTime", "LogAppendTime", "createtime"),
    "security.inter.broker.protocol": ("PLAINTEXT", "plaintext", "SSL", "SASL_PLAINTEXT", "TLS"),
    "ssl.client.auth": ("required", "Required", "none", "requested"),
    "controller.quorum.voters": (
        "1@h:9", "1@h", "h:9", "x@h:9", "1@h:9,2@i:9", "1@[::1]:9", "1@h:99999", "1@0.0.0.0:0",
        "1@h:9@x", "1@:9",
    ),
    "controller.quorum.bootstrap.servers": ("h:9", "h", ":9", "[::1]:9", "h:99999", "a://h:9"),
    "process.roles": ("broker", "controller", "broker,controller", "Broker"),
    "log.dirs": ("/a", "/a,/b", "/a, /b ,", ",", " ,/a"),
    "log.dir": ("/a", "/a,/b", ","),
    "zookeeper.connect": ("zk:2181,zk2:2181/chroot", "zk"),
    "max.connections.per.ip.overrides": (
        "h:1", "h:1,", ",h:1", ",", ",,", "h:1,i:2", "h", "h:x", "h:-1", "h:", ":1", "a b:1",
        "::1:5", "[::1]:5", "h : 1", "h:2147483648", "h:+1",
    ),
    "early.start.listeners": ("PLAINTEXT", "plaintext", "OTHER", " PLAINTEXT ,"),
    "control.plane.listener.name": ("PLAINTEXT", "CONTROLLER", "OTHER"),
    "controller.listener.names": ("CONTROLLER", "A,B"),
    "inter.broker.listener.name": ("PLAINTEXT", "plaintext", "SSL", "OTHER"),
    "authorizer.class.name": (
        "kafka.security.authorizer.AclAuthorizer",
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "no.such.Authorizer",
    ),
    "principal.builder.class": (
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    ),
}  # fmt: skip

_BY_NAME = "listeners", "advertised.listeners", "listener.security.protocol.map"
"""Settings that have a generator of their own."""


@dataclass(frozen=True, slots=True)
class PropertyFile:
    """What it is about, and its bytes."""

    about: str
    data: bytes


def property_file(
    about: str, properties: Mapping[str, str], *, over: Mapping[str, str] = BASE
) -> PropertyFile:
    """Values are written as they are, escapes and all; what is not ASCII as ISO 8859-1."""
    text = "".join(f"{name}={value}\n" for name, value in ({**over, **properties}).items())
    return PropertyFile(about, text.encode("latin-1"))


def every_setting() -> Iterator[PropertyFile]:
    """Each setting alone, with values of its type, at its bounds, and beyond them."""
    for name, key in known_keys().items():
        if name.startswith("urteil.") or name in _BY_NAME:
            continue
        for value in dict.fromkeys([*_values(key), *_bounds(key)]):
            yield property_file(f"{name}={value}", {name: value})


def _values(key: ConfigKey) -> tuple[str, ...]:
    usual = _BY_TYPE.get(key.type, _NUMBERS)
    return (*usual, *_WORDS.get(key.name, ()))


def _bounds(key: ConfigKey) -> Iterator[str]:
    """Around each number where the checks of the key change their mind."""
    if key.type not in ("int", "long", "short"):
        return
    for number in (*range(-3, 70), 100, 128, 999, 1000, 1001, 1023, 1024, 1025, 3000, 29999, 30000,
                   30001, 60000, 60001, 3600000, 3600001, 10000, 10001):  # fmt: skip
        here, below = (_is_valid(key, value) for value in (number, number - 1))
        if here != below:
            yield from map(str, (number - 1, number))


def _is_valid(key: ConfigKey, number: int) -> bool:
    return all(check(number) is None for check in key.checks)


_NAMES = ("PLAINTEXT", "plaintext", "SSL", "A", "B", "a-b", "A_1", "", "A B", "Ä", "A.B")
_HOSTS = (
    "", "h", "h.example.com", "0.0.0.0", "127.0.0.1", "[::1]", "::1", "[fe80::1%eth0]", "[::]",
    "1.2.3.4", "h_x", "h x", "*", "[h", "ü", "1.2.3", "localhost",
)  # fmt: skip
_PORTS = (
    "9092",
    "9092",
    "9093",
    "0",
    "0",
    "1",
    "65535",
    "65536",
    "-1",
    "",
    "x",
    "+1",
    "099",
    "99999999999",
)
_MAPS = (
    "A:PLAINTEXT,B:PLAINTEXT", "a:plaintext,b:SSL", "A:PLAINTEXT", "A:PLAINTEXT,A:SSL", "A:TLS",
    "A",
    "", ",", "A:", ":PLAINTEXT", "A:PLAINTEXT,", ",A:PLAINTEXT", " A : PLAINTEXT , B : SASL_SSL ",
    "A:B:PLAINTEXT", "PLAINTEXT:PLAINTEXT,SSL:SSL,A:SSL", "A:TRACE", "A-B:PLAINTEXT,A_1:PLAINTEXT",
)  # fmt: skip


def listeners(random_: random.Random, count: int) -> Iterator[PropertyFile]:
    """`listeners`, `advertised.listeners`, their map and the names that refer to them: most are
    nearly right, so that each rule is the one that decides."""
    for number in range(count):
        properties = {}
        chosen = random_.sample(_NAMES[:7], random_.choice((1, 1, 2, 2, 3)))
        if random_.random() < 0.85:
            protocols = ("PLAINTEXT", "PLAINTEXT", "plaintext", "SSL", "SASL_SSL")
            pairs = [f"{name}:{random_.choice(protocols)}" for name in chosen]
            usual = random_.random() < 0.85
            properties["listener.security.protocol.map"] = (
                ",".join(pairs) if usual else random_.choice(_MAPS)
            )
        if random_.random() < 0.95:
            properties["listeners"] = _listeners(random_, chosen)
        if random_.random() < 0.6:
            same = random_.random() < 0.2 and "listeners" in properties
            some = random_.sample(chosen, random_.randrange(1, len(chosen) + 1))
            properties["advertised.listeners"] = (
                properties["listeners"] if same else _listeners(random_, some)
            )
        for name, chance in (
            ("inter.broker.listener.name", 0.8),
            ("security.inter.broker.protocol", 0.05),
            ("control.plane.listener.name", 0.1),
            ("early.start.listeners", 0.05),
        ):
            if random_.random() < chance:
                usual = random_.random() < 0.8
                properties[name] = random_.choice(
                    chosen if usual else ("A", "B", "a", "PLAINTEXT", "SSL", "", "C")
                )
        yield property_file(f"listeners {number}: {properties}", properties)


def _listeners(random_: random.Random, names: Sequence[str]) -> str:
    listeners = []
    for number, name in enumerate(names):
        usual = random_.random() < 0.85
        host = random_.choice(_HOSTS[:8] if usual else _HOSTS)
        port = str(9092 + number) if random_.random() < 0.8 else random_.choice(_PORTS)
        listeners.append(f"{name if usual else random_.choice(_NAMES)}://{host}:{port}")
    if random_.random() < 0.1:
        odd = ("x", "A:9092", "A://h", "://h:1", "A//h:1", "A://h:1/", "")
        listeners.insert(random_.randrange(len(listeners) + 1), random_.choice(odd))
    return random_.choice((",", ",", " , ", ",,")).join(listeners)


_RELATED: Mapping[str, tuple[str, ...]] = {
    "broker.id": ("0", "1", "1000", "1001", "-1", "-2", "5000"),
    "node.id": ("0", "1", "1000", "1001", "-1"),
    "broker.id.generation.enable": ("true", "false"),
    "reserved.broker.max.id": ("0", "1", "5000", "1000"),
    "log.roll.hours": ("1", "0", "168"),
    "log.roll.ms": ("0", "1", "-1"),
    "log.roll.jitter.ms": ("-1", "0"),
    "log.retention.hours": ("0", "-1", "1", "-5"),
    "log.retention.minutes": ("0", "-1", "1"),
    "log.retention.ms": ("0", "-1", "1", "-5"),
    "log.flush.interval.ms": ("-1", "0"),
    "log.flush.scheduler.interval.ms": ("-1", "0"),
    "log.cleaner.threads": ("0", "1", "127", "128", "2000"),
    "log.cleaner.dedupe.buffer.size": ("1048576", "1048577", "134217728", "-1", "2097152"),
    "replica.fetch.wait.max.ms": ("500", "30000", "30001", "-1", "0"),
    "replica.socket.timeout.ms": ("500", "499", "30000", "0"),
    "replica.lag.time.max.ms": ("500", "499", "30000", "0"),
    "queued.max.request.bytes": ("-1", "0", "1", "104857599", "104857600"),
    "socket.request.max.bytes": ("1", "104857600"),
    "max.connections.per.ip": ("0", "1"),
    "max.connections.per.ip.overrides": ("h:1", "", "a b:1", "h:x"),
    "connections.max.idle.ms": ("-1", "0", "100", "101", "600000"),
    "connection.failed.authentication.delay.ms": ("0", "100", "600000"),
    "offsets.commit.required.acks": ("-2", "-1", "3", "4", "1"),
    "offsets.topic.replication.factor": ("1", "3", "0"),
    "offsets.topic.compression.codec": ("0", "4", "5", "-1"),
    "inter.broker.protocol.version": ("0.9.0", "0.10.0", "0.11.0", "2.8", "3.0-IV0", "3.0"),
    "log.message.format.version": ("0.9.0", "0.10.0", "0.11.0", "3.0"),
    **{
        f"group.{kind}.{which}{what}.ms": ("1", "5000", "15000", "45000", "60000", "70000")
        for kind in ("consumer", "share")
        for which in ("", "min.", "max.")
        for what in ("heartbeat.interval", "session.timeout")
    },
    **{
        f"group.share.{which}record.lock.duration.ms": ("1000", "15000", "30000", "60000")
        for which in ("", "min.", "max.")
    },
    "log.dirs": ("", "/a", ","),
    "log.dir": ("", "/a"),
    "zookeeper.metadata.migration.enable": ("true", "false"),
}


def related_settings(random_: random.Random, count: int) -> Iterator[PropertyFile]:
    """A few settings at once that rules bind to each other."""
    names = list(_RELATED)
    groups = [[name for name in names if name.startswith(first)] for first in
              ("broker.id", "node.id", "reserved", "log.ro", "log.re", "log.f", "log.c", "replica.",
               "queued", "socket", "max.", "connection", "offsets", "group.share", "group.consumer",
               "inter", "log.m", "log.d")]  # fmt: skip
    near = [
        groups[0] + groups[1] + groups[2], groups[3] + groups[4], groups[5], groups[6], groups[7],
        groups[8] + groups[9], groups[10], groups[11], groups[12], groups[13], groups[14],
        groups[15] + groups[16], groups[17],
    ]  # fmt: skip
    for number in range(count):
        some = random_.choice(near)
        chosen = random_.sample(some, min(len(some), random_.choice((1, 2, 2, 3))))
        if random_.random() < 0.2:
            chosen.append(random_.choice(names))
        properties = {name: random_.choice(_RELATED[name]) for name in chosen}
        over = dict(BASE)
        if random_.random() < 0.2:
            over.pop(random_.choice(list(BASE)))
        yield property_file(f"related {number}: {properties}", properties, over=over)


_TOKENS = (
    b"a", b"b", b"broker.id", b"=", b"=", b":", b" ", b"\t", b"\f", b"\\", b"\\", b"\\\\", b"\n",
    b"\n", b"\r", b"\r\n", b"\r\n", b"#", b"!", b"\\n", b"\\t", b"\\u0041", b"\\u00e9",
    b"\\ud83d\\ude00", b"\\u12", b"\\uzzzz", b"\\x", b"\\=", b"\\:", b"\\ ", b"\xe4", b"\xc3\xa4",
    b"\xb0\xa1", b"\x00", b"\x85", b"\xa0", b"\x0b", b"\x1c", b"\xe2\x80\xa8", b"1", b"x",
)  # fmt: skip
_STARTS = (b"", b"", b"", b"\xef\xbb\xbf", b"\xff\xfe", b"# \xb0\xa1 comment\n", b"#\xe4\n")


def texts(random_: random.Random, count: int) -> Iterator[PropertyFile]:
    """Bytes that only the format's own reader makes sense of."""
    for number in range(count):
        body = b"".join(random_.choices(_TOKENS, k=random_.randrange(1, 30)))
        yield PropertyFile(f"text {number}", random_.choice(_STARTS) + body)


_VARIABLES = (
    "${env:URTEIL_X}", "${env:URTEIL_EMPTY}", "${env:NONE}", "${env:p:URTEIL_X}",
    "a${env:URTEIL_X}b",
    "${env:URTEIL_X}${env:URTEIL_X}", "${none:URTEIL_X}", "$${env:URTEIL_X}", "${env:URTEIL_X",
    "${env:URTEIL_NESTED}", "${file:DIR/secrets.properties:key}",
    "${file:DIR/secrets.properties:no}",
    "${file:DIR/missing:key}", "${file::key}", "${file:key}", "${file:DIR/latin1.properties:key}",
    "${directory:DIR/secrets:one}", "${directory:DIR/secrets:no}", "${directory:DIR/none:one}",
    "${directory:DIR/secrets:../secrets.properties}", "${directory:DIR/secrets:sub}", "${env:}",
    "${file:DIR/../NAME/secrets.properties:key}", "${env:URTEIL_X:}", "${:URTEIL_X}",
    "${file:DIR/escaped.properties:key}", "${directory:DIR/secrets.properties:one}",
)  # fmt: skip
_PROVIDERS = (
    "env",
    "file",
    "directory",
    "env,file,directory",
    "env, file",
    "",
    "other",
    "env,,file",
)
_CLASS = "org.apache.kafka.common.config.provider."
_CLASSES = {
    "env": (f"{_CLASS}EnvVarConfigProvider", "no.such.Provider"),
    "file": (
        f"{_CLASS}FileConfigProvider",
        f"{_CLASS}EnvVarConfigProvider",
        f"{_CLASS}FileConfigProvider ",
    ),
    "directory": (f"{_CLASS}DirectoryConfigProvider", "java.lang.String"),
}
_PARAMS = {
    "env.param.allowlist.pattern": ("URTEIL_.*", "URTEIL", "(", ".*X", ""),
    "file.param.allowed.paths": ("DIR", "DIR/secrets", "relative", "/no/such", "", "DIR,/tmp"),
    "directory.param.allowed.paths": ("DIR/secrets", "DIR/none", "DIR/../NAME/secrets", "DIR "),
}  # fmt: skip
_USES = (
    "broker.rack", "num.partitions", "ssl.keystore.password", "listeners", "broker.id", "log.dirs",
    "unknown.property", "listener.name.a.ssl.key.password",
)  # fmt: skip


def variables(random_: random.Random, count: int, folder: str, name: str) -> Iterator[PropertyFile]:
    """Files that name providers; `folder` has what they read, and is called `name`."""
    for number in range(count):
        properties = {}
        if random_.random() < 0.9:
            properties["config.providers"] = (
                "env,file,directory" if random_.random() < 0.7 else random_.choice(_PROVIDERS)
            )
        for provider, classes in _CLASSES.items():
            if random_.random() < 0.95:
                usual = random_.random() < 0.9
                properties[f"config.providers.{provider}.class"] = (
                    classes[0] if usual else random_.choice(classes)
                )
        for param, choices in _PARAMS.items():
            if random_.random() < 0.3:
                properties[f"config.providers.{param}"] = random_.choice(choices)
        for use in random_.sample(_USES, random_.choice((1, 1, 2))):
            properties[use] = random_.choice(_VARIABLES)
        replaced = {
            key: re.sub("NAME", name, value.replace("DIR", folder))
            for key, value in properties.items()
        }
        yield property_file(f"variables {number}: {properties}", replaced)
