"""What runs in the release: how it is entered, and what is done there."""

from __future__ import annotations

CHECKOUT = "srv/netproof"
"""Where the copy of this checkout is in the release's folder."""
DOCUMENT = "verdict.json"
DONE, FAILED, CANNOT_RUN = 0, 1, 2
TESTS = " ".join(
    f"tests/netproof/{name}.py"
    for name in ("benchmarks/test_parse_*", "intake/test_loading", "store/test_store")
)
"""What most depends on the release's Python."""
ENTER = """set -e
# What ends before the release is entered says nothing of it.
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
# Below a chroot the kernel lets nobody make a user namespace, as a machine does.
cd "$tree"
pivot_root . .
umount --lazy .
exec chroot . /bin/bash -c "$WITHIN"
"""
"""Mounts what a machine has, and folders that are to be seen inside, then enters the release."""
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
    echo "==> test all that needs no testbed"
    (. ci/activate && pytest -q -m "not testbed") || exit {FAILED}
fi
exec unshare --net bash -c '
    ip link set dev lo up
    if [ -z "$ALL_TESTS" ]; then
        echo "==> test what reads and keeps"
        (. ci/activate && pytest -q --numprocesses auto {TESTS}) || exit {FAILED}
    fi
    status=0
    ci/quickstart --smoke || status=$?
    if [ "$status" -eq 2 ]; then
        . ci/activate
        set -- reports/run-quickstart-*.json
        netproof verdict "$1" --system testbed:gige --json >{DOCUMENT} || true
    fi
    exit "$status"'
"""
"""Installs with the machine's network, as a test does that builds the wheel; measures without it.

``ALL_TESTS`` in its environment is empty unless all are asked for, ``ONLY_PREPARE`` unless nothing
but the installing is.
"""
