"""A bundle: its files, read into memory and never onto the disk, and its audits, with their tables as arrays."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nonmember_verify.envelope import Fields, Refused, strict_json

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MIN_CLUSTERS = 10  # of a set, below which nothing follows
ENVELOPE = "statement.dsse.json"
NAMES = ("group", "document", "unit", "stratum")  # columns of scores.parquet that are no scores


def read(path: Path) -> dict[str, bytes]:
    """Name of a file -> its content. Raises Refused where readers could see different files in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            if len({name.casefold() for name in names}) < len(names):
                raise Refused("The archive holds a name more than once, so that different readers see different files.")
            if strange := [entry for entry in entries if entry.compress_type != zipfile.ZIP_STORED or entry.is_dir()]:
                raise Refused(f"{strange[0].filename} is compressed, or a folder; a bundle holds plain files.")
            return {name: archive.read(name) for name in names}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise Refused(f"The archive cannot be read ({error}): it is not a bundle, or it is damaged.") from error


@dataclass(frozen=True)
class Group:
    """The scored documents of one group, in the order in which the test took them. units: number of the cluster (or
    of the document by itself) of each, by the order of their names."""

    name: str
    documents: list[str]
    units: npt.NDArray[np.integer[Any]]
    values: Fields  # column -> scores; it notes what was read

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def by_appearance(self) -> IntArray:
        """Units numbered in the order in which they come."""
        number: dict[int, int] = {}
        return np.array([number.setdefault(unit, len(number)) for unit in self.units.tolist()], dtype=np.int64)


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

    def clusters(self, name: str) -> IntArray | None:
        """Of the documents of a group, in the order in which they come; None where each is a draw by itself."""
        found = self.groups[name].by_appearance
        by_cluster = self.settings.get("sampling_unit") == "cluster" and int(found.max()) + 1 < len(found)
        return found if by_cluster else None

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
    def table(self) -> dict[str, Any]:
        return table_of(self.files, f"{self.folder}/scores.parquet")

    @cached_property
    def groups(self) -> dict[str, Group]:
        table = self.table
        groups, documents = (np.array(table[name], dtype=object) for name in ("group", "document"))
        units = np.asarray(table["unit"])
        found = {}
        for name in dict.fromkeys([*table["group"], *self.described["documents"]]):
            own, known = groups == name, self.described["columns"].get(name, {})
            values = {
                column: np.asarray(items, dtype=np.float64)[own]
                for column, items in table.items()
                if column not in NAMES and column in known
            }
            for column, items in values.items():
                if len(items) and not (isinstance(table[column], np.ndarray) and np.isfinite(items).all()):
                    raise Refused(f"{column} of the {name} set holds what is no finite number")
            found[name] = Group(name, documents[own].tolist(), units[own], Fields(values))
        return found

    @cached_property
    def units(self) -> dict[str, tuple[str, int]]:
        """Scored document -> its group and unit."""
        return {
            document: (name, unit)
            for name, group in self.groups.items()
            for document, unit in zip(group.documents, group.units.tolist(), strict=True)
        }

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Compressed sizes of the texts by which scores were divided; of no document where none were."""
        name = f"{self.folder}/texts.parquet"
        if name not in self.files:
            return {}
        table = table_of(self.files, name)
        sizes = dict(zip(table["document"], table["zlib_bytes"].tolist(), strict=True))
        if len(sizes) < len(table["document"]):
            raise Refused(f"{name} holds a document twice")
        return sizes

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
        table = pq.ParquetFile(io.BytesIO(files[name])).read().combine_chunks()
    except (pa.ArrowException, OSError) as error:
        raise Refused(f"{name} is not a readable Parquet table ({error}).") from error

    def values(column: Any) -> Any:
        kind = column.type
        if pa.types.is_large_list(kind) or pa.types.is_list(kind):
            return list(column.to_numpy())
        return column.to_numpy() if pa.types.is_floating(kind) or pa.types.is_integer(kind) else column.to_pylist()

    return {column: values(table[column]) for column in table.column_names}
