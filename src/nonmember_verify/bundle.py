"""A bundle that was read: its audits, with their tables as arrays."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from nonmember_verify.archive import Refused
from nonmember_verify.envelope import Fields, strict_json

FloatArray = npt.NDArray[np.float64]

MOST_CELLS = 200_000_000  # of a table: rows times columns, or numbers in its lists
MOST_CHARACTERS = 1_000  # of a name in a table
NAMES = ("group", "document", "unit")  # columns of scores.parquet that are no scores


@dataclass(frozen=True)
class Group:
    """The scored documents of one group, in the order in which the test took them. units: number of the cluster (or
    of the document by itself) of each, by the order of their names."""

    name: str
    documents: list[str]
    units: npt.NDArray[np.int64]
    values: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def by_appearance(self) -> npt.NDArray[np.int64]:
        """Units numbered in the order in which they come."""
        number: dict[int, int] = {}
        return np.array([number.setdefault(unit, len(number)) for unit in self.units.tolist()], dtype=np.int64)

    def by_unit(self, values: FloatArray) -> FloatArray:
        """Mean of the values of each unit's documents, in the order in which the units come."""
        index = self.by_appearance
        return np.array([values[index == unit].mean() for unit in range(int(index.max()) + 1)])


@dataclass(frozen=True)
class Audit:
    """One audit of a bundle. described: audit.json.   result: result.json."""

    folder: str
    files: Mapping[str, bytes]

    @cached_property
    def described(self) -> Any:
        return json_of(self.files, f"{self.folder}/audit.json")

    @cached_property
    def result(self) -> Any:
        return json_of(self.files, f"{self.folder}/result.json")

    @property
    def cell(self) -> str:
        """Its name, which nothing depends on, so that it does not count as read."""
        return str(dict.__getitem__(self.described, "cell"))

    @property
    def question(self) -> Any:
        return self.result["question"]

    @property
    def settings(self) -> Any:
        return self.question["settings"]

    @property
    def statistics(self) -> Any:
        return self.result["statistics"]

    @property
    def details(self) -> Any:
        return self.statistics["details"]

    @property
    def alpha(self) -> float:
        return float(self.question["alpha"])

    @cached_property
    def groups(self) -> dict[str, Group]:
        table = table_of(self.files, f"{self.folder}/scores.parquet")
        groups, documents = (np.array(table[name], dtype=object) for name in ("group", "document"))
        units = np.asarray(table["unit"], dtype=np.int64)
        found = {}
        for name in dict.fromkeys([*table["group"], *self.described["documents"]]):
            own, known = groups == name, self.described["columns"].get(name, {})
            values = {
                column: np.asarray(items, dtype=np.float64)[own]
                for column, items in table.items()
                if column not in NAMES and column in known
            }
            found[name] = Group(name, documents[own].tolist(), units[own], values)
        return found

    @cached_property
    def distribution(self) -> FloatArray | None:
        name = f"{self.folder}/distribution.parquet"
        if name not in self.files:
            return None
        return np.asarray(table_of(self.files, name)["statistic"], dtype=np.float64)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Compressed sizes of the texts by which scores were divided; of no document where none were."""
        name = f"{self.folder}/texts.parquet"
        if name not in self.files:
            return {}
        table = table_of(self.files, name)
        return dict(zip(table["document"], table["zlib_bytes"].tolist(), strict=True))

    def beside(self, **found: Any) -> dict[str, tuple[Any, Any]]:
        """Name -> what the result states and what was found: p, low, high, and by another name the statistic."""
        names = {"p": "p_value", "low": "ci_low", "high": "ci_high"}
        return {name: (self.statistics[names.get(name, "value")], value) for name, value in found.items()}

    def rng(self) -> np.random.Generator:
        """As the audit drew with."""
        return np.random.default_rng([self.question["seed"], 0])


def json_of(files: Mapping[str, bytes], name: str) -> Any:
    try:
        return strict_json(files[name], Fields)
    except KeyError:
        raise Refused(f"{name} is missing.") from None
    except ValueError as error:
        raise Refused(f"{name} cannot be read ({error}).") from error


def table_of(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    """Columns of a Parquet file: numbers as arrays, names as lists, lists as lists of arrays."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if name not in files:
        raise Refused(f"{name} is missing.")
    try:
        # Names are kept as a list of different ones, so that a long one is not repeated in memory.
        schema = pq.read_schema(io.BytesIO(files[name]))
        names = [item.name for item in schema if pa.types.is_string(item.type) or pa.types.is_large_string(item.type)]
        file = pq.ParquetFile(io.BytesIO(files[name]), read_dictionary=names)
        stored = sum(
            file.metadata.row_group(index).column(column).num_values
            for index in range(file.metadata.num_row_groups)
            for column in range(file.metadata.num_columns)
        )
        if max(stored, file.metadata.num_rows * file.metadata.num_columns) > MOST_CELLS:
            raise Refused(f"{name} holds {stored:,} numbers; a table of a bundle has at most {MOST_CELLS:,}.")
        table = file.read().combine_chunks()
    except (pa.ArrowException, OSError) as error:
        raise Refused(f"{name} is not a readable Parquet table ({error}).") from error
    return {column: _values(table[column], name) for column in table.column_names}


def _values(column: Any, table: str) -> Any:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        (flat,) = column.chunks or [pa.array([], kind)]
        numbers = flat.values.to_numpy(zero_copy_only=False)
        return [numbers[start:end] for start, end in pairwise(flat.offsets.to_numpy())]
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return column.to_numpy()
    return _names(column, table) if pa.types.is_dictionary(kind) else column.to_pylist()


def _names(values: Any, table: str) -> list[Any]:
    found: list[Any] = []
    for chunk in values.chunks:
        different = chunk.dictionary.to_pylist()
        if any(len(item) > MOST_CHARACTERS for item in different):
            raise Refused(f"{table} holds a name of more than {MOST_CHARACTERS} characters.")
        found += [different[index] for index in chunk.indices.to_numpy(zero_copy_only=False).tolist()]
    return found
