"""`nonmember reproduce PAPER [key=value ...]`: a paper's sweeps one after the other, then its report."""

from __future__ import annotations

import os
import subprocess
import sys

from nonmember.cli import parser_of
from nonmember.config.choices import options

EPILOG = """key=value as for `nonmember audit`, handed to every sweep: dry_run=true says what each would make and runs
nothing; world=pythia asks about the papers' own models. Sweeps go on where they were stopped. The report is
written at the end, and says which of its tables and cells are missing."""


def main() -> None:
    """Entry of `nonmember reproduce`."""
    papers = options("report")
    parser = parser_of("reproduce", "Runs a paper's sweeps, and writes its tables and figures.", epilog=EPILOG)
    parser.add_argument("paper", choices=papers, metavar="PAPER", help=f"one of {', '.join(papers)}")
    parser.add_argument("overrides", nargs="*", default=[], metavar="key=value", help="handed to every sweep")
    given = parser.parse_args()
    if bad := [word for word in given.overrides if "=" not in word]:
        raise ValueError(f"Settings must be written key=value; got {bad[0]}. One paper at a time.")
    from nonmember.config.compose import composed
    from nonmember.config.safety import instantiate

    report = [f"report={given.paper}", *(word for word in given.overrides if word.startswith("outputs="))]
    with composed("report", report) as (config, _):
        paper = instantiate(config.report)
    sweeps = list(dict.fromkeys(names[0] for names in paper.sweeps.values() if names)) if paper.methods else []
    failed = []
    for number, sweep in enumerate(sweeps, start=1):
        sys.stdout.write(f"\n{number} of {len(sweeps)}: nonmember audit -m --config-name {sweep}\n")
        if _command("audit", "-m", "--config-name", sweep, *given.overrides):  # some of whose cells fail on purpose
            failed.append(sweep)
    if "dry_run=true" not in given.overrides and _command("report", *report):
        raise ValueError("The report ended with an error, which is shown above. Correct that, and start again.")
    if failed:
        raise ValueError(f"Audits failed in {', '.join(failed)}; see above, or error.json of each.")


def _command(*arguments: str) -> int:
    sys.stdout.flush()
    environment = {name: value for name, value in os.environ.items() if name != "HYDRA_FULL_ERROR"}
    return subprocess.run([sys.executable, "-m", "nonmember.cli", *arguments], check=False, env=environment).returncode
