"""Shrinks SVG figures: rounds matplotlib's coordinates and removes the style that it repeats at every marker."""

from __future__ import annotations

import re
from collections.abc import Mapping

DIGITS = 2  # of a point, which is 1/72 inch

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_BETWEEN_TAGS = re.compile(r">\s+<")
_TAG = re.compile(r"<[^<>]*>")
_ID = re.compile(r' id="([^"]*)"')
_NAMED = re.compile(r"#([\w.-]+)")
_UNTURNED = re.compile(r' transform="rotate\(-?0(?: [^)]*)?\)"')
_PLACE = re.compile(r'(?<= )(?:d|x|y|transform)="[^"]*"')
_NUMBER = re.compile(r"-?\d+\.\d+")
_PATH = re.compile(r'(?<= d=")[^"]*')
_AROUND_LETTERS = re.compile(r"\s*([A-Za-z])\s*")
_MARKERS = re.compile(r"<g([^<>]*)>((?:\n<use[^<>]*/>)+)\n</g>")
_STYLE = re.compile(r' style="[^"]*"')


def compact(svg: str) -> str:
    """The same picture: places rounded, one style for the markers of a group that share it, ids numbered and only
    where something names them, no indentation. Doing it again changes nothing.
    """
    svg = _BETWEEN_TAGS.sub(">\n<", _COMMENT.sub("", svg))
    ids = _numbered(svg)
    return _MARKERS.sub(_styled_once, _TAG.sub(lambda tag: _shortened(tag[0], ids), svg))


def _numbered(svg: str) -> dict[str, str]:
    """Id that something names -> the same with a number for its last part."""
    named = set(_NAMED.findall(svg))
    ids = [item for item in _ID.findall(svg) if item in named]
    return {item: f"{item.rpartition('-')[0]}-{index}" for index, item in enumerate(ids, 1)}


def _shortened(tag: str, ids: Mapping[str, str]) -> str:
    tag = _ID.sub(lambda item: f' id="{ids[item[1]]}"' if item[1] in ids else "", _UNTURNED.sub("", tag))
    tag = _NAMED.sub(lambda item: f"#{ids.get(item[1], item[1])}", tag)
    tag = _PLACE.sub(lambda place: _NUMBER.sub(_rounded, place[0]), tag)
    return _PATH.sub(lambda path: " ".join(_AROUND_LETTERS.sub(r"\1", path[0]).split()), tag)


def _rounded(number: re.Match[str]) -> str:
    text = f"{float(number[0]):.{DIGITS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _styled_once(group: re.Match[str]) -> str:
    styles = _STYLE.findall(group[2])
    if len(set(styles)) != 1 or len(styles) != group[2].count("<use") or "style=" in group[1]:
        return group[0]
    return f"<g{group[1]}{styles[0]}>{_STYLE.sub('', group[2])}\n</g>"
