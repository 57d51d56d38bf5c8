"""``python -m fuzz TARGET [option of libFuzzer ..]``: one target under atheris, from the kept corpus and its seeds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"


def main() -> None:
    import atheris  # of CPython 3.11 to 3.13 there are wheels

    with atheris.instrument_imports(include=["dgxcheck", "probes"]):
        from fuzz.seeds import seeds
        from fuzz.targets import TARGETS, tried

    name, *options = sys.argv[1:]
    kept, found = CORPUS / name, Path(".fuzz") / name
    found.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(name)):
        (found / f"seed-{number}").write_bytes(seed)
    target: Any = TARGETS[name]
    places = [str(found), *([str(kept)] if kept.is_dir() else [])]
    # by the wall clock, and under instrumentation: what is slower than linear is caught by the tests in test_fuzz.py
    bounds = ("-timeout=60", "-rss_limit_mb=1024", f"-artifact_prefix={found}-")
    atheris.Setup([sys.argv[0], *bounds, *options, *places],
                  lambda data: tried(target, data))  # fmt: skip
    atheris.Fuzz()


if __name__ == "__main__":
    main()
