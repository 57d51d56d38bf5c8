"""The site's own program for events: each is given to it on stdin, as one line of JSON. Bounded in number and time."""

from __future__ import annotations

import os
import subprocess
import time
from collections import deque
from math import inf

from dgxcheck.workers.process import exit_text, kill

MOST_RUNNING = 4
MOST_WAITING = 100
SECONDS = 30.0
ENDING_S = 10.0
"""The watch waits this long for its last events: they are not reported again after a restart."""
_KILLED = -inf
"""In place of the time of a start."""


class Hook:
    """Starts the program for each line; what hangs is killed, what does not fit into the queue is counted."""

    def __init__(self, program: str, seconds: float = SECONDS) -> None:
        self._program, self._seconds = program, seconds
        self._waiting: deque[str] = deque()
        self._running: dict[subprocess.Popen[bytes], float] = {}
        self.dropped = 0
        """Events that the program never got."""
        self.trouble = ""
        """What became of it the last time; empty where it ended with 0."""

    @property
    def busy(self) -> bool:
        """Does the program run, or wait to?"""
        return bool(self._waiting or self._running)

    def give(self, line: str) -> None:
        """Run the program with this line, now or as soon as another run has ended."""
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        self._waiting.append(line)
        self.turn()

    def make_room(self) -> None:
        """Wait until another line fits, as long as runs may take."""
        while len(self._waiting) >= MOST_WAITING:
            self.turn()
            time.sleep(0.02)

    def turn(self) -> None:
        """End what runs too long, and start what waits. Never waits."""
        now = time.monotonic()
        troubles = []
        for process, since in [*self._running.items()]:
            if process.poll() is None and now - since >= self._seconds:
                kill(process.pid)
                self._running[process] = _KILLED
            if (code := process.poll()) is not None:
                late = self._running.pop(process) == _KILLED
                how = f"not done within {self._seconds:g} s" if late else exit_text(code << 8 if code > 0 else -code)
                troubles.append(f"{self._program}: {how}" if code else "")
        if troubles:
            self.trouble = max(troubles, key=bool)
        while self._waiting and len(self._running) < MOST_RUNNING:
            self._start(self._waiting.popleft(), now)

    def finish(self, seconds: float = inf) -> None:
        """Wait for all runs, as long as each may take, but no longer than this; then end those left."""
        until = time.monotonic() + seconds
        while self.busy and time.monotonic() < until:
            self.turn()
            time.sleep(0.02)
        for process in self._running:
            if process.poll() is None:
                kill(process.pid)

    def _start(self, line: str, now: float) -> None:
        # a line is shorter than a pipe holds: a program that never reads keeps nobody waiting
        out, into = os.pipe()
        try:
            os.write(into, f"{line}\n".encode("utf-8", "replace"))
            process = subprocess.Popen(
                [self._program], stdin=out, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
            )
            self._running[process] = now
        except OSError as error:
            self.trouble = f"{self._program}: cannot be started: {error.strerror}"
            self.dropped += 1
        finally:
            os.close(out)
            os.close(into)
