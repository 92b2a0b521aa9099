"""The command line: which verbs, which flags, what the help says. What a verb does is in `commands` and `serve`.

They are imported when a verb runs: help, completion and a wrong flag need none of it.
"""

import enum
import gc
import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from app import mistakes
from app.settings import SETTINGS, BadSettings, Reading, Setting, Settings, read_settings, settings_reading
from app.unanswered import BAD_USAGE, NO_ANSWER

COLLECTIONS = (50_000, 20, 100)
"""Thresholds of the garbage collector: a full collection of a large cluster holds the loop for 50 to 160 ms, and a
review leaves next to nothing to collect. Nor does a start, which is 25 ms shorter (both measured)."""


class Output(enum.StrEnum):
    """Form of an answer."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


class LedgerOutput(enum.StrEnum):
    """Form of the ledger: what is added up is also for spreadsheets."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def main() -> None:
    """`vacancy`, or `kubectl vacancy` where kubectl calls us as its plugin."""
    gc.set_threshold(*COLLECTIONS)
    is_plugin = Path(sys.argv[0]).name.startswith("kubectl-")
    app(prog_name="kubectl vacancy" if is_plugin else "vacancy")


OF_ANSWERS = tuple(setting for setting in SETTINGS if not setting.serve_only)
"""What concerns the commands that answer a question."""

OF_HOOKS = tuple(setting for setting in SETTINGS if setting.name in {"kubeconfig", "context", "webhooks"})
"""What concerns the commands of the chart's hooks."""


def with_settings(
    rows: Sequence[Setting], *, serve: bool = False
) -> Callable[[Callable[..., int]], Callable[..., None]]:
    """Give a command a flag for every setting that concerns it, and end with the exit code it returns.

    The command takes the settings as its first argument; `serve` takes them as they were read, for it tells what is
    wrong with them together with what else is wrong.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., None]:
        _, *own = inspect.signature(command).parameters.values()

        def run(**arguments: Any) -> None:  # noqa: ANN401 - whatever typer passes
            flags = {setting.name: arguments.pop(setting.field) for setting in rows}
            given = {name: text for name, text in flags.items() if text is not None}
            if any(arguments.get(source) for source in ("server", "service", "direct")):
                given = _WITHOUT_FILES | given
            with _ending_with_its_pipe():
                try:
                    _refuse_other_than_text(arguments)
                    if "direct" in arguments:
                        _refuse_without_effect(given, arguments)
                    code = command((settings_reading if serve else read_settings)(given, os.environ), **arguments)
                except BadSettings as error:
                    from app.dra.words import printable

                    typer.echo("vacancy: " + "\n  ".join(map(printable, str(error).split("\n"))), err=True)
                    code = BAD_USAGE
                except BrokenPipeError:
                    raise
                except Exception as error:  # noqa: BLE001 - the last resort
                    typer.echo(f"vacancy: no answer: unexpected {mistakes.place(error)}", err=True)
                    code = NO_ANSWER
            raise typer.Exit(code)

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature([*own, *map(_flag, rows)])  # type: ignore[attr-defined]  # read by typer
        return run

    return decorate


@contextmanager
def _ending_with_its_pipe() -> Iterator[None]:
    """Where nobody reads on, as in `| head -1`, end as other tools do: in silence, by the signal, and with no answer.

    The signal itself stays ignored, as Python has it: a server that hangs up on a request must not end us.
    """
    try:
        yield
        typer.echo(nl=False)  # what is printed and not written yet
    except BrokenPipeError:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)


def _refuse_other_than_text(arguments: Mapping[str, Any]) -> None:
    """What is not UTF-8 can neither be sent nor printed; names of files may be any bytes. Raises BadSettings."""
    problems = []
    for name, text in arguments.items():
        try:
            if isinstance(text, str):
                text.encode()
        except UnicodeEncodeError:
            problems.append(f"{name}={text!a}: expected UTF-8")
    if problems:
        raise BadSettings(tuple(problems))


def _refuse_without_effect(flags: Mapping[str, str], arguments: Mapping[str, Any]) -> None:
    """Flags that say how to judge, where a server or the live view does in a way of its own. Raises BadSettings."""
    if arguments["direct"]:
        idle = [f"--{name}" for name in flags if name in _OF_COUNTS]
        why = "--direct judges by what it sees live, and asks for no counts"
    elif flags.get("manifests", os.environ.get("VACANCY_MANIFESTS")):
        return
    else:
        idle = [f"--{name}" for name in flags if name not in _OF_PLACES]
        why = "a server judges by its own; expected --direct or --manifests as well"
    if idle:
        raise BadSettings((f"{', '.join(idle)}: {why}",))


_OF_PLACES = frozenset({"manifests", "now", "kubeconfig", "context"})
"""What says who is asked, not how is judged."""

_OF_COUNTS = frozenset({"source", "max-age"})
"""What says when a pool status counts."""

_WITHOUT_FILES = {"manifests": "", "now": ""}
"""Flags that take back what variables say of files: a source that is named by a flag wins over them."""


def _flag(setting: Setting) -> inspect.Parameter:
    default = f"={setting.default}" if setting.default else ""
    option = typer.Option(
        setting.flag,
        help=f"{setting.help} [{setting.variable}{default}]",
        metavar=setting.form.placeholder,
        show_default=False,
    )
    return inspect.Parameter(
        setting.field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, option]
    )


ServerUrl = Annotated[str, typer.Option("--server", metavar="URL", help="Ask the Vacancy server at this address.")]
ServiceName = Annotated[
    str,
    typer.Option(
        "--service",
        metavar="NAMESPACE/NAME",
        help="Ask the Vacancy server behind this Service, through the API server; kubeconfig as kubectl's. "
        "The default, with vacancy/vacancy.",
    ),
]
DirectFlag = Annotated[
    bool, typer.Option("--direct", help="Judge here, by what you may read of the cluster; kubeconfig as kubectl's.")
]
OutputForm = Annotated[Output, typer.Option("--output", "-o", help="Form of the answer on stdout.")]


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - a flag
    if wanted:
        from app.version import version

        typer.echo(f"vacancy {version()}")
        raise typer.Exit


@app.callback()
def vacancy(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Ask for free devices before a pod does."""


