"""GStreamer's RTSP server, which plays a Matroska file in real time: PORT FILE.

Run with the system's own Python, which has GStreamer's bindings. Says "ready" once it listens.
"""

import sys


def main(port: str, path: str) -> None:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GLib, Gst, GstRtspServer

    Gst.init(None)
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(
        f'( filesrc location="{path}" ! matroskademux ! rtph264pay name=pay0 config-interval=-1 )'
    )
    factory.set_shared(True)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(port)
    server.get_mount_points().add_factory("/camera", factory)
    if not server.attach(None):
        sys.exit(f"port {port} is taken")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    GLib.MainLoop().run()


if __name__ == "__main__":
    main(*sys.argv[1:])
