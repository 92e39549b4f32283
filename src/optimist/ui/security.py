"""What each request must satisfy: host, token, origin; and the headers of each answer."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE: Final = "optimist-token"
LOGIN: Final = "/login"
TOKEN_FIELD: Final = "token"
TOKEN_HEADER: Final = "x-token"
HEADERS: Final = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'; "
    "object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}
MOST_BYTES: Final = 1 << 16
"""Of the body of a POST."""


def is_loopback(host: str) -> bool:
    """Whether an address reaches this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass
class Guard:
    """The rules of one server: its address, whether it may start and stop runs, and its tokens."""

    host: str = "127.0.0.1"
    token: str | None = None
    """Asked for before anything is shown; None on loopback."""
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """Of this start of the server: in its pages, and in each POST."""

    def refusal(self, request: Request, body: bytes) -> Response | None:
        """The answer to a request that must not be served, or None."""
        host = request.headers.get("host", "")
        if not self.knows(host):
            return _refuse(421, f"The Host header names {host[:80]!r}; open the address that the server printed.")
        if request.method not in ("GET", "HEAD"):
            origin = request.headers.get("origin", "")
            if urlsplit(origin).netloc != host or urlsplit(origin).scheme not in ("http", "https"):
                return _refuse(403, f"The request comes from another page ({origin[:80] or 'no Origin'}).")
        if self.token is not None and request.url.path != LOGIN and not self._logged_in(request):
            return RedirectResponse(LOGIN, 303) if request.method == "GET" else _refuse(401, "The token is wrong.")
        if request.method not in ("GET", "HEAD") and request.url.path != LOGIN:
            given = request.headers.get(TOKEN_HEADER) or (parse_qs(body.decode("latin-1")).get(TOKEN_FIELD) or [""])[0]
            if not _same(given, self.form_token):
                return _refuse(403, "The token of this page is wrong: the server was restarted. Reload the page.")
        return None

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server: an address, localhost or the host that was given."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if is_loopback(self.host):
            return is_loopback(name)
        try:
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return name in (self.host, "localhost")

    def accepts(self, token: str) -> bool:
        """Whether this is the token given on the command line."""
        return self.token is not None and _same(token, self.token)

    def _logged_in(self, request: Request) -> bool:
        try:
            cookie = SimpleCookie(request.headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and self.accepts(cookie.value)


class GuardMiddleware:
    """Serve what the guard allows, with the headers of each answer."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app, self.guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] += [
                    (name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in given
                ]
            await send(message)

        request, body = Request(scope, receive), b""
        if request.method not in ("GET", "HEAD"):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    await _refuse(413, "The request is too large.")(scope, receive, with_headers)
                    return
        refusal = self.guard.refusal(request, body)
        if refusal is not None:
            await refusal(scope, receive, with_headers)
            return
        read = False

        async def again() -> Message:
            nonlocal read
            if read or request.method in ("GET", "HEAD"):
                return await receive()
            read = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, again, with_headers)


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _refuse(status: int, text: str) -> Response:
    return PlainTextResponse(text + "\n", status)
