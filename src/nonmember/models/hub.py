"""What is read of a pretrained model, from a folder or the hub, before its weights are: what determines them, and its
tokenizer. Neither needs torch's models, which an audit whose observations are in the store never loads."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from nonmember.models.folders import ADAPTER, folder_identity, holds_adapter, named_base, tokenizer_identity
from nonmember.models.tokenizing import PROBE, ids_of, is_failure, prepared
from nonmember.runtime.quiet import imported

if TYPE_CHECKING:
    from nonmember.models.kinds.pretrained import Pretrained

log = logging.getLogger(__name__)

AS_THE_FILE = ("TokenizersBackend", "PreTrainedTokenizerFast")  # classes that read a tokenizer.json as it stands
UNLIKE = f"{PROBE} It's 1234567,  a\u030a."  # what tokenizers differ in: numbers, blanks, forms of letters
NUM_SHOWN = 4  # tokens

_IDENTITIES: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

MAY_BE_MISSING = {
    f"_raise_exceptions_for_{what}": False for what in ("gated_repo", "missing_entries", "connection_errors")
}


def pretrained_identity(spec: Pretrained) -> dict[str, Any]:
    """What determines the weights: the hash of a folder's files, or the commit the hub's revision stands for."""
    # By another attention numbers move at the level of rounding, so that they are kept apart, as a dtype's.
    read_as = {name: getattr(spec, name) for name in ("dtype", "quantization", "attention", "bos")}
    if spec.chat_template_kwargs:
        read_as["chat_template_kwargs"] = dict(spec.chat_template_kwargs)
    folder = Path(spec.path)
    if folder.is_dir():
        return {**folder_identity(folder), **read_as, **_adapted(base_of(spec))}
    from transformers import AutoConfig
    from transformers.utils import find_adapter_config_file

    try:
        config = AutoConfig.from_pretrained(spec.path, **location(spec))
        adapter = find_adapter_config_file(spec.path, revision=spec.revision)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{spec.path!r} is not a folder on this machine, and the Hugging Face hub gave nothing: "
            f"{first_line(error)} Name a folder that exists, or allow the network (unset HF_HUB_OFFLINE)."
        ) from error
    commit = getattr(config, "_commit_hash", None) or spec.revision
    base = _named(adapter, spec)
    return {"path": spec.path, "commit": commit, **read_as, **_adapted(base)}


def _adapted(base: Pretrained | None) -> dict[str, Any]:
    """The part of a key that says what an adapter is put on."""
    return {} if base is None else {"adapter_on": pretrained_identity(base)}


def file_of(path: str, name: str, revision: str | None) -> Path | None:
    if Path(path).is_dir():
        file = Path(path) / name
        return file if file.is_file() else None
    from transformers.utils import cached_file

    found = cached_file(path, name, revision=revision, **MAY_BE_MISSING)
    return Path(found) if found else None


def load_tokenizer(spec: Pretrained) -> Any:
    """From a folder or the hub, tried and set as `tokenizing.prepared` says. Shared: of folders with the same files, as
    those of a model and its continuations, one is loaded and tried once a process, and no caller changes it."""
    folder, read_as = Path(spec.path), (spec.bos, spec.chat_template_kwargs)
    if not folder.is_dir():
        return _tried(spec.path, *read_as, **location(spec))
    return _shared(_Folder(tokenizer_identity(folder), spec.path), *read_as, **location(spec))


@dataclass(frozen=True)
class _Folder:
    """Known by what is in it."""

    files: str
    path: str = field(compare=False)


@functools.lru_cache(maxsize=8)
def _shared(folder: _Folder, bos: str, template: Any, **where: Any) -> Any:
    tokenizer = _tried(folder.path, bos, template, **where)
    _IDENTITIES[tokenizer] = f"{folder.files} {bos}"
    return tokenizer


def identity_of_shared(tokenizer: Any) -> str | None:
    """What decides which ids a text gets by a tokenizer that is shared, and so never changed; None of any other."""
    return _IDENTITIES.get(tokenizer)


def _tried(path: str, bos: str, template: Any, **where: Any) -> Any:
    from transformers import AutoTokenizer

    imported()
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, **where)
        if len(tokenizer) <= len(tokenizer.all_special_ids):  # transformers makes an empty one from config.json
            raise ValueError("It has no vocabulary.")
    except BaseException as error:  # whatever transformers and tokenizers say of files that are not ours
        if not is_failure(error):
            raise
        raise ValueError(
            f"No tokenizer could be loaded from {path}: {first_line(error)} Expected tokenizer.json (or another "
            "file transformers knows) beside the weights; save it there with tokenizer.save_pretrained."
        ) from error
    tokenizer = prepared(tokenizer, bos, path)
    tokenizer.chat_template_kwargs = dict(template or ())
    if unknown := [
        name for name in tokenizer.chat_template_kwargs if not re.search(rf"\b{name}\b", str(tokenizer.chat_template))
    ]:
        raise ValueError(f"The chat template of {path} has no {unknown[0]} (chat_template_kwargs). Correct the name.")
    _warn_if_read_otherwise(tokenizer, path, where.get("revision"))
    return tokenizer


def _warn_if_read_otherwise(tokenizer: Any, path: str, revision: str | None) -> None:
    """transformers has classes that make their own of a tokenizer.json, and takes some of them by the type of the model
    alone: it forces that of Qwen on whatever tokenizer was trained for a model of that architecture."""
    from tokenizers import Tokenizer

    kind, file = type(tokenizer).__name__, file_of(path, "tokenizer.json", revision)
    if file is None or not tokenizer.is_fast or kind in AS_THE_FILE:
        return
    try:
        raw = Tokenizer.from_file(str(file))
        raw.no_truncation()
        raw.no_padding()
        meant = raw.encode(UNLIKE, add_special_tokens=False)
        ids = ids_of(tokenizer, [UNLIKE], add_special_tokens=False)[0]
    except Exception:  # a file that is read by its class alone, or text that it has no tokens for
        return
    if ids != meant.ids:
        first = next((index for index, pair in enumerate(zip(ids, meant.ids, strict=False)) if len({*pair}) > 1), 0)
        log.warning(
            "%s: transformers reads texts as a %s, otherwise than tokenizer.json says: %s in place of %s, say. If the "
            "model was trained by that file, scores are wrong: from Python, give it with the tokenizer "
            "PreTrainedTokenizerFast.from_pretrained(FOLDER). If it was trained by the class, save the tokenizer anew.",
            path,
            kind,
            tokenizer.convert_ids_to_tokens(ids[first : first + NUM_SHOWN]),
            meant.tokens[first : first + NUM_SHOWN],
        )


def base_of(spec: Pretrained) -> Pretrained | None:
    """What an adapter is put on; None where the path is that of a whole model."""
    folder = Path(spec.path)
    if folder.is_dir():
        return _named(folder / ADAPTER if holds_adapter(folder) else None, spec)
    from transformers.utils import find_adapter_config_file

    return _named(find_adapter_config_file(spec.path, revision=spec.revision), spec)


def _named(adapter: str | Path | None, spec: Pretrained) -> Pretrained | None:
    """The base of an adapter, as `spec` is read, at the revision that its file names; else at the adapter's own."""
    if adapter is None:
        if spec.base is not None:
            raise ValueError(
                f"base is what an adapter is put on, and {spec.path} is no adapter. Leave base={spec.base} out."
            )
        return None
    base, revision = (spec.base, None) if spec.base is not None else named_base(Path(adapter))
    return replace(spec, path=base, revision=revision or spec.revision, base=None)


def location(spec: Pretrained) -> Mapping[str, Any]:
    """The arguments by which transformers finds the files of a model."""
    where: dict[str, Any] = {"trust_remote_code": spec.trust_remote_code}
    return where | {"revision": spec.revision} if spec.revision else where


def first_line(error: BaseException) -> str:
    """Of what transformers says, for a message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    line = " ".join(lines[: 1 + lines[0].endswith(":")])
    if not line or isinstance(error, KeyError):  # which is a name alone
        line = f"{type(error).__name__} {line}".strip()
    return line if line.endswith((".", "!", "?")) else line + "."
