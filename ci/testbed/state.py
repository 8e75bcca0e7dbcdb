"""The state folder: all files of a testbed, and the mark that identifies it."""

from __future__ import annotations

import shutil
from pathlib import Path

from ci.testbed.errors import CannotRunError
from netproof.errors import NetproofError
from netproof.intake import trust

DEFAULT = Path("/var/tmp/netproof-testbed")
VARIABLE = "NETPROOF_TESTBED"
"""Variable that names another folder."""
CONF = "slurm.conf"
MARK = "this-is-a-netproof-testbed"
MADE_NAMESPACE_FOLDER = "run-netns-is-ours"
"""Mark of a machine that had no /run/netns before; removed only with the folder itself."""
SOCKET_PATH_LIMIT = 107
LONGEST_SOCKET = "nodes/123456789012345/spool/123456789012345_4294967295.4294967295"


class StateFolder:
    """The folder ``path`` (resolved), and the places in it."""

    def __init__(self, path: Path) -> None:
        """Raise CannotRunError if ``path`` is too long for sockets or unfit for Slurm's files.

        Also if others can write it or a parent: Slurm's configuration in it decides which code
        runs as root.
        """
        self._insist(path)
        self.path = path.resolve()
        room = SOCKET_PATH_LIMIT - len(LONGEST_SOCKET) - 1
        if len(str(self.path)) > room:
            raise CannotRunError(
                f"{self.path}: longer than {room} characters, so that the sockets in it would"
                f" exceed the kernel's {SOCKET_PATH_LIMIT}; give --state a shorter path"
            )
        if not all(character.isalnum() or character in "/._-" for character in str(self.path)):
            raise CannotRunError(
                f"{self.path}: Slurm's files take letters, digits and '/._-' in a path; give"
                " --state another"
            )

    @staticmethod
    def _insist(path: Path) -> None:
        for place in (path, path / MARK, path / CONF):
            try:
                trust.insist(place, "the state folder")
            except NetproofError as error:
                raise CannotRunError(
                    f"{error}; remove what no testbed of yours made, or give --state a folder that"
                    " only root writes"
                ) from error

    def __truediv__(self, name: str) -> Path:
        """Return the place ``name`` in the folder."""
        return self.path / name

    def is_marked(self) -> bool:
        """Return whether the folder is a testbed's."""
        return (self / MARK).is_file()

    def claim(self) -> None:
        """Make the folder a testbed's. Raises CannotRunError if it has anything else."""
        if self.is_marked():
            return
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise CannotRunError(
                f"{self.path}: holds something that is not a testbed's; empty it or give --state"
                " another folder"
            )
        self.path.mkdir(mode=0o755, parents=True, exist_ok=True)
        # Somebody may have been faster.
        self._insist(self.path)
        (self / MARK).write_text("made by ci/testbed/testbed up, removed by down\n")

    def holds(self, name: str, text: str) -> bool:
        """Return whether the file ``name`` exists with this ``text``."""
        entry = self / name
        return entry.is_file() and entry.read_text(encoding="utf-8") == text

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        """Write the file ``name`` whole or not at all."""
        new = self / "new"
        new.unlink(missing_ok=True)
        new.touch(0o600)
        new.chmod(mode)
        new.write_text(text, encoding="utf-8")
        new.rename(self / name)

    def wipe(self) -> None:
        """Remove a testbed's files, but not its marks."""
        for entry in self.path.iterdir():
            if entry.name in (MARK, MADE_NAMESPACE_FOLDER):
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def remove(self) -> bool:
        """Remove the folder if it is a testbed's or empty; return False otherwise.

        The mark goes last, so that an interrupted removal can be repeated.
        """
        if not self.path.exists():
            return True
        if self.is_marked():
            self.wipe()
            (self / MADE_NAMESPACE_FOLDER).unlink(missing_ok=True)
            (self / MARK).unlink()
        elif not self.path.is_dir() or any(self.path.iterdir()):
            return False
        self.path.rmdir()
        return True

    def survived_this_boot(self) -> bool:
        """Return whether the folder was filled since the machine's start."""
        noted = self / "boot-id"
        return noted.is_file() and noted.read_text() == boot_id()


def boot_id() -> str:
    """Return the kernel's name of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text()
