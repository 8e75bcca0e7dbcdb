"""Sources of daemons that differ between releases."""

import pytest

from ci.testbed import daemons
from ci.testbed.errors import CannotRunError


def test_the_file_of_either_mariadb_makes_a_database(tmp_path, monkeypatch):
    newer, older = tmp_path / "mariadb.sql", tmp_path / "mysql.sql"
    monkeypatch.setattr(daemons, "SYSTEM_TABLES", (newer, older))
    with pytest.raises(CannotRunError, match="apt-get install mariadb-server-core"):
        daemons.system_tables()
    older.touch()
    assert daemons.system_tables() == older
    newer.touch()
    assert daemons.system_tables() == newer


def test_a_steps_title_names_its_job():
    assert daemons.job_of("slurmstepd: [20.batch]") == "20"
    assert daemons.job_of("slurmstepd: [20.0]") == "20"
    assert daemons.job_of("/usr/sbin/slurmstepd") is None
