"""Access to the web view: read only, on loopback, or elsewhere with a token."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from http.cookies import SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "urteil"
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval' "
    "'self'; connect-src 'self'; img-src data: blob:; font-src data:; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Allows GET and HEAD only (405 otherwise), known host names (421), and the token (401).

    The token is sent as `?token=`, which sets a cookie, or as `Authorization: Bearer`.
    """

    def __init__(self, app: ASGIApp, *, hosts: Sequence[str], token: str | None) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        by_address = self._by_address(scope)
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        refusal = self._refusal(scope, headers)
        if refusal is None and self._token is not None:
            known = (by_address, cookie.value if cookie else "", bearer)
            if not any(self._is_token(token) for token in known):
                refusal = PlainTextResponse(
                    "401: open the address that `urteil serve` printed; it has the token\n", 401
                )
        answer = self._app if refusal is None else refusal

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                outgoing = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    outgoing[name] = value
                if refusal is None and self._token and self._is_token(by_address):
                    flags = "HttpOnly; SameSite=Strict; Path=/"
                    outgoing.append("set-cookie", f"{COOKIE}={self._token}; {flags}")
            await send(message)

        await answer(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("405: nothing can be changed here\n", 405)
        host = headers.get("host", "").rsplit(":", 1)[0].strip("[]").lower()
        if self._hosts and host not in self._hosts:
            return PlainTextResponse("421: this is not that host\n", 421)
        return None

    def _by_address(self, scope: Scope) -> str:
        query: bytes = scope["query_string"]
        parameters = parse_qs(query.decode("latin-1"))
        return parameters.get("token", [""])[0]

    def _is_token(self, value: str) -> bool:
        token = self._token or ""
        return bool(value) and secrets.compare_digest(value.encode(), token.encode())
