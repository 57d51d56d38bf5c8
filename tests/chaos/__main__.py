"""Run the matrix and print its counts; exit code 1 if anything failed."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from queue import SimpleQueue

from chaos.bench import Bench, compiled
from chaos.cases import Case, every


def run(cases: list[Case], jobs: int, box: str = "dgx-1-v100", warm: bool = False) -> dict[Case, list[str]]:
    """What does not hold, by case; ``jobs`` machines at once, ``warm`` where there are many cases."""
    with tempfile.TemporaryDirectory(prefix="dgxcheck-chaos-") as folder:
        Path(folder).chmod(0o755)
        libraries = compiled(Path(folder))
        free: SimpleQueue[Bench] = SimpleQueue()
        done = count(1)
        for number in range(jobs):
            free.put(Bench(Path(folder) / f"bench-{number}", libraries, box, warm=warm))

        def one(case: Case) -> list[str]:
            bench = free.get()
            try:
                found = bench.failures(case)
                for line in found:
                    print(f"{case}: {line}", flush=True)
                return found
            except Exception as error:  # noqa: BLE001 -- the run goes on, and this case has failed
                return [f"{type(error).__name__}: {error}"]
            finally:
                free.put(bench)
                if (number := next(done)) % 500 == 0:
                    print(f"{number} of {len(cases)}", file=sys.stderr, flush=True)

        with ThreadPoolExecutor(jobs) as pool:
            found = dict(zip(cases, pool.map(one, cases), strict=True))
        for bench in (free.get() for _ in range(jobs)):
            if bench.warm is not None:
                bench.warm.end()
        return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="error, hang, crash, slow, library, symbol, file, ..")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth case alone")
    parser.add_argument("--full", action="store_true", help="every code of every function at every GPU")
    parser.add_argument("--box", default="dgx-1-v100", metavar="NAME", help="a shipped recording; three of its GPUs")
    parser.add_argument("--jobs", type=int, default=6, metavar="N")
    given = parser.parse_args()
    cases = [case for case in every(given.full) if not given.rows or case.row in given.rows][:: given.every]
    since = time.monotonic()
    found = run(cases, given.jobs, given.box, warm=given.full)
    ran, failed = Counter(case.row for case in found), Counter(case.row for case, broken in found.items() if broken)
    for row, runs in ran.items():
        print(f"{row:<10}{runs:>6} runs{failed[row]:>6} failed")
    print(f"{'all':<10}{len(found):>6} runs{sum(failed.values()):>6} failed, {time.monotonic() - since:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
