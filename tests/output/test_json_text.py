"""JSON is on one line in a pipe or file, indented on a terminal, and the same document in all three."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from dgxcheck.cli import main

COMMANDS = (["topo"], ["list"], ["health", "-q"], ["diff", "dgx-1-v100-hot"])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_where_json_is_indented(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = ["dgx-1-v100"] if command[0] == "diff" else ["--from", "dgx-1-v100"]
    argv = [command[0], *source, *command[1:], "--format", "json"]
    main(argv)
    piped = capsys.readouterr().out
    main([*argv, "-o", str(tmp_path / "file")])
    filed = (tmp_path / "file").read_text()
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", screen)
    main(argv)
    assert piped.count("\n") == filed.count("\n") == 1
    assert '\n "schema"' in screen.getvalue()
    assert plain(piped) == plain(filed) == plain(screen.getvalue())


def plain(text: str) -> dict[str, object]:
    """A document without what differs from run to run."""
    document: dict[str, object] = json.loads(text)
    return document | {"generated_at": "", "duration_seconds": 0}
