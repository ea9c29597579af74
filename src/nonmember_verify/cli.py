"""`nonmember verify BUNDLE`, and `nonmember-verify` where nothing else of nonmember is installed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nonmember_verify.certificates import Confirm
    from nonmember_verify.report import Report
    from nonmember_verify.verify import Again

DESCRIPTION = """\
Check a bundle of audits: its signature, every hash, every score from the token statistics, statistic, interval and
p-value from the scores (with the same seed, and by a second implementation), the verdict from the numbers, and that the
seal was obeyed. A line for each check, and for what could not be checked. Exit status 0 where nothing failed, 1 where
something did or an option asked for what could not be done, 2 where a file could not be read, 3 where nothing failed
and the answer of an audit was not recomputed, since this version knows its method, or a setting of it, not at all."""


HEADLINES = ("Verified", "FAILED", "", "Verified in part, since the answer of an audit is taken as stated")


def main(
    arguments: list[str] | None = None, observe: Again | None = None, retrain: Again | None = None,
    confirm: Confirm | None = None,
) -> int:  # fmt: skip
    """Print the report; return the exit status. observe: reads documents with a model again.   retrain: distils the
    reference again.   confirm: asks Sigstore's library."""
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
    parser.add_argument("--model", type=Path, help="the target: some documents are observed again (whole package)")
    parser.add_argument(
        "--reference", type=Path, help="the reference: it is distilled again from the recipe (with --model; takes time)"
    )
    parser.add_argument("--identity", help="who should have signed with Sigstore, as an e-mail address (whole package)")
    parser.add_argument("--issuer", help="the OpenID provider that knows them, as https://accounts.google.com")
    parser.add_argument("-k", "--num-documents", type=int, default=8, help="how many, drawn at random (8)")
    parser.add_argument("--json", action="store_true", help="the lines as JSON")
    given = parser.parse_args(arguments)
    if given.issuer and not given.identity:
        parser.error("--issuer says who knows the --identity; give that as well")
    for name in ("model", "reference"):
        folder = getattr(given, name)
        if folder is not None and not folder.is_dir():
            parser.error(f"--{name} must be the folder of a model; there is none at {folder}")
    try:
        report = _report(given, observe, retrain, confirm)
    except OSError as error:
        sys.stderr.write(
            f"nonmember verify: {error.filename or given.bundle} cannot be read: {error.strerror or error}\n"
        )
        return 2
    except ValueError as error:
        sys.stderr.write(f"nonmember verify: {error}\n")
        return 2
    status = 1 if report.failures else 3 if report.num_as_stated else 0
    if given.json:
        lines = [{"kind": line.kind, "what": line.what, "told": line.told} for line in report.lines]
        sys.stdout.write(json.dumps(lines, indent=1) + "\n")
        return status
    for line in report.lines:
        sys.stdout.write(f"{''.join(one if one.isprintable() else '?' for one in str(line))}\n")
    kinds = [line.kind for line in report.lines]
    sys.stdout.write(
        f"{HEADLINES[status]}: {kinds.count('ok')} checks hold, {kinds.count('FAILED')} failed, "
        f"{kinds.count('not checked')} things were not checked.\n"
    )
    return status


def _report(
    given: argparse.Namespace, observe: Again | None, retrain: Again | None, confirm: Confirm | None
) -> Report:  # fmt: skip
    from nonmember_verify.envelope import fingerprint_of_file
    from nonmember_verify.questions import secret_of
    from nonmember_verify.verify import Given, verify

    return verify(
        given.bundle,
        Given(
            fingerprint_of_file(given.signer) if given.signer else None,
            _documents(given.documents) if given.documents else {},
            secret_of(given.secret.read_bytes(), given.secret.name) if given.secret else None,
            given.model,
            given.num_documents,
            observe,
            given.reference,
            retrain,
            given.identity,
            given.issuer,
            confirm,
        ),
    )


def _documents(path: Path) -> dict[str, str]:
    documents = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                documents[str(row["id"])] = str(row["text"])
            except (ValueError, KeyError, TypeError):
                raise ValueError(f"Line {number} of {path} must be a JSON object with id and text.") from None
    return documents


def run() -> None:
    sys.exit(main())
