"""``dgxcheck fleet`` over 100, 1,000 and 10,000 results: seconds, peak memory, and what it finds of what was planted.

    python benchmarks/fleet.py [COUNT ...]

Results are those of shipped recordings with 1 % of noise on every figure and 5 % of faults (tests/fleet/many.py).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "fleet"))


def written(folder: Path, count: int) -> tuple[int, dict[str, str]]:
    """Write results in files of 1,000 lines; their bytes, and what is wrong with which node."""
    from many import fleet

    planted, size, stream = {}, 0, None
    for number, (document, fault) in enumerate(fleet(count)):
        if number % 1000 == 0:
            stream = (folder / f"{number}.jsonl").open("w")
        assert stream is not None
        size += stream.write(json.dumps(document) + "\n")
        if fault:
            planted[document["host"]] = fault
    if stream is not None:
        stream.close()
    return size, planted


def judged(folder: Path) -> tuple[float, float, dict[str, object]]:
    """Run the command; CPU seconds, peak MiB, and its document."""
    output = folder / "fleet.out"
    before = time.monotonic()
    child = os.fork()
    if not child:
        os.execv(sys.executable, [sys.executable, "-m", "dgxcheck", "fleet", "--format", "json", "--fail-on", "never",
                                  "-o", str(output), str(folder)])  # fmt: skip
    _, status, used = os.wait4(child, 0)
    assert status == 0
    document: dict[str, object] = json.loads(output.read_text())
    print(f"wall {time.monotonic() - before:.1f} s", end=", ")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, document


def main(counts: list[int]) -> None:
    """A line per count."""
    for count in counts:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            size, planted = written(folder, count)
            seconds, peak, document = judged(folder)
        outliers, nodes = document["outliers"], document["nodes"]
        assert isinstance(outliers, list)
        assert isinstance(nodes, list)
        off = {(each["node"], each["key"]) for each in outliers}
        figures = {(node, fault[7:]) for node, fault in planted.items() if fault.startswith("figure ")}
        faults = {node for node, fault in planted.items() if fault == "fault"}
        bad = {node["name"] for node in nodes if node["verdict"] != "pass"}
        healthy = {node["name"] for node in nodes} - set(planted)
        wrong = healthy & (bad | {node for node, _ in off})
        print(f"{count} results, {size >> 20} MiB: {seconds:.1f} s of CPU, {peak:.0f} MiB; figures"
              f" {len(figures & off)} of {len(figures)}, faults {len(faults & bad)} of {len(faults)},"
              f" healthy nodes flagged {len(wrong)} of {len(healthy)}")  # fmt: skip


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [100, 1000, 10_000])
