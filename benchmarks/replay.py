"""Start-up and replay: ``topo -m`` on a recording, piped, beside the imports that no click command can do without.

    python benchmarks/replay.py [ROUNDS]

Run it with the interpreter of an environment that holds an installed wheel. The A/A row times the first command
against itself: ratios nearer to 1 than that are noise.
"""

from __future__ import annotations

import os
import sys

from timing import compare


def main() -> None:
    python = sys.executable
    command = os.path.join(os.path.dirname(python), "dgxcheck")
    commands = {
        "python -c 'import click, json'": [python, "-c", "import click, json"],
        "python -c pass": [python, "-c", "pass"],
        "topo -m --from dgx-1-v100": [command, "topo", "-m", "--from", "dgx-1-v100"],
        "topo -m --from dgx-a100": [command, "topo", "-m", "--from", "dgx-a100"],
    }
    compare(commands, int(sys.argv[1]) if len(sys.argv) > 1 else 31)


if __name__ == "__main__":
    main()
