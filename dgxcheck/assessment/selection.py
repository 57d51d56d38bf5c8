"""Which checks a request selects, and the site's settings for them."""

from __future__ import annotations

from collections.abc import Iterable

from dgxcheck.assessment.request import Request
from dgxcheck.checks.drift import baseline
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.registry import CHECKS
from dgxcheck.configuration import of_site
from dgxcheck.facts.missing import BadInput
from dgxcheck.settings import Settings
from dgxcheck.suggestion import did_you_mean


def selected(request: Request) -> tuple[list[Check], set[str]]:
    """The checks to run, and the ids of those that must be judged; BadInput for one that does not exist."""
    left_out = {check.id for check in named(request.skip)}
    checks = [check for check in (named(request.only) or CHECKS) if check.id not in left_out]
    required = {check.id for check in named(request.require)}
    if baseline.ID in required and request.baseline is None:
        raise BadInput(f"--require {baseline.ID} requires --baseline FILE, the recording to compare with")
    if idle := sorted(required - {check.id for check in checks}):
        raise BadInput(f"--require {idle[0]}: the check is excluded by --only or --skip")
    return checks, required


def named(words: Iterable[str]) -> list[Check]:
    """Checks by id or by subject, in the order of the catalogue; each word may list several, with commas between."""
    wanted = {word.strip() for each in words for word in each.split(",")}
    known = {check.id for check in CHECKS} | {check.id.partition(".")[0] for check in CHECKS}
    if unknown := sorted(wanted - known):
        hint = did_you_mean(unknown[0], known, "list the checks with 'dgxcheck health -H'")
        raise BadInput(f"no check {unknown[0]!r}; {hint}")
    return [check for check in CHECKS if wanted & {check.id, check.id.partition(".")[0]}]


def site_settings(config: str | None) -> Settings:
    """What the site configured: in this file, else in ``$DGXCHECK_CONFIG``, else in /etc/dgxcheck/config.toml."""
    return of_site(config, [check.id for check in CHECKS])
