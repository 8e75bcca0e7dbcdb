"""The machine's ways to its registries: apt's mirror, pip's settings."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ci.release.errors import CannotRunError
from ci.release.programs import apt_get, output_of

PASSED_ON = re.compile(
    r"PIP_\w+|(http|https|ftp|all|no)_proxy|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE",
    re.IGNORECASE,
)
"""Variables by which pip, apt and their helpers reach registries."""
PIP_FILES = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")
TARGETS = ("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(ORIGIN) $(REPO_URI)")


@dataclass(frozen=True)
class Mirror:
    """Addresses of Debian in the machine's apt; ``security`` is None without updates."""

    main: str
    security: str | None

    def sources(self, release: str) -> str:
        """Return the lines of a sources.list for ``release``."""
        lines = [f"deb {self.main} {release} main", f"deb {self.main} {release}-updates main"]
        if self.security:
            lines.append(f"deb {self.security} {release}-security main")
        return "\n".join(lines) + "\n"


def mirror(targets: str, codename: str) -> Mirror:
    """Find the mirror of ``codename`` in ``targets``, lines of `apt-get indextargets`.

    Raises CannotRunError if Debian's main archive is missing, or has no http address.
    """
    found: dict[str, str] = {}
    for line in targets.splitlines():
        release, component, origin, address = line.split(" ", 3)
        if component == "main" and origin == "Debian":
            found.setdefault(release, address.rstrip("/"))
    if codename not in found:
        raise CannotRunError(
            f"apt has no lists of Debian's {codename} main, so its mirror is not known: add it to"
            " /etc/apt/sources.list"
        )
    for address in found.values():
        if not re.match(r"https?://", address):
            raise CannotRunError(f"apt's mirror {address} is no http address, as debootstrap needs")
    return Mirror(found[codename], found.get(f"{codename}-security"))


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for the release's programs, with a plain path and locale."""
    passed = {name: value for name, value in environment.items() if PASSED_ON.fullmatch(name)}
    plain = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "TERM": environment.get("TERM", "dumb"),
    }
    return passed | plain


def pip_files(environment: Mapping[str, str]) -> list[Path]:
    """Return pip's files of settings on this machine."""
    named = [
        os.path.expanduser(name)
        for name in (*PIP_FILES, environment.get("PIP_CONFIG_FILE"))
        if name
    ]
    return [Path(name) for name in named if Path(name).is_file()]


def named_paths(environment: Mapping[str, str], files: Iterable[Path]) -> list[Path]:
    """Return the existing absolute paths that pip's variables or ``files`` name."""
    values = [value for name, value in environment.items() if PASSED_ON.fullmatch(name)]
    for file in files:
        settings = configparser.RawConfigParser()
        try:
            settings.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            raise CannotRunError(f"{file}: pip's settings cannot be read: {error}") from error
        values += [value for section in settings.values() for value in section.values()]
    words = {word.removeprefix("file://") for value in values for word in value.split()}
    return sorted(Path(word) for word in words if word.startswith("/") and Path(word).exists())


def machine_archive(codename: str) -> Mirror:
    """Return the machine's mirror; fetch apt's lists first if the machine has none."""
    command = (*TARGETS, "Created-By: Packages")
    listed = output_of(command)
    if not listed.strip() and apt_get("update"):
        listed = output_of(command)
    return mirror(listed, codename)
