"""The key under which a site's identities become pseudonyms."""

from __future__ import annotations

import hashlib
import hmac
import os

from dgxcheck.facts.missing import BadInput
from dgxcheck.limits import KEY_BYTES, LEAST_KEY_BYTES
from dgxcheck.rootfs import OPENING, read_descriptor


def site_key(root: str = "/") -> bytes:
    """The site's key from the state directory; random where there is none, so that pseudonyms differ each time.

    Of root, only the system's directory counts: nobody else can choose it. BadInput for a key that others can read or
    could have written, or that can be guessed.
    """
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    path = os.path.join(os.path.join(root, "var/lib") if os.geteuid() == 0 else state, "dgxcheck", "site.key")
    try:
        fd = os.open(path, OPENING)
        status = os.fstat(fd)
        key = read_descriptor(fd, path, KEY_BYTES).strip()
    except FileNotFoundError:
        return os.urandom(32)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise BadInput(f"{path}: must belong to the user who runs dgxcheck, with mode 0600; make a new key")
    if len(key) < LEAST_KEY_BYTES:
        raise BadInput(f"{path}: a key of less than {LEAST_KEY_BYTES} bytes; make one with: openssl rand -hex 32")
    return key


def mark(key: bytes) -> str:
    """A site key's own name, which tells nothing of it: recordings with the same one call a device alike."""
    return hmac.new(key, b"dgxcheck: the name of this key", hashlib.sha256).hexdigest()[:16]
