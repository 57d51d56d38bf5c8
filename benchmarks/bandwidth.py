"""One GPU measured by dgxcheck and nvbandwidth alternately (A B A B ..): ratios of medians, with the noise.

    python benchmarks/bandwidth.py GPU_BUS_ID [--nvbandwidth PATH] [--rounds N] [--json FILE]

Without nvbandwidth, dgxcheck is compared with itself, and with itself sleeping 1 ms after each call that queues a copy:
neither ratio may leave 0.99 to 1.01. With it, the claim is 0.98 to 1.02 for copies from, to and within the GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
from collections.abc import Callable
from typing import Any

from dgxcheck.workers.cuda.supervisor import CudaStage

KINDS = {
    "host-to-device": "host_to_device_memcpy_ce",
    "device-to-host": "device_to_host_memcpy_ce",
    "device-copy": "device_local_copy",
}
"""dgxcheck's kind, nvbandwidth's test. The last counts each byte once there and twice here."""
RESAMPLED = 2000
Round = dict[str, float]


def ours(bdf: str, between_ms: float = 0.0) -> Round:
    """GB/s by kind, with nvbandwidth's sizes."""
    steps: list[dict[str, Any]] = [{"key": f"measure {kind} {bdf}", "gpus": [bdf], "long": True} for kind in KINDS]
    facts: dict[str, Any] = CudaStage(120, between_ms=between_ms).run(steps)
    if not all("value" in facts.get(step["key"], {}) for step in steps):
        raise SystemExit(f"not measured: {json.dumps(facts, indent=1)}")
    return {step["key"].split()[1]: facts[step["key"]]["value"] for step in steps}


def theirs(program: str, bdf: str) -> Round:
    """The same by nvbandwidth, with only this GPU visible."""
    chosen = [word for test in KINDS.values() for word in ("-t", test)]
    given = os.environ | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": bdf}
    done = subprocess.run([program, "-j", *chosen], capture_output=True, text=True, check=True, env=given)
    cases = json.loads(done.stdout[done.stdout.index("{") :])["nvbandwidth"]["testcases"]
    rates = {case["name"]: float(case["bandwidth_matrix"][0][0]) for case in cases}
    return {kind: rates[test] * (2 if kind == "device-copy" else 1) for kind, test in KINDS.items()}


def interval(a: list[float], b: list[float]) -> tuple[float, float, float]:
    """Ratio of the medians of ``a`` to ``b``, and its 95 % bootstrap interval."""
    draw = random.Random(0)
    made = sorted(
        statistics.median(draw.choices(a, k=len(a))) / statistics.median(draw.choices(b, k=len(b)))
        for _ in range(RESAMPLED)
    )
    return statistics.median(a) / statistics.median(b), made[RESAMPLED // 40], made[-RESAMPLED // 40]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpu", metavar="GPU_BUS_ID", help="as dgxcheck list prints it: 0000:06:00.0")
    parser.add_argument("--nvbandwidth", metavar="PATH")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", metavar="FILE", help="write all results")
    given = parser.parse_args()
    arms: dict[str, Callable[[], Round]] = {
        "dgxcheck": lambda: ours(given.gpu),
        "dgxcheck again": lambda: ours(given.gpu),
        "dgxcheck, 1 ms sleeps": lambda: ours(given.gpu, 1.0),
    }
    if given.nvbandwidth:
        arms["nvbandwidth"] = lambda: theirs(given.nvbandwidth, given.gpu)
        arms["nvbandwidth again"] = arms["nvbandwidth"]
    figures: dict[str, list[Round]] = {name: [] for name in arms}
    for turn in range(given.rounds):
        for name in arms if turn % 2 == 0 else reversed(arms):
            figures[name].append(arms[name]())
    pairs = [("dgxcheck again", "dgxcheck"), ("dgxcheck, 1 ms sleeps", "dgxcheck")]
    pairs += [("nvbandwidth again", "nvbandwidth"), ("dgxcheck", "nvbandwidth")] if given.nvbandwidth else []
    for kind in KINDS:
        for a, b in pairs:
            of_a, of_b = ([each[kind] for each in figures[name]] for name in (a, b))
            ratio, low, high = interval(of_a, of_b)
            median = statistics.median(of_a)
            print(f"{kind:16}{a} / {b}: {ratio:.4f} [{low:.4f}, {high:.4f}]   {median:.2f} GB/s, {given.rounds} rounds")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
