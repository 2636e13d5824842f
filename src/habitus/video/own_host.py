"""Addresses that a stream leads to, opened for FFmpeg only where they are on its own host."""

import base64
import io
import ssl
from contextlib import closing
from functools import cached_property
from http.client import HTTPException, InvalidURL
from typing import Any
from urllib.error import HTTPError
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
    build_opener,
)

from habitus.errors import VideoError
from habitus.video.addresses import check_address
from habitus.video.opening import WEB, reason_of, silence_of
from habitus.video.source import Source, redacted


class OwnHost:
    """Opens addresses of a source's own host for FFmpeg, and refuses all others."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.bodies: list[_Body] = []
        self.has_opened = False

    @cached_property
    def own(self) -> SplitResult:
        """Address of the source."""
        return urlsplit(self.source.address)

    @cached_property
    def opener(self) -> OpenerDirector:
        """What opens addresses and follows redirections."""
        context = ssl.create_default_context()
        # As FFmpeg does: cameras sign their certificates themselves.
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return build_opener(_CheckedRedirections(self), HTTPSHandler(context=context))

    def __call__(self, url: str, flags: int, options: dict[str, str]) -> Any:
        """Open an address, as PyAV asks for it; what cannot be had is empty, but for the first."""
        self.bodies = [body for body in self.bodies if not body.closed]
        try:
            self.check(url)
            request = self._request(url, options)
            body = _Body(self.opener.open(request, timeout=self.source.timeout), self.source)
        except HTTPError as error:
            error.close()
            body = self._nothing(error)
        except (InvalidURL, ValueError):  # whose text would show a part of a password
            raise VideoError(
                f"{self.source.name}: not an address that can be understood: / ? # and @ in a "
                "user or password are written as %2F %3F %23 and %40"
            ) from None
        except (OSError, HTTPException) as error:
            body = self._nothing(error)
        self.bodies.append(body)
        self.has_opened = True
        return body

    def _nothing(self, error: Exception) -> "_Body":
        if not self.has_opened:
            raise VideoError(f"{self.source.name}: {reason_of(error)}") from error
        return _Body(io.BytesIO(), self.source)

    def close(self) -> None:
        """Close what FFmpeg left open."""
        for body in self.bodies:
            body.close()

    def check(self, url: str) -> None:
        """Raise if an address is not one of the source's own host."""
        parts = urlsplit(url)
        if parts.scheme not in WEB or parts.hostname != self.own.hostname:
            raise VideoError(
                f"{self.source.name}: it leads to {redacted(url)}, which is not on its host: "
                "that is opened only where other_hosts allows it",
                parameter="other_hosts",
            )
        if self.source.elsewhere:  # its name may lead to another address by now
            check_address(url)

    def _request(self, url: str, options: dict[str, str]) -> Request:
        parts = urlsplit(url)
        request = Request(_without_user(parts))  # noqa: S310 - checked
        # A password that was given for https is not sent in clear.
        if self.own.username is not None and parts.scheme in (self.own.scheme, "https"):
            user = f"{unquote(self.own.username)}:{unquote(self.own.password or '')}"
            token = base64.b64encode(user.encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {token}")
        if "end_offset" in options:  # a part of a file
            first, end = int(options.get("offset", 0)), int(options["end_offset"])
            request.add_header("Range", f"bytes={first}-{end - 1}")
        return request


def _without_user(parts: SplitResult) -> str:
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


class _CheckedRedirections(HTTPRedirectHandler):
    """Follows redirections within a host."""

    def __init__(self, host: OwnHost) -> None:
        self.host = host

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        with closing(fp):
            self.host.check(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Body:
    """What an address answers, in parts as they arrive."""

    def __init__(self, response: Any, source: Source) -> None:
        self.response, self.source, self.closed = response, source, False

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, none at the end or where the connection is lost."""
        try:
            found: bytes = self.response.read1(size)
        except TimeoutError:
            raise silence_of(self.source) from None
        except (OSError, HTTPException):
            return b""
        return found

    def close(self) -> None:
        """Close the connection."""
        self.closed = True
        self.response.close()
