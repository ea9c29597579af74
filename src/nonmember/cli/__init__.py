"""The command line: one file per command."""

from __future__ import annotations

import argparse


def parser_of(command: str, description: str, epilog: str | None = None) -> argparse.ArgumentParser:
    """Of a command that composes no config. Its texts are printed as they stand, and options are not abbreviated."""
    return argparse.ArgumentParser(
        prog=f"nonmember {command}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
