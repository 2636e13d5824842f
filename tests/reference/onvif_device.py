"""A camera that speaks ONVIF on loopback: answers a probe by UDP, and questions by SOAP."""

import base64
import contextlib
import hashlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.etree import ElementTree

USER, PASSWORD = "viewer", "p@ss <word>&"
GROUP = "239.255.255.250"
SOAP = "http://www.w3.org/2003/05/soap-envelope"
MATCH = """<?xml version="1.0"?><e:Envelope xmlns:e="{soap}"
 xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery"><e:Body><d:ProbeMatches><d:ProbeMatch>
<d:Scopes>onvif://www.onvif.org/type/video_encoder onvif://www.onvif.org/name/North%20gate
 onvif://www.onvif.org/hardware/Model-5 junk</d:Scopes><d:XAddrs>{address}</d:XAddrs>
</d:ProbeMatch></d:ProbeMatches></e:Body></e:Envelope>"""
PROFILE = """<m:Profiles token="{}"><t:Name>{}</t:Name><t:VideoEncoderConfiguration>
<t:Encoding>H264</t:Encoding><t:Resolution><t:Width>{}</t:Width><t:Height>{}</t:Height>
</t:Resolution></t:VideoEncoderConfiguration></m:Profiles>"""
CLOCK = """<t:UTCDateTime><t:Time><t:Hour>{0.tm_hour}</t:Hour><t:Minute>{0.tm_min}</t:Minute>
<t:Second>{0.tm_sec}</t:Second></t:Time><t:Date><t:Year>{0.tm_year}</t:Year><t:Month>{0.tm_mon}
</t:Month><t:Day>{0.tm_mday}</t:Day></t:Date></t:UTCDateTime>"""


class OnvifDevice(ThreadingHTTPServer):
    """One device; its clock is an hour ahead, as those of cameras are."""

    daemon_threads = True
    ahead = 3600.0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked: list[str] = []
        self.uri = "rtsp://192.0.2.7:8554/{token}?a=1&amp;b=2"
        self.raw: bytes | None = None
        """Answered to everything, if it is given."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/onvif/device_service"

    def answer(self, question: ElementTree.Element) -> str:
        body = question.find(f"{{{SOAP}}}Body")
        assert body is not None
        action = body[0].tag.rpartition("}")[2]
        self.asked.append(action)
        if action == "GetSystemDateAndTime":
            return CLOCK.format(time.gmtime(time.time() + self.ahead))
        if not self._is_known(question):
            return "<s:Fault><s:Reason><s:Text>Sender not Authorized</s:Text></s:Reason></s:Fault>"
        if action == "GetCapabilities":
            # Behind a router, devices name an address that only they know.
            place = f"http://192.0.2.7:{self.server_port}/onvif/media"
            return f"<t:Capabilities><t:Media><t:XAddr>{place}</t:XAddr></t:Media></t:Capabilities>"
        if action == "GetProfiles":
            sub = PROFILE.format("sub", "Sub", 640, 360)
            return sub + PROFILE.format("main", "Main", 2560, 1440)
        token = next(one.text for one in body.iter() if one.tag.endswith("}ProfileToken"))
        return f"<t:MediaUri><t:Uri>{self.uri.format(token=token)}</t:Uri></t:MediaUri>"

    def _is_known(self, question: ElementTree.Element) -> bool:
        """Whether a question has a digest of the password, of now by the device's clock."""
        found = {one.tag.rpartition("}")[2]: one.text or "" for one in question.iter()}
        if "Nonce" not in found:
            return False
        raw = base64.b64decode(found["Nonce"]) + found["Created"].encode() + PASSWORD.encode()
        digest = base64.b64encode(hashlib.sha1(raw).digest()).decode()  # noqa: S324
        made = time.strptime(found["Created"], "%Y-%m-%dT%H:%M:%S.000Z")
        recent = abs(time.mktime(made) - time.timezone - time.time() - self.ahead) < 60
        return found["Username"] == USER and found["Password"] == digest and recent


class _Answer(BaseHTTPRequestHandler):
    server: OnvifDevice

    def do_POST(self) -> None:
        question = self.rfile.read(int(self.headers["Content-Length"]))
        said = self.server.answer(ElementTree.fromstring(question))  # noqa: S314
        names = 'xmlns:m="m" xmlns:t="t"'
        whole = f'<s:Envelope xmlns:s="{SOAP}" {names}><s:Body>{said}</s:Body></s:Envelope>'
        raw = whole.encode() if self.server.raw is None else self.server.raw
        self.send_response(400 if "Fault" in said else 200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def onvif_device() -> Iterator[OnvifDevice]:
    """A device that answers questions; also the one to all of the network."""
    with OnvifDevice() as device, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((GROUP, 3702))
        loopback = struct.pack(
            "@4s4si", socket.inet_aton(GROUP), bytes(4), socket.if_nametoindex("lo")
        )
        listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, loopback)
        listening.settimeout(0.1)
        ended = threading.Event()

        def answer_probes() -> None:
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    question, sender = listening.recvfrom(65_535)
                    if b"NetworkVideoTransmitter" in question:
                        listening.sendto(b"not XML", sender)
                        match = MATCH.format(soap=SOAP, address=device.address)
                        for _ in range(2):  # as those with two networks do
                            listening.sendto(match.encode(), sender)

        threads = [
            threading.Thread(target=device.serve_forever, args=(0.01,)),
            threading.Thread(target=answer_probes),
        ]
        for thread in threads:
            thread.start()
        try:
            yield device
        finally:
            ended.set()
            device.shutdown()
            for thread in threads:
                thread.join()
