"""`ci/test --release` takes the machine's ways to its registries."""

from __future__ import annotations

import pytest
from made_machine import TARGETS

from ci.release import registries
from ci.release.errors import CannotRunError
from ci.release.registries import Mirror


def test_the_other_release_comes_from_the_machine_s_own_mirror():
    found = registries.mirror(TARGETS, "bookworm")
    assert found == Mirror("http://mirror.example/debian", "http://mirror.example/debian-security")
    assert found.sources("trixie").splitlines() == [
        "deb http://mirror.example/debian trixie main",
        "deb http://mirror.example/debian trixie-updates main",
        "deb http://mirror.example/debian-security trixie-security main",
    ]


def test_a_machine_without_security_updates_asks_for_none():
    found = registries.mirror(TARGETS.splitlines()[0], "bookworm")
    assert "security" not in found.sources("trixie")


@pytest.mark.parametrize("fetched", [True, False])
def test_a_machine_without_apt_s_lists_fetches_them(monkeypatch, fetched):
    lists, asked = [""], []

    def apt_get(*words):
        asked.append(words)
        lists[0] = TARGETS if fetched else ""
        return fetched

    monkeypatch.setattr(registries, "output_of", lambda command: lists[0])
    monkeypatch.setattr(registries, "apt_get", apt_get)
    if fetched:
        assert registries.machine_archive("bookworm").main == "http://mirror.example/debian"
    else:
        with pytest.raises(CannotRunError, match="apt has no lists"):
            registries.machine_archive("bookworm")
    assert asked == [("update",)]


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ("", "apt has no lists of Debian's bookworm main"),
        (TARGETS.replace("Debian http", "Other http"), "apt has no lists"),
        ("bookworm main Debian cdrom:[Debian 12]/", "is no http address"),
    ],
)
def test_no_mirror_is_refused_in_words(targets, said):
    with pytest.raises(CannotRunError, match=said):
        registries.mirror(targets, "bookworm")


def test_of_the_environment_only_the_ways_to_registries_pass():
    given = {"PIP_CERT": "/a", "https_proxy": "b", "NO_PROXY": "c", "TERM": "xterm"}
    others = {"SLURM_CONF": "x", "PYTHONPATH": "y", "PATH": "/mine", "MY_PIP_X": "z"}
    found = registries.passed_on(given | others)
    assert found.items() >= given.items()
    assert found.keys() - given.keys() == {"PATH", "HOME", "LC_ALL"}
    assert found["PATH"] != "/mine"


def test_what_pip_s_settings_name_is_found(tmp_path):
    wheels, certificate = tmp_path / "wheels", tmp_path / "ca.crt"
    wheels.mkdir()
    certificate.touch()
    settings = tmp_path / "pip.conf"
    settings.write_text(
        f"[global]\ncert = {certificate}\nfind-links =\n  https://a.example/%7Eb\n  {wheels}\n"
    )
    assert registries.named_paths({}, [settings]) == [certificate, wheels]
    variables = {"PIP_FIND_LINKS": f"file://{wheels} /not/there", "OTHER": str(certificate)}
    assert registries.named_paths(variables, []) == [wheels]


def test_settings_that_are_none_are_named(tmp_path):
    settings = tmp_path / "pip.conf"
    settings.write_text("cert = /a\n")
    with pytest.raises(CannotRunError, match=str(settings)):
        registries.named_paths({}, [settings])
