"""Addresses and passwords, encrypted at rest with a key that lies beside the database."""

import hashlib
import hmac
import json
import os
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken

from habitus.errors import FileError


class Vault:
    """Encrypts and decrypts with one key of Fernet."""

    def __init__(self, key: bytes) -> None:
        self._fernet = Fernet(key)
        self._key = key

    @classmethod
    def of_file(cls, path: Path) -> "Vault":
        """Return the vault of a key file; the key is made where there is none."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(descriptor, "wb") as file:
                file.write(Fernet.generate_key())
                file.flush()
                os.fsync(file.fileno())
        try:
            return cls(path.read_bytes())
        except ValueError as error:
            raise FileError(f"{path}: not a key; restore it from a backup") from error

    def sign(self, text: str) -> str:
        """Return what only who has the key can make of a text."""
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()

    def seal(self, value: Any) -> bytes:
        """Return plain values, encrypted."""
        return self._fernet.encrypt(json.dumps(value).encode())

    def open(self, sealed: bytes) -> Any:
        """Return what was sealed; raise if it was with another key."""
        try:
            return json.loads(self._fernet.decrypt(sealed))
        except InvalidToken as error:
            raise FileError(
                "the key does not fit the database: restore secret.key from the same backup"
            ) from error
