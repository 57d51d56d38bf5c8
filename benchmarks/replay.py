"""Start-up and replay: commands on recordings, piped, beside the imports that no click command can do without.

    python benchmarks/replay.py [ROUNDS] [PYTHON ..]

Run it with the interpreter of an environment that holds an installed wheel; give the interpreters of other
environments to compare with the versions that are installed there, in the same run. The A/A row times the first
command against itself: ratios nearer to 1 than that are noise.
"""

from __future__ import annotations

import os
import sys

from timing import compare

COMMANDS = (
    "topo -m --from dgx-1-v100",
    "topo -m --from dgx-a100",
    "health -q --from dgx-1-v100",
    "health --from dgx-1-v100",
    "health --format json --from dgx-a100",
)


def main() -> None:
    rounds, *others = sys.argv[1:] or ["31"]
    commands = {
        "python -c 'import click, json'": [sys.executable, "-c", "import click, json"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    for words in COMMANDS:
        for python in (sys.executable, *others):
            where = os.path.dirname(os.path.abspath(python))
            label = words if python == sys.executable else f"{words} [{os.path.basename(os.path.dirname(where))}]"
            commands[label] = [os.path.join(where, "dgxcheck"), *words.split()]
    os.chdir("/")  # an interpreter takes modules from where it stands
    compare(commands, int(rounds))


if __name__ == "__main__":
    main()
