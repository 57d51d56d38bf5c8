"""The most that is read of each input. What is beyond a limit is refused with one line, or left out where that is said.

dgxcheck-recording(5), LIMITS, lists them for users; memory stays below 512 MiB on any input.
"""

from __future__ import annotations

READ_CPU_S = 30
"""Seconds of CPU time for one text, bug report, kernel log or file of results; the worst that was found takes 8."""

KEY_BYTES = 64 << 10
"""A site key."""
LEAST_KEY_BYTES = 16

ATTRIBUTE_BYTES = 64 << 10
"""A file of sysfs; the kernel gives at most 4 KiB of text and 64 KiB of configuration space."""
FILE_BYTES = 4 << 20
"""Any other file of a machine: ``/proc/cpuinfo`` has 1.5 KiB per CPU, pci.ids 1.4 MiB."""
TREE_BYTES = 64 << 20
"""All files of a directory source together."""
TREE_NAMES = 100_000
"""Entries of one directory."""

GPUS = 320
"""NVIDIA display controllers of a machine: whatever is judged of pairs grows with the square."""
HCAS = 576
"""RDMA devices of a machine, virtual functions too."""

RECORDING_BYTES = 16 << 20
"""A recording, uncompressed; that of a DGX A100 has 0.5 MiB."""
OVERLAY_BYTES = 1 << 20
OVERLAY_DEPTH = 8
"""Overlays on overlays."""
JSON_GROUPS = 250_000
"""Objects and lists of a JSON file: a recording has about five per PCI function."""
JSON_VALUES = 1_000_000
"""Commas of a JSON file."""
NUMBER_DIGITS = 40
BINARY_BYTES = 64 << 10
NVML_DEPTH = 8
"""Levels of an NVML answer; a struct in a list has two."""

TOML_BYTES = 64 << 10
"""A configuration or profile."""
TOML_DOTS = 64
"""Dots in one line: each may open a table in a table."""

IMPORT_BYTES = 64 << 20
"""The text of one file that is imported."""
IMPORT_LINES = 1_000_000
"""Of a text with more the beginning and the end are looked at."""
READ_LINES = 30_000
"""Lines of a text that are read; of more those that name devices and errors first."""
READ_CHARACTERS = 3 << 20
"""All of these lines together."""
LINE_CHARACTERS = 256 << 10
"""A line of such a text; longer ones are not read. ``nvidia-smi -q -x`` of 16 GPUs has 200 KiB in all."""

REPORT_BYTES = 64 << 20
"""A bug report or support archive as it is packed; that of a large box has 20 MiB."""
UNPACKED_BYTES = 256 << 20
"""All that such a file unpacks to."""
UNPACKED_LINES = 4_000_000
"""Of these: packed newlines unpack to a thousandfold."""
SECTION_BYTES = 16 << 20
"""What is kept of one output in it."""
BUNDLE_BYTES = 64 << 20
"""What is kept of all of them."""
LOOSE_BYTES = 8 << 20
"""Files of a bundle that are tried with every reader, because their names do not identify them."""
ARCHIVE_MEMBERS = 50_000
"""Files of an archive, or of a directory of outputs; sections of a bug report."""

LOG_BYTES = 64 << 20
"""A saved kernel log, and what is read of ``/dev/kmsg``."""
LOG_ROWS = 250_000
"""Of a saved log with more the last are read."""
LOG_ROW_BYTES = 64 << 10
"""A row of a saved log, of which a JSON object is read whole or not at all."""
LOG_LINE_CHARACTERS = 1000
"""What is kept of a message."""
LOG_LINES = 500
"""Messages of one kind; of more the last are kept."""
LOG_GPUS = 128
"""GPUs whose Xids are judged, and NVSwitches of SXids; of more those that are named last."""
LOG_BOOTS = 64
"""Boots before the last, of which the driver's messages are kept."""

RESULT_BYTES = 8 << 20
"""One result of ``health --format json`` or ``jsonl``; that of a DGX A100 has 0.5 MiB."""
FLEET_FILES = 200_000
"""Files of a folder of results."""
FLEET_IDLE_LINES = 100_000
"""Lines of one file of results that hold none, blank ones too: packed newlines unpack to a thousandfold."""
RESULT_CPU_S = 0.01
"""What each result adds to the CPU time of its file; one of 0.5 MiB takes so much."""
FLEET_RESULTS = 200_000
"""In one file, of each node one and more; without figures they take 16 microseconds each."""
HISTORY_RESULTS = 1_000_000
"""Results of ``fleet --history``: 500 nodes, one an hour, for a quarter of a year. Each takes about 0.5 KiB."""
PAIR_FILES = 400_000
"""Outputs of ``fleet pairs``: 1,000 nodes of 8 adapters in 100 rounds."""
PAIR_BYTES = 256 << 10
"""What is read of one."""
FABRIC_BYTES = 24 << 20
"""An output about a fabric, unpacked; ``iblinkinfo`` of 1,000 systems has 5 MiB."""
FABRIC_LINES = 1_000_000
NODES = 200_000
"""Names of a list such as ``dgx[001-999]``."""
NODE_RANGES = 8
"""Ranges in one name, of which each multiplies the names."""

WATCH_BYTES = 4 << 20
"""The state file of ``watch``; with all that it keeps it has 0.5 MiB."""
