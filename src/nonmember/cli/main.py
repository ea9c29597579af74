"""`nonmember audit | train | score | report ...`: dispatch and error handling. Imports nothing heavy."""

from __future__ import annotations

import difflib
import gc
import importlib
import io
import logging
import os
import sys
import traceback
from types import TracebackType

from nonmember import __version__
from nonmember.checks import hidden, refuse_secrets
from nonmember.runtime.interruption import interruptible, interruption_of, watch_parent
from nonmember.runtime.processes import process_rank
from nonmember.runtime.progress import shows_bars
from nonmember.runtime.terminal import visible

SLOW_TO_BEGIN = ("audit", "advise", "score", "train", "report", "reproduce")
INTERRUPTED = (130, 143)  # exit status after Ctrl-C and SIGTERM
NO_READER = 141  # as after SIGPIPE
COMMANDS = {
    "audit": "one audit, or a grid of them (-m): was the dataset used to train the model?",
    "advise": "rank the methods that apply to the access and data you have",
    "score": "membership scores of documents, as a Parquet table",
    "train": "train a model from its recipe",
    "list": "list the available models, methods, data, worlds and sweeps",
    "table": "print the results of several audits as one table",
    "view": "a page over all audits of a folder: sort, filter, search, compare; with --pages that of each again",
    "dashboard": "a view of a W&B project that compares the audits",
    "store": "manage stored artifacts: list, verify, remove",
    "plant": "plant canaries or draw a hold-out before documents are published, for an exact test later",
    "seal": "preregister an audit: a signed file that fixes its question before it is run",
    "bundle": "pack finished audits into one signed file that others can verify",
    "verify": "verify such a file, without models or documents",
    "report": "all results as the tables and figures of a paper, and a page to explore",
    "reproduce": "runs a paper's sweeps, and writes its tables and figures",
}

HELP = f"""nonmember {__version__}: was this dataset used to train this language model, or was it not?

usage: nonmember COMMAND [key=value ...]

{chr(10).join(f"  {name:11} {what}" for name, what in COMMANDS.items())}

`nonmember COMMAND --help` says more. README.md has a first session, docs/ the rest.
"""


def main() -> None:
    """Entry of the console script."""
    sys.excepthook = _print_without_secrets
    gc.set_threshold(10_000)  # what libraries hold, which stays, is gone through less often: a seventh of an audit
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # of a name that a terminal cannot show, as stderr does
    status = run(sys.argv[1:])
    if status in (*INTERRUPTED, NO_READER):  # at once: taking the libraries apart needs seconds
        logging.shutdown()
        if status != NO_READER:
            sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _print_without_secrets(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(hidden("".join(traceback.format_exception(kind, error, trace))))


def run(arguments: list[str]) -> int:
    """Run a command and return the exit status: 0 done, 1 an error (explained in a sentence), 2 no such command,
    130 after Ctrl-C, 143 after SIGTERM, 141 where nothing reads what is printed any more."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(HELP)
        return 0
    if arguments[0] == "--version":
        sys.stdout.write(f"nonmember {__version__}\n")
        return 0
    # Lightning starts the further processes of a run with the arguments that follow the command; srun starts all alike.
    try:
        rank = process_rank()
    except ValueError as error:
        sys.stderr.write(f"nonmember: {error}\n")
        return 1
    started = os.environ.get("NONMEMBER_COMMAND") if rank > 0 else None
    command, *rest = [started, *arguments] if started else arguments
    if command not in COMMANDS:
        near = difflib.get_close_matches(command, COMMANDS, n=1)
        meant = f"did you mean {near[0]}? The commands are" if near else "choose from"
        sys.stderr.write(f"nonmember: there is no command {command!r}; {meant} {', '.join(COMMANDS)}.\n")
        return 2
    try:
        refuse_secrets(rest)  # before anything is imported or written that could repeat one
    except ValueError as error:
        sys.stderr.write(f"nonmember {command}: {error}\n")
        return 1
    # Waiting threads must not spin: on shared cores that costs up to sixty times the work itself.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    wants_trace = os.environ.get("HYDRA_FULL_ERROR") == "1" and rank == 0
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come to us instead of being printed by Hydra
    os.environ["NONMEMBER_COMMAND"] = command
    logging.raiseExceptions = False  # where a log file cannot be written, the work itself says so
    sys.argv[1:] = rest
    if rank > 0:
        watch_parent()
    elif command in SLOW_TO_BEGIN and shows_bars():
        sys.stderr.write("Loading libraries ...\n")
    with interruptible():
        try:
            importlib.import_module(f"nonmember.cli.{command}").main()
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            if (interruption := interruption_of(error)) is not None:
                if rank == 0:
                    sys.stderr.write(f"nonmember: {interruption}\n")
                return interruption.status
            if isinstance(error, SystemExit):
                raise
            if isinstance(error, BrokenPipeError):  # as in `nonmember store list | head`
                return NO_READER
            from nonmember.config.explain import explain, is_for_the_user

            if wants_trace or not is_for_the_user(error):
                raise
            sys.stderr.write(f"nonmember {command}: {visible(explain(error))}\n")
            return 1
    return 0
