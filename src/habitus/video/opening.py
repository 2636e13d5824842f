"""Opening a source with FFmpeg: what was asked for, and nothing that it leads to.

FFmpeg opens what it is pointed at: a playlist that is named as a video reads other files, a stream
may lead to other hosts. Here a file is opened alone, and an address stays on its host, unless that
is allowed. Every container is opened here.
"""

import base64
import io
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from http.client import HTTPException, InvalidURL
from pathlib import Path
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

import av
import av.error

from habitus.errors import VideoError
from habitus.video.addresses import check_address
from habitus.video.source import IMAGES, Source, redacted

# Containers, raw streams and single images: all that FFmpeg reads from one file alone. Those of
# sound are there to be told what they are.
FORMATS = (
    "aac,aiff,apng,asf,av1,avi,avs2,avs3,bmp_pipe,cavsvideo,dhav,dirac,dv,evc,flac,flv,gif,"
    "gif_pipe,gxf,h261,h263,h264,hevc,hxvs,ifv,ingenient,ivf,ivr,j2k_pipe,jpeg_pipe,"
    "jpegls_pipe,kux,live_flv,lmlm4,luodat,m4v,matroska,mgsts,mjpeg,mjpeg_2000,mlv,mov,mp3,"
    "mp4,mpeg,mpegts,mpegtsraw,mpegvideo,mpjpeg,mxf,mxg,nsv,nut,nuv,obu,ogg,pam_pipe,"
    "pbm_pipe,pgm_pipe,png_pipe,ppm_pipe,pva,rm,ser,smjpeg,swf,tiff_pipe,ty,vc1,vc1test,vvc,"
    "wav,webm,webp,webp_pipe,wtv,yuv4mpegpipe"
)
# Protocols of each kind of address, and further formats. FFmpeg follows a redirection of RTSP only
# where "rtsp" is among the protocols.
PROTOCOLS = {
    "file": "file",
    "pipe": "pipe",
    "ftp": "ftp,tcp",
    "http": "http,httpproxy,tcp",
    "https": "https,httpproxy,tls,tcp",
    "rtmp": "rtmp,tcp",
    "rtmps": "rtmps,tls,tcp",
    "rtp": "rtp,udp",
    "rtsp": "tcp,udp,rtp",
    "rtsps": "tcp,tls,udp,rtp",
    "srt": "srt",
    "tcp": "tcp",
    "tls": "tls,tcp",
    "udp": "udp",
}
FURTHER_FORMATS = {"rtp": "rtp,sdp", "rtsp": "rtsp", "rtsps": "rtsp"}
WEB, RTSP = frozenset(["http", "https"]), frozenset(["rtsp", "rtsps"])
# How files start that name others.
STARTS_OF_LISTS = (b"#EXTM3U", b"ffconcat", b"<?xml", b"v=0")
# What FFmpeg says to a redirection, which it is told not to follow, and to a playlist.
LEADING_ON = (av.error.OSError, av.error.ArgumentError)


@contextmanager
def open_container(source: Source) -> Iterator[Any]:
    """Open a source with PyAV, and close it at the end of the block.

    Parameters
    ----------
    source
        Anything but a folder or pattern of images.

    Yields
    ------
    av.container.InputContainer
        The opened source.

    Raises
    ------
    VideoError
        If it cannot be opened, or leads elsewhere.
    InvalidInputError
        If it is of this machine, and must not be.
    """
    if source.elsewhere:
        check_address(source.address)
    if not source.is_live:
        path = Path(source.address)
        if not path.exists():
            raise VideoError(f"{source.name}: no such file")
        if path.stat().st_size == 0:
            raise VideoError(f"{source.name}: the file is empty")
    with closing(_OwnHost(source)) as own_host, _opened(source, own_host) as container:
        yield container


@contextmanager
def _opened(source: Source, own_host: "_OwnHost") -> Iterator[Any]:
    """Open a source, and tell in one line why it cannot be."""
    try:
        container = _av_opened(source, own_host)
    except av.error.ExitError:
        raise VideoError(f"{source.name}: no answer within {source.timeout:g} s") from None
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise VideoError(
            f"{source.name}: not a video that can be opened: {_reason(source, error)}"
        ) from error
    try:
        yield container
    finally:
        container.close()


def reason_of(error: Exception) -> str:
    """Return FFmpeg's description of an error, in one line."""
    return str(getattr(error, "strerror", None) or error).split("\n")[0]


def silence_of(source: Source) -> VideoError:
    """Return the error that a source sends nothing."""
    return VideoError(f"{source.name}: no data for {source.timeout:g} s")


def _reason(source: Source, error: Exception) -> str:
    """Return why a source cannot be opened."""
    if not source.is_live:
        with Path(source.address).open("rb") as file:
            if file.read(16).lstrip(b"\xef\xbb\xbf").startswith(STARTS_OF_LISTS):
                return "it names other files or addresses, and a file is opened alone"
    reason = reason_of(error)
    if source.url.startswith("rtsp") and isinstance(error, av.error.ArgumentError):
        return f"{reason} (a redirection is followed only where other_hosts allows it)"
    return reason


def _av_opened(source: Source, own_host: "_OwnHost") -> Any:
    """Open a source with the protocols and formats of its kind."""
    scheme = source.url.partition(":")[0].lower()
    if scheme not in PROTOCOLS:
        raise VideoError(
            f"{source.name}: addresses of this kind are not opened, only {', '.join(PROTOCOLS)}"
        )
    protocols, further = PROTOCOLS[scheme], FURTHER_FORMATS.get(scheme, "")
    if scheme in RTSP:
        allowed = f"{protocols},tls,rtsp,rtsps" if source.other_hosts else protocols
        return _av_open(source, allowed, further, {"rtsp_transport": "tcp"})
    if scheme == "file" and Path(source.address).suffix.lower() in IMAGES:
        # FFmpeg takes JPEG for one of a series by its name: here, for that image alone.
        return _av_open(source, protocols, "image2", {"pattern_type": "none"})
    if scheme not in WEB:
        return _av_open(source, protocols, further, {})
    if source.other_hosts:
        return _av_open(source, "crypto,http,https,httpproxy,tls,tcp", "dash,hls", {})
    try:
        return _av_open(source, protocols, further, {"max_redirects": "0"})
    except LEADING_ON:  # now each address that it leads to is looked at
        options = {"http_persistent": "0", "http_multiple": "0"}
        return _av_open(source, protocols, "hls", options, own_host)


def _av_open(
    source: Source,
    protocols: str,
    further: str,
    options: dict[str, str],
    io_open: "_OwnHost | None" = None,
) -> Any:
    allowed = {"protocol_whitelist": protocols, "format_whitelist": f"{FORMATS},{further}"}
    return av.open(source.url, timeout=source.timeout, options=allowed | options, io_open=io_open)


class _OwnHost:
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

    def __init__(self, host: _OwnHost) -> None:
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
