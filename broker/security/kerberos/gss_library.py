"""MIT Kerberos' GSS-API (RFC 2743, RFC 2744) by ctypes: the part that a broker needs as acceptor of
clients and as initiator to other brokers."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from functools import cache
from typing import Any

GSS, KRB5 = "libgssapi_krb5.so.2", "libkrb5.so.3"
MISSING = (
    f"GSSAPI needs MIT Kerberos' library {GSS}, which is not there: install it, on Debian by "
    "`apt-get install libgssapi-krb5-2`"
)
COMPLETE, CONTINUE = 0, 1
_INITIATE, _ACCEPT = 1, 2
_MUTUAL_WITH_INTEGRITY = 2 | 32
_ERRORS = 0xFFFF0000
_GSS_CODE, _MECH_CODE = 1, 2
_KERBEROS = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"  # 1.2.840.113554.1.2.2
_PRINCIPAL_NAME = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01"  # 1.2.840.113554.1.2.2.1
_SERVICE_NAME = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04"  # 1.2.840.113554.1.2.1.4


class GssError(Exception):
    """An error of the library."""


class _Buffer(ctypes.Structure):
    _fields_ = (("length", c_size_t), ("value", c_void_p))

    @classmethod
    def from_bytes(cls, data: bytes) -> _Buffer:
        return cls(len(data), ctypes.cast(c_char_p(data), c_void_p))


class _Oid(ctypes.Structure):
    _fields_ = (("length", c_uint32), ("elements", c_void_p))


class _OidSet(ctypes.Structure):
    _fields_ = (("count", c_size_t), ("elements", POINTER(_Oid)))


class _Pair(ctypes.Structure):
    _fields_ = (("key", c_char_p), ("value", c_char_p))


class _Pairs(ctypes.Structure):
    _fields_ = (("count", c_uint32), ("elements", POINTER(_Pair)))


@cache
def _gss() -> Any:
    """Load the library. Raises GssError that names the package to install."""
    try:
        return ctypes.CDLL(GSS)
    except OSError:
        raise GssError(MISSING) from None


def _call(name: str, *args: Any) -> int:
    """Call a function; return the major status without supplementary bits. Raises GssError."""
    minor = c_uint32()
    major = c_uint32(getattr(_gss(), name)(byref(minor), *args)).value
    if major & _ERRORS:
        why = f"{_status_text(major, _GSS_CODE)}: {_status_text(minor.value, _MECH_CODE)}"
        raise GssError(f"{name}: {why}")
    return major & 1


def _status_text(status: int, kind: int) -> str:
    minor, more, text = c_uint32(), c_uint32(), _Buffer()
    _gss().gss_display_status(byref(minor), c_uint32(status), kind, None, byref(more), byref(text))
    return _copy_and_release(text).decode("utf-8", "replace")


def _copy_and_release(buffer: _Buffer) -> bytes:
    data = ctypes.string_at(buffer.value, buffer.length) if buffer.length else b""
    minor = c_uint32()
    _gss().gss_release_buffer(byref(minor), byref(buffer))
    return data


def _oid(encoded: bytes) -> _Oid:
    return _Oid(len(encoded), ctypes.cast(c_char_p(encoded), c_void_p))


def _import_name(text: str, kind: bytes) -> c_void_p:
    """Import a name; the caller releases it."""
    input_token, oid, name = _Buffer.from_bytes(text.encode()), _oid(kind), c_void_p()
    _call("gss_import_name", byref(input_token), byref(oid), byref(name))
    return name


class Credentials:
    """Credentials of a principal by its keytab, for the mechanism Kerberos alone (no SPNEGO)."""

    def __init__(self, principal: str, keytab: str, *, initiates: bool = False) -> None:
        """Credentials of an acceptor, or of an initiator if it `initiates`: its tickets are fetched
        from the realm, which may take seconds, and kept in memory. Raises GssError."""
        kerberos = _oid(_KERBEROS)
        mechanisms = _OidSet(1, ctypes.pointer(kerberos))
        values = {b"keytab": f"FILE:{keytab}"}
        if initiates:
            values = {b"client_keytab": f"FILE:{keytab}", b"ccache": f"MEMORY:{principal}"}
        pairs = (_Pair * len(values))(*(_Pair(key, text.encode()) for key, text in values.items()))
        store = _Pairs(len(values), pairs)
        usage = c_int(_INITIATE if initiates else _ACCEPT)
        self.handle = c_void_p()
        name = _import_name(principal, _PRINCIPAL_NAME)
        try:
            _call(
                "gss_acquire_cred_from", name, c_uint32(0), byref(mechanisms), usage,
                byref(store), byref(self.handle), None, None,
            )  # fmt: skip
        finally:
            _call("gss_release_name", byref(name))

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            _call("gss_release_cred", byref(self.handle))


class _Context:
    """A security context, of either side."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._context = c_void_p()

    def wrap(self, message: bytes) -> bytes:
        input_token, wrapped = _Buffer.from_bytes(message), _Buffer()
        _call(
            "gss_wrap",
            self._context,
            c_int(0),
            c_uint32(0),
            byref(input_token),
            None,
            byref(wrapped),
        )
        return _copy_and_release(wrapped)

    def unwrap(self, message: bytes) -> bytes:
        input_token, plain = _Buffer.from_bytes(message), _Buffer()
        _call("gss_unwrap", self._context, byref(input_token), byref(plain), None, None)
        return _copy_and_release(plain)

    def __del__(self) -> None:
        if getattr(self, "_context", None):
            _call("gss_delete_sec_context", byref(self._context), None)


