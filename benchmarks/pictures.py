"""Time and size of the pictures and reports of every shipped box.

    python benchmarks/pictures.py [ROUNDS]

Times are the fastest of so many rounds in one process, without start-up and judging.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from dgxcheck.assessment.health import assess
from dgxcheck.assessment.machine import Machine, examine
from dgxcheck.output.health.page import as_html, as_markdown
from dgxcheck.output.picture import layout, svg
from dgxcheck.output.report import HealthReport
from dgxcheck.output.topo.picture import wiring_marks
from dgxcheck.source.recording.load import shipped


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"{'box':<18} {'svg ms':>8} {'kB':>6} {'html ms':>8} {'kB':>6} {'markdown kB':>12}")
    for name, path in shipped():
        if "/faults/" in path.replace("\\", "/"):
            continue
        machine = examine(name)
        report = HealthReport(assessment=assess(name), exit_code=0)

        def drawn(machine: Machine = machine) -> str:
            topology, numa = machine.topology, machine.snapshot.numa
            return svg.render([layout.drawn(topology, numa, "a box", wiring_marks(topology))])

        def written(report: HealthReport = report) -> str:
            return as_html(report)

        (svg_ms, picture), (html_ms, page) = _fastest(drawn, rounds), _fastest(written, rounds)
        sizes = [len(text.encode()) / 1000 for text in (picture, page, as_markdown(report))]
        print(f"{name:<18} {svg_ms:8.1f} {sizes[0]:6.1f} {html_ms:8.1f} {sizes[1]:6.1f} {sizes[2]:12.1f}")


def _fastest(make: Callable[[], str], rounds: int) -> tuple[float, str]:
    """Milliseconds of the fastest round, and what it made."""
    times, text = [], ""
    for _ in range(rounds):
        begin = time.perf_counter()
        text = make()
        times.append(1000 * (time.perf_counter() - begin))
    return min(times), text


if __name__ == "__main__":
    main()
