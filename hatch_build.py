"""The build's own step: profiles and boards, which people write as TOML, go into the wheel as one file of JSON.

Parsing ten TOML files takes a command 15 ms, one of JSON a fraction of one. Nothing is written into the sources: a
checkout has no compiled file that could be out of date.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROFILES = "dgxcheck/profiles"


class Compiling(BuildHookInterface[Any]):
    """Puts ``shipped.json`` into a wheel, with the document of every TOML file by the file's name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self._folder = TemporaryDirectory()
        compiled = Path(self._folder.name, "shipped.json")
        compiled.write_text(compiled_profiles(Path(self.root, PROFILES)), encoding="utf-8")
        build_data["force_include"][str(compiled)] = f"{PROFILES}/{compiled.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._folder.cleanup()


def compiled_profiles(folder: Path) -> str:
    """The documents of the TOML files of a folder."""
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    documents = {path.stem: toml.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.toml"))}
    return json.dumps(documents, separators=(",", ":"), ensure_ascii=False)
