"""The closing table: a row per audit. Also `nonmember table FOLDER`, for results made before or elsewhere."""

from __future__ import annotations

import argparse
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from nonmember.checks import told_apart
from nonmember.reports.audit_page.gates import gates_of
from nonmember.reports.core.families import ALL, EACH, SCREENING, SetFamily, families
from nonmember.reports.core.numbers import detail
from nonmember.results.outcomes import UNUSABLE, identity, outcome_paths, usable_outcomes
from nonmember.results.result import PARTS, AuditResult, Failure, tokens_in_words
from nonmember.runtime.naming import short_setting
from nonmember.runtime.terminal import console_of, for_rich, say, visible

LISTED = 4  # names of sets in a cell
ALWAYS_SAID = ("models_trained", "models_found", "tokens_observed", "observations_found")
VERBS = {"evidence_of_non_membership": "cleared", "evidence_of_membership": "flagged"}


Cell = AuditResult | Failure


def main() -> None:
    """Entry of `nonmember table`."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="nonmember table", description="The results below a folder in one table."
    )
    parser.add_argument("folder", type=Path, help="for example outputs/audits/demo")
    parser.add_argument("--together", action="store_true", help="also what may be said of several sets together")
    given = parser.parse_args()
    paths = outcome_paths(given.folder)

    def use(some: Sequence[Cell]) -> None:
        show(some, together=given.together, console=Console(file=io.StringIO()))

    cells = usable_outcomes(paths, use)
    problems = [cell.error for cell in cells if isinstance(cell, Failure) and cell.kind == UNUSABLE]
    if len(problems) < len(cells):
        show(cells, together=given.together)
    if problems:
        raise ValueError(f"{len(problems)} of {len(paths)} results cannot be used. The first: {problems[0]}")


def show(cells: Sequence[Cell], *, together: bool = False, console: Console | None = None) -> None:
    """Print a row per cell, what had to be made, and why cells failed.

    together: what may be said of several sets under one target.
    """
    console = console or Console()
    wide = console_of(like=console)
    names = names_of(cells)
    for sentence in against_truth([cell for cell in cells if isinstance(cell, AuditResult)]):
        say(console, sentence)
    for group in groups_of(cells, names):
        _print(wide, group)
    if results := [cell for cell in cells if isinstance(cell, AuditResult)]:
        kinds = dict.fromkeys(name for result in results for name in result.provenance.made)
        made = {name: sum(result.provenance.made.get(name, 0) for result in results) for name in kinds}
        counts = (
            f"{name.replace('_', ' ')}: {value:,}" for name, value in made.items() if value or name in ALWAYS_SAID
        )
        console.print(", ".join(counts), soft_wrap=True)
        if len(results) == 1:
            _show_gates(console, results[0])
        for name, result in zip(names, cells, strict=True):
            if isinstance(result, AuditResult) and (explained := result.statistics.details.get("in_words")):
                say(console, f"{name}: {explained}")
        _show_tokens(console, results)
        _show_warnings(console, results)
        if together:
            _show_together(wide, results)
    if len(results) == len(cells) == 1:
        console.print()
        for line in results[0].answer.lines():
            console.print(for_rich(line), soft_wrap=not console.is_terminal)
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
                for truth, what in (("non_member", "sets that were not read"), ("member", "sets that were read")):
                    audits = [item for item in of_method if item.question.truth == truth]
                    those = [item for item in audits if item.verdict.decision == decision]
                    if audits:
                        several = "" if len({item.question.subject for item in audits}) == len(audits) else "audits of "
                        parts.append(f"{len(those)} of {len(audits)} {several}{what}{_wrongly(those)}")
                sentences.append(f"Ground truth: {method} {verb} {' and '.join(parts)}.")
    return sentences


def _wrongly(results: Sequence[AuditResult]) -> str:
    wrong = sum(bool(item.false_claim) for item in results)
    if not wrong:
        return ""
    return " (wrongly)" if wrong == len(results) else f" ({wrong} wrongly)"


def _print(console: Console, group: Group) -> None:
    """As a table as wide as it needs to be; below one another on a terminal that is too narrow for that: nothing is
    ever cut."""
    table, widest = table_of(group), 10_000
    if not console.is_terminal:
        Console(file=console.file, width=widest).print(table)
    elif Measurement.get(console, console.options.update(max_width=widest), table).maximum <= console.width:
        console.print(table)
    else:
        _print_stacked(console, group)


def _print_stacked(console: Console, group: Group) -> None:
    if group.title:
        console.print(Text(visible(group.title), style="bold italic"))
    first, *others = group.columns
    for row in group.rows:
        console.print(Text(visible(row[first]), style="bold"), soft_wrap=True)
        line = ""
        for piece in (f"{name} {row[name]}" for name in others):
            if line and len(line) + len(piece) + 3 > console.width:
                console.print(Text(visible(line)), soft_wrap=True)
                line = ""
            line = f"{line}   {piece}" if line else f"  {piece}"
        console.print(Text(visible(line)), soft_wrap=True)


def _show_together(console: Console, results: Sequence[AuditResult]) -> None:
    all_families = families(results)
    if not all_families:
        return
    console.print(table_of_families(all_families))
    for sentence in (EACH, ALL, SCREENING):
        console.print(sentence, soft_wrap=True)


def table_of_families(all_families: Sequence[SetFamily]) -> Table:
    """A row per target with several sets."""
    table = Table("several sets together", "sets", "each (Holm)", "all", "screening (BH)", header_style="bold")
    for family in all_families:
        every = f"{'yes' if family.all_together else 'no'} (p {_decimals(family.largest, '.3g')})"
        cells = (
            family.name(all_families),
            len(family.sets),
            _listed(family.each, family),
            every,
            _listed(family.screened, family),
        )
        table.add_row(*map(for_rich, cells))
    return table


def _listed(names: Sequence[str], family: SetFamily) -> str:
    """The first few by name."""
    if not names or len(names) == len(family.sets):
        return "all" if names else "none"
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{len(names)}: {', '.join(names[:LISTED])}{more}"


def _show_gates(console: Console, result: AuditResult) -> None:
    for gate in gates_of(result):
        line = f"{gate.what}: {gate.value}, must be {gate.side} {gate.bound}"
        say(console, f"gate {'passed' if gate.passed else 'FAILED'}  {line}")


def _show_tokens(console: Console, results: Sequence[AuditResult]) -> None:
    """Each kind once: most audits of a grid read their texts alike."""
    for tokens in dict.fromkeys(tokens_in_words(result.provenance.tokens) for result in results):
        if ";" in tokens:  # models differ
            say(console, f"around each text: {tokens}")


def _show_warnings(console: Console, results: Sequence[AuditResult]) -> None:
    """Each kind once: those that differ in their numbers alone are one kind."""
    kinds: dict[str, list[str]] = {}
    for text in (text for result in results for text in result.verdict.warnings):
        kinds.setdefault(re.sub(r"[\d.,]+", "#", text), []).append(text)
    for texts in kinds.values():
        such = "" if len(set(texts)) == 1 else " such as"
        where = f" (in {len(texts)} of {len(results)} audits)" if len(results) > 1 else ""
        line = f"warning{where}{such}: {texts[0]}"
        say(console, line)


@dataclass(frozen=True)
class Group:
    """Cells that share a table."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Mapping[str, str]]  # column -> text
    numeric: Sequence[str] = ("n", "rho_RT", "rho_DT", "p")  # first words of columns that are aligned to the right


