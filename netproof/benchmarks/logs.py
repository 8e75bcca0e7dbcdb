"""Text around outputs in the logs of jobs: prefixes of launchers, and lines of others.

NetPIPE and OMB print no last line, so that a table which broke off looks like a shorter one. Only
the lines after it tell: those of a program that was killed refuse the table, and so do lines that
nothing is known of, unless another program or command follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from netproof.benchmarks.fixed import ROW

_MOST_PREFIX = 80
"""Characters of the longest prefix."""

_LONG = 500
"""Characters of a line that is no command and no known ending."""
_LOOKED_AT = 10_000
"""Characters at each end of a line in which words of failures are looked for."""

_TIME = re.compile(
    r"(?:\[ *[0-9]+\.[0-9]+\]"
    r"|\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T_ ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?"
    r"(?:Z| ?[+-][0-9]{2}:?[0-9]{2})?\]?"
    r"|\[?[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}(?: [0-9]{4})?\]?"
    r"|\[?[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?\]?"
    r"|\[?[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?\]?)"
)
"""A time as CI, ``ts``, Kubernetes and launchers print it before a line."""

_FAILURES = re.compile(
    r"error|fail|fatal|abort|kill|terminat|signal|segmentation|segv|sigbus|core dump|dumped|crash"
    r"|panic|assert|backtrace|traceback|exception|bus err|cancel|time[d]?[ _-]?out|time limit"
    r"|exceed|out of (?:memory|resource)|\boom\b|\blost\b|unreachable|refused|reset by|broken pipe"
    r"|\bhung\b|stalled|\bdead|\bdied|not found|no such|can ?not|can't|could ?n[o']t|unable|denied"
    r"|invalid|illegal|undefined symbol|unexpected|not respond|stopp|interrupt|shut ?down|preempt"
    r"|node_fail|\bbad\b|corrupt|incomplete|unsuccess|premature|non-?zero"
    r"|\bnot (?:all|complet|finish)"
    r"|requeu|suspend|evict|unsupported|not supported|mismatch|disconnect|closed by|went away"
    r"|\bgone\b|hang ?up|no response|giving up|wrong"
    r"|(?:exit(?:ed)?|return(?:ed)?|ended)(?: with)?(?: (?:exit|return))?"
    r"[ _]?(?:code|status|value)?[:= ]+-?[1-9]",
    re.IGNORECASE,
)
"""Words of a run that broke off."""

_NO_FAILURE = re.compile(
    r"\b(?:no|0|zero|without(?: any)?) (?:errors?|failures?|failed\b)"
    r"|\b(?:errors?|failures?|failed|invalid|aborted|killed)[:= ]+0\b"
    r"|\b(?:exit(?:ed)?|return(?:ed)?)(?: with)?"
    r"[ _]?(?:exit )?(?:code|status|value)?[:= ]+0(?::0)?\b"
    r"|\b[A-Za-z][\w.:/-]*[_.][\w.]*[:= ]+[0-9]+(?=\s*$)"
    r"|\bsee all help / error messages|\bbusbw +error\b"
    r'|"\w+": ?0(?=[,}])',
    re.IGNORECASE,
)
"""Words of failures that did not happen, and counters, whose names have more than one word.

Open MPI prints how to see its hints, and nccl-tests has a column of errors.
"""

_PROGRAM = r"(?:osu_[a-z_]+|IMB-[A-Z0-9]+|NP(?:mpi|tcp))"
_LAUNCHER = (
    r"(?:mpirun|mpiexec(?:\.[a-z]+)?|srun|aprun|jsrun|orterun|prterun|flux|ibrun|salloc|sbatch)"
)
_COMMAND = re.compile(
    rf"(?:[+] *|[$#>%] +|time +)*(?:\S*/)?{_LAUNCHER} +\S.*"
    rf"|(?:.*[\s/=\"'`])?{_PROGRAM}(?:[\s\"'`:.)]*|\s.*)"
    r"|\++ +\S.*"
    r"|\$(?: \S.*)?"
    r"|\[?[\w.-]+(?:@|_at_)[\w.-]+.{0,80}?[$#>%](?: .*)?"
    r"|\[[\w.-]+ [^\]]{1,80}\][$#](?: .*)?"
)
"""A command of a shell, or a line that announces a program: what follows is another's."""

_FIELD = re.compile(
    r"(?!(?:Rank|Task|Proc|Node|Host|Warn|Note|Hint|Info)\w*\b)"
    r"[A-Z][\w./%()-]*(?: [\w./%()-]+){0,5} ?[:=] ?.{0,60}"
)
"""A field of a scheduler's report: ``CPU Efficiency: 12.3% of 00:10:00 core-walltime``."""

