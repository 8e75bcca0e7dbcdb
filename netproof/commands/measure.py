"""The verbs ``measure load``, ``tails`` and ``gpcnet``, and what those of tuning share with them.

Each measures something of its own, or reads the report of an earlier session.

They are no acceptance: their reports are in folders that no verdict reads.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from netproof.commands.options import (
    EnvironmentOption,
    Form,
    FormatOption,
    PageOption,
    insist_on_site,
    session_and_system,
    verb,
)
from netproof.errors import NetproofError

if TYPE_CHECKING:
    from netproof.present.document import Block
    from netproof.site.matrix import Matrix
    from netproof.site.partition import Partition

WhereArgument = Annotated[
    str,
    typer.Argument(
        metavar="SYSTEM:PARTITION|SESSION",
        help="Where to measure; or the report of an earlier session, which is read.",
    ),
]

REFRAME = "reframe"
STDERR = 2
SHOWN, BEYOND, UNDECIDED = 0, 1, 3
"""Exit statuses: a result within its bounds, one beyond a bound, none or an inconclusive one."""


def run_reframe(arguments: Sequence[str], said: str, report: Path | None = None) -> int:
    """Run ReFrame with its output on standard error, and return its exit status.

    ``said``: stands before the command on standard error; ``report``: where it leaves its report,
    None for the folder that RFM_REPORT_FILE names. ReFrame ends with this process, and cancels its
    jobs. Raise NetproofError where it is not installed, and where it leaves no ``report``.
    """
    from netproof.commands.night import end_reframe, ending_with_this_process
    from netproof.present import terminal

    program = Path(sys.executable).with_name(REFRAME)
    if not program.is_file():
        raise NetproofError(f"{program}: is not there, so nothing can be measured")
    command = [str(program), *arguments, "-r"]
    if not sys.stderr.isatty():
        command.append("--nocolor")
    environment = {}
    if report is not None:
        report.parent.mkdir(parents=True, exist_ok=True)
        environment = {"RFM_REPORT_FILE": str(report)}
    terminal.say(terminal.console(stderr=True), f"{said}: {shlex.join(command)}")
    process = subprocess.Popen(
        command,
        stdout=STDERR,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
        # A signal to the terminal's processes would reach it twice.
        start_new_session=True,
        preexec_fn=ending_with_this_process(),
    )
    try:
        ended = process.wait()
    finally:
        if process.poll() is None:
            end_reframe(process)
    if report is not None and not report.is_file():
        raise NetproofError(
            f"reframe left no report {report} (exit status {ended}); what it printed says why"
        )
    return ended


class Where(NamedTuple):
    """Where something is measured: a partition of a site, and an environment there."""

    option: str
    system: str
    partition: str
    environment: str
    configuration: Mapping[str, Any]
    matrix: Matrix

    @classmethod
    def of(cls, option: str, environment: str = "", *, full: bool = False) -> Where:
        """Return it by ``SYSTEM:PARTITION``. Raise NetproofError where the site has none such."""
        system, partition = split(option)
        insist_on_site()
        from netproof.site import folders, site
        from netproof.site.matrix import matrix

        configuration = site.gather(folders.of_site())
        expected = matrix(configuration, system, [partition], all_functions=full)
        return cls(option, system, partition, environment, configuration, expected)

    @property
    def settings(self) -> Partition:
        """Return the partition as checks see it."""
        return self.matrix.partitions[self.partition]

    def insist(self, known: Collection[str], having: str, why: str = "") -> None:
        """Raise NetproofError unless the environment is among ``known``, those ``having`` what."""
        if self.environment not in known:
            raise NetproofError(
                f"{self.option} has no environment {self.environment!r} with {having}{why}; it has"
                f" {', '.join(known) or 'none'}"
            )

    def insist_on_pairs(self) -> None:
        """Raise NetproofError where the environment cannot measure nodes in pairs."""
        from netproof.benchmarks.registry import OF_PAIRS

        cases = self.matrix.cases
        there = sorted({one.environment for one in cases if one.benchmark == OF_PAIRS.name})
        self.insist(there, OF_PAIRS.label)

    def measure(
        self, checks: str, settings: Mapping[str, object], label: str, subject: str, what: str
    ) -> Path:
        """Have ReFrame measure, and return the path of its report.

        ``checks``: their file; ``settings``: of its tests, name to value; ``label``: the session's,
        and its subfolder's in that of reports; ``subject``: in the report's name; ``what``: is
        measured, in words. Raise NetproofError where ReFrame is missing or leaves no report.
        """
        from netproof.site import folders

        arguments = ["--system", self.option, "-p", self.environment]
        arguments += ["-c", str(folders.shipped("checks") / checks)]
        for name, value in settings.items():
            arguments += ["-S", f"{name}={value}"]
        arguments.append(f"--session-extras={label}={subject}")
        report = new_report(label, subject)
        run_reframe(arguments, f"measuring {what}", report)
        return report


def split(where: str) -> tuple[str, str]:
    """Return system and partition of ``SYSTEM:PARTITION``. Raise NetproofError for other forms."""
    system, _, partition = where.partition(":")
    if not partition:
        raise NetproofError(f"{where}: name a partition too, SYSTEM:PARTITION")
    return system, partition


def new_report(label: str, subject: str) -> Path:
    """Return the path of the next report of sessions with a label."""
    from netproof.session import labelled
    from netproof.site import folders

    folder = labelled.folder_of(folders.of_reports(), label)
    return folder / f"run-{subject}-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"


def show(
    several: Sequence[tuple[Any, Any]],
    report: Path,
    kind: str,
    answer: Callable[[Any, Any], tuple[str, list[Block]]],
    document: Callable[[Any], dict[str, Any]],
    folder: Path | None,
    form: Form,
) -> int:
    """Print what was measured and its figures: the answer of each, or all as a document.

    ``kind``: of all, for the title of a page; ``folder``: to write a page into, None for no page.
    Return the exit status of what has bounds.
    """
    from netproof.present import documents, terminal
    from netproof.present.document import show as print_blocks

    written = None
    if folder is not None:
        from netproof.present.html.folder import answers_page, write_page

        written = write_page(folder, lambda: answers_page(kind, [answer(*one) for one in several]))
    if form is Form.JSON:
        documents.write(document(several), sys.stdout)
    else:
        out = terminal.console()
        for one, figures in several:
            title, blocks = answer(one, figures)
            terminal.say(out, title, "bold")
            print_blocks(blocks, out)
        terminal.say(out, f"report {report}")
        if written is not None:
            terminal.say(out, f"page {written}")
    if any(getattr(found, "beyond", False) for _, found in several):
        return BEYOND
    return UNDECIDED if any(getattr(found, "undecided", False) for _, found in several) else SHOWN


def place_or_report(subject: str, environment: str | None) -> tuple[str, str] | Path:
    """Return where to measure, and in which environment; or the report to read instead.

    Raise typer.BadParameter for a place without an environment.
    """
    report, where = session_and_system([subject])
    if report is not None:
        return report
    if environment is None:
        raise typer.BadParameter("say with what: --environment")
    return where or "", environment


@verb(
    "load is inconclusive",
    "measure load mycluster:ib -p openmpi",
    "measure load reports/load/run-1.json --to page",
)
def load(
    subject: WhereArgument,
    environment: EnvironmentOption = None,
    victims: Annotated[
        str,
        typer.Option(
            "--victims", metavar="A,B,...", help="What to measure: latency, bandwidth, allreduce."
        ),
    ] = "all",
    aggressors: Annotated[
        str,
        typer.Option(
            "--aggressors",
            metavar="A,B,...",
            help="What congests: incast, all-to-all, broadcast, one-to-one.",
        ),
    ] = "all",
    nodes: Annotated[
        int, typer.Option("--nodes", min=0, help="Use so many nodes, 4 at least; 0 for all.")
    ] = 0,
    rounds: Annotated[
        int, typer.Option("--rounds", min=3, help="How often each is measured alone and alongside.")
    ] = 6,
    page: PageOption = None,
    form: FormatOption = Form.TEXT,
) -> int:
    """Measure two nodes alone and alongside others that congest, say what that costs."""
    report = place_or_report(subject, environment)
    if 0 < nodes < 4:
        raise typer.BadParameter("--nodes: give 4 at least, or 0 for all")
    if not isinstance(report, Path):
        report = _measured_load(Where.of(*report), victims, aggressors, nodes, rounds)
    from netproof.experiments.load import Loaded, findings
    from netproof.present.loads import load_answer, load_document

    several = [(one, findings(one)) for one in Loaded.of_report(report)]
    return show(several, report, "Under load", load_answer, load_document, page, form)


def _measured_load(where: Where, victims: str, aggressors: str, nodes: int, rounds: int) -> Path:
    from netproof.experiments.load import FOLDER
    from netproof.experiments.load_plan import LEAST_NODES, Aggressor, Victim, chosen

    measured, congesting = chosen(Victim, victims), chosen(Aggressor, aggressors)
    where.insist_on_pairs()
    most = where.settings.nodes
    if most < LEAST_NODES:
        raise NetproofError(
            f"{where.option} has {most} nodes, and load takes {LEAST_NODES}: two for what is"
            " measured, two for what congests"
        )
    settings = {
        "aggressors": ",".join(congesting),
        "victims": ",".join(measured),
        "most_nodes": nodes,
        "rounds": rounds,
    }
    count = len(measured) * len(congesting) * rounds
    what = f"{count} times alone and alongside, at each place"
    return where.measure("load.py", settings, FOLDER, where.partition, what)


@verb(
    "tails are inconclusive",
    "measure tails mycluster:ib -p openmpi --seconds 300",
)
def tails(
    subject: WhereArgument,
    environment: EnvironmentOption = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="For how long, as near as can be foreseen.")
    ] = 60,
    size: Annotated[
        int, typer.Option("--bytes", metavar="N", min=1, help="Size of the messages.")
    ] = 8,
    page: PageOption = None,
    form: FormatOption = Form.TEXT,
) -> int:
    """Time every call of a long PingPong between two nodes, name its pauses and when they were."""
    report = place_or_report(subject, environment)
    if not isinstance(report, Path):
        place = Where.of(*report)
        from netproof.experiments.tails import FOLDER

        place.insist_on_pairs()
        most = place.settings.max_message_bytes
        if size > most:
            raise NetproofError(
                f"--bytes {size}: the largest message of {place.option} is of {most} bytes"
            )
        settings = {"tails_seconds": f"{seconds:g}", "tails_bytes": size}
        what = f"single calls of {size} bytes for {seconds:g} s"
        report = place.measure("load.py", settings, FOLDER, place.partition, what)
    from netproof.experiments.tails import Tail, figures
    from netproof.present.loads import tail_answer, tail_document

    several = [(one, figures(one)) for one in Tail.of_report(report)]
    return show(several, report, "Single calls", tail_answer, tail_document, page, form)


@verb(
    "GPCNeT is inconclusive",
    "measure gpcnet mycluster:ib -p openmpi",
)
def gpcnet(
    subject: WhereArgument,
    environment: EnvironmentOption = None,
    rounds: Annotated[
        int, typer.Option("--rounds", min=3, help="How often to run it, some minutes each.")
    ] = 3,
    nodes: Annotated[
        int, typer.Option("--nodes", min=0, help="Use so many nodes, 10 at least; 0 for all.")
    ] = 0,
    form: FormatOption = Form.TEXT,
) -> int:
    """Run GPCNeT on all nodes of a partition, say what its congestors cost its tests."""
    report = place_or_report(subject, environment)
    if 0 < nodes < 10:
        raise typer.BadParameter("--nodes: give 10 at least, or 0 for all")
    if not isinstance(report, Path):
        report = _measured_gpcnet(Where.of(*report), rounds, nodes)
    from netproof.experiments.gpcnet import GpcnetRuns, findings
    from netproof.present.loads import gpcnet_answer, gpcnet_document

    several = [(one, findings(one)) for one in GpcnetRuns.of_report(report)]
    return show(several, report, "", gpcnet_answer, gpcnet_document, None, form)


def _measured_gpcnet(where: Where, rounds: int, nodes: int) -> Path:
    from netproof.experiments.gpcnet import FEATURE, FOLDER, LEAST_NODES, PROGRAM
    from netproof.site.matrix import partitions_in

    environments = partitions_in(where.configuration, where.system)[where.partition]["environs"]
    having = {
        one["name"]
        for one in where.configuration["environments"]
        if FEATURE in one.get("features", [])
    }
    there = [name for name in environments if name in having]
    if where.environment not in there:
        raise NetproofError(
            f"{where.option} has no environment {where.environment!r} with the feature {FEATURE!r};"
            f" it has {', '.join(there) or 'none'}. Put GPCNeT's {PROGRAM} into the environment's"
            " PATH and name the feature in its site's file"
        )
    most = where.settings.nodes
    if most < LEAST_NODES:
        raise NetproofError(
            f"{where.option} has {most} nodes, and GPCNeT takes {LEAST_NODES}: two for its tests,"
            " eight for its congestors; netproof measure load takes 4"
        )
    settings = {"gpcnet_rounds": rounds, "gpcnet_nodes": nodes}
    what = f"GPCNeT {rounds} times, some minutes each"
    return where.measure("load.py", settings, FOLDER, where.partition, what)
