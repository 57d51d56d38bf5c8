"""What happens to the output of a tool on its way into a mail, an issue or a log: for tests of the readers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

Change = Callable[[list[str]], list[str]]


def _each(before: str) -> Change:
    return lambda lines: [f"{before}{line}" for line in lines]


def _numbered(form: str) -> Change:
    return lambda lines: [form.format(number, line) for number, line in enumerate(lines, 1)]


def _around(first: list[str], last: list[str]) -> Change:
    return lambda lines: [*first, *lines, *last]


def _times(lines: list[str]) -> list[str]:
    return [f"2026-03-04T05:{n // 60 % 60:02}:{n % 60:02}.123456789Z {line}" for n, line in enumerate(lines)]


def _clocks(lines: list[str]) -> list[str]:
    return [f"[2026-03-04 05:{n // 60 % 60:02}:{n % 60:02}] {line}" for n, line in enumerate(lines)]


def _json(name: str, others: Mapping[str, str], end: str = "") -> Change:
    return lambda lines: [json.dumps({name: f"{line}{end}", **others}) for line in lines]


def _underlined(lines: list[str]) -> list[str]:
    return [f"[4m{line}[0m" if at == 0 else line for at, line in enumerate(lines)]


def _coloured(lines: list[str]) -> list[str]:
    return [f"\x1b[1;32m{line}\x1b[0m\x1b[K" for line in lines]


ESCAPED = r"\\\1"
"""As Markdown writes a sign that it would take for its own."""
HARMLESS: Mapping[str, Change] = {
    "fence": _around(["Here is what it prints:", "", "```console"], ["```", ""]),
    "details": _around(["<details>", "<summary>output</summary>", "", "<pre>"], ["</pre>", "</details>"]),
    "quote": _each("> "),
    "quote twice": _each(">> "),
    "indent": _each("    "),
    "prompt": _around(["$ sudo nvidia-smi --whatever"], ["$ "]),
    "root prompt": _around(["root@node7:~# true; nvidia-smi"], ["root@node7:~# exit"]),
    "cat -n": _numbered("{:6d}\t{}"),
    "grep -n": _numbered("{}:{}"),
    "editor": _numbered("{:4d} | {}"),
    "container": _times,
    "wrapper": _clocks,
    "mpirun": _each("[1,0]<stdout>:"),
    "mpirun 5": _each("[prterun-n1-123@1,0]<stdout>: "),
    "srun -l": _each("0: "),
    "kubectl": _each("[pod/gpu-check-x7k2p/main] "),
    "compose": _each("check-1  | "),
    "torchrun": _each("[rank0]: "),
    "pdsh": _each("node01: "),
    "journal": _each("Mar 04 05:06:07 node01 check[1234]: "),
    "journal, ISO 8601": _each("2025-03-04T05:06:07.123456+00:00 node01 check[1234]: "),
    "stern": _each("gpu-check-x7k2p main "),
    "file of a container": _json("log", {"stream": "stdout", "time": "2025-03-04T05:06:07.123456789Z"}, "\n"),
    "journal, JSON": _json("MESSAGE", {
        "__REALTIME_TIMESTAMP": "1741064767123456", "_HOSTNAME": "node01", "_TRANSPORT": "stdout",
        "SYSLOG_IDENTIFIER": "check", "_PID": "1234",
    }),
    "clush": _around(["---------------", "node01", "---------------"], []),
    "no ESC": _underlined,
    "colour": _coloured,
    "entities": lambda lines: [line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for line in lines],
    "bars": lambda lines: [f"{line.replace('&', '&amp;').replace('|', '&#124;')}<br>" for line in lines],
    "escapes": lambda lines: [f"> {re.sub('([|*]|(?<=[a-z0-9])_(?=[a-z]))', ESCAPED, line)}" for line in lines],
    "column": lambda lines: [f"| {line} |" for line in lines],
    "table of one column": lambda lines: ["| output |", "|---|", *(f"| {line} |" for line in lines)],
    "pane beside it": _each("\u2502"),
    "pane behind it": lambda lines: [f"{line:120} \u2502" for line in lines],
    "CRLF": lambda lines: [f"{line}\r" for line in lines],
    "no-break": lambda lines: [line.replace("  ", " \xa0") for line in lines],
    "Chinese": _around(["下面是这台机器的输出，请看一下："], ["谢谢大家帮忙看看这个问题"]),
    "Korean": _around(["안녕하세요 아래 출력을 봐 주세요"], ["감사합니다 잘 부탁드립니다"]),
    "greeting": _around(["Hello everybody, please have a look at this:"], ["", "Thanks a lot for any help with this."]),
}
"""Nothing of the output is lost: it reads as before."""
