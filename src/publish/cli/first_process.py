"""The first process of a container: it starts the program proper, passes signals on to it and reaps what it orphans.

The kernel applies no default action of a signal to that process (pid_namespaces(7)): neither an alarm nor a second
signal could end it while a C call holds the interpreter's lock. A child can be ended so.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # start-up: without the enums

_PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)
# The si_code of a signal from the kernel (sigaction(2)): a terminal sends these to its whole foreground group.
SI_KERNEL = 0x80
_FROM_TERMINALS = (signal.SIGINT, signal.SIGQUIT)


def leave_to_child() -> None:
    """Returns in a child, which is a process as any other. This process ends with the child's exit status."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (*_PASSED_ON, signal.SIGCHLD))
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return
    # A parent may have left it ignored: children would then end unseen (wait(2)).
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while True:
        received = signal.sigwaitinfo((*_PASSED_ON, signal.SIGCHLD))
        if received.si_signo == signal.SIGCHLD:
            _reap(child)
        elif received.si_code != SI_KERNEL or received.si_signo not in _FROM_TERMINALS:
            os.kill(child, received.si_signo)


def _reap(program: int) -> None:
    """Takes the status of what has ended; ends with the program's, 128 and the number if a signal ended it."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == 0:
            return
        if ended == program:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