class Acceptor(_Context):
    """The server side of one client's context."""

    initiator: str | None = None
    """The client's principal, once it is known."""

    def step(self, token: bytes) -> bytes:
        """Answer a token; the last one sets `initiator`. Raises GssError."""
        input_token, output_token, source = _Buffer.from_bytes(token), _Buffer(), c_void_p()
        try:
            status = _call(
                "gss_accept_sec_context", byref(self._context), self._credentials.handle,
                byref(input_token), None, byref(source), None, byref(output_token),
                None, None, None,
            )  # fmt: skip
            if status == COMPLETE:
                self.initiator = _display_name(source)
        finally:
            answer = _copy_and_release(output_token)
            if source:
                _call("gss_release_name", byref(source))
        return answer


class Initiator(_Context):
    """The client side; the server must prove its identity too."""

    is_complete = False

    def __init__(self, credentials: Credentials, service: str, host: str) -> None:
        """Raises GssError."""
        super().__init__(credentials)
        self._target = _import_name(f"{service}@{host}", _SERVICE_NAME)

    def step(self, token: bytes) -> bytes:
        """Answer a token; the last one sets `is_complete`. Raises GssError."""
        input_token, output_token, kerberos = _Buffer.from_bytes(token), _Buffer(), _oid(_KERBEROS)
        try:
            status = _call(
                "gss_init_sec_context", self._credentials.handle, byref(self._context),
                self._target, byref(kerberos), c_uint32(_MUTUAL_WITH_INTEGRITY), c_uint32(0), None,
                byref(input_token), None, byref(output_token), None, None,
            )  # fmt: skip
            self.is_complete = status == COMPLETE
        finally:
            answer = _copy_and_release(output_token)
        return answer

    def __del__(self) -> None:
        super().__del__()
        if getattr(self, "_target", None):
            _call("gss_release_name", byref(self._target))


def _display_name(name: c_void_p) -> str:
    text = _Buffer()
    _call("gss_display_name", name, byref(text), None)
    return _copy_and_release(text).decode()


def default_realm() -> str:
    """Return the default realm of `krb5.conf`; empty without one."""
    krb5: Any = ctypes.CDLL(KRB5)
    context, realm = c_void_p(), c_char_p()
    if krb5.krb5_init_context(byref(context)):
        return ""
    try:
        if krb5.krb5_get_default_realm(context, byref(realm)):
            return ""
        realm_name = (realm.value or b"").decode()
        krb5.krb5_free_default_realm(context, realm)
        return realm_name
    finally:
        krb5.krb5_free_context(context)
