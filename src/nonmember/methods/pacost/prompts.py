"""The prompts of PaCoST: for plain texts word for word from the appendix of PRISM, mistakes included; for questions
our own, in the same manner."""

from __future__ import annotations

from dataclasses import dataclass

from nonmember.records import Prompt, Question

IS_IT_CORRECT = Question(
    "You are an expert in judging whether the text is correct. You will be given a text. Your job is to determine "
    "whether this text is correct. You should only respond with Yes or No. For example, given question "
    '"The value of 1+1 is 2.", the correct response should be "Yes".',
    answers=("Yes", "No"),
)

REPHRASE = Prompt(
    "You are provided with a text. Your task is to rephrase this text into another text with the same meaning. When "
    "rephrasing the text, you must ensure that you follow the following rules: (1). You must ensure that you generate "
    "a rephrased text as your response. (2). You must ensure that the rephrased text bears the same meaning with the "
    "original text. Do not miss any information. (3). You must only generate a rephrased text. Any other information "
    "should not appear in your response. (4). Do not output any explanation. (5). Do not modify the numbers or "
    'quantities in the question. You should remain them unchanged. Example 1: given text "1+1=2", one possible '
    'response should be: The value of 1+1 is 2. Example 2: given text "Earth orbits around the Sun", one possible '
    "response should be: The Sun is the center of earth's orbit. Example 3: given text \"C is the third letter in "
    'English", one possible response should be: English\'s third letter is C. Example 4: given text "A scientist is '
    'looking for something to watch faraway stars.", one possible response should be: A scientist would like use '
    'something to watch remote stars. Example 5: given text "John has 8 cats and five dogs. Linda has 6 rabbits.", one '
    "possible response should be: John owns 8 cats and five dogs. Linda possesses 6 rabbits."
)


# For questions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AnswerPrompt(Prompt):
    """A question to be answered."""

    def request(self, text: str) -> str:
        return f"Question: {text}\nAnswer:"


@dataclass(frozen=True)
class PairQuestion(Question):
    """About a text that names its parts, a question and an answer, itself."""

    def request(self, text: str) -> str:
        return f"{text}\nResponse:"


ANSWER = AnswerPrompt(
    "You will be given a question. Answer it as briefly as you can. If it offers choices, answer with the right one. "
    "Write the answer alone, without any explanation."
)

IS_THE_ANSWER_CORRECT = PairQuestion(
    "You are an expert in judging whether an answer is correct. You will be given a question and an answer to it. Your "
    "job is to determine whether this answer is correct. You should only respond with Yes or No. For example, given "
    'question "What is 1+1?" and answer "2", the correct response should be "Yes".',
    answers=("Yes", "No"),
)

REPHRASE_QUESTION = Prompt(
    "You will be given a question. Write it in other words, with exactly the same meaning and the same answer. Follow "
    "these rules: (1) Write the rephrased question alone; do not answer it and explain nothing. (2) Leave nothing out "
    "and add nothing. (3) Keep all numbers, quantities, names and formulas as they are. (4) If the question offers "
    "choices, keep all of them, in their order and with their letters."
)
