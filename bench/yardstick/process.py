"""Programs that are measured: commands that print a figure, and translators that are fed through a pipe."""
import contextlib
import dataclasses
import fcntl
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

PIPE_BYTES = 1 << 20  # a whole text: neither side waits for the other to be scheduled


class Failed(Exception):
    """Why something cannot be measured here, in one sentence."""


def settings(environment):
    """As a shell reads them before a command."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())


@dataclasses.dataclass(frozen=True)
class Command:
    words: tuple
    environment: dict = dataclasses.field(default_factory=dict)  # besides the one of bench/run

    def __str__(self):
        return " ".join(filter(None, [settings(self.environment), *(shlex.quote(str(word)) for word in self.words)]))

    def start(self, errors, **pipes):
        return subprocess.Popen([str(word) for word in self.words], env={**os.environ, **self.environment},
                                stderr=errors, **pipes)

    def run(self):
        """Standard output; Failed with the last line of standard error."""
        with tempfile.TemporaryFile() as errors:
            process = self.start(errors, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            output = process.communicate()[0].decode()
            if process.returncode != 0:
                raise Failed(_complaint(self, process.returncode, errors))
            return output


def _complaint(command, status, errors):
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return f"{os.path.basename(str(command.words[0]))}: {lines[-1].strip()[:300] if lines else f'status {status}'}"


class Session:
    """A program that translates line for line, between two pipes, for as long as the `with` lasts. What it does before
    its first line (loading, say) belongs to no later measurement."""

    def __init__(self, command):
        self._command = command

    def __enter__(self):
        self._errors = tempfile.TemporaryFile()
        self._process = self._command.start(self._errors, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return self

    def __exit__(self, kind, *_):
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        if kind is not None:
            self._process.kill()
        self._wait()
        self._process.stdout.close()
        self._errors.close()

    def _wait(self):
        if self._process.returncode is None:
            _, status, self.usage = os.wait4(self._process.pid, 0)
            self._process.returncode = os.waitstatus_to_exitcode(status)
        return self._process.returncode

    def translate(self, lines):
        """Seconds from the first line's going in to the last one's coming out."""
        data = "".join(line + "\n" for line in lines).encode()
        start = time.perf_counter()
        writer = threading.Thread(target=self._write, args=(data,))
        writer.start()
        ended = any(not self._process.stdout.readline().endswith(b"\n") for _ in lines)
        seconds = time.perf_counter() - start
        writer.join()
        if ended:
            raise Failed(_complaint(self._command, self._wait(), self._errors))
        return seconds

    def _write(self, data):
        with contextlib.suppress(OSError):  # who reads no more says why himself
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def peak_megabytes(self):
        """Ends the program and gives the most memory that it held at a time."""
        self._process.stdin.close()
        if self._wait() != 0:
            raise Failed(_complaint(self._command, self._process.returncode, self._errors))
        return self.usage.ru_maxrss / 1024


def seconds_to_first_line(command, line):
    """From the start of a program that gets one line to the line that it answers."""
    start = time.perf_counter()
    with Session(command) as session:
        session.translate([line])
        return time.perf_counter() - start


@contextlib.contextmanager
def busy_core(core):
    """Another process that computes on this core, and does nothing else."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        os.sched_setaffinity(process.pid, {core})
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
