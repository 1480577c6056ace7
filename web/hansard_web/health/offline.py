"""A proof that nothing leaves this machine: a program in a network namespace with only a loopback.

The namespace has no route to anywhere. The kernel counts packets that found none, for every process
in it and whatever library sent them: a demo that works while the count stays at zero tried nothing.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_CLONE_NEWUSER: Final = 0x10000000  # <linux/sched.h>
_CLONE_NEWNET: Final = 0x40000000
_SIOCSIFFLAGS: Final = 0x8914  # <linux/sockios.h>
_IFF_UP_RUNNING: Final = 0x1 | 0x40  # <linux/if.h>
_NO_NAMESPACE: Final = 3  # exit status of the child: this system gives us none
_COUNTERS: Final = ("OutNoRoutes", "Ip6OutNoRoutes")


@dataclass(frozen=True, slots=True)
class Proof:
    """What a program did in its namespace."""

    is_possible: bool  # False: this system has no network namespaces for us
    has_worked: bool = False
    attempts: int = 0  # packets for somewhere else
    story: str = ""  # what it said


def prove_offline(*command: str) -> Proof:
    """Run a program, or else `hansard demo --exit --fast`, where only the loopback exists."""
    child = subprocess.run(
        [sys.executable, "-m", "hansard_web.health.offline", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode == _NO_NAMESPACE:
        return Proof(is_possible=False, story=child.stderr.strip())
    lines = child.stdout.splitlines()
    counted = next((line for line in reversed(lines) if line.startswith("attempts ")), "attempts 0")
    return Proof(
        is_possible=True,
        has_worked=child.returncode == 0,
        attempts=int(counted.split()[1]),
        story="\n".join((*lines, child.stderr)),
    )


def main() -> int:
    """Enter a namespace, run a program in it, print how many packets found no way out."""
    try:
        _enter_namespace()
    except (OSError, AttributeError) as error:  # no such call outside Linux
        sys.stderr.write(f"{error}\n")
        return _NO_NAMESPACE
    before = _unroutable()
    hansard = [sys.executable, "-c", "from hansard._cli.main import main; main()"]
    demo = [*hansard, "demo", "--exit", "--fast"]
    status = subprocess.run(sys.argv[1:] or demo, check=False).returncode
    sys.stdout.write(f"attempts {_unroutable() - before}\n")
    return status


def _enter_namespace() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    # Root needs no user namespace, and inside a container may not be allowed one.
    flags = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWNET | _CLONE_NEWUSER
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no network namespace: {os.strerror(number)}")
    request = struct.pack("16sh14x", b"lo", _IFF_UP_RUNNING)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)


def _unroutable() -> int:
    """Return how many packets found no route, of both versions of IP, in this namespace."""
    lines = Path("/proc/self/net/snmp").read_text(encoding="ascii").splitlines()
    names, values = (line.split()[1:] for line in lines if line.startswith("Ip:"))
    counts = dict(zip(names, values, strict=True))
    six = Path("/proc/self/net/snmp6")
    if six.exists():
        counts |= dict(line.split() for line in six.read_text(encoding="ascii").splitlines())
    return sum(int(counts.get(name, 0)) for name in _COUNTERS)


if __name__ == "__main__":
    raise SystemExit(main())
