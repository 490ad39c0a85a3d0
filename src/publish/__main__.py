"""The program's entry: puts the process in order before anything else is imported, and ends it.

The environment is read here, once, and then emptied: libraries take from it proxies, trust
roots, credentials and code to run, and `publish` takes none of that from there.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # The functions of `signal` without its enums, which take a tenth of a bare interpreter's start.
    import _signal as signal

# First of all: until here a SIGINT prints Python's traceback.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import os
import sys

# Only after this is anything else imported. Code comes from where publish is installed: not from the working directory,
# nor from where PYTHONPATH says. Who calls `python -m publish` has let both in already, for what Python itself imports
# at its start (env.3).
sys.pycache_prefix = None  # PYTHONPYCACHEPREFIX: code that another user may have compiled


def _absolute(path: str) -> str:
    """As `site` writes an element of PYTHONPATH to sys.path: an empty one is the working directory."""
    try:
        return os.path.abspath(path)
    except OSError:  # the working directory was removed
        return path


def _is_installed(path: str) -> bool:
    """Whether an element of sys.path is where publish or Python is installed."""
    own, library = os.path.dirname(os.path.dirname(__file__)), os.path.dirname(os.__file__)
    is_ours = path == own or f"{path}/".startswith(f"{library}/")
    return is_ours or (os.path.isabs(path) and _absolute(path) not in _GIVEN)


_PYTHONPATH = os.environ.get("PYTHONPATH")
_GIVEN = {_absolute(path) for path in _PYTHONPATH.split(os.pathsep)} if _PYTHONPATH else set()
if __name__ == "__main__":
    _GIVEN.add(_absolute(""))  # `python -m` puts the working directory first
sys.path[:] = filter(_is_installed, sys.path)

import gc
import warnings
from time import monotonic

STARTED = monotonic()


def run() -> None:
    """Runs `publish` on this process's arguments and ends the process with its status."""
    _restore_signals()
    _reserve_std_fds()
    # Suppress tracebacks from finalizers.
    sys.unraisablehook = lambda _: None
    arguments = [_text(argument) for argument in sys.argv[1:]]
    # execve(2) also passes on a string without a name, "=value", which is not a variable.
    env = {_text(name): _text(value) for name, value in os.environ.items() if name}
    _clear_environment()

    # Seldom: objects that imports create live forever, and looking through them costs a tenth of the start.
    gc.set_threshold(100_000)

    from publish.cli.app import main  # only now: the environment is empty
    from publish.cli.output import Output

    status = main(arguments, env, Output(), STARTED)
    # Not sys.exit: a thread may hang in a request that ran out of time, and there is nothing to
    # flush, for answers are written as they come.
    os._exit(status)


def _restore_signals() -> None:
    """SIGINT and SIGTERM end the process as a shell expects: 130 and 143, without a traceback.

    A signal that the parent ignores stays ignored: shells start the background jobs of a script so. A blocked one is
    unblocked, because the parent may have blocked it only while it started this process.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    if os.getpid() == 1:
        from publish.cli.first_process import leave_to_child  # start-up: only in a container

        leave_to_child()


def _reserve_std_fds() -> None:
    """Opens /dev/null read-only in place of each standard stream that is closed.

    Else the next file that is opened, an entry even, would get its number and the answers (cli.7).
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)


def _clear_environment() -> None:
    """Leaves nothing that a library or the interpreter would act on (env.2)."""
    for name in list(os.environ):
        try:
            del os.environ[name]
        except OSError:  # unsetenv(3) refuses an empty name
            continue
    os.environ["HOME"] = "/nonexistent"
    # What PYTHONWARNINGS and PYTHONINTMAXSTRDIGITS have set already.
    warnings.simplefilter("ignore")
    sys.set_int_max_str_digits(sys.int_info.default_max_str_digits)


def _text(value: str) -> str:
    """As UTF-8 whatever the locale; what is not UTF-8 survives as surrogates (PEP 383)."""
    return os.fsencode(value).decode("utf-8", "surrogateescape")


if __name__ == "__main__":
    run()
