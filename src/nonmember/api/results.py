"""Results as a program wants them: one finished audit, and tables of many."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from nonmember.checks import require_choice
from nonmember.records.groups import SUSPECT
from nonmember.results.mirror import swept_of
from nonmember.results.outcomes import outcome_paths, usable_outcome
from nonmember.results.result import DISTRIBUTION, SCORES, Answer, AuditResult, Failure
from nonmember.runtime.naming import dotted
from nonmember.scoring.part_files import open_scores

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset

ASKED = ("sweep", "cell", "world", "method", "target", "reference")
COMPARED = ("corpus", "heldout", "truth", "alpha", "seed", "score")


def facts_of(result: AuditResult) -> dict[str, Any]:
    """The columns of `load_results` and the facts of a finished audit."""
    asked, found, exposure = result.question, result.statistics, result.question.target_exposure
    return {
        **{name: getattr(asked, name) for name in ASKED},
        **swept_of(result),
        **{name: getattr(asked, name) for name in COMPARED},
        "exposures": exposure and exposure.exposures,
        "share": exposure and exposure.share,
        "conclusion": result.answer.conclusion,
        "sentence": result.answer.sentence,
        "because": " ".join(result.answer.because),
        "next": result.answer.next,
        "verdict": result.verdict.decision,
        "statistic": found.value,
        "p_value": result.answer.p,
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "num_documents": found.num_documents,
        "num_excluded": result.exclusions.num_documents,
        "allowed_claim": result.verdict.allowed_claim,
        "warnings": result.verdict.warnings,
        "seconds": result.provenance.seconds,
    }


@dataclass(frozen=True, repr=False)
class FinishedAudit:
    """What an audit found, and where it lies.

    Undefined numbers are None.

    Attributes:
        result: Everything a reader needs to disagree (`nonmember.results.result`).
        folder: With result.json, the tables beside it and audit.html.
    """

    result: AuditResult
    folder: Path

    @property
    def verdict(self) -> str:
        """evidence_of_non_membership, evidence_of_membership, inconclusive, score_only or invalid."""
        return self.result.verdict.decision

    @property
    def answer(self) -> Answer:
        """What was found, how sure that is, why, and what to do next."""
        return self.result.answer

    @property
    def claim(self) -> str:
        """What may be said."""
        return self.result.verdict.allowed_claim

    @property
    def statistic(self) -> float | None:
        """Of the method's test: Delta for PRISM."""
        return self.result.statistics.value

    @property
    def p_value(self) -> float | None:
        return self.result.statistics.p_value

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Of the statistic, of level 1 - alpha."""
        return self.result.statistics.ci_low, self.result.statistics.ci_high

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self.result.verdict.warnings)

    def scores(self, group: str | None = "suspect") -> pd.DataFrame:
        """A row per document that could be scored, a column per measurement.

        Args:
            group: Of documents, such as suspect, heldout, unseen; None: all, with a column `group` where there are
                several.

        Raises:
            ValueError: For a group that the audit has not.
        """
        import pandas as pd

        table = pd.read_parquet(self.folder / SCORES)
        groups = [*dict.fromkeys([*table.get("group", [SUSPECT]), *self.result.exclusions.documents])]
        if group is not None:
            require_choice(group, groups, "group")
        if group is None or "group" not in table:
            return table
        return table[table["group"] == group].drop(columns="group").dropna(axis="columns", how="all")

    def distribution(self) -> npt.NDArray[np.float64] | None:
        """[B] the statistic in each resample, NaN where undefined; None where the method does not resample."""
        path = self.folder / DISTRIBUTION
        return pq.read_table(path)["statistic"].to_numpy() if path.is_file() else None

    def __repr__(self) -> str:
        low, high = self.interval
        sign = "+" if self.result.statistics.is_signed else ""
        interval = "" if low is None or high is None else f" [{low:{sign}.4f}, {high:{sign}.4f}]"
        numbers = [
            "" if self.statistic is None else f"{self.result.statistics.name} {self.statistic:{sign}.4f}{interval}",
            "" if self.answer.p is None else f"p = {self.answer.p:.4g}",
            f"{self.result.statistics.num_documents} documents",
        ]
        lines = [
            self.answer.lines()[0],
            f"By {self.result.question.method}: {', '.join(filter(None, numbers))}",
            *self.answer.lines()[1:],
            *(f"warning: {text}" for text in self.warnings),
            os.path.relpath(self.folder) if self.folder.is_relative_to(Path.cwd()) else str(self.folder),
        ]
        return "\n  ".join(lines)


def load_results(folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> pd.DataFrame:
    """The audits below a folder, or several.

    Args:
        folders: Such as "outputs/audits/table2".

    Returns:
        A row per audit, in the order of their paths, with columns for what an audit is (sweep, cell, world, method,
        target, reference, corpus, heldout, truth, alpha, seed, score), what sweeps vary (k, lambda, tau; dose: how
        often the target read the set on average), what the target has read of the set where that is known
        (exposures: how often, share: of the documents), what the audit found (conclusion, sentence, because, next,
        verdict, statistic, p_value where the audit is valid, ci_low, ci_high, num_documents, num_excluded,
        allowed_claim, warnings, seconds),
        `folder`, and `error`: why an audit has no result, or why it cannot be read; else None. Then, with dots, the
        plain values of its data config and of its method's settings: data.half, settings.margin,
        settings.distillation.tau ...

    Raises:
        ValueError: Where there is no result at all.

    Source: Ours; the words are those of docs/glossary.md.

    >>> import nonmember as nm
    >>> new, old = ([f"{word} of document {number}" for number in range(40)] for word in ("moss", "fern"))
    >>> found = nm.audit("blind", documents=new, heldout=old)
    >>> nm.load_results("outputs/audits")[["method", "verdict", "num_documents"]]
      method     verdict  num_documents
    0  blind  score_only             40
    """
    import pandas as pd

    given = [folders] if isinstance(folders, str | os.PathLike) else folders
    found = [path for folder in given for path in outcome_paths(Path(folder))]
    if not found:
        raise ValueError("folders must be a folder of audits, or several; got none.")
    paths = {path.resolve(): path for path in reversed(found)}  # each once, by its first name
    rows = [
        _row(path, usable_outcome(path, lambda outcome: _row(Path(), outcome))) for path in reversed(paths.values())
    ]
    results_first = sorted(rows, key=lambda row: row["error"] is not None)  # whose columns have an order
    return pd.DataFrame(rows, columns=list(dict.fromkeys(name for row in results_first for name in row)))


def load_scores(folder: str | os.PathLike[str], *, verify: bool = True) -> pyarrow.dataset.Dataset:
    """Scores of streamed documents: read batch by batch or by column, never as a whole unless asked for.

    Args:
        folder: What `nonmember score data=streamed` printed last, or the run's folder above it.
        verify: Whether every file is first compared with the hash in manifest.json, which reads them all.

    Returns:
        An Arrow data set with the columns of `score`.

    Raises:
        ValueError: Where the scores are not complete, or a file was changed or lost since.

    Source: Ours; the files are described in docs/data.md.

    >>> from pathlib import Path
    >>> import nonmember as nm
    >>> from tiny_world import documents, tokenizer_of, train  # examples/tiny_world.py
    >>> texts = documents("numpy.fft")
    >>> tokenizer = tokenizer_of(texts)
    >>> model = train("tiny", texts, tokenizer, seed=0, epochs=2)
    >>> _ = Path("texts.txt").write_text("\\n".join(texts))
    >>> streamed = nm.score("texts.txt", (model, tokenizer), overrides=["data=streamed", "hydra.run.dir=mine"])
    >>> columns = ["doc_id", "log_likelihood"]
    >>> sum(batch.num_rows for batch in nm.load_scores("mine").to_batches(columns=columns)) == len(texts)
    True
    """
    return open_scores(Path(folder), verify=verify)


def _row(path: Path, outcome: AuditResult | Failure) -> dict[str, Any]:
    if isinstance(outcome, Failure):
        return {"cell": outcome.cell, "error": outcome.error, "folder": str(path.parent)}
    row: dict[str, Any] = {**facts_of(outcome), "error": None, "folder": str(path.parent)}
    row |= {f"data.{name}": value for name, value in outcome.question.data.items()}
    settings = dotted(outcome.question.settings, "settings")
    return row | {name: value for name, value in settings if value is None or isinstance(value, str | int | float)}
