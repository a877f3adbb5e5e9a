"""The machine that figures are of, and who else is at work on it. As a program: the line that every script of this
folder prints first; its argument is the program gloss."""
import datetime
import os
import pathlib
import re
import resource
import subprocess
import sys
import time

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1].strip() if found else "an unnamed processor"


def cores():
    return len(os.sched_getaffinity(0))


def today():
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


def version_of_gloss(gloss):
    """["gloss 0.1.0", "instruction set: avx512", ...]"""
    done = subprocess.run([gloss, "--version"], stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout.strip().splitlines()


def line(gloss):
    return (f"{today()}, {cores()} cores of {processor()}, load {os.getloadavg()[0]:.2f}, "
            + ", ".join(version_of_gloss(gloss)))


def _busy_seconds():
    """Of all cores together since the machine started, by anybody."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _, _, irq, softirq, steal, *_ = map(int, stat.readline().split()[1:])
    return (user + nice + system + irq + softirq + steal) / TICKS_A_SECOND


def _own_seconds():
    """Of this process and the children that it has waited for."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


class Others:
    """The share of the machine that belongs to other programs from now on."""

    def __init__(self):
        self._start = time.monotonic(), _busy_seconds(), _own_seconds()

    def share(self):
        wall, busy, own = (now - then for now, then in
                           zip((time.monotonic(), _busy_seconds(), _own_seconds()), self._start))
        return max(0.0, (busy - own) / (wall * os.cpu_count()))


if __name__ == "__main__":
    print(line(sys.argv[1]))
