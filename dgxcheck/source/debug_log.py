"""A log of every question that is asked and its answer or gap, one JSON object a line, in the order of asking."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Mapping

from dgxcheck import __version__
from dgxcheck.facts.missing import BadInput, Missing
from dgxcheck.source.protocol import Json, Source
from dgxcheck.source.recording.recorder import RecordingSource


class DebugLog:
    """A file that grows by whole lines. It holds identities, so nobody but its owner may read it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._started = time.monotonic()
        self.trouble = ""
        """Why the log is not complete."""
        # not through a link that somebody left in /tmp, nor waiting for the reader of a FIFO
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            self._fd = os.open(path, flags, 0o600)
        except OSError as error:
            raise BadInput(f"{path}: cannot be written: {error.strerror}") from None
        found = os.fstat(self._fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
            os.close(self._fd)
            raise BadInput(
                f"{path}: a debug log must be a regular file that you own, without hard links; give another file"
            )
        os.fchmod(self._fd, 0o600)

    def line(self, members: Mapping[str, Json]) -> None:
        """One line, with the time of day and the seconds since the log was opened; a full disk ends the log only."""
        now = time.time()
        at = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"
        whole = {"at": at, "seconds": round(time.monotonic() - self._started, 6), **members}
        if self.trouble:
            return
        text = f"{json.dumps(whole)}\n".encode()
        try:
            cause = "" if os.write(self._fd, text) == len(text) else "no space left for a complete line"
        except OSError as error:
            cause = error.strerror or str(error)
        self.trouble = f"{self._path}: the debug log is incomplete: {cause}" if cause else ""

    def logged(self, source: Source) -> Source:
        """The same machine, with every answer in this log."""
        return LoggedSource(source, self)


class LoggedSource(RecordingSource):
    """Passes questions on as a recorder does; each is a line of the log."""

    def __init__(self, inner: Source, log: DebugLog) -> None:
        super().__init__(inner)
        self._log = log
        origin = inner.origin
        log.line({"dgxcheck": __version__, "source": origin.kind, "name": origin.name, "at_s": inner.at_s})
        self.facts = _Lines(log, inner.at_s)

    def later(self, seconds: float) -> Source | Missing:
        answer = self._inner.later(seconds)
        return answer if isinstance(answer, Missing) else LoggedSource(answer, self._log)


class _Lines(dict[str, Json]):
    """The facts of a recorder: logged as they are inserted, and not stored."""

    def __init__(self, log: DebugLog, at_s: float) -> None:
        super().__init__()
        self._log = log
        self._moment: dict[str, Json] = {"later_s": at_s} if at_s else {}

    def __setitem__(self, asked: str, answer: Json) -> None:
        self._log.line({**self._moment, "asked": asked, "answer": answer})
