"""A report as Markdown: for repositories and reviewers without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from nonmember.reports.core.grid import PUBLISHED, Block, Figure, Numeral, ReportDocument, Section, TableCell, TableRow
from nonmember.runtime.terminal import visible

CODE = re.compile(r"(?<!`)`([^`<>\n]+)`(?!`)")
ESCAPED = str.maketrans({character: f"\\{character}" for character in "\\|*_`[]<>#"})


def markdown(document: ReportDocument, facts: Mapping[str, str]) -> str:
    """The whole report. facts: name -> what, for the head."""
    return "\n".join(line for line in _lines(document, facts)) + "\n"


def _lines(document: ReportDocument, facts: Mapping[str, str]) -> Iterator[str]:
    yield f"# {escape(document.title)}\n"
    yield f"{escape(document.subtitle)}.\n"
    for name, what in facts.items():
        yield f"- {escape(name)}: {escape(what)}"
    yield ""
    for title, about in document.worlds.items():
        yield f"- **{escape(title)}.** {escape(about)}"
    yield ""
    for note in document.notes:
        yield f"- {escape(note)}"
    if document.marks:
        yield "- " + "; ".join(f"{sign} {meaning}" for sign, meaning in document.marks.items()) + ".\n"
    if document.glance is not None:
        yield from _block(document.glance)
    for section in document.sections:
        yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    yield f"\n## {escape(section.title)}\n"
    yield f"{escape(section.lead)}\n"
    if section.paper:
        yield f"*The paper:* {escape(section.paper)}\n"
    for figure in section.figures:
        yield from _figure(figure)
    for block in section.blocks:
        yield from _block(block)
    for note in section.notes:
        yield f"{_prose(note)}\n"
    if section.commands:
        yield "Made by " + ", ".join(map(code, section.commands)) + ".\n"


def _figure(figure: Figure) -> Iterator[str]:
    yield f"**{escape(figure.title)}**\n"
    yield f"![{escape(figure.alt)}](figures/{figure.name}.svg)\n"
    if figure.numbers is not None:
        yield from _block(figure.numbers)


def _block(block: Block) -> Iterator[str]:
    yield (
        f"**{escape(block.title)}** ({escape(block.world)})\n"
        if block.world not in ("", PUBLISHED)
        else (f"**{escape(block.title)}**\n")
    )
    yield _row([escape(block.corner), *map(escape, block.columns)])
    yield _row(["---", *["---:"] * len(block.columns)])
    for row in block.rows:
        yield _row([escape(row.name), *map(cell_text, row.cells)])
    for row in block.footer:
        yield _footer(row)
    yield ""
    for note in block.notes:
        yield f"{_prose(note)}\n"


def _footer(row: TableRow) -> str:
    return _row([f"*{escape(row.name)}*", *(f"*{cell_text(cell)}*" for cell in row.cells)])


def cell_text(cell: TableCell) -> str:
    """ours (published), each with its marks and its Holm-adjusted value in brackets."""
    text = _numbers(cell, cell.ours)
    return f"{text} ({_numbers(cell, cell.published)})" if cell.published else text


def _numbers(cell: TableCell, numbers: tuple[Numeral, ...]) -> str:
    return "".join(escape(piece) if isinstance(piece, str) else _number(piece) for piece in cell.pieces(numbers))


def _number(number: Numeral) -> str:
    adjusted = f" \\[Holm {number.adjusted}\\]" if number.adjusted else ""
    return f"{escape(number.text)}{number.mark}{adjusted}"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _prose(text: str) -> str:
    """Escaped but for commands in backticks. A backtick without its fellow, of a label perhaps, is escaped too."""
    return "".join(code(part) if index % 2 else escape(part) for index, part in enumerate(CODE.split(text)))


def code(text: str) -> str:
    return f"`{visible(text)}`" if "`" not in text else escape(text)


def escape(text: str) -> str:
    """Text that stays text: nothing in it is read as Markdown or HTML, and no control character is left."""
    return visible(text.replace("\n", " ")).translate(ESCAPED)
