"""The catalogue of integrations for monitors and schedulers, and where their files go on a host."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record
from dgxcheck.package_files import FOLDER, read
from dgxcheck.rootfs import read_bytes
from dgxcheck.source.recording.save import create_file


class Integration(Record, kw_only=False):
    """``files`` maps names in ``dgxcheck/integrations/`` to places on the host, ``steps`` follow their installation.

    Each step is a command or a short sentence. A place is an absolute path, Debian's where distributions differ.
    """

    name: str
    purpose: str
    files: Mapping[str, str]
    steps: tuple[str, ...]


INTEGRATIONS = tuple(
    Integration(entry["name"], entry["purpose"], entry["files"], tuple(entry["steps"]))
    for entry in json.loads(read(os.path.join(FOLDER, "integrations.json")))
)
COMMAND = "/usr/local/bin/dgxcheck"
"""The path of dgxcheck as the shipped files have it."""
PlaceState = Literal["new", "unchanged", "differs", "unusable"]
CommandProblem = Literal["", "missing", "hidden"]
_HOMES = ("/home/", "/root/", "/run/user/")
"""What ProtectHome= hides from a service, see systemd.exec(5)."""


class PlannedFile(Record):
    """One file: its text, where it goes, and what is there now."""

    source: str
    place: str
    text: str
    state: PlaceState
    reason: str = ""
    """Why the place is unusable."""

    @property
    def mode(self) -> int:
        """Scripts are executable. Installers and archives lose modes, so the first line decides."""
        return 0o755 if self.text.startswith("#!") else 0o644


def plan(integration: Integration, root: str = "/", command: str = COMMAND) -> tuple[PlannedFile, ...]:
    """The files of an integration below ``root``, with ``command`` as the path of dgxcheck.

    BadInput for a command that is no plain absolute path, or where no file of the integration names one.
    """
    texts = {source: shipped_text(source) for source in integration.files}
    if command != COMMAND:
        if not re.fullmatch(r"(/[\w.+-]+)+", command, re.ASCII):
            raise BadInput(f"{command}: must be an absolute path of letters, digits and ._+-")
        if not any(COMMAND in text for text in texts.values()):
            raise BadInput(f"{integration.name}: none of its files contains the path of dgxcheck")
    found = []
    for source, where in integration.files.items():
        place, text = _below(root, where), texts[source].replace(COMMAND, command)
        state, reason = _state(place, text, root)
        found.append(PlannedFile(source=source, place=place, text=text, state=state, reason=reason))
    return tuple(found)


def shipped_text(source: str) -> str:
    """A file of ``dgxcheck/integrations/``, from an installed package or a zip application."""
    return read(os.path.join(FOLDER, "integrations", source)).decode()


def write(files: Sequence[PlannedFile]) -> None:
    """Create what is new; directories that are missing too. OSError, also for a file that appeared meanwhile."""
    for file in files:
        if file.state == "new":
            _make_directory(os.path.dirname(file.place))
            create_file(file.place, file.text, file.mode)


def _make_directory(path: str) -> None:
    """With those above it; services of other users read them, and the umask of root may be 077."""
    if not os.path.isdir(path):
        _make_directory(os.path.dirname(path))
        os.mkdir(path)
        os.chmod(path, 0o755)


def command_problem(files: Sequence[PlannedFile], root: str, command: str) -> CommandProblem:
    """Why the files that name ``command`` will not be able to run it; empty where they will."""
    if not any(command in file.text for file in files):
        return ""
    if command.startswith(_HOMES) and any("ProtectHome=yes" in file.text for file in files):
        return "hidden"
    return "" if os.access(_below(root, command), os.X_OK) else "missing"


def _below(root: str, place: str) -> str:
    return os.path.join(root, place.lstrip("/"))


def _state(place: str, text: str, root: str) -> tuple[PlaceState, str]:
    top = os.path.realpath(root)
    if os.path.commonpath([top, os.path.realpath(place)]) != top:
        return "unusable", f"a symbolic link leads out of {root}"  # into the running system, from its image
    try:
        same = read_bytes(place) == text.encode()
    except FileNotFoundError:
        return ("unusable", "a symbolic link without target") if os.path.islink(place) else ("new", "")
    except OSError as error:
        too_large = error.errno == errno.EFBIG
        return ("differs", "") if too_large else ("unusable", str(error.strerror))
    return ("unchanged" if same else "differs"), ""
