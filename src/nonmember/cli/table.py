"""The closing table: a row per audit. Also `nonmember table FOLDER`, for results made before or elsewhere."""

from __future__ import annotations

import io
import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from nonmember.checks import told_apart
from nonmember.cli import parser_of
from nonmember.reports.audit_page.gates import gates_of
from nonmember.reports.core.formats import TRUTHS
from nonmember.reports.core.grid import UNLEARNED, WHY_UNLEARNED
from nonmember.reports.core.numbers import number_in
from nonmember.results.outcomes import UNUSABLE, identity, outcome_paths, usable_outcomes, without_parts
from nonmember.results.result import AuditQuestion, AuditResult, Failure, tokens_in_words
from nonmember.runtime.naming import dotted, short_setting
from nonmember.runtime.terminal import console_of, for_rich, say, visible

ALWAYS_SAID = ("models_trained", "models_found", "tokens_observed", "observations_found")
RIGHT = ("n", "rho_RT", "rho_DT", "p")  # aligned to
VERBS = {"evidence_of_non_membership": "not used", "evidence_of_membership": "used"}
OF_A_GATE = re.compile(r" is \S+, and must be (above|below) ")  # its warning, where it failed

Cell = AuditResult | Failure


def main() -> None:
    """Entry of `nonmember table`."""
    parser = parser_of("table", "The results below a folder in one table.")
    parser.add_argument("folder", type=Path, help="for example outputs/audits/demo")
    given = parser.parse_args()
    paths = without_parts(outcome_paths(given.folder))

    def use(some: Sequence[Cell]) -> None:
        show(some, console=Console(file=io.StringIO()))

    cells = usable_outcomes(paths, use)
    problems = [cell.error for cell in cells if isinstance(cell, Failure) and cell.kind == UNUSABLE]
    if len(problems) < len(cells):
        show(cells)
    if problems:
        raise ValueError(f"{len(problems)} of {len(paths)} results cannot be used. The first: {problems[0]}")


def show(cells: Sequence[Cell], *, console: Console | None = None) -> None:
    """Print a row per cell, what had to be made, and why cells failed."""
    console = console or Console()
    wide = console_of(like=console)
    names = names_of(cells)
    for sentence in against_truth([cell for cell in cells if isinstance(cell, AuditResult)]):
        say(console, sentence)
    for title, rows in rows_of(cells, names).items():
        _print(wide, title, rows)
    if results := [cell for cell in cells if isinstance(cell, AuditResult)]:
        kinds = dict.fromkeys(name for result in results for name in result.provenance.made)
        made = {name: sum(result.provenance.made.get(name, 0) for result in results) for name in kinds}
        counts = (
            f"{name.replace('_', ' ')}: {value:,}" for name, value in made.items() if value or name in ALWAYS_SAID
        )
        say(console, ", ".join(counts))
        if any(result.unlearned for result in results):
            say(console, f"{UNLEARNED} {WHY_UNLEARNED}")
        if len(results) == 1:
            _show_gates(console, results[0])
        for name, result in zip(names, cells, strict=True):
            if isinstance(result, AuditResult) and (explained := result.statistics.details.get("in_words")):
                say(console, f"{name}: {explained}")
        for tokens in dict.fromkeys(tokens_in_words(result.provenance.tokens) for result in results):
            if ";" in tokens:  # models differ
                say(console, f"tokens added to each text: {tokens}")
        _show_warnings(console, results)
    if len(results) == len(cells) == 1:
        console.print()
        for line in results[0].answer.lines():
            console.print(for_rich(line), soft_wrap=not console.is_terminal, highlight=False)
    for name, cell in zip(names, cells, strict=True):
        if isinstance(cell, Failure):
            console.print(for_rich(f"failed  {name}: {cell.error}"), style="red", soft_wrap=True)


def against_truth(results: Sequence[AuditResult]) -> list[str]:
    """Where it is known what the models have read, and a test was made: how often each method was right, and wrong.
    What lies there more than once counts once."""
    sentences = []
    known = {identity(item): item for item in results if item.question.truth}.values()
    for method in dict.fromkeys(item.question.method for item in results):
        of_method = [item for item in known if item.question.method == method]
        decided = {item.verdict.decision for item in of_method}
        for decision, verb in VERBS.items():
            if len(of_method) > 1 and decision in decided:
                parts = []
                for truth in ("non_member", "member"):
                    audits = [item for item in of_method if item.question.truth == truth]
                    those, read = [item for item in audits if item.verdict.decision == decision], TRUTHS[truth]
                    if audits:
                        several = "" if len({item.question.subject for item in audits}) == len(audits) else "audits of "
                        parts.append(f"{len(those)} of {len(audits)} {several}sets that were {read}{_wrongly(those)}")
                sentences.append(f"By what is known, {method} answered {verb!r} for {' and '.join(parts)}.")
    return sentences