def groups_of(cells: Sequence[Cell], names: Sequence[str]) -> list[Group]:
    """One per method, in the order in which they come. Cells that failed stand among the others where there is one
    method, else by themselves: what has no result names no method."""
    methods = list(dict.fromkeys(cell.question.method for cell in cells if isinstance(cell, AuditResult)))
    alone = methods[0] if len(methods) == 1 else ""
    by_method: dict[str, list[tuple[str, Cell]]] = {}
    for name, cell in zip(names, cells, strict=True):
        method = cell.question.method if isinstance(cell, AuditResult) else alone
        by_method.setdefault(method, []).append((name, cell))
    return [_group(method, members, titled=len(by_method) > 1) for method, members in by_method.items()]


def _group(method: str, members: Sequence[tuple[str, Cell]], *, titled: bool) -> Group:
    results = [cell for _, cell in members if isinstance(cell, AuditResult)]
    shown = _columns(results)
    rows = [{"cell": name} | {column: text(cell) for column, text in shown.items()} for name, cell in members]
    return Group((method or "failed") if titled else "", ("cell", *shown), rows)


def _columns(results: Sequence[AuditResult]) -> dict[str, Callable[[Cell], str]]:
    """Of the numbers that not every method has those that some result has; a dash where one lacks it."""
    statistic = results[0].statistics.name if results else "statistic"
    alphas = {result.question.alpha for result in results}
    if any(result.statistics.ci_low is not None or result.statistics.ci_high is not None for result in results):
        statistic += f" [{1 - alphas.pop():.0%} interval]" if len(alphas) == 1 else " [interval]"
    rho_reference, rho_distilled = detail("rho_reference_target"), detail("rho_distilled_target")
    every: dict[str, tuple[Callable[[AuditResult], object], Callable[[AuditResult], str]]] = {
        "n": (lambda item: True, lambda item: str(item.statistics.num_documents)),
        "rho_RT": (rho_reference, lambda item: _decimals(rho_reference(item))),
        "rho_DT": (rho_distilled, lambda item: _decimals(rho_distilled(item))),
        statistic: (lambda item: item.statistics.value, _statistic),
        "p": (lambda item: item.statistics.p_value, _p_value),
        "verdict": (lambda item: True, lambda item: item.answer.conclusion),
        "truth": (lambda item: True, lambda item: item.question.truth or "unknown"),
    }
    shown = {name: text for name, (value, text) in every.items() if any(value(item) is not None for item in results)}

    def of(name: str, text: Callable[[AuditResult], str]) -> Callable[[Cell], str]:
        missing = "failed" if name == "verdict" else "-"
        return lambda cell: missing if isinstance(cell, Failure) else text(cell)

    shown = shown or {"verdict": lambda item: item.answer.conclusion}
    return {name: of(name, text) for name, text in shown.items()}


