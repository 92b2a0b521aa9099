"""`python -m certs --dir DIR --dns NAME… --ip ADDR…`: make `ca.crt`, `tls.crt` and `tls.key`."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from certs.serving import BadNames, throwaway_pair

_DESCRIPTION = "Make a certificate authority, and a certificate and key that it signs, for the webhook's listener."
_EXAMPLE = """\
example:
  python -m certs --dir tls --dns vacancy.vacancy.svc localhost --ip 127.0.0.1
  vacancy serve --tls-dir tls

The base64 of ca.crt is the caBundle of the webhook configuration. Each call makes a new authority and replaces all
three files.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the files and print their paths. Return 0, or 2 after one line on stderr that says what to do."""
    parser = argparse.ArgumentParser(
        prog="python -m certs",
        usage="%(prog)s --dir DIR [--dns NAME ...] [--ip ADDR ...]",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dir", type=Path, required=True, metavar="DIR", help="where to write; made if missing")
    parser.add_argument("--dns", nargs="+", action="extend", default=[], metavar="NAME", help="DNS names of the server")
    parser.add_argument(
        "--ip", nargs="+", action="extend", default=[], metavar="ADDR", help="IP addresses of the server"
    )
    options = parser.parse_args(arguments)
    try:
        paths = throwaway_pair(options.dns, options.ip, time.time()).write(options.dir)
    except BadNames as problem:
        print(f"{parser.prog}: {problem}: name the server with --dns NAME… and --ip ADDR…", file=sys.stderr)
        return 2
    except OSError as problem:
        what = f"can't write {problem.filename2 or problem.filename}: {problem.strerror}"
        print(f"{parser.prog}: {what}: give a writable directory with --dir", file=sys.stderr)
        return 2
    print(*paths, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
