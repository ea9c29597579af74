"""Prompts of name cloze: structure after Chang et al. (2023), in our own words.

It is told that it has read the passage, what to answer, in which form, and to guess where it does not know; two
examples show the form.
"""

from __future__ import annotations

from nonmember.corpora.names import Kind

_TASK = (
    "You have seen the passage below in your training data. One {what} was taken out of it, and [MASK] stands wherever "
    "it was. Which {what} belongs in the place of [MASK]?\n"
    "Answer with exactly one word. It must be {a_what}, not a pronoun and no other kind of word. You have to give an "
    "answer: if you are not sure, guess.{work}\n\n"
)
_EXAMPLES = {
    "name": (
        ('"If the kettle sings before [MASK] is home," said the old woman, "put it back and wait for her."', "Harriet"),
        ("The ferry was late again, so [MASK] sat down among the sacks and played to the gulls on his flute.", "Edwin"),
    ),
    "noun": (
        ("She hung the wet [MASK] over the back of a chair and moved it nearer to the fire.", "coat"),
        ("Nobody had crossed the [MASK] since the flood, and grass grew between its planks.", "bridge"),
    ),
}


def fill_in(blanked: str, kind: Kind, title: str, author: str) -> str:
    """title, author: of the work, which is named where there is one; empty: it is not."""
    noun = kind == "noun"
    what, a_what = ("word", "a word") if noun else ("proper name", "a proper name")
    work = f' The passage is from "{title}"{f" by {author}" if author else ""}.' if title else ""
    examples = "".join(
        f"Input: {passage}\nOutput: <name>{answer}</name>\n\n"
        for passage, answer in _EXAMPLES["noun" if noun else "name"]
    )
    return f"{_TASK.format(what=what, a_what=a_what, work=work)}{examples}Input: {blanked}\nOutput:"
