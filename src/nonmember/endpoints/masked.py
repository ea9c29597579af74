"""Queries a masked language model, which fills blanks without instructions: the baseline that knows the language but
not the works (BERT, in the paper on name cloze).

Shapes: T tokens, V vocabulary, M blanks of a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import AutoModelForMaskedLM

from nonmember.corpora.names import BLANK
from nonmember.endpoints.models import MaskedModel
from nonmember.models import Pretrained
from nonmember.models.encoding import token_spans
from nonmember.models.loading import load_tokenizer
from nonmember.records.answers import Completion, Request

WORD_BEGINS = ("Ġ", "▁")  # how byte-level and SentencePiece vocabularies mark it; WordPiece marks what goes on
WORD_GOES_ON = "##"


def fill_blanks(spec: MaskedModel, requests: Sequence[Request], device: torch.device) -> list[Completion]:
    """The one word that the model finds likeliest in all blanks of each request's plain text together: the largest sum
    of log-probabilities among the tokens of letters that begin a word.

    A text longer than the model reads is cut to a window around its first blank. Raises ValueError where the model
    cannot be loaded or its tokenizer has no mask.
    """
    tokenizer, model = _load(spec)
    model.to(device)
    words = _whole_words(tokenizer, model.config.vocab_size)
    candidates_V = torch.tensor(sorted(words), device=device)
    completions = []
    for request in requests:
        text = _around_first_blank(tokenizer, model, request.plain.replace(BLANK, tokenizer.mask_token))
        ids_T = torch.tensor(tokenizer(text)["input_ids"], device=device)
        log_probs_V = _of_all_blanks(model, ids_T, ids_T == tokenizer.mask_token_id)[candidates_V]
        word = words[int(candidates_V[log_probs_V.argmax()])]
        completions.append(Completion(word, "answered", served_model=spec.path))
    return completions


@torch.inference_mode()
def _of_all_blanks(model: Any, ids_T: Tensor, is_blank_T: Tensor) -> Tensor:
    """[V] log-probabilities, summed over the blanks."""
    logits_MV = model(input_ids=ids_T[None]).logits[0, is_blank_T]
    sums_V: Tensor = logits_MV.float().log_softmax(-1).sum(dim=0)
    return sums_V


def _load(spec: MaskedModel) -> tuple[Any, Any]:
    known = Pretrained(spec.path, spec.revision)
    tokenizer = load_tokenizer(known)
    if tokenizer.mask_token_id is None:
        raise ValueError(f"{spec.path} has no mask token, so it fills no blanks. Name a masked language model.")
    where = {"revision": spec.revision} if spec.revision else {}
    try:
        model: Any = AutoModelForMaskedLM.from_pretrained(
            spec.path, use_safetensors=True, trust_remote_code=False, **where
        )
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ValueError(
            f"No masked language model could be loaded from {spec.path}: {str(error).splitlines()[0]} Expected a "
            "folder or hub name with config.json and safetensors weights."
        ) from error
    return tokenizer, model.eval()


def _whole_words(tokenizer: Any, num_rows: int) -> dict[int, str]:
    """Id -> word, of tokens of two letters or more that begin a word."""
    vocabulary = tokenizer.get_vocab()
    marked = any(token.startswith(WORD_BEGINS) for token in vocabulary)
    words = {}
    for token, index in vocabulary.items():
        begins = token.startswith(WORD_BEGINS) if marked else not token.startswith(WORD_GOES_ON)
        word = token[1:] if marked else token
        if begins and len(word) > 1 and word.isalpha() and index < num_rows:
            words[index] = word
    return words


def _around_first_blank(tokenizer: Any, model: Any, text: str) -> str:
    """Cut to what the model reads; most texts are whole. Byte-level pieces of letters beyond English pass as marks."""
    places = token_spans(tokenizer)(text)
    num_special = len(tokenizer("")["input_ids"])
    # RoBERTa counts its positions from the padding's on, so that two of them are never used.
    room = min(tokenizer.model_max_length, model.config.max_position_embeddings - 2) - num_special
    if len(places) <= room:
        return text
    blank = text.index(tokenizer.mask_token)
    first = next(index for index, (_, end) in enumerate(places) if end > blank)
    start = max(0, min(first - room // 2, len(places) - room))
    return text[places[start][0] : places[start + room - 1][1]]
