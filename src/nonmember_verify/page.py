"""The page for people: that it runs nothing and fetches nothing. What it says in words is the signer's.

It is not parsed, since a browser parses otherwise. It must begin as all our pages do, the content policy included, so
that nothing stands before that; from there on each `<` must begin one of the elements of our pages, as we write it:
none of them runs, fetches or navigates, whatever stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from nonmember_verify.report import Report

PAGE = "page.html"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
BEGINNING = f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY.replace("'", "&#39;")}">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>Evidence: """
HEAD = re.compile(re.escape(BEGINNING) + r"[0-9]+ audits?</title>\n<style>(?P<style>[^<]*)</style>\n</head>\n")
FETCHES = re.compile(r"\\|@import|url|image|src|//", re.IGNORECASE)  # in a style sheet; ours has none of these
ELEMENT = re.compile(
    r"</?(?:a|b|body|circle|code|dd|details|div|dl|dt|figcaption|figure|footer|g|h1|h2|h3|header|html|i|li|line|main|ol|"
    r"p|path|rect|section|small|span|summary|svg|table|tbody|td|text|th|thead|tr|ul)"
    r"(?: (?:aria-label|class|cx|cy|d|data-of|height|id|r|role|scope|tabindex|transform|viewBox|width|x|x1|x2|y|y1|y2)"
    r'="[^"<>]*"| href="#[\w-]*")*/?>'
)
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def check_page(files: Mapping[str, bytes], report: Report) -> None:
    if PAGE not in files:
        report.failed("page", f"{PAGE} is missing.")
        return
    problem = problem_of(files[PAGE])
    report.require(
        "page",
        not problem,
        "it runs no script and names no address on a network: it is made as our pages are.",
        f"{PAGE} {problem}: do not open it.",
    )
    report.unchecked("words of the page", "what it says is the signer's; the lines here are made from the numbers")


def problem_of(content: bytes) -> str:
    """Empty where all is well."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "is no UTF-8"
    if CONTROLS.search(text):
        return "holds control characters"
    if (head := HEAD.match(text)) is None:
        return "does not begin as every page of a bundle does, with our content policy"
    if found := FETCHES.search(head["style"]):
        return f"holds a style sheet with {found[0]!r}"
    _, begins, strange = ELEMENT.sub("", text[head.end() :]).partition("<")
    return f"holds {(begins + strange)[:40]!r}, which no page of a bundle holds" if begins else ""
