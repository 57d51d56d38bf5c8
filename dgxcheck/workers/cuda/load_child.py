"""The worker that keeps one GPU under load for a burn-in, turn by turn.

The plan is one line of JSON on stdin: ``library``, ``gpu``, ``peers`` (bus ids, those to prefer first), ``cpus``,
``begin`` (monotonic) and ``unit_s``. It says ``start``, then each turn as ``NAME CYCLE``. It ends when stdin does or
holds another line: a worker whose parent is gone has nobody to burn for.
"""

from __future__ import annotations

import json
import time
from typing import Any

from dgxcheck.cuda import environment
from dgxcheck.workers.answers import SPENT, answer, ask, end, first_line, leave, told_to_end


def main() -> None:
    plan = json.loads(first_line())
    environment.prepare()
    from dgxcheck.cuda.device import Full
    from dgxcheck.cuda.driver import CudaError
    from dgxcheck.cuda.figures import skipped
    from dgxcheck.cuda.session import Session

    session = Session(plan, lambda bdf: None, lambda bdf: {})
    ask("start")
    fact = session.start()
    if "value" in fact:
        session.bind(plan)
        try:
            signed = {"tool": fact["tool"], "how": fact["how"]}
            burn, fact = _burn(session, plan)
            answer("start", fact | signed)
            fact = _load(burn, session, plan)
        except CudaError as error:
            fact = session.refused(error)
        except Full as full:
            fact = skipped("busy", str(full))
        if fact:
            answer("failed", fact)
        if fact.get("sticky"):
            leave(SPENT)
        ask("closing")
        session.close()
    else:
        answer("start", fact)
    end()


def _burn(session: Any, plan: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The load and what to say of it; without the GPU a fact that has no ``value``."""
    from dgxcheck.cuda.burn import Burn
    from dgxcheck.cuda.figures import single, skipped
    from dgxcheck.cuda.timing import Clock

    if (gpu := session.gpu(plan["gpu"])) is None:
        return None, skipped("not-visible", f"CUDA does not list {plan['gpu']}")
    others = [(bdf, session.gpu(bdf)) for bdf in plan["peers"]]
    near = [(bdf, peer) for bdf, peer in others if peer is not None and gpu.can_access(peer) and peer.can_access(gpu)]
    bdf, peer = near[0] if near else (None, None)
    burn = Burn(gpu, peer, Clock())
    method = "multiply-adds, patterns, host and peer copies"
    return burn, single(burn.bytes, "bytes", method, peer=bdf, turns=[*burn.names])


def _load(burn: Any, session: Any, plan: dict[str, Any]) -> dict[str, Any]:
    """Turn after turn until told to end; what the driver refused, with the ``turn``, where that ended it."""
    from dgxcheck.cuda.burn import turns
    from dgxcheck.cuda.device import Full
    from dgxcheck.cuda.driver import OUT_OF_MEMORY, STICKY, CudaError
    from dgxcheck.cuda.figures import failed, skipped

    if burn is None:
        return {}
    names = [*burn.names]
    for cycle, name, until in turns(names, plan["begin"], plan["unit_s"]):
        key = f"{name} {cycle}"
        ask(key)
        try:
            fact = burn.turn(name, lambda until=until: time.monotonic() >= until or told_to_end())
        except Full as full:
            fact = skipped("busy", str(full))
        except CudaError as error:
            if error.code != OUT_OF_MEMORY and (name != "peer" or error.code in STICKY):
                return {**session.refused(error), "turn": name}
            fact = skipped("busy", str(error))
            if error.code != OUT_OF_MEMORY:
                fact = failed(error)  # the other GPU may belong to one process alone
                names.remove(name)
        answer(key, fact)
        left = until - time.monotonic() if "skipped" in fact else 0.0
        if told_to_end(max(0.0, left)):
            break
    return {}
