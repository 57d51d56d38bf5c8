"""A surprise removal as the kernel announces it, sent by umockdev."""

from __future__ import annotations

import json
import subprocess
import sys

from checkout import ROOT
from programs import program

SCRIPT = r"""
import ctypes, json, os, select, sys
sys.path.insert(0, sys.argv[1])
from dgxcheck.measure.burn_in.hot_plug import HotPlug
from dgxcheck.watch.event import ReportedEvent, as_json
from dgxcheck.watch.loop import SUBSYSTEMS, hot_plug

mock = ctypes.CDLL("libumockdev.so.0")
mock.umockdev_testbed_new.restype = ctypes.c_void_p
mock.umockdev_testbed_add_devicev.restype = ctypes.c_char_p
bed = ctypes.c_void_p(mock.umockdev_testbed_new())
words = lambda *given: (ctypes.c_char_p * (len(given) + 1))(*(each.encode() for each in given), None)

def device(subsystem, name, parent=None):
    return mock.umockdev_testbed_add_devicev(bed, subsystem.encode(), name.encode(), parent, words(), words())

gpu = device("pci", "0000:0a:00.0")
hca = device("pci", "0000:05:00.0")
mlx5 = device("infiniband", "mlx5_0", hca)
usb = device("usb", "1-1")
plug = HotPlug(SUBSYSTEMS, "kernel")
for path, action in ((usb, "remove"), (gpu, "bind"), (gpu, "remove"), (mlx5, "remove"), (gpu, "add")):
    mock.umockdev_testbed_uevent(bed, path, action.encode())
seen = []
while len(seen) < 3 and select.select([plug.fileno()], [], [], 10)[0]:
    seen += plug.changes()
print(json.dumps([as_json(ReportedEvent(hot_plug(each, {"0000:0a:00.0"}), "", 1)) for each in seen]))
"""


def test_a_removed_gpu_is_one_event() -> None:
    command = (program("umockdev-wrapper"), sys.executable, "-c", SCRIPT, str(ROOT))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert [(event["status"], event.get("bdf"), event["text"]) for event in json.loads(done.stdout)] == [
        ("warn", "0000:0a:00.0", "PCI function 0000:0a:00.0 removed"),
        ("pass", "0000:05:00.0", "infiniband device mlx5_0 removed"),
        ("pass", "0000:0a:00.0", "PCI function 0000:0a:00.0 added"),
    ]
