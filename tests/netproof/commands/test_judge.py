"""``netproof judge``: existing files, from any harness, with a reliable exit status."""

from __future__ import annotations

import functools
import json
import re
import shutil
from pathlib import Path

import pytest
from made_calls import called, in_words
from made_text import printed as on_terminal

from netproof.measurement.links import Transport
from netproof.present import judged_files
from netproof.verdict import files

DATA = Path(__file__).parents[2] / "data"
IMB = DATA / "imb" / "2021.11" / "all.txt"
TCP = DATA / "netpipe" / "3.7.2" / "testbed-fast-ethernet.out"


judge = functools.partial(in_words, "judge")


def document(*arguments: str | Path) -> tuple[int, dict]:
    status, out, _ = called("judge", *arguments, "--format=json")
    return status, json.loads(out)


def slowed(text: str, factor: float) -> str:
    """Return the file that NetPIPE 3.7.2 writes, with its Mbps of 2^20 bit/s, slower."""
    rows = []
    for size, _, seconds in map(str.split, text.splitlines()):
        printed_s = float(f"{float(seconds) * factor:.8f}")
        rows.append(f"{size:>8} {8 * int(size) / printed_s / 2**20:f} {printed_s:12.8f}\n")
    return "".join(rows)


def osu(path: Path, values: dict[int, str], test: str = "Latency") -> Path:
    """Write what an OSU benchmark prints: µs, or MB/s of a bandwidth, by size."""
    column = "Latency (us)" if "Latency" in test else "Bandwidth (MB/s)"
    rows = "".join(f"{size:<10}{value:>18}\n" for size, value in values.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# OSU MPI {test} Test v5.8\n{'# Size':<10}{column:>18}\n{rows}")
    return path


def test_a_healthy_file_passes_and_says_that_nothing_was_compared():
    status, said = judge(TCP)
    assert status == 0, said
    assert "1 of 1 curves passed" in said
    assert "nothing was compared: --against names other files, --as configurations" in said


def test_the_help_shows_how_to_name_launches_and_a_yardstick():
    _, said = judge("--help")
    assert "judge bw.1.out bw.2.out bw.3.out --as 'bw.{launch}.out'" in said
    assert "judge new --against old --fail-above 10%" in said
    assert "longer by more, 10% of the other's time" in said


class TestCutOff:
    """Whole tables of a cut output are judged, and the cut one is a fault at its line."""

    TEXT = IMB.read_text()
    TITLES = tuple(found.start() for found in re.finditer("#-+\n# Benchmarking ", TEXT))

    @pytest.mark.parametrize("shift", [-2, 0, 60, 420])
    @pytest.mark.parametrize("end", ["\n", "\nslurmstepd: error: *** JOB 17 CANCELLED ***\n"])
    def test_wherever_it_is_cut(self, tmp_path, shift, end):
        last = len(self.TITLES) // 2
        text = self.TEXT[: self.TITLES[last] + shift].rstrip("\n") + end
        (tmp_path / "cut.txt").write_text(text)
        status, found = document(tmp_path / "cut.txt")
        assert status == 3
        (fault,) = found["faults"]
        assert re.search(r"cut\.txt:[0-9]+: ", fault)
        cut, whole = (
            [(one["function"], one["ranks"]) for one in several["curves"]]
            for several in (found, document(IMB)[1])
        )
        assert cut == whole[: len(cut)]
        # The last table needs a line that shows it is whole.
        assert last - (shift <= 0) <= len(cut) <= last

    def test_before_its_first_table_ends_nothing_is_left_and_so_with_other_programs(self, tmp_path):
        (tmp_path / "cut.txt").write_text(self.TEXT[: self.TITLES[1] - 40])
        status, said = judge(tmp_path / "cut.txt")
        assert (status, "cut.txt:" in said) == (2, True)
        for name in ("mpigraph.out", "gpcnet-network-load-test.out"):
            path = DATA / "formats" / name
            lines = path.read_text().splitlines(keepends=True)
            (tmp_path / "cut.txt").write_text("".join(lines[: len(lines) * 3 // 4]))
            status, found = document(tmp_path / "cut.txt")
            assert (status, len(found["curves"])) == (3, len(document(path)[1]["curves"]) // 2)
            assert "the file ends here, cut short" in found["faults"][0]


class TestARateThatWasRoundedToZero:
    """Its time is at least what the rounding allows, and otherwise unknown."""

    def judged(self, tmp_path, rates):
        """Judge a launch of osu_bw from 1 byte on, from its MB/s."""
        values = {2**at: rate for at, rate in enumerate(rates)}
        return judge(osu(tmp_path / "bw.1.out", values, "Bandwidth"))

    def test_a_larger_message_that_took_less_fails_it(self, tmp_path):
        status, said = self.judged(tmp_path, ("0.00", "0.01", "0.02", "0.06", "0.11"))
        assert status == 1
        assert "at 1 bytes the rate, below 0.005 MB/s, was printed as 0" in said
        assert "200 µs or longer, at least 1.5 times the 133.3 µs of one of 8 bytes" in said

    @pytest.mark.parametrize("time_us", [201, 399, 401, 2000])
    def test_a_slow_network_on_which_all_sizes_take_the_same_time_does_not_fail(
        self, tmp_path, time_us
    ):
        rates = [f"{size / time_us:.2f}" for size in (2**power for power in range(12))]
        status, said = self.judged(tmp_path, rates)
        assert status == 3
        assert "FAIL" not in said
        assert "how long is not known" in said


@pytest.fixture
def tree(tmp_path):
    """Two systems with three launches each, the second 20 times as slow."""
    for system, factor in (("fast", 1.0), ("slow", 20.0)):
        for launch in (1, 2, 3):
            path = tmp_path / f"{system}-mpich" / f"tcp.{launch}.out"
            path.parent.mkdir(exist_ok=True)
            path.write_text(slowed(TCP.read_text(), factor * (1 + launch / 1000)))
    return tmp_path


def test_configurations_are_compared_where_a_pattern_says_what_is_one(tree):
    paths = sorted(tree.rglob("*.out"))
    named = ("--as", "{system}-{mpi}/{benchmark}.{launch}", "--baseline")
    status, found = document(*paths, *named, "fast mpich")
    assert status == 1
    launches = {one["configuration"]: one["launches"] for one in found["curves"]}
    assert launches == {"fast mpich": 3, "slow mpich": 3}
    levels = {one["configuration"]: one["level"] for one in found["curves"]}
    # Its shaped link lets bursts pass, so that the rate declines.
    assert levels == {"fast mpich": "warn", "slow mpich": "fail"}
    (slow,) = (one for one in found["curves"] if one["level"] == "fail")
    failed = {finding["criterion"] for finding in slow["findings"] if finding["level"] == "fail"}
    assert failed == {"envelope"}
    scores = [
        finding["value"]
        for one in found["curves"]
        for finding in one["findings"]
        if finding["criterion"] == "score"
    ]
    assert scores == [pytest.approx(1), pytest.approx(1 / 20, rel=1e-3)]
    status, said = judge(*paths, *named, "other")
    assert status == 1
    assert "--baseline other: no configuration has that name; there are: fast mpich, slow" in said
    # A list does as a pattern does.
    rows = [f"{path.relative_to(tree)},{path.parent.name.split('-')[0]}" for path in paths]
    listed = tree / "names.csv"
    for count, faults in ((0, []), (1, [f"{paths[0]}: is not in {listed}"])):
        listed.write_text("\n".join(["file,switch", *rows[count:]]) + "\n")
        status, found = document(*paths, "--names", listed)
        assert (status, found["faults"]) == (1, faults)
        assert {one["configuration"] for one in found["curves"]} == {"fast", "slow"}


def test_what_is_named_otherwise_was_measured_otherwise(tree):
    """NetPIPE's file shows TCP or MPI no more than its name does."""
    paths = sorted(tree.rglob("*.out"))
    status, found = document(*paths, "--as", "{system}-{mpi}/{benchmark}")
    # With the launch taken for a part of the benchmark, each is a kind of its own.
    assert status == 1
    assert {one["named"] for one in found["curves"]} == {"tcp.1", "tcp.2", "tcp.3"}
    assert all(one["launches"] == 1 for one in found["curves"])


def written(folder: Path, names: str, dip: float = 1) -> list[Path]:
    """Write a file of osu_bw for each name, at 64 KiB with that share of its rate."""
    for number, name in enumerate(names.split()):
        rates = {size: size / (2 + size / 12000) for size in (2**power for power in range(23))}
        rates[65536] *= dip + number / 200
        osu(folder / name, {size: f"{rate:.2f}" for size, rate in rates.items()}, "Bandwidth")
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("names", "pattern", "name"),
    [
        ("sw1-bw.1.out sw1-bw.2.out sw1-bw.3.out", "sw1-bw.{launch}.out", "sw1-bw"),
        ("old/bw.1.out old/bw.2.out old/bw.3.out", "bw.{launch}.out", "bw"),
        ("run1/bw.out run2/bw.out run3/bw.out", "run{launch}/bw.out", "run"),
    ],
)
@pytest.mark.parametrize(("dip", "status"), [(0.6, 3), (1, 0)])
def test_files_that_look_like_launches_are_no_plain_pass_if_they_would_fail_as_such(
    tmp_path, names, pattern, name, dip, status
):
    paths = written(tmp_path, names, dip)
    how = f"f they are launches of one configuration, say so: --as '{pattern}'"
    ended, said = judge(*paths)
    assert (ended, said.count(how)) == (status, 1)
    others = written(tmp_path / "others", "sw1.2.out sw2.1.out", dip)
    assert "launches of one" not in judge(*others)[1]
    ended, said = judge(*paths, "--as", pattern)
    assert ended == (1 if status else 0)
    assert f" {name} was read from 3 files, {paths[0]} to {paths[2]}" in said
    if "/" not in pattern:
        assert "these files was read" in judge(*paths, "--as", "{launch}")[1]


@pytest.mark.parametrize(
    ("pattern", "configurations"),
    [
        ("{config}-{launch}.out", ["gige-open-mpi", "gige-tcp"]),
        ("{config}-*", ["gige-open-mpi", "gige-tcp"]),
        ("{net}-{mpi}-{launch}", ["gige open-mpi", "gige tcp"]),
        ("{net}-{mpi}", ["gige open-mpi-1", "gige open-mpi-2", "gige tcp-1"]),
    ],
)
def test_what_is_before_the_launch_takes_as_much_as_it_can(tmp_path, pattern, configurations):
    paths = written(tmp_path, "gige-tcp-1.out gige-open-mpi-1.out gige-open-mpi-2.out")
    _, found = document(*paths, "--as", pattern)
    assert sorted(one["configuration"] for one in found["curves"]) == configurations


def test_a_file_that_is_no_output_counts_and_is_named(tmp_path):
    odd = tmp_path / "notes-x" / "readme.txt"
    odd.parent.mkdir()
    odd.write_text("not a benchmark\n")
    status, said = judge(TCP, odd)
    assert status == 3
    assert f"NOT READ {odd}:1" in said
    assert "1 could not be read" in said


def test_what_is_no_output_is_one_line_an_extension_and_a_report_s_folder_is_no_result(tmp_path):
    written(tmp_path, "bw.out")
    for name in ("a.cpu", "b.cpu", "c.cpu", "notes.md"):
        (tmp_path / name).write_text("12.2 0.039\n")
    for _ in range(2):
        status, said = judge(tmp_path, "--to", tmp_path / "page")
        assert (status, said.count("NOT READ"), said.count("4 could not be read")) == (3, 2, 1)
        assert "; so are 2 more files *.cpu" in said
        # A table that was cut shows.
        assert " 1 to 4194304 " in said
    assert len(document(tmp_path)[1]["faults"]) == 4


def test_what_takes_more_sizes_is_undefined(tmp_path):
    _, said = judge(osu(tmp_path / "x.out", {4: "3.17", 8: "3.18"}))
    assert "2 sizes of 4 bytes or more are too few for: " in said


@pytest.mark.parametrize("path", [TCP, IMB, DATA / "public" / "slingshot.out"])
def test_a_narrow_terminal_has_all_figures_and_cuts_none(path):
    judged = files.judge([path], link=files.link("100G", None, Transport.TCP))
    printed = {}
    for width in (80, 300):
        (_, _, blocks), *_ = judged_files.parts(judged, drawn=False)
        text = on_terminal(blocks, width)
        printed[width] = re.findall(r"(?<= )[0-9]+\.[0-9]+(?= )", text)
        if width == 80:
            begins = re.compile("(verdict|pass|WARN|FAIL|INCONCLUSIVE|NOT JUDGED) {2}")
            table = [line for line in text.splitlines() if begins.match(line)]
            assert max(map(len, table)) <= 80
            assert "peak MB/s" in table[0]
    assert printed[80] == printed[300]


class TestAgainst:
    """Two sets: files that measured the same are compared, and the first is judged."""

    def write(self, path, factor=1.0, name="Latency"):
        return osu(path, dict.fromkeys((4, 8, 16, 32), f"{3.17 * factor:.2f}"), name)

    def test_folders_and_files_are_compared_whatever_their_names(self, tmp_path):
        new = self.write(tmp_path / "new" / "a.txt", 2)
        old = self.write(tmp_path / "old" / "b.txt")
        for arguments in ((new.parent, "--against", old.parent), (new, "--against", old)):
            status, said = judge(*arguments, "--fail-above", "10%")
            assert status == 1
            sets = f"{arguments[0]} OSU latency 2 ranks: takes 100 % longer than {arguments[2]}"
            assert f"FAIL {sets} from 4 to 32 bytes; one launch each" in said
            assert judge(*arguments)[0] == 0

    def test_a_second_set_that_is_slower_or_sick_fails_nothing(self, tmp_path):
        new, old = (self.write(tmp_path / name / "x.txt") for name in ("new", "old"))
        old.write_text(old.read_text().replace("  3.17", "317.00", 1))
        status, said = judge(new.parent, "--against", old.parent, "--fail-above", "10%")
        assert status == 0, said
        note = f"note {old.parent} OSU latency 2 ranks: takes 9900 % longer than {new.parent} at 4"
        assert note in said
        assert "longer than larger ones" not in said
        assert said.startswith("PASSED: 1 of 1 curves passed ")
        _, found = document(new.parent, "--against", old.parent)
        shown = [(one["level"], one["yardstick"]) for one in found["curves"]]
        assert shown == [("pass", False), ("shown", True)]

    def test_files_that_measured_the_same_are_compared_by_their_names(self, tmp_path):
        for name in ("inside", "between"):
            self.write(tmp_path / "new" / f"{name}.txt", 2 if name == "inside" else 1)
            self.write(tmp_path / "old" / f"{name}.txt")
        status, said = judge(tmp_path / "new", "--against", tmp_path / "old", "--fail-above", "10%")
        assert status == 1
        assert "(inside.txt): takes 100 % longer than" in said
        assert "(between.txt): takes" not in said
        assert "names; if they are launches, say so: --as '{launch}'" in said

    def test_the_hint_on_launches_has_the_names_of_the_files(self, tmp_path):
        for name in ("new/bw.1", "new/bw.2", "old/bw.1", "old/bw.2"):
            self.write(tmp_path / f"{name}.out")
        sets = (tmp_path / "new", "--against", tmp_path / "old")
        assert "if they are launches, say so: --as 'bw.{launch}.out'" in judge(*sets)[1]
        _, found = document(*sets, "--as", "bw.{launch}.out")
        assert [one["launches"] for one in found["curves"]] == [2, 2]

    def test_what_only_one_set_has_is_undecided(self, tmp_path):
        self.write(tmp_path / "new" / "x.txt")
        self.write(tmp_path / "old" / "x.txt")
        self.write(tmp_path / "old" / "y.txt", name="Multi Latency")
        status, said = judge(tmp_path / "new", "--against", tmp_path / "old")
        assert status == 3
        assert f"only {tmp_path / 'old'} has it, so it is not compared" in said

    def test_nothing_is_compared_with_a_set_that_cannot_be_read(self, tmp_path):
        self.write(tmp_path / "new" / "x.txt")
        (tmp_path / "old").mkdir()
        (tmp_path / "old" / "x.txt").write_text("srun: error: node down\n")
        status, said = judge(tmp_path / "new", "--against", tmp_path / "old")
        assert status == 3
        assert f"only {tmp_path / 'new'} has it, so it is not compared" in said

    @pytest.mark.parametrize(
        ("new", "old", "missing"),
        [
            ((4, 8, 16), (4, 8, 16, 32), "32 bytes"),
            ((16, 32, 64), (4, 8, 16, 32, 64, 128), "4, 8 and 128 bytes"),
            ((4, 8, 16, 32), (8, 16), ""),
            # Below 4 bytes nothing is compared.
            ((4, 8), (0, 1, 2, 4, 8), ""),
        ],
    )
    def test_sizes_beyond_those_of_the_first_set_are_undecided_and_others_noted(
        self, tmp_path, new, old, missing
    ):
        first, second = (
            osu(tmp_path / name, dict.fromkeys(sizes, "3.17"))
            for name, sizes in (("new", new), ("old", old))
        )
        status, said = judge(first, "--against", second, "--fail-above", "10%")
        assert status == (3 if missing else 0)
        common = f"only {len({*new} & {*old})} sizes are common to {len(new)} of"
        assert f"{common} {first}, {new[0]} to" in said
        why = f"{second} also has {missing}, which are not compared: measure them, or give another"
        assert (why in said) == bool(missing)
        status, said = judge(first, second, "--as", "{mpi}")
        assert status == 0
        assert f"{common} new, {new[0]} to {new[-1]} bytes and {len(old)} of old" in said

    def test_a_folder_is_all_files_below_it_but_hidden_ones(self, tmp_path):
        for name in ("a/x.txt", "b.txt", ".git/config", "a/.swp"):
            self.write(tmp_path / name)
        _, found = document(tmp_path)
        files = [one["files"] for one in found["curves"]]
        (tmp_path / "empty").mkdir()
        assert "empty: holds no file" in judge(tmp_path / "empty")[1]
        assert files == [[str(tmp_path / "a" / "x.txt")], [str(tmp_path / "b.txt")]]


class TestWithinAConfiguration:
    """As in a run, a benchmark is compared with others, and a collective with fewer ranks."""

    def test_benchmarks_that_send_the_same_agree_where_a_link_says_that_nodes_do(self, tmp_path):
        times = {2**power: 3 + 2**power / 1e4 for power in range(23)}
        rule = f"#{'-' * 51}"
        for launch in (1, 2, 3):
            here = {size: time * (1 + launch / 99) for size, time in times.items()}
            path = tmp_path / "site" / f"imb{launch}.out"
            osu(path.with_stem(f"omb{launch}"), {at: f"{time:.2f}" for at, time in here.items()})
            rows = (
                f"{size:>13}{1000:>13}{3 * time:>13.2f}{size / time / 3:>13.2f}\n"
                for size, time in here.items()
            )
            head = f"{rule}\n# Benchmarking PingPong \n# #processes = 2 \n{rule}\n"
            head += "       #bytes #repetitions      t[usec]   Mbytes/sec\n"
            path.write_text(head + "".join(rows))
        given = [*sorted(tmp_path.rglob("*.out")), "--as", "{site}/*"]
        assert "which sends the same" not in judge(*given)[1]
        status, said = judge(*given, "--link", "100G", "--transport", "infiniband")
        assert status == 1
        assert "what it took by site OSU latency 2 ranks, which sends the same (flagged" in said

    def test_three_launches_judge_whether_fewer_ranks_take_longer(self, tmp_path):
        for launch in (1, 2, 3):
            shutil.copyfile(IMB, tmp_path / f"all.{launch}.txt")
        files = sorted(tmp_path.glob("*.txt"))
        for used, judged in ((files, True), (files[:2], False)):
            _, found = document(*used, "--as", "{suite}.{launch}")
            names = {each["criterion"] for one in found["curves"] for each in one["findings"]}
            assert ("monotony" in names) is judged
            assert "growth" not in names
