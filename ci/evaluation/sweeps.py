"""Sweeps of settings whose best value is known, against what ``netproof measure`` recommends.

Each run plants a value worse than those of the sweep, in a library, on the nodes or not at all, and
`netproof measure tune` sweeps. It has to recommend the value planted as best, and nothing where no
value differs. A run that broke is not judged, and repeated.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ci.evaluation import engine
from ci.evaluation.engine import Answer, Evaluation, Grade, Plant, Run, not_judged, short

DONE, CANNOT_TELL = 0, 2
"""Exit statuses of ``netproof measure tune``."""
DISTURBED = """for partition in site_configuration["systems"][0]["partitions"]:
    # Programs of delay lines use CPUs while packets pass.
    partition["extras"]["criteria"]["disturbance"] = {"others": 1, "steal": 1}
"""

KINDS = engine.plants("tune-campaign")


class Sweeps(Evaluation):
    """Sweeps of settings on the testbed whose best value is known, by what they recommend."""

    name = "tune-campaign"
    verb = "measure tune"
    grades = (Grade.RIGHT, Grade.WRONG, Grade.MISSED, Grade.INCONCLUSIVE, Grade.NOT_JUDGED)
    rejudges = False

    def site(self, run: Run, folder: Path) -> dict[str, str]:
        """Allow for the programs of a delay line, if the fault is one."""
        return self.site_with(run, folder, DISTURBED if "delay" in run.fault else "")

    def reframe(self, run: Run, settings: Mapping[str, Any]) -> None:
        """The question measures."""

    def question(self, run: Run, settings: Mapping[str, Any], report: Path) -> list[str]:
        """Ask for the sweep."""
        kind, (environment,) = KINDS[run.kind], run.environments
        place = f"testbed:{kind.switch}"
        if kind.function:
            words = ["algorithms", place, kind.function, "--ranks", "2"]
        else:
            words = ["tune", place, kind.parameter, "--protocol", kind.protocol]
        if kind.values:
            words += ["--values", ",".join(kind.values)]
        return ["measure", *words, "--environment", environment]

    def without_document(self, status: int, errors: str) -> Answer:
        """A sweep that cannot tell says why."""
        said = [line for line in errors.splitlines() if line.startswith("netproof: ")]
        if status != CANNOT_TELL or not said:
            return super().without_document(status, errors)
        return Answer(Grade.INCONCLUSIVE, (short(said[-1]),))

    def judge(self, run: Run, status: int, document: Any) -> Answer:
        """Grade ``netproof measure``, whose document has to be of the sweep that was asked for."""
        kind = KINDS[run.kind]
        if status != DONE:
            return not_judged(f"netproof measure tune ended with {status}")
        (sweep,) = document["sweeps"]
        if sweep["parameter"] != kind.parameter:
            return not_judged(f"it is a sweep of {sweep['parameter']}")
        if kind.function:
            return _winners(kind, sweep)
        if kind.steps:
            return _steps(kind, sweep)
        return _recommendation(kind, sweep["recommended"])


EVALUATION = Sweeps()


def _recommendation(kind: Plant, best: Mapping[str, Any] | None) -> Answer:
    if best is None:
        return Answer(Grade.MISSED if kind.best else Grade.RIGHT, ("nothing recommended",))
    right = best["value"] in kind.best
    return Answer(Grade.RIGHT if right else Grade.WRONG, (short(best["sentence"]),))


def _winners(kind: Plant, sweep: Mapping[str, Any]) -> Answer:
    """Check that the planted algorithm wins at all sizes, or none anywhere without one."""
    winners = {row["winner"] for row in sweep["sizes"]}
    if winners - {None} - set(kind.best):
        found = Grade.WRONG
    elif winners == set(kind.best or [None]):
        found = Grade.RIGHT
    else:
        found = Grade.MISSED
    return Answer(found, (short(sweep["conclusion"]),))


def _steps(kind: Plant, sweep: Mapping[str, Any]) -> Answer:
    """Check that each limit shows between the right sizes, or their neighbours."""
    sizes = [size for size, _ in sweep["values"][0]["by_size"]]
    seen_at, seen = list[str](), 0
    steps = {step["value"]: step["sizes"] for step in sweep["eager_steps"]}
    for value in kind.values:
        between = steps[value]
        seen += between is not None and _near(int(value), between[1], sizes)
        seen_at.append(f"{value}: {'none' if between is None else f'{between[0]} to {between[1]}'}")
    found = Grade.RIGHT if seen == len(kind.values) else Grade.MISSED
    return Answer(found, (short(", ".join(seen_at)),))


def _near(limit: int, above: int, sizes: Sequence[int]) -> bool:
    """Check that the first size not sent eagerly fits a limit, give or take one size."""
    return above in sizes and abs(sizes.index(above) - bisect_right(sizes, limit)) <= 1
