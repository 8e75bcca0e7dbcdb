"""Nothing is taken from where others can write; what they try is tried here, as ``nobody``."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from netproof.commands import night
from netproof.errors import NetproofError
from netproof.intake import trust
from netproof.session import plan, session
from netproof.site import site, slurm, spack
from netproof.store import Store
from netproof.verdict import references

ROOT = Path(__file__).resolve().parents[3]
ATTACKER = "nobody"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="files of others take root")


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder like /var/tmp: everybody can put a name into it."""
    folder = Path(tempfile.mkdtemp(prefix="netproof-test-", dir="/var/tmp"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def ran(*command: object, check: bool = False, **how) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=check, **how)


def as_attacker(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    if os.geteuid() != 0:
        pytest.skip("to act as another user takes root")
    who = {"user": ATTACKER, "group": "nogroup", "extra_groups": []}
    env = {"PATH": os.environ["PATH"], **variables}
    return ran("sh", "-c", command, cwd=folder, env=env, check=True, **who)


def sourced(script: str, *, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """A shell that sources ``script`` and then shows what it set."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    clean.pop("RFM_SYSTEM", None)
    shown = "echo conf=${SLURM_CONF-unset} system=${RFM_SYSTEM-unset} path=$PATH"
    return ran("bash", "-c", f". {ROOT}/{script} && {shown}", cwd=cwd, env={**clean, **variables})


def refused(path: Path, *, data: bool = False) -> str:
    with pytest.raises(NetproofError) as caught:
        trust.insist(path, "this", data=data)
    return str(caught.value)


def insisting(path: str) -> str:
    return f"from netproof.intake import trust; trust.insist('{path}', 'this'); print('fine')"


class TestTheTestbed:
    """A folder in a public place is no reason to enter it."""

    @pytest.fixture
    def planted(self, public) -> Path:
        """A testbed that another user made up, whose slurm.conf loads that user's plugin."""
        as_attacker(
            "mkdir tb && cd tb && touch this-is-a-netproof-testbed"
            " && echo ClusterName=x >slurm.conf && echo required $PWD/x.so >plugstack.conf"
            f" && cp {ROOT}/ci/testbed/topology.yaml .",
            public,
        )
        return public / "tb"

    def test_another_user_s_is_entered_neither_by_the_way_nor_on_purpose(self, planted):
        shell = sourced("ci/activate", NETPROOF_TESTBED=str(planted))
        assert shell.returncode == 0, shell.stderr
        assert shell.stdout.startswith("conf=unset system=unset ")
        shell = sourced("ci/testbed/activate", NETPROOF_TESTBED=str(planted))
        assert (shell.returncode, shell.stdout) == (2, "")
        assert shell.stderr == (
            f"ci/activate: SLURM_CONF {planted}/slurm.conf: {planted} belongs to nobody"
            " (mode 0755), and not to root: use a place of your own, 'chown -h root"
            f" {planted}' if you know what is in it, or set NETPROOF_TRUSTED_USERS=nobody if what"
            " nobody writes may be run as root (docs/security.md)\n"
        )

    def test_one_s_own_is_and_a_slurm_conf_from_before_gives_way(self, public):
        own = public / "tb"
        variables = {"NETPROOF_TESTBED": str(own), "SLURM_CONF": "/etc/hosts"}
        shell = sourced("ci/testbed/activate", **variables)
        assert shell.returncode == 2
        assert f"no testbed in {own}; run ci/testbed/testbed up first" in shell.stderr
        own.mkdir()
        (own / "slurm.conf").write_text("ClusterName=x\n")
        shell = sourced("ci/testbed/activate", **variables)
        assert shell.stdout.startswith(f"conf={own}/slurm.conf system=testbed "), shell.stderr
        kept = sourced("ci/testbed/activate", **variables, RFM_SYSTEM="testbed:gige")
        assert "system=testbed:gige" in kept.stdout

    @pytest.mark.parametrize("verb", [["up"], ["status"], ["down"], ["exec", "gige-1", "--", "id"]])
    def test_no_verb_takes_another_user_s_folder(self, planted, verb):
        testbed = ROOT / "ci/testbed/testbed"
        shell = ran(testbed, verb[0], "--state", planted, *verb[1:])
        assert (shell.returncode, shell.stderr.count("\n")) == (2, 1), shell.stderr
        said = f"the state folder {planted} belongs to nobody (mode 0755), and not to root"
        assert said in shell.stderr
        assert "remove what no testbed of yours made, or give --state" in shell.stderr
        assert (planted / "slurm.conf").read_text() == "ClusterName=x\n"


class TestActivate:
    @pytest.mark.parametrize("script", ["ci/activate", "ci/nightly"])
    def test_a_slurm_conf_that_others_can_write_is_refused(self, public, script):
        as_attacker("touch slurm.conf", public)
        shell = sourced(script, SLURM_CONF=f"{public}/slurm.conf")
        assert (shell.returncode, shell.stdout) == (2, "")
        assert f"SLURM_CONF {public}/slurm.conf belongs to nobody (mode 0644)" in shell.stderr

    @pytest.mark.slow
    def test_no_module_of_the_working_directory_is_run(self, public):
        as_attacker(
            "mkdir netproof && echo 'raise SystemExit(\"taken\")' >netproof/__init__.py", public
        )
        (public / "slurm.conf").touch()
        shell = sourced("ci/activate", cwd=public, SLURM_CONF=f"{public}/slurm.conf")
        assert "taken" not in shell.stderr + shell.stdout
        night = ran(ROOT / "ci/nightly", "--help", cwd=public)
        assert night.returncode == 0, night.stderr
        assert "taken" not in night.stderr + night.stdout


class TestStrict:
    """Sites' files, references, hooks, Slurm's configuration."""

    def test_a_place_of_one_s_own_will_do_even_below_a_public_one(self, public, tmp_path):
        (public / "own").mkdir()
        # One's own group is no other user.
        tmp_path.chmod(0o775)
        for place in (public / "own" / "file", tmp_path, "/etc/passwd"):
            trust.insist(place, "this")

    @as_root
    def test_a_folder_that_everybody_can_write_is_named_with_the_remedy(self, tmp_path):
        (tmp_path / "a b").mkdir()
        (tmp_path / "a b").chmod(0o777)
        assert refused(tmp_path / "a b" / "c" / "x.py") == (
            f"this {tmp_path}/a b/c/x.py: {tmp_path}/a b (mode 0777, root's) can be written by"
            f" everybody: 'chmod o-w '{tmp_path}/a b'' (docs/security.md)"
        )

    @as_root
    def test_a_group_is_trusted_by_name(self, tmp_path, monkeypatch):
        os.chown(tmp_path, 0, 65534)
        tmp_path.chmod(0o770)
        said = refused(tmp_path / "x.py")
        assert f"{tmp_path} (mode 0770, root's) can be written by the group nogroup: 'chm" in said
        assert "or set NETPROOF_TRUSTED_GROUPS=nogroup if what its members write may be run" in said
        monkeypatch.setenv(trust.GROUPS, "users,nogroup")
        trust.insist(tmp_path / "x.py", "this")
        monkeypatch.setenv(trust.GROUPS, "65534")
        trust.insist(tmp_path / "x.py", "this")

    def test_a_user_is_trusted_by_name(self, public, monkeypatch):
        as_attacker("touch x.py", public)
        monkeypatch.setenv(trust.USERS, ATTACKER)
        trust.insist(public / "x.py", "this")
        monkeypatch.setenv(trust.USERS, "no-such-user")
        assert refused(public) == (
            "NETPROOF_TRUSTED_USERS names 'no-such-user', and there is no such user"
        )

    def test_whose_netproof_it_is_may_also_say_what_it_runs(self, public):
        """A checkout of one user's that another one runs, as in a container."""
        as_attacker(f"mkdir -p np && cp -r {ROOT}/netproof np/netproof", public)
        env = {**os.environ, "PYTHONPATH": str(public / "np")}
        python = (sys.executable, "-P", "-c", insisting("np/site.py"))
        assert ran(*python, cwd=public, env=env, check=True).stdout == "fine\n"

    @pytest.mark.parametrize("via", ["absolute", "relative", "above"])
    def test_links_are_gone_through(self, public, tmp_path, monkeypatch, via):
        as_attacker("mkdir theirs", public)
        targets = {
            "absolute": public / "theirs",
            "relative": os.path.relpath(public / "theirs", tmp_path),
            "above": f"{public}/theirs/..",
        }
        (tmp_path / "link").symlink_to(targets[via])
        assert f"{public}/theirs belongs to nobody" in refused(tmp_path / "link" / "x.py")
        monkeypatch.chdir(tmp_path)
        assert "theirs belongs to nobody" in refused(Path("link/later/x.py"))
        # In a circle they end.
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        assert "goes through more than 40 symbolic links" in refused(tmp_path / "a")

    def test_an_unprivileged_user_s_home_is_fine_and_the_neighbour_s_is_not(self, public):
        python = f'{sys.executable} -P -c "{insisting("conf/x.py")}"'
        command = f"mkdir -p home/conf && cd home && touch conf/x.py && {python}"
        assert as_attacker(command, public, PYTHONPATH=str(ROOT)).stdout == "fine\n"

    @as_root
    def test_a_container_of_an_unprivileged_user_says_what_to_set(self, public):
        """There root's files show as nobody's, and as whose they are only by a setting."""
        who = {"user": 1, "group": 1, "extra_groups": []}
        made = ran("unshare", "--user", "--map-root-user", "true", **who)
        if made.returncode:
            pytest.skip(f"users can make no namespace here: {made.stderr.strip()}")
        python = f'{sys.executable} -P -c "{insisting("/etc/passwd")}"'
        inside = f"unshare --user --map-root-user {python} 2>&1 || :"
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        said = ran("sh", "-c", inside, env=env, check=True, **who).stdout
        assert "as which this user namespace shows all users of the machine" in said
        (setting,) = re.findall(r"set (NETPROOF_TRUSTED_USERS=\S+) in this container", said)
        name, _, value = setting.partition("=")
        assert (
            ran("sh", "-c", inside, env={**env, name: value}, check=True, **who).stdout == "fine\n"
        )


class TestData:
    """Stores and reports: a project's users write them together, everybody does not."""

    @as_root
    def test_a_project_s_folder_will_do_and_one_that_everybody_can_write_will_not(self, tmp_path):
        os.chown(tmp_path, 65534, 65534)
        tmp_path.chmod(0o2775)
        trust.insist(tmp_path / "store", "this", data=True)
        trust.insist("/dev/null", "this", data=True)
        tmp_path.chmod(0o777)
        assert "can be written by everybody: 'chmod o-w " in refused(tmp_path / "store", data=True)

    def test_nor_what_another_user_put_into_a_public_one(self, public):
        as_attacker("mkdir store && echo '{\"format\": 1}' >store/netproof-store.json", public)
        assert "/store belongs to nobody" in refused(public / "store", data=True)
        for opened in (Store, Store.create):
            with pytest.raises(NetproofError, match=r"the store .*/store belongs to nobody"):
                opened(public / "store")


@pytest.fixture
def theirs(public) -> Callable[[str, str], Path]:
    """``theirs(name, text)``: a file of another user's in a public place."""

    def write(name: str, text: str) -> Path:
        as_attacker(f'cat >"$NAME" <<"END"\n{text}\nEND', public, NAME=name)
        return public / name

    return write


class TestWhatIsTaken:
    """Each place where something is taken asks."""

    def test_a_site_s_file_is_not_run(self, theirs, public, tmp_path):
        path = theirs("cluster.py", f"open('{public}/ran', 'w')")
        for read in (site.gather, site.survey):
            with pytest.raises(
                NetproofError, match=r"the site's configuration .* belongs to nobody"
            ):
                read(public)
        with pytest.raises(NetproofError, match="belongs to nobody"):
            site.load(path)
        # ReFrame runs the settings.
        theirs("settings.py", "")
        with pytest.raises(NetproofError, match=r"settings.py belongs to nobody"):
            site.survey(public)
        assert not (public / "ran").exists()
        # Python may have compiled one's own for another user.
        (tmp_path / "cluster.py").write_text("raise RuntimeError('not run')\n")
        (tmp_path / "__pycache__").mkdir()
        (tmp_path / "__pycache__").chmod(0o777)
        with pytest.raises(NetproofError, match=r"__pycache__ .* can be written by everybody"):
            site.load(tmp_path / "cluster.py")

    @pytest.mark.parametrize(
        ("name", "read", "said"),
        [
            ("testbed.yaml", references.ReferenceFile, "references"),
            ("run-1.json", session.load, "the report"),
            ("left.json", plan.read_left, "NETPROOF_LEFT's file"),
            ("envs", spack.environments, "the Spack environments"),
        ],
    )
    def test_nor_a_file_read(self, theirs, name, read, said):
        with pytest.raises(NetproofError, match=rf"{said} .* belongs to nobody"):
            read(theirs(name, "{}"))

    def test_a_lock_that_leads_to_a_file_of_one_s_own(self, public, tmp_path):
        precious = tmp_path / "precious"
        precious.write_text("precious\n")
        as_attacker(f"ln -s {precious} store.testbed.lock", public)
        with (
            pytest.raises(NetproofError, match=r"the lock .* belongs to nobody"),
            night.held(night.lock_of(public / "store", "testbed"), datetime.now()),
        ):
            pass
        assert precious.read_text() == "precious\n"

    def test_slurm_s_configuration_and_a_plugstack_alongside_it(
        self, theirs, monkeypatch, tmp_path
    ):
        monkeypatch.setenv("SLURM_CONF", str(theirs("slurm.conf", "ClusterName=x")))
        with pytest.raises(NetproofError, match=r"SLURM_CONF .* belongs to nobody"):
            slurm.answers()
        monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
        (tmp_path / "slurm.conf").touch()
        (tmp_path / "plugstack.conf").touch()
        (tmp_path / "plugstack.conf").chmod(0o666)
        said = (
            r"next to SLURM_CONF, .*/plugstack.conf \(mode 0666, root's\) can be written by every"
        )
        with pytest.raises(NetproofError, match=said):
            slurm.answers()

    @as_root
    def test_the_configuration_of_slurm_s_own_user_is_root_s(self, public, monkeypatch):
        place = public / "slurm.conf"
        place.touch()
        shutil.chown(place, "slurm")
        monkeypatch.setenv("SLURM_CONF", str(place))
        trust.insist_on_slurm()
        with pytest.raises(NetproofError, match="belongs to slurm"):
            trust.insist(place, "this")


class TestCommand:
    """The programs of a hook are checked before it runs."""

    @pytest.mark.parametrize(
        "command",
        [
            *("{0} --loud", "cat | {0}", "A=1 {0}", 'read -r s && mail -s "$s" x; {0}', "sh {0}"),
            *("(cat;{0})", "cat x#y; {0}", "cat >/dev/null\n{0}"),
        ],
    )
    def test_a_program_or_script_of_another_user_is_refused(self, theirs, command):
        path = theirs("hook", "#!/bin/sh")
        with pytest.raises(NetproofError, match=r"the hook .*hook belongs to nobody"):
            trust.insist_on_command(command.format(path), "the hook")

    def test_also_where_the_path_leads_to_it(self, theirs, public, monkeypatch):
        path = theirs("tell", "#!/bin/sh")
        as_attacker("chmod +x tell", public)
        monkeypatch.setenv("PATH", f"{public}:{os.environ['PATH']}")
        assert path.stat().st_mode & stat.S_IXUSR
        with pytest.raises(NetproofError, match="/tell belongs to nobody"):
            trust.insist_on_command("cat | tell network", "the hook")

    @pytest.mark.parametrize(
        "command",
        [
            *("", "cat >{0}", "cat >>{0} 2>&1", "exit 7"),
            'jq -Rs "{{text: .}}" | curl -fsS -d @- https://chat.example.org/hooks/1',
        ],
    )
    def test_what_it_writes_is_its_own_affair(self, theirs, command):
        trust.insist_on_command(command.format(theirs("output", "")), "the hook")

    def test_a_quote_that_is_not_closed_is_no_command(self):
        with pytest.raises(NetproofError, match="is no command of a shell: No closing quotation"):
            trust.insist_on_command("mail 'me", "the hook")


class TestASlurmConfThatNamesNothing:
    """Slurm's own commands look for it for a minute."""

    @pytest.mark.parametrize("named", ["/nowhere/slurm.conf", "", "/etc"])
    def test_is_refused_at_once(self, monkeypatch, named):
        monkeypatch.setenv("SLURM_CONF", named)
        begun = time.monotonic()
        for ask in (slurm.answers, slurm.partitions):
            with pytest.raises(NetproofError) as caught:
                ask()
            assert str(caught.value) == (
                f"SLURM_CONF is {named!r}, and there is no such file; set it to the cluster's"
                " slurm.conf, or 'unset SLURM_CONF' where Slurm's commands know it themselves"
            )
        assert time.monotonic() - begun < 30
