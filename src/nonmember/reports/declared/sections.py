"""The texts of a report from Markdown, one section after another.

## Table 2. PRISM by target and set {#table2}

What it shows and how to read it.

> What the paper found.

- A note that is said in any case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HEADING = re.compile(r"## (?P<title>.+) \{#(?P<key>[\w.-]+)\}")


@dataclass(frozen=True)
class SectionText:
    """Attributes: title, lead, paper, notes: As in `Section`."""

    key: str
    title: str
    lead: str = ""
    paper: str = ""
    notes: tuple[str, ...] = ()


def read_sections(path: Path) -> tuple[SectionText, ...]:
    """In the order of the file. Raises ValueError with the line where a heading is none."""
    sections: list[SectionText] = []
    chunks = re.split(r"^(?=## )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for chunk in chunks[1:]:
        head, _, body = chunk.partition("\n")
        if not (found := HEADING.fullmatch(head.strip())):
            raise ValueError(f"{path}: a section begins '## Title {{#key}}', not {head.strip()!r}.")
        sections.append(_section(found["key"], found["title"], body))
    return tuple(sections)


def _section(key: str, title: str, body: str) -> SectionText:
    paragraphs = [" ".join(line.strip() for line in part.splitlines()) for part in re.split(r"\n\s*\n", body.strip())]
    paper = [text.replace("> ", "", 1).replace(" > ", " ") for text in paragraphs if text.startswith("> ")]
    notes = [note for text in paragraphs if text.startswith("- ") for note in text[2:].split(" - ")]
    lead = [text for text in paragraphs if not text.startswith(("> ", "- "))]
    return SectionText(key, title, " ".join(filter(None, lead)), " ".join(paper), tuple(notes))
