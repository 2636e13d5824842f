"""Opening a source with FFmpeg: what was asked for, and nothing that it leads to.

FFmpeg opens what it is pointed at: a playlist that is named as a video reads other files, a stream
may lead to other hosts. Here a file is opened alone, and an address stays on its host, unless that
is allowed. Every container is opened here.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import av
import av.error

from habitus.errors import VideoError
from habitus.files import kind_of
from habitus.video.addresses import check_address
from habitus.video.source import IMAGES, Source

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
# How MP4 and QuickTime files are named, what their first part is called, and their index.
INDEXED, INDEX = frozenset([".mp4", ".mov", ".m4v"]), b"moov"
FIRST_PARTS = frozenset([b"ftyp", b"wide", b"free", b"skip", b"mdat", INDEX])
# What FFmpeg says to a redirection, which it is told not to follow, and to a playlist.
LEADING_ON = (av.error.OSError, av.error.ArgumentError)
UNREACHABLE = (
    av.error.ConnectionRefusedError,
    av.error.ConnectionResetError,
    av.error.ConnectionAbortedError,
)


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
    with ExitStack() as stack:
        try:
            container = _av_opened(source, stack)
        except av.error.ExitError:
            raise VideoError(f"{source.name}: no answer within {source.timeout:g} s") from None
        except UNREACHABLE as error:
            reason = reason_of(error).lower()
            raise VideoError(
                f"{source.name}: cannot be reached: {reason}; check address and port"
            ) from error
        except (av.error.FFmpegError, OSError, ValueError) as error:
            raise VideoError(
                f"{source.name}: not a video that can be opened: {_reason(source, error)}"
            ) from error
        stack.callback(container.close)
        yield container


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
            start = file.read(200)
        if start.lstrip(b"\xef\xbb\xbf").startswith(STARTS_OF_LISTS):
            return "it names other files or addresses, and a file is opened alone"
        if ours := re.search(rb'"habitus":"(\w+)"', start):
            cut = "" if kind_of(source.address) else ", and not a complete one"
            return f"it is a habitus {ours[1].decode()} file{cut}"
        if start[4:8] in FIRST_PARTS and lacks_index(Path(source.address)):
            return (
                "it lacks the index (moov) that ends an MP4 file: it was cut short, or is still "
                "being written; copy it anew, or repair it with a tool such as untrunc"
            )
    reason = reason_of(error)
    if source.url.startswith("rtsp") and isinstance(error, av.error.ArgumentError):
        return f"{reason} (a redirection is followed only where other_hosts allows it)"
    return reason


def lacks_index(path: Path) -> bool:
    """Return whether a file is an MP4 without its index, which is written at the end."""
    if path.suffix.lower() not in INDEXED:
        return False
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            while (head := file.read(8)) and len(head) == 8:
                length = int.from_bytes(head[:4])
                if head[4:] == INDEX:
                    return file.tell() - 8 + length > size
                if length == 1:  # a length of 64 bits follows
                    length = int.from_bytes(file.read(8)) - 8
                if length < 8:  # up to the end
                    break
                file.seek(length - 8, 1)
    except OSError:
        return False
    return True


def _av_opened(source: Source, stack: ExitStack) -> Any:
    """Open a source with the protocols and formats of its kind, until the stack is closed."""
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
        from habitus.video.own_host import OwnHost  # half of what opening a file would import

        options = {"http_persistent": "0", "http_multiple": "0"}
        own_host = stack.enter_context(closing(OwnHost(source)))
        return _av_open(source, protocols, "hls", options, own_host)


def _av_open(
    source: Source,
    protocols: str,
    further: str,
    options: dict[str, str],
    io_open: Callable[[str, int, dict[str, str]], Any] | None = None,
) -> Any:
    allowed = {"protocol_whitelist": protocols, "format_whitelist": f"{FORMATS},{further}"}
    return av.open(source.url, timeout=source.timeout, options=allowed | options, io_open=io_open)
