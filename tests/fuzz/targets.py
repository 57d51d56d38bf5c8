"""What is fuzzed: functions of bytes that end with a value or with BadInput in one line, whatever the bytes are."""

from __future__ import annotations

import os
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from dgxcheck.assessment.import_text import read
from dgxcheck.assessment.import_texts import lines, text_of
from dgxcheck.assessment.opening import open_source
from dgxcheck.checks.registry import CHECKS
from dgxcheck.configuration import of_site
from dgxcheck.facts.missing import BadInput
from dgxcheck.output.plain_text import visible
from dgxcheck.profiles import library
from dgxcheck.source.kernel_log import saved
from dgxcheck.source.kernel_log.kmsg import relevant_lines
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.config_space import publishable
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import survey
from probes.pci.capabilities import acs, express
from probes.pci.parse_control import control

Target = Callable[[bytes], object]


@cache
def _folder() -> str:
    return tempfile.mkdtemp(prefix="dgxcheck-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)


@contextmanager
def _file(data: bytes, name: str) -> Iterator[str]:
    path = f"{_folder()}/{os.getpid()}-{name}"
    with open(path, "wb") as file:
        file.write(data)
    yield path


def recording(data: bytes) -> object:
    """A recording or overlay: what it holds can be read, and anonymized."""
    with _file(data, "box.json") as path:
        source = open_source(path)
    assert isinstance(source, RecordedSource)
    survey(source, ("pci", "gpu", "infiniband", "kernel_log"))
    return anonymized(source.lines, source.moments, b"key")


def bug_report(data: bytes) -> object:
    """A report or an archive."""
    with _file(data, "nvidia-bug-report.log.gz") as path:
        return survey(open_source(path), ("pci", "gpu", "kernel_log", "host"))


def text(data: bytes) -> object:
    """The output of another tool."""
    reading = read([text_of("text", lines(data, "text"))])
    assert all(0 <= number < len(reading.texts[0].lines) for number in reading.unread["text"])
    return reading


def kernel_log(data: bytes) -> object:
    """dmesg, journalctl or /dev/kmsg, as a probe reads it."""
    times = saved.times(data)
    if times is None:
        return None
    rows = {str(number): line for number, line in enumerate(relevant_lines(times))}
    return survey(RecordedSource({"kmsg": {**rows}}, Origin("recording")), ("kernel_log",))


def configuration(data: bytes) -> object:
    """The site's configuration."""
    with _file(data, "config.toml") as path:
        return of_site(path, [check.id for check in CHECKS])


def profile(data: bytes) -> object:
    """A reference machine."""
    with _file(data, "profile.toml") as path:
        return library.by_name(path)


def config_space(data: bytes) -> object:
    """A PCI configuration space."""
    kept = publishable(data)
    assert len(kept) == len(data)
    for part in (express, acs, control):
        assert part(kept, "x") == part(data, "x"), part.__name__
    return kept


def shown(data: bytes) -> object:
    """Any text on a terminal: nothing that controls it, nothing that hides."""
    out = visible(data.decode("utf-8", "surrogateescape"))
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in out), ascii(out)
    return out


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (recording, bug_report, text, kernel_log, configuration, profile, config_space, shown)
}


def tried(target: Target, data: bytes) -> None:
    """One input; an AssertionError, or whatever the target raises, is a fault."""
    try:
        target(data)
    except BadInput as error:
        said = str(error)
        assert said, "a refusal without words"
        assert "\n" not in said, ascii(said)
