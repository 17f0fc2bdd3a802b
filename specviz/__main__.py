"""`python -m specviz`, and the command `specviz`."""

from __future__ import annotations

import sys

from specviz.core import process


def main() -> int:
    """Run the command line as a process of its own.

    Returns:
        See `specviz.cli.main`; after a signal, 128 plus its number.
    """
    process.open_streams()
    # While modules are loaded, and at the end, there is nothing to put in order.
    process.on_signals(process.end_at_once)
    from specviz import cli

    sys.unraisablehook = process.on_lost_exception
    process.on_signals(process.interrupt)
    try:
        return process.exit_code(cli.main())
    except KeyboardInterrupt:  # before a command had begun, or when it had ended
        process.say_stopped()
        return process.exit_code(process.INTERRUPTED)
    finally:
        process.on_signals(process.end_at_once)


if __name__ == "__main__":
    raise SystemExit(main())
