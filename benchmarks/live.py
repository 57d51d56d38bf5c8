"""The live path: ``topo`` and ``record`` over a sysfs of 500 functions with a stand-in NVML, beside ``lspci -tv``.

    python benchmarks/live.py [ROUNDS]

Needs lspci and a C compiler. The tree is the shipped DGX-1 with V100, and uncore functions as servers have them by the
hundred. Run it with the interpreter of an environment that holds an installed wheel.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from live_box import serve, shipped
from standin import nvml
from timing import compare

FUNCTIONS = 500
DEVICES = Path("sys/bus/pci/devices")
IDS = {"vendor": "0x8086", "device": "0x6fb0", "class": "0x088000", "irq": "0", "resource": "0x0 0x0 0x0"}


def fill(tree: Path) -> None:
    """Uncore functions of Broadwell-EP until there are enough, and what lspci needs of every function."""
    folder = tree / DEVICES
    for number in range(FUNCTIONS - len(os.listdir(folder))):
        bdf = f"0001:{number // 256:02x}:{number // 8 % 32:02x}.{number % 8}"
        target = f"../../../devices/pci0001:{number // 256:02x}/{bdf}"
        (folder / target).mkdir(parents=True)
        (folder / bdf).symlink_to(target)
    for function in folder.iterdir():
        for name, text in IDS.items():
            if not (function / name).exists():
                (function / name).write_text(f"{text}\n")
        if not (function / "config").exists():
            (function / "config").write_bytes(bytes.fromhex("8680b06f").ljust(64, b"\0"))


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        box = serve(shipped("dgx-1-v100"), Path(directory))
        fill(box.tree)
        os.environ.update(box.environment(nvml.build(Path(directory))))
        os.chdir(directory)  # an interpreter takes modules from where it stands
        run = f"import sys; sys.argv[0] = 'dgxcheck'; from dgxcheck.__main__ import run; run({str(box.tree)!r})"
        live = [sys.executable, "-c", run]
        commands = {
            "lspci -tv": ["lspci", "-tv", "-O", f"sysfs.path={box.tree}/sys/bus/pci"],
            "topo": [*live, "topo"],
            "record": [*live, "record", os.devnull],
        }
        compare(commands, int(sys.argv[1]) if len(sys.argv) > 1 else 21)


if __name__ == "__main__":
    main()