_WORDS = r"[a-z][\w./:%()\[\]-]*(?:[ ]+[\w./:%()\[\]-]+){0,5}"
_ENDINGS = re.compile(
    r"|(?:real|user|sys)\s+(?:[0-9]+m)?[0-9]+(?:[.,][0-9]+)?s?"
    r"|[0-9.]+ ?user [0-9.]+ ?system [0-9:.]+ ?elapsed .*"
    r"|[0-9]+inputs\+[0-9]+outputs \([0-9]+major\+[0-9]+minor\)pagefaults [0-9]+swaps"
    r"|.* [0-9.]+s user [0-9.]+s system [0-9]+% cpu [0-9:.]+ total"
    r"|[0-9.]+u [0-9.]+s [0-9:.]+ [0-9.]+% .*"
    r"|[-=#*_~+.]{2,}|`{3}.*|~{3}.*|</?(?:pre|code)>|\{\{\{|\}\}\}"
    r"|[-=#*~+<>|]{2,} ?\S.*|\S.* ?[-=#*~+<>|]{2,}"
    r"|(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?(?:[0-9]{1,2}\.? )?"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* "
    r".{0,12}[0-9]{2}:[0-9]{2}:[0-9]{2}.{0,20}"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}[t ][0-9:.,]+.{0,12}"
    rf"|{_WORDS} ?[:= ]\s*-?[0-9][0-9.,:]*(?: ?[a-z%/]{{1,12}})?"
    r"|(?=.{0,80}$)(?:.*\b)?(?:done|complete[ds]?|finish(?:ed|es)?|ended|end|success(?:ful(?:ly)?)?"
    r"|passed|bye|logout|exit|epilog(?:ue)?|summary|cleanup)\b.*"
    r"|connection to \S+ closed\.?|read file <.*> for stderr output of this job\."
    r"|##\[.*|::.*",
    re.IGNORECASE,
)
"""Lines that end a log whose run did not break off: times, counters, rules, words like done."""


def without_prefixes(text: str, heads: re.Pattern[str]) -> tuple[str, list[str | None]]:
    """Return the text without what launchers and CI wrote before each line, and that, by line.

    A prefix is a time, and after it the same characters before one of a benchmark's ``heads`` and
    the next line. A line without one has None.
    """
    lines = text.split("\n")
    known: dict[tuple[bool, str], None] = {}
    for index, line in enumerate(lines):
        # Most lines are rows, and to search in them takes long.
        found = None if ROW.fullmatch(line) else heads.search(line[: 2 * _MOST_PREFIX])
        if found is None or not 0 < found.start() <= _MOST_PREFIX:
            continue
        tag = line[: found.start()]
        time = _TIME.match(tag)
        tag = tag[time.end() :] if time else tag
        # A row's digits must not be taken for a prefix.
        if tag[-1:].isdigit() or tag.endswith("."):
            continue
        following = next((other for other in lines[index + 1 :] if other.strip()), "")
        if _cut(following, time is not None, tag) is not None:
            known[time is not None, tag] = None
    tags: list[str | None] = [None] * len(lines)
    by_length = sorted(known, key=lambda one: -len(one[1]))
    for index, line in enumerate(lines):
        for timed, tag in by_length:
            rest = _cut(line, timed, tag)
            if rest is not None:
                lines[index], tags[index] = rest, f"{'…' if timed else ''}{tag}"
                break
    return "\n".join(lines), tags


def _cut(line: str, timed: bool, tag: str) -> str | None:
    """Return a line without its prefix, None where it has not this one."""
    if timed:
        found = _TIME.match(line)
        if found is None:
            return None
        line = line[found.end() :]
    if line.startswith(tag):
        if "<std" in tag:
            # Open MPI writes it before each part of a line that a program printed by itself.
            again = (_TIME.pattern if timed else "") + re.escape(tag)
            return re.sub(rf"(?<![0-9]){again}|{again}(?![0-9])", "", line[len(tag) :])
        return line[len(tag) :]
    return "" if line == tag.rstrip() and (timed or tag.strip()) else None


def failed(line: str) -> bool:
    """Check whether a line has the words of a run that broke off."""
    if len(line) <= _LONG:
        line = _NO_FAILURE.sub(" ", line)
    return any(map(_FAILURES.search, (line[:_LOOKED_AT], line[_LOOKED_AT:][-_LOOKED_AT:])))


def is_ending(line: str) -> bool:
    """Check whether a line is known to follow a run that ended."""
    return _is_one(line, _ENDINGS, _FIELD, _NO_FAILURE, _COMMAND)


def _is_one(line: str, *patterns: re.Pattern[str]) -> bool:
    if len(line) > _LONG or failed(line):
        return False
    return any(one.fullmatch(line.strip()) for one in patterns)


def first_doubt(lines: Sequence[str], *, last: bool, whole: bool) -> int | None:
    """Return the index of the first line by which the table before these may have broken off.

    ``last``: no other output follows; ``whole``: the table has all sizes that its program measures
    by itself. None where the lines are known to follow a run that ended.
    """
    for index, line in enumerate(lines):
        if failed(line):
            return index
        if _is_one(line, _COMMAND):
            return None
        if last and not whole and not is_ending(line):
            return index
    return None
