"""Run ``dgxcheck health`` on many nodes, over ClusterShell.

ClusterShell brings node groups, ssh, the window of nodes at once, and time limits; it is the extra ``dgxcheck[fleet]``.
https://clustershell.readthedocs.io/en/latest/api/
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from time import time
from typing import Any

from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record, replace
from dgxcheck.fleet.document import NotAResult, SharedStrings, result_of
from dgxcheck.fleet.judge import MAX_AGE_S, Fleet, dated, fleet_of, refuse_future
from dgxcheck.fleet.node import Result
from dgxcheck.fleet.outliers import FigureColumns
from dgxcheck.fleet.reading import Unread, parsed
from dgxcheck.fleet.same_name import another_of_series, same_node
from dgxcheck.limits import RESULT_BYTES

ShowProgress = Callable[[int, int], None]
"""Called with the number of nodes that are done, and of all."""
_LOOK_S = 0.2
"""Between two looks whether to end."""
_LAST_WORDS = 200
_ENDED_WITH_US = (
    "exec 3<&0; if s=$(command -v setsid); then $s sh -c {quoted} </dev/null 3<&- & else {plain} </dev/null 3<&- & fi;"
    " p=$!;"
    " $s sh -c 'read -r x; kill -s TERM -- -$0 || kill $0' $p <&3 >/dev/null 2>&1 & exec 3<&-;"
    " wait $p; r=$?; kill $! 2>/dev/null; exit $r"
)
"""On the node: without a terminal, sshd leaves a command running when its client is gone; its standard input ends.
With setsid(1) what the command started ends with it.
"""


class RemoteRun(Record, kw_only=False):
    """What is run where."""

    nodes: str
    """As ClusterShell writes them: ``dgx[001-016],@rack3``."""
    options: Sequence[str] = ()
    """Of ``dgxcheck health``."""
    program: str = "dgxcheck"
    """How it is called on the nodes; with the worker ``exec``, which runs here, ``%h`` is the node's name."""
    worker: str = "ssh"
    fanout: int = 64
    """Nodes at once."""
    seconds: float = 300
    """After which a node's command is ended."""

    def command(self) -> str:
        """For the shell of a node."""
        words = shlex.join((*self.options, "--format", "jsonl", "--fail-on", "never"))
        plain = f"{self.program} health {words}"
        return f"sh -c {shlex.quote(_ENDED_WITH_US.format(plain=plain, quoted=shlex.quote(plain)))}"


def node_set(text: str) -> tuple[str, ...]:
    """Names of nodes and groups, ``dgx[001-016],@rack3``, as ClusterShell unfolds them.

    Raises BadInput without ClusterShell, or for a text that it cannot read.
    """
    try:
        from ClusterShell.NodeSet import NodeSet, NodeSetException
        from ClusterShell.NodeUtils import GroupResolverError, GroupResolverSourceError
    except ImportError:
        how = "pip install 'dgxcheck[fleet]', or the package clustershell"
        raise BadInput(f"{text[:80]}: needs ClusterShell: {how}") from None
    try:
        nodes = tuple(map(str, NodeSet(text)))
    except GroupResolverSourceError:
        raise BadInput(f"{text[:80]!r} names no node: groups.conf of ClusterShell has no such source") from None
    except (NodeSetException, GroupResolverError) as error:
        raise BadInput(f"{text[:80]}: {error}") from None
    if not nodes:
        raise BadInput(f"{text[:80]!r} names no node")
    return nodes


