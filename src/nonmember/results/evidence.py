"""Reads an audit's folder: result, document scores, resampled statistic, answers, command."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.records import FloatArray
from nonmember.records.groups import SUSPECT
from nonmember.results.answers import ANSWERS, KINDS
from nonmember.results.result import DISTRIBUTION, RESULT, SCORES, AuditResult
from nonmember.runtime.yaml_files import read_yaml

ID, GROUP = "doc_id", "group"


@dataclass(frozen=True)
class Evidence:
    result: AuditResult
    # Of scores.parquet; numbers are arrays, NaN where undefined.
    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    doc_ids: Sequence[str] = ()
    groups: Sequence[str] = ()
    distribution: FloatArray = field(default_factory=lambda: np.zeros(0))  # finite resampled statistics
    # Group of documents -> kind of answer -> how many.
    answers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # overrides, config: what was given to the command, and which primary config it read, empty where it was the
    # command's own
    overrides: Sequence[str] | None = None
    config: tuple[str, ...] = ()

    def by_group(self, name: str) -> dict[str, FloatArray]:
        """The finite values of a column, by group of documents; groups without any are left out."""
        values, groups = self.columns[name], np.array(self.groups)
        found = {group: values[(groups == group) & np.isfinite(values)] for group in dict.fromkeys(self.groups)}
        return {group: some for group, some in found.items() if len(some)}


def load(folder: Path) -> Evidence:
    """Everything that is there; of a result, at least."""
    result = AuditResult.load(folder / RESULT)
    table = columns_of(folder / SCORES)
    doc_ids = [str(doc_id) for doc_id in table.pop(ID, ())]
    groups = table.pop(GROUP, None) or [SUSPECT] * len(doc_ids)
    statistic = np.array(columns_of(folder / DISTRIBUTION).get("statistic", ()), dtype=np.float64)
    overrides, config = _command(folder / ".hydra")
    return Evidence(
        result=result,
        columns={name: np.array(values, dtype=np.float64) for name, values in table.items()},
        doc_ids=doc_ids,
        groups=groups,
        distribution=statistic[np.isfinite(statistic)],
        answers=_answers(folder / ANSWERS),
        overrides=overrides,
        config=config,
    )


def columns_of(path: Path) -> dict[str, Any]:
    """The columns of a Parquet file as lists; none where there is none. Raises ValueError where it cannot be read."""
    if not path.is_file():
        return {}
    try:
        return dict(pq.ParquetFile(path).read().to_pydict())
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a table of an audit ({error})") from error


def _answers(path: Path) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    if path.is_file():
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                answer = json.loads(line)
                found.setdefault(str(answer["group"]), Counter())[str(answer["kind"])] += 1
    return {group: {kind: counts[kind] for kind in KINDS if counts[kind]} for group, counts in found.items()}


def _command(folder: Path) -> tuple[list[str] | None, tuple[str, ...]]:
    """The words after `nonmember audit`, as Hydra noted them. Nothing of these files is ever instantiated."""
    try:
        overrides = read_yaml(folder / "overrides.yaml")
        words = [word for word in overrides or () if isinstance(word, str)]
        hydra: Any = read_yaml(folder / "hydra.yaml")["hydra"]
        name = str(hydra["job"]["config_name"])
        sources = hydra["runtime"]["config_sources"]
        given = [Path(item["path"]).name for item in sources if item["provider"] == "command-line"]
    except (OSError, ValueError, LookupError, TypeError):
        return None, ()
    config = () if name == "audit" else (*(f"--config-dir={item}" for item in given), f"--config-name={name}")
    return words, config
