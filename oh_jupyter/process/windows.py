"""Children on Windows: a job object stops each with its descendants.

A child starts suspended, so that it starts nothing outside the job, and on a separate console,
where Ctrl-C reaches only it. This module is type-checked but has never been run on Windows.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import os
    import subprocess
    from collections.abc import Iterable, Mapping, Sequence
    from typing import IO, Any

    import psutil

    from oh_jupyter.errors import ChildStartError
    from oh_jupyter.process.child import Child, memory_bytes_of

    CREATE_SUSPENDED = 0x00000004
    NO_WINDOW_SUSPENDED = subprocess.CREATE_NO_WINDOW | CREATE_SUSPENDED
    KILLED_EXIT_CODE = 1
    """Exit status of processes stopped with their job."""
    INTERRUPT_TIMEOUT_SECONDS = 10.0

    CTRL_C_PROGRAM = """
import ctypes, sys
kernel = ctypes.WinDLL("kernel32", use_last_error=True)
kernel.FreeConsole()
done = (
    kernel.AttachConsole(int(sys.argv[1]))
    and kernel.SetConsoleCtrlHandler(None, True)
    and kernel.GenerateConsoleCtrlEvent(0, 0)
)
sys.exit(not done)
"""
    """A process has one console at a time, so a separate program attaches to the child's."""

    class WindowsChild(Child):
        """A child in its own job."""

        def __init__(self, process: subprocess.Popen[bytes], job: Any) -> None:
            self.pid = process.pid
            self.stdin = process.stdin
            self.stdout = process.stdout
            self.stderr = process.stderr
            self._process = process
            self._job = job

        @property
        def returncode(self) -> int | None:  # type: ignore[override]  # noqa: D102
            return self._process.returncode

        def fileno(self) -> int:  # noqa: D102
            return -1

        def poll(self) -> int | None:  # noqa: D102
            return self._process.poll()

        def wait(self, timeout: float | None = None) -> int:  # noqa: D102
            try:
                return self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                raise TimeoutError(
                    f"Process {self.pid} is still running after {timeout} s."
                ) from None

        def terminate(self, grace: float = 2.0) -> None:  # noqa: D102
            self.begin_termination(grace)
            self._process.wait()

        def begin_termination(self, grace: float = 2.0) -> None:  # noqa: D102
            import win32job

            win32job.TerminateJobObject(self._job, KILLED_EXIT_CODE)

        def memory_bytes(self) -> int:  # noqa: D102
            import win32job

            return memory_bytes_of(
                set(
                    win32job.QueryInformationJobObject(
                        self._job, win32job.JobObjectBasicProcessIdList
                    )
                )
            )

    def guardian_pids() -> set[int]:
        """Return nothing: a job, not a process, holds the children together."""
        return set()

    def spawn(
        argv: Sequence[str | os.PathLike[str]],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int | IO[bytes] | None = None,
        stdout: int | IO[bytes] | None = None,
        stderr: int | IO[bytes] | None = None,
        pass_fds: Iterable[int] = (),
        controlling_terminal: int | None = None,
        user: str | None = None,
        resume: bool = False,
        remove_when_orphaned: str | os.PathLike[str] | None = None,
    ) -> Child:
        """Start a program in a job; see ``posix.spawn`` for the arguments."""
        if user is not None or controlling_terminal is not None or list(pass_fds):
            raise ChildStartError(
                "Windows supports no user, controlling terminal or inherited descriptors for a "
                "child: start it without them."
            )
        job = _job()
        try:
            process = subprocess.Popen(
                [os.fspath(word) for word in argv],
                cwd=cwd,
                env=None if env is None else dict(env),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                creationflags=NO_WINDOW_SUSPENDED,
            )
        except OSError as error:
            raise ChildStartError(
                error.errno, f"{argv[0]!r} was not started: {error.strerror} (cwd {cwd!r})."
            ) from error
        import win32job

        try:
            win32job.AssignProcessToJobObject(job, int(process._handle))  # type: ignore[attr-defined]
            psutil.Process(process.pid).resume()
        except Exception as error:
            process.kill()
            raise ChildStartError(f"{argv[0]!r} could not be put into a job: {error}") from error
        return WindowsChild(process, job)

    def _job() -> Any:
        """Create a job that ends when its last handle is closed."""
        import win32job

        job: Any = win32job.CreateJobObject(None, "")  # type: ignore[func-returns-value]
        limits = win32job.QueryInformationJobObject(job, win32job.JobObjectExtendedLimitInformation)
        limits["BasicLimitInformation"]["LimitFlags"] |= win32job.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
        win32job.SetInformationJobObject(job, win32job.JobObjectExtendedLimitInformation, limits)
        return job

    def interrupt(pid: int) -> None:
        """Press Ctrl-C on the console of a child; Ctrl-Break would start PowerShell's debugger."""
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", CTRL_C_PROGRAM, str(pid)],
            creationflags=subprocess.CREATE_NO_WINDOW,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=INTERRUPT_TIMEOUT_SECONDS,
            check=False,
        )