@app.command(epilog="Example: vacancy serve --manifests examples/cluster --web-listen 127.0.0.1:8080")
@with_settings(SETTINGS, serve=True)
def serve(reading: Reading) -> int:
    """Answer admission reviews (TLS), and serve page, API, probes and metrics (HTTP)."""
    from app.serve import run

    return run(reading)


@app.command(epilog="Example: kubectl create deployment d --image=i --dry-run=client -o yaml | vacancy check -f -")
@with_settings(OF_ANSWERS)
def check(  # noqa: PLR0913 - one argument a flag
    settings: Settings,
    *,
    filename: Annotated[
        list[Path], typer.Option("--filename", "-f", metavar="FILE", help="File, folder, or - for standard input.")
    ],
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", metavar="NAME", help="Of objects that name none; else that of the context, or default."
        ),
    ] = "",
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 5 if the answer is unknown.")] = False,
    output: OutputForm = Output.TEXT,
    service: ServiceName = "",
    server: ServerUrl = "",
    direct: DirectFlag = False,
) -> int:
    """Tell whether these pods, and the pods of these workloads, would get their devices now.

    Each pod is judged alone, and nothing is created. Exit code: 0 room or unknown, 1 full, 2 bad usage or input,
    3 no answer, 4 never fits, 5 unknown with --strict; of several pods the first of full, never fits, unknown decides.
    """
    from app.answers import Where
    from app.commands import check as run

    return run(settings, Where(server, service, direct), output, filenames=filename, namespace=namespace, strict=strict)


@app.command(epilog="Example: vacancy capacity --watch")
@with_settings(OF_ANSWERS)
def capacity(  # noqa: PLR0913 - one argument a flag
    settings: Settings,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Again every two seconds, until interrupted.")] = False,
    output: OutputForm = Output.TEXT,
    service: ServiceName = "",
    server: ServerUrl = "",
    direct: DirectFlag = False,
) -> int:
    """Show what each device class can still give, pool by pool."""
    from app.answers import Where
    from app.commands import capacity as run

    return run(settings, Where(server, service, direct), output, watch=watch)


@app.command(epilog="Example: vacancy explain example.com/gpu --manifests examples/cluster")
@with_settings(OF_ANSWERS)
def explain(  # noqa: PLR0913 - one argument a flag
    settings: Settings,
    *,
    name: Annotated[str, typer.Argument(help="An extended resource like example.com/gpu, or a device class.")],
    output: OutputForm = Output.TEXT,
    service: ServiceName = "",
    server: ServerUrl = "",
    direct: DirectFlag = False,
) -> int:
    """Tell what 1 of this name means now: which class, which devices, and how unequal they are.

    Exit code: 0 known, 1 not known in this cluster, 2 bad usage or input, 3 no answer.
    """
    from app.answers import Where
    from app.commands import explain as run

    return run(settings, Where(server, service, direct), output, name=name)


@app.command(epilog="Example: vacancy ledger audit.log audit-*.log.gz -o csv")
@with_settings(())
def ledger(
    _: Settings,
    *,
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Audit log, also gzip; - for standard input.")],
    output: Annotated[LedgerOutput, typer.Option("--output", "-o", help="Form of the table.")] = LedgerOutput.TEXT,
) -> int:
    """Add up an API server's audit log: what each namespace asked for, and what 1 of it meant at the time.

    Exit code: 0 read to its end, 2 bad usage or input.
    """
    from app.ledger_command import ledger

    return ledger(files, output)


@app.command(epilog="Example: vacancy selftest --webhooks vacancy,vacancy-workloads")
@with_settings(OF_HOOKS)
def selftest(settings: Settings) -> int:
    """Call every webhook as the API server does, and say whether it answers. Creates nothing.

    Exit code: 0 all answer, 1 any does not, 2 bad usage.
    """
    from app.hooks import run
    from app.selftest import selftest

    return run(settings, selftest)


@app.command(epilog="Example: vacancy cleanup --webhooks vacancy,vacancy-workloads")
@with_settings(OF_HOOKS)
def cleanup(settings: Settings) -> int:
    """Delete the webhook configurations and the pool status requests: what an uninstallation would leave.

    Exit code: 0 nothing is left, 1 something may be, 2 bad usage.
    """
    from app.cleanup import cleanup
    from app.hooks import run

    return run(settings, cleanup)
