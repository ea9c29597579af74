"""`nonmember verify BUNDLE`, and `nonmember-verify` where nothing else of nonmember is installed."""

from __future__ import annotations

import argparse
import io
import json
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonmember_verify.commitments import secret_of
from nonmember_verify.envelope import fingerprint, public_key

if TYPE_CHECKING:
    from nonmember_verify.report import Report

DESCRIPTION = """\
Check a bundle of audits: its signature, every hash, every score from the token statistics, statistic, interval and
p-value from the scores (with the same seed, and by a second implementation), the verdict from the numbers, and that the
seal was obeyed. A line for each check, and for what could not be checked. Exit status 0 where nothing failed, 1 where
something did or an option asked for what could not be done, 2 where a file could not be read, 3 where nothing failed
and the answer of an audit was not recomputed: no verdict rests on it, or this version knows its method, or a setting of
it, not at all."""
HEADLINES = ("Verified", "FAILED", "", "Verified in part, since the answer of an audit is taken as stated")


def main(arguments: list[str] | None = None, **helpers: Any) -> int:
    """Print the report; return the exit status. helpers: `observe` of `verify.Given`, which
    need the whole package."""
    options = _options(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name may hold what the terminal cannot show
    try:
        report = _report(options, helpers)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"nonmember verify: {error}\n")
        return 2
    status = 1 if report.failures else 3 if report.num_as_stated else 0
    if options.json:
        names = ("kind", "what", "told", "fields")
        sys.stdout.write(json.dumps([{name: getattr(line, name) for name in names} for line in report.lines], indent=1))
        sys.stdout.write("\n")
        return status
    kinds = [line.kind for line in report.lines]
    lines = [
        f"{HEADLINES[status]}: {kinds.count('ok')} checks hold, {kinds.count('FAILED')} failed, "
        f"{kinds.count('not checked')} things were not checked.",
        *(f"It says: {line.told}" for line in report.lines if line.kind == "ok" and line.what.endswith("answer")),
        *report.failures,
        "",
        *(f"{line}: {line.fields}" if options.fields and line.fields else line for line in report.lines),
    ]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    for line in lines:
        printable = "".join(item if item.isprintable() else "?" for item in str(line))
        sys.stdout.write(f"{textwrap.fill(printable, width, subsequent_indent='  ', break_on_hyphens=False)}\n")
    return status


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="nonmember verify",
        description=DESCRIPTION,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--signer", type=Path, help="public key (FILE.pub or PEM) that should have signed")
    parser.add_argument("--documents", type=Path, help="JSON Lines with id and text: are they the committed ones?")
    parser.add_argument("--secret", type=Path, help="the auditor's file SEAL.private, which --documents needs")
    parser.add_argument("--canaries", type=Path, help="the revealed private file: did its key choose what is public?")
    parser.add_argument(
        "--model", type=Path, help="the target: eight documents, drawn now, are observed again (whole package)"
    )
    parser.add_argument("--fields", action="store_true", help="name the fields that no check reads")
    parser.add_argument("--json", action="store_true", help="the lines as JSON")
    options = parser.parse_args(arguments)
    if options.model is not None and not options.model.is_dir():
        parser.error(f"--model must be the folder of a model; there is none at {options.model}")
    return options


def _report(options: argparse.Namespace, helpers: dict[str, Any]) -> Report:
    from nonmember_verify.verify import Given, verify

    given = Given(
        fingerprint=fingerprint(public_key(options.signer.read_bytes())) if options.signer else None,
        documents=_documents(options.documents) if options.documents else (),
        secret=secret_of(options.secret) if options.secret else None,
        **{name: getattr(options, name) for name in ("canaries", "model")},
        **helpers,
    )
    return verify(options.bundle, given)


def _documents(path: Path) -> list[tuple[str, str]]:
    documents = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                documents.append((str(row["id"]), str(row["text"])))
            except (ValueError, KeyError, TypeError):
                raise ValueError(f"Line {number} of {path} must be a JSON object with id and text.") from None
    return documents
