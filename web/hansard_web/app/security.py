"""Who may ask: the gate in front of every HTTP endpoint (DESIGN §18), as pure ASGI.

A web page anywhere can make a browser send requests to this machine. What stops it, in order:
the Host check (DNS rebinding), Origin and Sec-Fetch-Site (cross-site requests), tokens, and in the
routes the token of forms. Refusals are answered by a callable, because OTLP senders, API clients
and people each need another body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Literal

import anyio
from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hansard_collector.receivers.paths import is_otlp_path
from hansard_compiler.errors import HansardError
from hansard_store.principals.errors import CredentialsRequired
from hansard_store.principals.model import Principal
from hansard_store.principals.model import Scope as TokenScope
from hansard_store.principals.service import PREFIX
from hansard_web.app.site import Site
from hansard_web.principals.attempts import Attempts
from hansard_web.principals.dependencies import SESSION_COOKIE
from hansard_web.ui.forms import MAX_BYTES, MAX_OPEN_BYTES, bounded, is_form

# Answers under way end with the credential of their request: at sign-out, or once it is revoked.
#
# A request is judged when it begins. A live stream, or a request that waits, goes on for minutes;
# so its credential is looked up again while it does, here and not in each route.

LOOK_S: Final = 0.5
_STREAM: Final = "text/event-stream"
_SAFE: Final = frozenset({"GET", "HEAD"})
_END: Final[Message] = {"type": "http.response.body", "body": b"", "more_body": False}


class TokensInForce:
    """Serves requests as long as their credential is in force.

    Cut are event streams, and requests that only wait for something to read. What may have changed
    something is answered as it ended, and an answer of known content is never cut in the middle,
    where it would look complete.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        # Of their own: requests that hold all other threads do not keep a revoked stream open.
        self._threads = anyio.CapacityLimiter(2)

    async def serve(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        is_in_force: Callable[[], bool],
        ended: ASGIApp,
    ) -> None:
        """Serve one request. `is_in_force` runs in a thread; `ended` answers what had not begun."""
        response = _Answer(scope["method"], send)
        failed: Exception | None = None
        is_cut = False

        async def watch() -> None:
            nonlocal is_cut
            while not response.is_uncut:
                await anyio.sleep(LOOK_S)
                if not response.may_be_cut:
                    continue
                if await self._has_ended(is_in_force) and response.may_be_cut:
                    is_cut = True
                    tasks.cancel_scope.cancel()
                    return

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            try:
                await self._app(scope, receive, response.send)
            except Exception as error:  # as it is: the group would wrap it
                failed = error
            tasks.cancel_scope.cancel()
        try:
            if failed is not None:
                raise failed
        finally:
            failed = None  # or it would hold this frame, which holds it
        if is_cut and not response.has_begun:
            await ended(scope, receive, send)
        elif is_cut and not response.has_ended:
            await send(_END)

    async def _has_ended(self, is_in_force: Callable[[], bool]) -> bool:
        try:
            return not await to_thread.run_sync(is_in_force, limiter=self._threads)
        except HansardError:
            return False  # the store cannot be read now, by the stream neither: look again


class _Answer:
    """How far an answer has come."""

    def __init__(self, method: str, send: Send) -> None:
        self._send = send
        self.may_be_cut = method in _SAFE
        self.is_uncut = False  # from here on it cannot be cut
        self.has_begun = False
        self.has_ended = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            kind = Headers(raw=message["headers"]).get("content-type", "")
            self.may_be_cut = kind.partition(";")[0].strip().lower() == _STREAM
            self.is_uncut = not self.may_be_cut
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.has_ended, self.may_be_cut, self.is_uncut = True, False, True


CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
    "font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    # Not "no-referrer": browsers then send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_OPEN_PATHS: Final = re.compile(r"/(?:healthz|signin(?:/link/[^/]+)?|static/.*)")
_PUBLIC_PATHS: Final = re.compile(r"/(?:healthz|static/.*)")  # the same for everybody
_HEALTH_PATH: Final = "/healthz"