def _wrongly(results: Sequence[AuditResult]) -> str:
    wrong = sum(bool(item.false_claim) for item in results)
    if not wrong:
        return ""
    return " (wrongly)" if wrong == len(results) else f" ({wrong} wrongly)"


def _print(console: Console, title: str, rows: Sequence[Mapping[str, str]]) -> None:
    """As a table as wide as it needs to be; below one another on a terminal that is too narrow for that: nothing is
    ever cut."""
    table, wide = table_of(title, rows), Console(file=console.file, width=10_000)
    if not console.is_terminal:
        wide.print(table)
    elif wide.measure(table).maximum <= console.width:
        console.print(table)
    else:
        console.print(Text(visible(title), style="bold italic"))
        for row in rows:
            audit, *others = (f"{name} {visible(text)}" for name, text in row.items())
            others = [item.replace(" ", "\xa0") for item in others]  # of which none is broken
            console.print(Text(audit.removeprefix("audit "), style="bold"), soft_wrap=True)
            for line in textwrap.wrap("   ".join(others), console.width, initial_indent="  ", subsequent_indent="  "):
                console.print(Text(line.replace("\xa0", " ")), soft_wrap=True)


def _show_gates(console: Console, result: AuditResult) -> None:
    """How many passed; of those that failed, what was measured."""
    gates = list(gates_of(result))
    if passed := sum(gate.passed for gate in gates):
        say(console, f"{passed} of {len(gates)} gates passed")
    for gate in gates:
        if not gate.passed:
            say(console, f"gate FAILED  {gate.what}: {gate.value}, must be {gate.side} {gate.bound}")


def _show_warnings(console: Console, results: Sequence[AuditResult]) -> None:
    """Each kind once: those that differ in their numbers alone are one kind. Of one audit no failed gates."""
    kinds: dict[str, list[str]] = {}
    said_already = OF_A_GATE.search if len(results) == 1 and any(gates_of(results[0])) else lambda text: None
    for text in (text for result in results for text in result.verdict.warnings if not said_already(text)):
        kinds.setdefault(re.sub(r"^\w+: |[\d.,]+", "#", text).lstrip("#"), []).append(text)
    for texts in kinds.values():
        such = "" if len(set(texts)) == 1 else " such as"
        where = f" (in {len(texts)} of {len(results)} audits)" if len(results) > 1 else ""
        line = f"warning{where}{such}: {texts[0]}"
        say(console, line)