def judge_nodes(
    run: RemoteRun, is_stopped: Callable[[], object], progress: ShowProgress = lambda _done, _nodes: None
) -> Fleet:
    """Ask all nodes and judge what they answer; nodes that do not are silent, with the reason in ``unread``.

    Once ``is_stopped``, the commands end, on the nodes too; what has answered by then is judged. Raises BadInput as
    ``node_set`` does.
    """
    nodes = node_set(run.nodes)
    from ClusterShell.Task import task_self

    task = task_self()
    task.set_default("distant_workername", run.worker)
    for stream in ("stdout", "stderr"):
        task.set_default(f"{stream}_msgtree", False)  # each line is read once, by the handler
    task.set_info("fanout", run.fanout)
    answers = _Answers(nodes, lambda done: progress(done, len(nodes)))
    handler = answers.handler(is_stopped, task)
    task.shell(run.command(), nodes=",".join(nodes), handler=handler, timeout=run.seconds, stderr=True)
    # an exception out of a signal handler would leave ClusterShell's engine in the midst of a change, so that it cannot
    # end what it started: a timer of its own is asked between two events
    task.timer(_LOOK_S, handler, interval=_LOOK_S, autoclose=True)
    task.run()
    return answers.judged()


class _Answers:
    """What the nodes print, line by line; of a result what Result holds is kept."""

    def __init__(self, nodes: Sequence[str], progress: Callable[[int], None]) -> None:
        self._nodes = nodes
        self._results: list[Result] = []
        self._columns, self._shared = FigureColumns(), SharedStrings()
        self._why: dict[str, str] = {}
        self._died: dict[str, str] = {}
        """What became of a node's command, where it did not end well."""
        self.unanswered = "no result"
        self._done, self._progress = 0, progress

    def handler(self, is_stopped: Callable[[], object], task: Any) -> Any:
        """What ClusterShell calls, its timer too."""
        from ClusterShell.Event import EventHandler

        answers = self

        class Handler(EventHandler):  # type: ignore[misc]  # ClusterShell has no types
            def ev_read(self, worker: Any, node: str, sname: str, msg: bytes) -> None:
                answers.line(str(node), sname, msg)

            def ev_hup(self, worker: Any, node: str, rc: int | None) -> None:
                answers.ended(str(node), rc)

            def ev_close(self, worker: Any, timedout: bool) -> None:
                for node in worker.iter_keys_timeout():
                    answers.timed_out(str(node))

            def ev_timer(self, timer: Any) -> None:
                if is_stopped():
                    answers.unanswered = "no answer when interrupted"
                    task.abort()

        return Handler()

    def line(self, node: str, stream: str, text: bytes) -> None:
        """One line: a result, or words of ssh, the shell and dgxcheck."""
        if stream == "stdout" and text.startswith(b"{") and len(text) <= RESULT_BYTES:
            try:
                result, figures = result_of(parsed(text), self._shared)
                refuse_future(result, time())
                self._refuse_other(node, result.node)
            except NotAResult as error:
                self._why[node] = str(error)
                return
            self._columns.add(len(self._results), result.group, figures)
            self._results.append(replace(result, node=node))  # as the site calls it, whatever its host name is
        elif text.strip():
            self._why[node] = text[:_LAST_WORDS].decode("utf-8", "replace")

    def _refuse_other(self, node: str, host: str) -> None:
        """Raises NotAResult where another of these nodes answered, or one of the same series; any other host name is
        what the machine calls itself.
        """
        asked = any(same_node(host, other) for other in self._nodes) and not same_node(host, node)
        if asked or another_of_series(node, host):
            raise NotAResult(f"answered as {host}: a result of another node")

    def ended(self, node: str, code: int | None) -> None:
        """Its command is over."""
        self._done += 1
        self._progress(self._done)
        if code:
            self._died[node] = f"exit code {code}: {self._why.get(node, 'nothing more printed')}"

    def timed_out(self, node: str) -> None:
        """Its command was ended."""
        self._died[node] = "no answer within the time limit"

    def judged(self) -> Fleet:
        """The fleet, with a reason for each node that has no result, or has one and did not end well after it."""
        answered = {result.node for result in self._results}
        unread = [
            Unread(node, f"printed its result, then {why}" if node in answered else why)
            for node in self._nodes
            if (why := self._died.get(node) or ("" if node in answered else self._why.get(node, self.unanswered)))
        ]
        return fleet_of(self._results, self._columns, unread, self._nodes, dated(time() - MAX_AGE_S))
