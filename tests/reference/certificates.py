"""Certificates that vouch for themselves."""

import subprocess
from pathlib import Path


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Return the files of a certificate and its key, for a name such as DNS:localhost."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    kind = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=habitus"]
    files = ["-addext", f"subjectAltName={name}", "-keyout", str(key), "-out", str(certificate)]
    command = ["/usr/bin/openssl", "req", *kind, *files]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key