# Decisions: they need a credential, also where nothing else does (docs/security.md).
_DECISIONS: Final = re.compile(
    r"/v1/approvals/[^/]+/(?:approve|reject|revise|settle|undo)|/approvals/[^/]+"
    r"|/v1/(?:tasks|errors)/[^/]+/decide|/(?:tasks|errors)/[^/]+|/(?:v1/)?reports/[^/]+/ack"
    # To take memory back, or to accept what contradicts it, is one; a purge needs `admin`.
    r"|(?:/v1/memory|/memory/[^/]+)/(?:invalidate|accept|unsupersede)"
)
# What a request needs, first match counts. Anything else that is not a read needs `admin`.
_SCOPES: Final = (
    ("POST", _DECISIONS, TokenScope.DECIDE),
    ("PUT", re.compile(r"/v1/payloads/.*"), TokenScope.INGEST),
    ("POST", re.compile(r"/v1/approvals(?:/[^/]+/(?:repropose|claim|result))?"), TokenScope.INGEST),
    ("POST", re.compile(r"/v1/(?:events|scores)"), TokenScope.INGEST),
    ("POST", re.compile(r"/(?:theme|times|messages|signout)"), TokenScope.READ),
    # What an agent tells or asks through the sidecar. Answers that hold content need `read` too.
    ("POST", re.compile(r"/v1/runs/(?:start|[^/]+/(?:steps|end))"), TokenScope.INGEST),
    ("POST", re.compile(r"/v1/(?:tools/(?:call|result)|compile|model/call)"), TokenScope.INGEST),
    ("POST", re.compile(r"/v1/policy/check"), TokenScope.INGEST),
    ("POST", re.compile(r"/v1/policy/explain"), TokenScope.READ),
    # What an agent keeps of its conversation. To redact what it is shown needs `admin`.
    ("POST", re.compile(r"/v1/transcripts(?:/[^/]+)?"), TokenScope.INGEST),
    ("POST", re.compile(r"/v1/transcripts/[^/]+/(?:fold|branches|end)"), TokenScope.INGEST),
    ("POST", re.compile(r"/v1/transcripts/[^/]+/check"), TokenScope.READ),
    # The decision of the second is the approval, which the route looks at.
    ("POST", re.compile(r"/v1/memory/(?:write|invalidate/approved)"), TokenScope.INGEST),
    ("POST", re.compile(r"/v1/memory/read"), TokenScope.READ),
    # A person's word on a run, or one in a person's name. What programs measure is sent like spans.
    ("POST", re.compile(r"(?:/v1)?/annotations(?:/[^/]+/withdraw)?"), TokenScope.DECIDE),
    ("POST", re.compile(r"(?:/v1)?/views(?:/rename|/delete)?"), TokenScope.DECIDE),
    ("POST", re.compile(r"(?:/v1)?/notifications(?:/[^/]+/retry|/test)"), TokenScope.DECIDE),
    # What a tool of MCP asks for is judged again, as the request to the API that it is.
    ("POST", re.compile(r"/mcp"), TokenScope.READ),
    ("DELETE", re.compile(r"/mcp"), TokenScope.READ),
    # A replay sends what was recorded to a provider and spends money; a preview does neither.
    ("POST", re.compile(r"(?:/v1/replay|/replay/[^/]+)/preview"), TokenScope.READ),
    ("POST", re.compile(r"/v1/replay(?:/[^/]+/continue)?"), TokenScope.DECIDE),
    ("POST", re.compile(r"/replay/[^/]+|/replays/[^/]+/continue"), TokenScope.DECIDE),
)