def rows_of(cells: Sequence[Cell], names: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """Title -> rows (column -> text) of a table, one per method, in the order in which they come. Cells that failed
    stand among the others where there is one method, else by themselves: what has no result names no method."""
    methods = list(dict.fromkeys(cell.question.method for cell in cells if isinstance(cell, AuditResult)))
    alone = methods[0] if len(methods) == 1 else ""
    by_method: dict[str, list[tuple[str, Cell]]] = {}
    for name, cell in zip(names, cells, strict=True):
        method = cell.question.method if isinstance(cell, AuditResult) else alone
        by_method.setdefault(method, []).append((name, cell))
    several = len(by_method) > 1
    return {(method or "failed") if several else "": _rows(members) for method, members in by_method.items()}


def _rows(members: Sequence[tuple[str, Cell]]) -> list[dict[str, str]]:
    """Of the numbers that not every method has those that some result has; a dash where one lacks it."""
    members = sorted(members, key=lambda item: (isinstance(item[1], Failure), _in_order(item[0])))
    statistic = _statistic_of([cell for _, cell in members if isinstance(cell, AuditResult)])
    texts = [{"answer": "failed"} if isinstance(cell, Failure) else _texts(cell, statistic) for _, cell in members]
    columns = [name for name in max(texts, key=len) if any(row.get(name) for row in texts)]
    return [
        {"audit": name} | {column: row.get(column) or "-" for column in columns}
        for (name, _), row in zip(members, texts, strict=True)
    ]


def _in_order(name: str) -> list[tuple[float, str]]:
    """Of a name, to sort by: numbers in it by their size."""
    parts = re.split(r"(\d+(?:\.\d+)?)", name)
    return [(float(part), "") if index % 2 else (0.0, part) for index, part in enumerate(parts)]


def _statistic_of(results: Sequence[AuditResult]) -> str:
    alphas = {result.question.alpha for result in results}
    if all(result.statistics.ci_low is None and result.statistics.ci_high is None for result in results):
        return results[0].statistics.name if results else ""
    level = f"{1 - alphas.pop():.0%} " if len(alphas) == 1 else ""
    return f"{results[0].statistics.name} [{level}interval]"


def _texts(result: AuditResult, statistic: str) -> dict[str, str | None]:
    """Column -> text, None where the result has no such number."""
    found = result.statistics
    return {
        "n": str(found.num_documents),
        "rho_RT": _number(number_in(found.details, "rho_reference_target")),
        "rho_DT": _number(number_in(found.details, "rho_distilled_target")),
        statistic: None if found.value is None else _statistic(result),
        "p": None if result.answer.p is None else _p_value(result.answer.p, result.question.alpha),
        "answer": f"{result.answer.conclusion} {UNLEARNED}" if result.unlearned else result.answer.conclusion,
        "truth": TRUTHS.get(result.question.truth or ""),
    }


def _number(value: float | None) -> str | None:
    return None if value is None else format(value, ".3f")


def table_of(title: str, rows: Sequence[Mapping[str, str]]) -> Table:
    """Labels are shown as they are: what looks like markup in them is none."""
    table = Table(title=Text(visible(title)) if title else None, title_justify="left", header_style="bold")
    for name in rows[0]:
        table.add_column(Text(name), justify="right" if name in RIGHT else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(visible(text)) for text in row.values()))
    return table


def _statistic(result: AuditResult) -> str:
    found = result.statistics
    is_reading = "excluded_dose" in found.details  # which is never negative, and whose interval may be open
    form = ".2g" if is_reading else "+.3f" if found.is_signed else ".3f"
    numbers = (found.value, found.ci_low, found.ci_high)
    value, low, high = ("-" if number is None else format(number, form) for number in numbers)
    return f"{value} [{low}, {high}]" if is_reading or (low, high) != ("-", "-") else value


def _p_value(value: float, alpha: float) -> str:
    if value < 5e-5:
        return format(value, ".1e")
    return format(value, ".4f") if value == alpha else told_apart(value, alpha, ".4f")[0]


def names_of(cells: Sequence[Cell]) -> list[str]:
    """What each audit is about, or what tells it from the others of its table, or that and the name of its folder: the
    first that none of them shares."""
    asked = [cell if isinstance(cell, Failure) else cell.question for cell in cells]
    methods = [getattr(item, "method", "") for item in asked]
    tables = methods if len({*methods} - {""}) > 1 else [""] * len(cells)
    labels = []
    for item, short in zip(asked, _differing(tables, asked), strict=True):
        # What failed in a sweep may share its subject with others.
        subject = "" if isinstance(item, Failure) and item.swept else item.subject
        labels.append([subject or short or item.cell, short or item.cell, f"{short} {item.cell}".strip()])
    counts = Counter(
        (table, level, name) for table, names in zip(tables, labels, strict=True) for level, name in enumerate(names)
    )
    return [
        next((name for level, name in enumerate(names) if counts[table, level, name] == 1), names[-1])
        for table, names in zip(tables, labels, strict=True)
    ]


def _differing(tables: Sequence[str], asked: Sequence[AuditQuestion | Failure]) -> list[str]:
    """Of each cell what its sweep varied, else its settings, without what is equal in its table."""
    given = [((table, bool(item.swept)), _words(item)) for table, item in zip(tables, asked, strict=True)]
    cells = Counter(kind for kind, words in given if words)
    alike = Counter((kind, word) for kind, words in given for word in words)
    return [
        " ".join(word for word in words if cells[kind] == 1 or alike[kind, word] < cells[kind]) for kind, words in given
    ]


def _words(asked: AuditQuestion | Failure) -> list[str]:
    """What a sweep varied; else the settings, which a failure does not tell."""
    given: Mapping[str, Any] = asked.swept
    if not given and not isinstance(asked, Failure):
        given = {"seed": asked.seed, "reference": asked.reference, **asked.settings}
        given = {name: value for name, value in given.items() if name not in ("parts", "lacking")}  # found by auto
    return [short_setting(f"{key}={value}") for key, value in dotted(given)]