def table_of(group: Group) -> Table:
    """Labels are shown as they are: what looks like markup in them is none."""
    table = Table(title=Text(visible(group.title)) if group.title else None, title_justify="left", header_style="bold")
    for name in group.columns:
        table.add_column(Text(name), justify="right" if name.split()[0] in group.numeric else "left", no_wrap=True)
    for row in group.rows:
        table.add_row(*(Text(visible(row[name])) for name in group.columns))
    return table


def _statistic(result: AuditResult) -> str:
    if "excluded_dose" in result.statistics.details:  # readings are never negative, and their interval may be open
        ends = (_decimals(bound, ".2g") for bound in (result.statistics.ci_low, result.statistics.ci_high))
        return f"{_decimals(result.statistics.value, '.2g')} [{', '.join(ends)}]"
    form = "+.3f" if result.statistics.is_signed else ".3f"
    value = _decimals(result.statistics.value, form)
    if result.statistics.ci_low is None and result.statistics.ci_high is None:
        return value
    low, high = (_decimals(bound, form) for bound in (result.statistics.ci_low, result.statistics.ci_high))
    return f"{value} [{low}, {high}]"


def _p_value(result: AuditResult) -> str:
    value, alpha = result.statistics.p_value, result.question.alpha
    if value is None or value < 5e-5:
        return _decimals(value, ".1e")
    return _decimals(value, ".4f") if value == alpha else told_apart(value, alpha, ".4f")[0]


def _decimals(value: float | None, form: str = ".3f") -> str:
    return "-" if value is None else format(value, form)


def names_of(cells: Sequence[Cell]) -> list[str]:
    """What each audit is about, or what tells it from the others of its table, or that and the name of its folder: the
    first that none of them shares. Of a part of method=auto that it is one."""
    methods = ["" if isinstance(cell, Failure) else cell.question.method for cell in cells]
    tables = methods if len(set(methods) - {""}) > 1 else [""] * len(cells)
    levels: list[list[str]] = [[], [], []]
    for cell, short in zip(cells, _differing(tables, cells), strict=True):
        if isinstance(cell, Failure):  # of a sweep its subject may be that of others
            folder, subject, end = cell.cell, "" if cell.swept else cell.subject, ""
        else:
            folder, subject = cell.question.cell, cell.question.subject
            end = f" ({cell.question.method}, a part of auto)" if f"/{PARTS}/" in folder else ""
        about = [subject or short or folder, short or folder, f"{short} {folder}".strip()]
        for level, name in zip(levels, about, strict=True):
            level.append(f"{name}{end}")
    counts = [Counter(zip(tables, level, strict=True)) for level in levels]
    return [
        next((name for name, count in zip(names, counts, strict=True) if count[table, name] == 1), names[-1])
        for table, *names in zip(tables, *levels, strict=True)
    ]


def _differing(tables: Sequence[str], cells: Sequence[Cell]) -> list[str]:
    """Of each cell what its sweep varied, else its settings, without what is equal in its table."""
    given, alike = [_given(cell) for cell in cells], dict[tuple[str, bool], list[set[str]]]()
    groups = [(table, is_swept) for table, (is_swept, _) in zip(tables, given, strict=True)]
    for group, (_, words) in zip(groups, given, strict=True):
        alike.setdefault(group, []).extend([set(words)] if words else [])
    equal = {group: set.intersection(*sets) if len(sets) > 1 else set() for group, sets in alike.items()}
    return [
        " ".join(word for word in words if word not in equal[group])
        for group, (_, words) in zip(groups, given, strict=True)
    ]


def _given(cell: Cell) -> tuple[bool, list[str]]:
    """Whether a sweep varied something in it, and that; else its settings, which a failure does not tell."""
    swept = cell.swept if isinstance(cell, Failure) else cell.question.swept
    settings: Mapping[str, Any] = swept
    if not swept and isinstance(cell, AuditResult):
        settings = {"seed": cell.question.seed, "reference": cell.question.reference, **cell.question.settings}
    words = [short_setting(f"{key}={value}") for key, value in _flat(settings)]
    return bool(swept), words


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
