"""Scripts that enter the release and run there."""

from __future__ import annotations

CHECKOUT = "srv/netproof"
"""Place of this checkout's copy in the release's folder."""
DOCUMENT = "verdict.json"
DONE, FAILED, CANNOT_RUN = 0, 1, 2
TESTS = " ".join(
    f"tests/netproof/{name}.py"
    for name in ("benchmarks/test_parse_*", "intake/test_loading", "store/test_store")
)
"""Tests that depend most on the release's Python."""
ENTER = """set -e
# An end before the release is entered says nothing of it.
trap 'exit 2' EXIT
tree=$1
shift
# A node's namespaces can only be made below a root that is a mount.
mount --bind "$tree" "$tree"
mount -t proc proc "$tree/proc"
mount --rbind /sys "$tree/sys"
mount --rbind /dev "$tree/dev"
mount -t tmpfs -o mode=1777 tmpfs "$tree/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$tree/run"
mkdir "$tree/run/lock"
for folder; do
    mkdir -p "$tree$folder"
    mount --bind "$folder" "$tree$folder"
    mount -o remount,bind,ro "$tree$folder"
done
# In a chroot the kernel allows no user namespace, unlike on a machine.
cd "$tree"
pivot_root . .
umount --lazy .
exec chroot . /bin/bash -c "$WITHIN"
"""
"""Mounts a machine's file systems and the visible folders, then enters the release."""
WITHIN = f"""set -e
cd /{CHECKOUT}
prepare() {{
    dpkg --configure -a && ci/setup ${{ALL_TESTS:+--test}} &&
        .venv/bin/pip --quiet --disable-pip-version-check install --editable '.[test]'
}}
prepare || exit {CANNOT_RUN}
[ -z "$ONLY_PREPARE" ] || exit {DONE}
. /etc/os-release
echo "==> $PRETTY_NAME, $(cat /etc/debian_version)"
for package in slurmctld python3 openmpi-bin libmpich12 mariadb-server-core; do
    dpkg-query --show --showformat='==> ${{Package}} ${{Version}}\\n' "$package"
done
if [ "$ALL_TESTS" ]; then
    echo "==> run all tests that need no testbed"
    (. ci/activate && pytest -q -m "not testbed") || exit {FAILED}
fi
exec unshare --net bash -c '
    ip link set dev lo up
    if [ -z "$ALL_TESTS" ]; then
        echo "==> test readers and store"
        (. ci/activate && pytest -q --numprocesses auto {TESTS}) || exit {FAILED}
    fi
    status=0
    ci/quickstart --smoke || status=$?
    if [ "$status" -eq 2 ]; then
        . ci/activate
        set -- reports/run-quickstart-*.json
        netproof verdict "$1" testbed:gige --format json >{DOCUMENT} || true
    fi
    exit "$status"'
"""
"""Installs with the machine's network, like the test of the wheel; measures without it.

In its environment ``ALL_TESTS`` is set for all tests, and ``ONLY_PREPARE`` to only install.
"""
