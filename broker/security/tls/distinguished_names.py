"""Distinguished names of certificates in Java's spelling, which ACLs and mapping rules expect."""

from __future__ import annotations

from urteil.broker.security.tls import der

_KEYWORDS = {
    "2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET",
    "2.5.4.10": "O", "2.5.4.11": "OU", "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}  # fmt: skip
_ENCODINGS = {
    0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}  # fmt: skip
_ESCAPED = ',=+<>#;"\\'


def rfc2253(name: bytes) -> str:
    """Format a DER `Name` as `CN=alice,O=acme,C=DE` (`X500Principal.getName()`, RFC 2253).

    Attributes without a keyword are written `1.2.840.113549.1.9.1=#1605...`. Raises ValueError for
    a malformed name.
    """
    contents = [content for _, content in der.values(der.content_of(name, der.SEQUENCE))]
    return ",".join(map(_relative, reversed(contents)))


def _relative(attributes: bytes) -> str:
    return "+".join(_attribute(content) for _, content in der.values(attributes))


def _attribute(content: bytes) -> str:
    _, identifier, at = der.read(content)
    value = content[at:]
    oid = der.object_identifier(identifier)
    tag, text, _ = der.read(value)
    if oid in _KEYWORDS and tag in _ENCODINGS:
        return f"{_KEYWORDS[oid]}={_escape(text.decode(_ENCODINGS[tag]))}"
    return f"{_KEYWORDS.get(oid, oid)}=#{value.hex()}"


def _escape(text: str) -> str:
    escaped = "".join(
        "\\" + character if character in _ESCAPED else character for character in text
    )
    escaped = escaped.replace("\0", "\\00")
    inner = escaped.strip(" \r")
    if not inner:
        return "".join("\\" + character for character in escaped)
    before = escaped[: len(escaped) - len(escaped.lstrip(" \r"))]
    after = escaped[len(escaped.rstrip(" \r")) :]
    return (
        "".join("\\" + character for character in before)
        + inner
        + "".join("\\" + character for character in after)
    )
