"""The prompt for completing a passage. A model without a chat template just continues the text."""

from __future__ import annotations


def continue_text(prefix: str, title: str, author: str) -> str:
    work = f' from "{title}"' if title else ""
    work += f" by {author}" if author else ""
    return (
        f"Below stands the beginning of a passage{work}. Continue it exactly as the original goes on, word for word. "
        "Write the continuation alone: no introduction, no comment, no quotation marks, and not the beginning again."
        f"\n\n{prefix}"
    )
