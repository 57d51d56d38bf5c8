"""Real servers that tests start on free ports of the loopback interface, and end by their own process ids."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 240.0
"""Seconds after which a step counts as hung; what it takes is seconds."""


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


@contextmanager
def running(log: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server of ours, ended by its own process id."""
    with log.open("wb") as said:
        server = subprocess.Popen(words, stdout=said, stderr=said, stdin=subprocess.DEVNULL)
    try:
        yield server
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def until(wanted: Callable[[], bool], what: str, logs: Path, servers: list[subprocess.Popen[bytes]]) -> None:
    """Ask again until it is so."""
    ends = time.monotonic() + PATIENCE
    while not wanted():
        ended = [server.args for server in servers if server.poll() is not None]
        if ended or time.monotonic() > ends:
            told = "\n".join(log.read_text(encoding="utf-8")[-2000:] for log in sorted(logs.glob("*.log")))
            raise AssertionError(f"{what}: {f'{ended} ended' if ended else 'not in time'}\n{told}")
        time.sleep(0.2)


def answer(url: str) -> str:
    """What a server says; empty while it does not answer."""
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return str(reply.read().decode())
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return ""