# What a proposer may read of its own with a token that only sends: the route asks for the key.
_OWN: Final = re.compile(r"/v1/approvals/[^/]+")


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request did not pass the gate."""

    status: HTTPStatus
    code: str  # short and stable
    message: str
    is_link: bool = False  # a person followed a link from another site
    was_sent: bool = False  # a credential came along, and it was wrong


_ENDED: Final = Refused(
    HTTPStatus.UNAUTHORIZED,
    "unauthenticated",
    "the session or token of this request ended while it waited; sign in, or send another token",
)


# Whether an answer may be stored by caches: never, where it says so itself, or as it says.
Cached = Literal["never", "if_it_says", "as_it_says"]
Refuse = Callable[[Scope, Refused], Response]


class Security:
    """The middleware. It also sets `state.csrf`, `state.signed_in` and `state.principal`."""

    def __init__(self, app: ASGIApp, *, site: Site, refuse: Refuse) -> None:
        self._app = app
        self._in_force = TokensInForce(app)
        self._site = site
        self._settings = settings = site.settings
        self._principals = site.principals
        self._refuse = refuse
        self._names = _LOOPBACK_NAMES | {
            _host_name(name) for name in (settings.bound_host, *settings.allow_hosts)
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        session = cookie_parser(headers.get("cookie", "")).get(SESSION_COOKIE, "")
        state: MutableMapping[str, Any] = scope.setdefault("state", {})
        state["csrf"], state["session"] = self._site.form_tokens.of(session), session
        state["principal"], state["signed_in"] = None, False
        refused, principal, is_wrong = None, None, False
        try:
            principal = await self._principal_of(headers, session)
            is_wrong = principal is None and await self._is_wrong(headers, scope["path"])
        except HansardError as error:  # the store cannot be read now: nobody is let in for that
            refused = Refused(HTTPStatus.SERVICE_UNAVAILABLE, error.code, str(error))
        state["principal"] = principal
        state["signed_in"] = principal is not None and principal.method == "session"
        if is_form(headers.get("content-type", "")):
            is_open = principal is None and bool(self._settings.tokens)
            receive = bounded(receive, MAX_OPEN_BYTES if is_open else MAX_BYTES)
        refused = refused or self._judge(scope, headers, principal, is_wrong=is_wrong)
        if refused is not None and refused.was_sent:
            await hold_back(self._site.attempts, address_of(scope))
        send = _with_headers(send, self._cached(scope["path"], principal))
        if refused is not None:
            await self._refuse(scope, refused)(scope, receive, send)
        elif still := self._look_again(principal, headers, session):
            ended = self._refuse(scope, _ENDED)
            await self._in_force.serve(scope, receive, send, is_in_force=still, ended=ended)
        else:
            await self._app(scope, receive, send)

    def _look_again(
        self, principal: Principal | None, headers: Headers, session: str
    ) -> Callable[[], bool] | None:
        """Return how to see whether a credential is in force; None for one that cannot end."""
        if principal is None:
            return None
        if principal.method == "session":
            return lambda: self._principals.of_cookie(session) == principal
        presented = _bearer(headers) or ""
        if not presented.startswith(PREFIX):  # of the configuration, until the server stops
            return None
        return lambda: self._principals.authenticate(presented) == principal

    def _cached(self, path: str, principal: Principal | None) -> Cached:
        """Return what caches may keep: nothing of what a token opens."""
        if _PUBLIC_PATHS.fullmatch(path):
            return "as_it_says"
        if self._settings.tokens:
            return "never"
        # Nothing else of an open server is private; but a page shows who is signed in.
        return "as_it_says" if principal is None else "if_it_says"

    def _judge(
        self, scope: Scope, headers: Headers, principal: Principal | None, *, is_wrong: bool
    ) -> Refused | None:
        """Return why a request is refused; None lets it pass."""
        may_skip_host = principal is not None or scope["path"] == _HEALTH_PATH
        if not may_skip_host and (refused := self._judge_host(scope, headers)):
            return refused
        is_exporter = self._is_allowed_exporter(scope, headers)
        if not is_exporter and (refused := _judge_origin(scope, headers)):
            return refused
        if is_exporter and scope["method"] == "OPTIONS":
            return None  # browsers send no token with a preflight
        if is_wrong:
            is_decision = self._settings.needs_principal
            is_decision = is_decision and is_a_decision(scope["method"], scope["path"])
            return _unknown(is_decision=is_decision, was_sent=True)
        return self._judge_token(scope, headers, principal)

    def _judge_host(self, scope: Scope, headers: Headers) -> Refused | None:
        hosts = headers.getlist("host")
        server = scope.get("server")
        own = self._names | {_host_name(server[0])} if server else self._names
        if len(hosts) == 1 and _host_name(hosts[0]) in own:
            return None
        named = ", ".join(hosts) or "none"
        return Refused(
            HTTPStatus.FORBIDDEN,
            "host_not_allowed",
            f"the Host header is {named[:200]!r}, which is not an address of this server; "
            "use localhost, start the server with --allow-host NAME, or send a token",
        )

    def _judge_token(
        self, scope: Scope, headers: Headers, principal: Principal | None
    ) -> Refused | None:
        method, path = scope["method"], scope["path"]
        is_decision = self._settings.needs_principal and is_a_decision(method, path)
        if _OPEN_PATHS.fullmatch(path) or not (self._settings.tokens or is_decision):
            return None
        if principal is None:
            return _unknown(is_decision=is_decision, was_sent="authorization" in headers)
        needed = self._scope_needed(method, path)
        if principal.allows(needed):
            return None
        if method == "GET" and _OWN.fullmatch(path) and principal.allows(TokenScope.INGEST):
            scope["state"]["is_own_only"] = True
            return None
        return Refused(
            HTTPStatus.FORBIDDEN,
            "scope_missing",
            f"this token has the scopes {', '.join(sorted(principal.scopes))}; "
            f"{needed} is needed here",
        )

    def _scope_needed(self, method: str, path: str) -> TokenScope:
        if is_otlp_path(path, method):
            return TokenScope.INGEST
        if method in ("GET", "HEAD", "OPTIONS"):
            return TokenScope.READ
        for of_method, pattern, needed in _SCOPES:
            if method == of_method and pattern.fullmatch(path):
                return needed
        return TokenScope.ADMIN

    async def _principal_of(self, headers: Headers, session: str) -> Principal | None:
        presented = _bearer(headers)
        if presented is not None:
            if not presented.startswith(PREFIX):  # of the configuration: known without the store
                return self._principals.authenticate(presented)
            return await to_thread.run_sync(self._principals.authenticate, presented)
        if not session:
            return None
        return await to_thread.run_sync(self._principals.of_cookie, session)

    async def _is_wrong(self, headers: Headers, path: str) -> bool:
        """Whether a request presents a token that is none, on a route where it makes a difference.

        Also where no credential is needed: an answer that differs with a right token, and costs a
        wrong one nothing, would let anybody try tokens there.
        """
        presented = _bearer(headers)
        if presented is None or _PUBLIC_PATHS.fullmatch(path):
            return False
        return await to_thread.run_sync(self._principals.is_wrong, presented)

    def _is_allowed_exporter(self, scope: Scope, headers: Headers) -> bool:
        """Whether a page of an origin from --cors-origin sends telemetry, and nothing else."""
        origins = headers.getlist("origin")
        return (
            len(origins) == 1
            and origins[0] in self._settings.cors_origins
            and is_otlp_path(scope["path"], scope["method"])
        )


def _bearer(headers: Headers) -> str | None:
    """Return the token that a request presents; None where it presents none."""
    kind, _, presented = headers.get("authorization", "").partition(" ")
    return presented.strip() if kind.lower() == "bearer" else None


def is_a_decision(method: str, path: str) -> bool:
    """Whether a request decides about an approval, a task or memory."""
    return method == "POST" and _DECISIONS.fullmatch(path) is not None


def address_of(scope: Scope) -> str:
    """Return the address of a sender, without its port."""
    client = scope.get("client")
    return str(client[0]) if client else "unix"


async def hold_back(attempts: Attempts, address: str) -> None:
    """Note a failed attempt to authenticate, and wait before it is answered."""
    with attempts.failed(address) as wait_s:
        if wait_s:
            await anyio.sleep(wait_s)


def _unknown(*, is_decision: bool, was_sent: bool) -> Refused:
    """Return that nobody knows who asks."""
    if is_decision:
        needed = CredentialsRequired(was_sent=was_sent)
        return Refused(HTTPStatus.UNAUTHORIZED, needed.code, str(needed), was_sent=was_sent)
    return Refused(
        HTTPStatus.UNAUTHORIZED,
        "unauthenticated",
        "the token is wrong; send Authorization: Bearer TOKEN"
        if was_sent
        else "a token is needed; send Authorization: Bearer TOKEN",
        was_sent=was_sent,
    )


def _judge_origin(scope: Scope, headers: Headers) -> Refused | None:
    for origin in headers.getlist("origin"):
        # The Host header was checked before this, so an origin equal to it is our own address;
        # the scheme may differ behind a proxy that speaks TLS. "null" has no address at all.
        _, has_scheme, address = origin.lower().partition("://")
        if not has_scheme or address != headers.get("host", "").lower():
            return Refused(
                HTTPStatus.FORBIDDEN,
                "origin_not_allowed",
                f"requests from the origin {origin[:200]!r} are refused; "
                "--cors-origin allows one to send telemetry",
            )
    site = headers.get("sec-fetch-site")
    # Another port or subdomain is "same-site"; browsers name its origin with each POST, judged
    # above. A request that changes something and names none comes from this address or a person.
    is_unnamed = site == "same-site" and "origin" not in headers and scope["method"] not in _SAFE
    if site == "cross-site" or is_unnamed:
        is_link = headers.get("sec-fetch-mode") == "navigate" and scope["method"] == "GET"
        return Refused(
            HTTPStatus.FORBIDDEN,
            "cross_site",
            "requests that another web site makes are refused",
            is_link=is_link,
        )
    return None


def _with_headers(send: Send, cached: Cached) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if cached == "never":
                headers["Cache-Control"] = "no-store"
            elif cached == "if_it_says":
                headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return send_with_headers


def _host_name(host: str) -> str:
    """Return the name of a Host header: lower case, without port, brackets and final dot."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, colon, port = host.rpartition(":")
    # A bare IPv6 address (as a bound address) has several colons and no port.
    if colon and port.isdecimal() and ":" not in name:
        host = name
    return host.removesuffix(".")
