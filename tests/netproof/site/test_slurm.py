"""What Slurm prints is read, or refused."""

from __future__ import annotations

import pytest

from netproof.errors import NetproofError
from netproof.site import slurm


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [("UNLIMITED", None), ("1-02:30:05", 95405), ("00:10:00", 600), ("10:00", 600)],
)
def test_a_time_limit_of_slurms_is_read(printed, seconds):
    assert slurm.seconds_of(printed) == seconds


def test_another_time_limit_is_refused():
    with pytest.raises(NetproofError, match="'soon' is no time limit of Slurm's"):
        slurm.seconds_of("soon")


def test_a_slurmctld_that_is_down_is_told_without_slurms_frame(tmp_path, monkeypatch):
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "ClusterName=none\nSlurmctldHost=localhost\nSlurmctldPort=1\nAuthType=auth/none\n"
        "NodeName=localhost\nPartitionName=gige Nodes=localhost\nMessageTimeout=2\n"
    )
    monkeypatch.setenv("SLURM_CONF", str(conf))
    said = (
        r"slurmctld does not answer: Slurmctld\(primary\) at \S+ is DOWN"
        r" \| RESTORE SLURMCTLD DAEMON TO SERVICE"
    )
    with pytest.raises(NetproofError, match=f"^{said}$"):
        slurm.answers()
