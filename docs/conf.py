"""Sphinx configuration: Markdown pages and a reference from the docstrings, which `make docs` builds."""

import re

import nonmember

project = "nonmember"
author = "the authors of nonmember"
version = release = nonmember.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
suppress_warnings = ["myst.strikethrough"]
default_role = "py:obj"  # `name` in a docstring: a link where there is something to link to, else code

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_use_ivar = True

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = "nonmember"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False


def keep_layout(app, what, name, obj, options, lines):
    """Docstrings are plain text. What reStructuredText would take for markup, or reflow, is kept as it was written:
    bars, formulas that stand indented, and lists of attributes whose lines hang."""
    paragraphs = "\n".join(lines).split("\n\n")
    kept, after_markup = [], False
    for paragraph in paragraphs:
        text = paragraph.strip("\n")
        first = text.lstrip()
        if re.match(r"(:\w|\.\. |>>> |[-*] |\d+\. )", first):
            after_markup = True
            if first.startswith(":"):  # arguments, attributes and what napoleon makes of the other sections
                text = text.replace("|", r"\|")
        elif text.startswith(" "):
            if not after_markup:
                text = "::\n\n" + text
        else:
            after_markup = False
            text = text.replace("|", r"\|")
            if re.search(r"\n +\S|\S {3,}\S", text):
                text = re.sub(r"\n +(?=\S)", " ", text)  # what hangs belongs to the line above
                text = re.sub(r"(?<=\S) {3,}(?=\S)", "\n", text)  # one attribute a line
                text = "\n".join("| " + line for line in text.split("\n"))
        kept.append(text)
    lines[:] = [*"\n\n".join(kept).split("\n"), ""]


def setup(app):
    app.connect("autodoc-process-docstring", keep_layout, priority=900)  # after napoleon
