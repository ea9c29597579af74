"""What the Hugging Face hub says when it gives no data set, as one sentence."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def hub_errors(path: str, revision: str) -> Iterator[None]:
    """Raises ValueError for the many ways in which the hub says no."""
    from datasets.exceptions import DatasetNotFoundError, DatasetsError
    from huggingface_hub.errors import HfHubHTTPError

    broken = (DatasetsError, UnicodeDecodeError, EOFError, gzip.BadGzipFile, zlib.error)
    # OSError, and the base of whichever HTTP client this version of the hub's library speaks through.
    unreachable: tuple[Any, ...] = (OSError, *HfHubHTTPError.__bases__)
    try:
        yield
    except RuntimeError as error:
        if "scripts are no longer supported" not in str(error):
            raise
        raise ValueError(
            f"{path!r} is a data set script, a program that would have to be run; data sets must be files (Parquet, "
            "JSON Lines, CSV, text). Take a revision with Parquet files, such as that of refs/convert/parquet, or name "
            "the files in `data_files`."
        ) from error
    except (*broken, *unreachable) as error:
        if _is_gated(error):
            raise ValueError(
                f"{path!r} is a gated data set: accept its terms on https://huggingface.co/datasets/{path}, then set "
                "HF_TOKEN to an access token of the same account."
            ) from error
        if isinstance(error, DatasetNotFoundError):
            raise ValueError(
                f"The hub has no data set {path!r} at revision {revision!r} that you may read ({error}). "
                "Check name and revision, or log in if access is restricted."
            ) from error
        if isinstance(error, broken):
            raise ValueError(
                f"Cannot make rows of {path!r} ({error}). Are its files complete, and of one kind?"
            ) from error
        raise ValueError(
            f"Cannot read {path!r} from the Hugging Face hub ({error}). Check the network (and "
            "HF_HUB_OFFLINE), or download it elsewhere and give the folder as `path`."
        ) from error


def _is_gated(error: BaseException | None) -> bool:
    """Whether the hub refused because its terms were not accepted; each library in between wraps that anew."""
    from huggingface_hub.errors import GatedRepoError

    while error is not None:
        if isinstance(error, GatedRepoError) or "is a gated dataset" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
