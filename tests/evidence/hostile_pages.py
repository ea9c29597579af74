"""Pages that would run, fetch or go elsewhere, made of an honest one, and what of them a browser did."""

from __future__ import annotations

import codecs
import functools
from collections.abc import Callable
from typing import Any

from doctored import folder
from made_up_audits import bundled, gathered
from made_up_questions import PRISM, audit

RUN, AWAY = "console.log('ran')", "http://127.0.0.1:9/seen"
SCRIPT = f"<script>{RUN}</script>"
DATA = f"data:text/html,{SCRIPT}"
POLICY_LINE = '<meta http-equiv="Content-Security-Policy"'

IN_THE_BODY = {
    "a script": SCRIPT,
    "a script from elsewhere": f'<script src="{AWAY}"></script>',
    "capitals": f"<ScRiPt>{RUN}</sCrIpT>",
    "an image that fails": f'<img src="#" onerror="{RUN}">',
    "an image from elsewhere": f'<img src="{AWAY}">',
    "an event of a known element": f'<p class="x" onpointerover="{RUN}">x</p>',
    "an event after a slash": f'<svg/onload="{RUN}">',
    "an event without quotes": "<details open ontoggle=console.log('ran')>x</details>",
    "an attribute in single quotes": "<p class='x'>x</p>",
    "a link that is a script": f'<a href="javascript:{RUN}">x</a>',
    "a link elsewhere": f'<a href="{AWAY}">x</a>',
    "a link by its older name": f'<svg><a xlink:href="javascript:{RUN}">x</a></svg>',
    "an address that is pinged": f'<a href="#x" ping="{AWAY}">x</a>',
    "a refresh": f'<meta http-equiv="refresh" content="0;url={AWAY}">',
    "a refresh in capitals": f'<META HTTP-EQUIV=refresh CONTENT="0;{AWAY}">',
    "a refresh to a page of its own": f'<meta http-equiv="refresh" content="0;{DATA}">',
    "another base": '<base href="http://127.0.0.1:9/">',
    "a frame": f'<iframe src="{AWAY}"></iframe>',
    "a frame with a page": f'<iframe srcdoc="{SCRIPT}"></iframe>',
    "an object": f'<object data="{DATA}"></object>',
    "an embedded page": f'<embed src="{DATA}">',
    "a form": f'<form action="{AWAY}"><button autofocus formaction="javascript:{RUN}">x</button></form>',
    "a field that takes the focus": f'<input autofocus onfocus="{RUN}">',
    "a sound": f'<audio src="{AWAY}" autoplay></audio>',
    "a style sheet from elsewhere": f'<link rel="stylesheet" href="{AWAY}">',
    "a connection beforehand": '<link rel="preconnect" href="http://127.0.0.1:9">',
    "a name looked up beforehand": '<link rel="dns-prefetch" href="//seen.invalid">',
    "a page fetched beforehand": f'<link rel="prefetch" href="{AWAY}">',
    "a second style": f"<style>@import '{AWAY}';</style>",
    "a style of an element": f'<p style="background: url({AWAY})">x</p>',
    "HTML in a drawing's style": f'<svg><style><img src="#" onerror="{RUN}"></style></svg>',
    "HTML in a drawing": f"<svg><foreignObject>{SCRIPT}</foreignObject></svg>",
    "a drawing that is used": f'<svg><use href="{AWAY}#x"/></svg>',
    "a drawing that moves": f'<svg><animate attributeName="x" dur="1s" onbegin="{RUN}"/></svg>',
    "a script in a drawing": f'<svg><script href="data:text/javascript,{RUN}"/></svg>',
    "a formula": f'<math href="javascript:{RUN}">x</math>',
    "a template": f"<template>{SCRIPT}</template>",
    "markup that is read anew": f'<noscript><p class="</noscript>{SCRIPT}"></noscript>',
    "a comment that ends at once": f"<!-->{SCRIPT}-->",
    "a comment that ends oddly": f"<!-- --!>{SCRIPT}-->",
    "a section of characters": f"<svg><![CDATA[>]]>{SCRIPT}</svg>",
    "an instruction": f'<?xml-stylesheet href="{AWAY}"?>{SCRIPT}',
    "a text area": f'<textarea><p class="</textarea>{SCRIPT}">',
    "a name cut by a NUL": f"<scr\0ipt>{RUN}</script>",
    "an element that nobody knows": f'<x-y onfocus="{RUN}" tabindex="1" autofocus>x</x-y>',
    "an open element": f'<p class="x" {SCRIPT}',
}
IN_THE_STYLE = {
    "a style sheet in the style": f"@import '{AWAY}';",
    "a picture in the style": f"body {{ background: url({AWAY}) }}",
    "a picture in the style, escaped": f"body {{ background: \\75rl({AWAY}) }}",
    "a picture of a set": f'body {{ background: image-set("{AWAY}" 1x) }}',
    "an expression": f"body {{ width: expression({RUN}); behavior: url(#x) }}",
    "the end of the style": f"</style>{SCRIPT}<style>",
    "a comment in the style": f"<!-- </style>{SCRIPT} -->",
}
Change = Callable[[str], bytes | str]
AROUND: dict[str, Change] = {
    "a script first": lambda page: SCRIPT + page,
    "a policy outside the head": lambda page: f"<body>{page}{SCRIPT}",
    "a comment first": lambda page: f"<!-->{SCRIPT}<!-- -->{page}",
    "a space first": lambda page: f" {page}",
    "a mark of the encoding first": lambda page: codecs.BOM_UTF8 + page.encode(),
    "UTF-16": lambda page: codecs.BOM_UTF16_LE + _late(page).encode("utf-16-le"),
    "UTF-16 without a mark": lambda page: _late(page).encode("utf-16-be"),
    "UTF-7": lambda page: page.replace("utf-8", "utf-7").replace("</main>", "+ADw-script+AD4-</main>"),
    "another encoding": lambda page: page.replace("utf-8", "iso-2022-jp", 1),
    "an escape of another encoding": lambda page: page.replace("<main", "\x1b$B<main", 1),
    "broken UTF-8": lambda page: page.encode().replace(b"</main>", b"\xff\xfe</main>"),
    "no policy": lambda page: page.replace(POLICY_LINE, '<meta name="x"', 1) + SCRIPT,
    "a looser policy": lambda page: page.replace("default-src", "script-src 'unsafe-inline'; default-src") + SCRIPT,
    "a policy that comes too late": lambda page: page.replace("<meta charset", f"{SCRIPT}<meta charset", 1),
    "a policy in a comment": lambda page: page.replace(POLICY_LINE, f"<!--{POLICY_LINE}", 1) + f"-->{SCRIPT}",
    "a policy where no script runs": lambda page: (
        page.replace(POLICY_LINE, f'<noscript><p class="{POLICY_LINE}', 1) + f'"></noscript>{SCRIPT}'
    ),
    "a policy in a title": lambda page: page.replace("<meta charset", f"<title>x</title>{SCRIPT}<meta charset", 1),
    "bytes after the end": lambda page: page + SCRIPT,
    "a NUL after the end": lambda page: page + "\0",
    "another kind of document": lambda page: page.replace("<!doctype html>", '<?xml version="1.0"?>', 1),
    "a title with more": lambda page: page.replace("</title>", f"</title>{SCRIPT}", 1),
    "no page at all": lambda page: b"",
}
# Doctored in their words alone, which are the signer's, as the verifier says.
HARMLESS: dict[str, Change] = {
    "other words": lambda page: page.replace("</main>", "<p>It is proven that nothing was read.</p></main>"),
    "a script as text": lambda page: page.replace("</main>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p></main>"),
    "an address as text": lambda page: page.replace("</main>", f'<p class="javascript:{RUN}">{AWAY}</p></main>'),
    "elements that do not close": lambda page: page.replace("</main>", '<table><svg><p></svg><td><a href="#x">'),
    "other colours": lambda page: page.replace("<style>", "<style>body { color: white }"),
}


def _late(page: str) -> str:
    return page.replace("<head>", f"<head>{SCRIPT}", 1)


HOSTILE: dict[str, Change] = {
    **{name: lambda page, item=item: page.replace("</main>", f"{item}</main>") for name, item in IN_THE_BODY.items()},
    **{
        name: lambda page, item=item: page.replace("<style>", f"<style>{item}", 1)
        for name, item in IN_THE_STYLE.items()
    },
    **AROUND,
}


@functools.cache
def honest() -> str:
    path = folder() / "page.zip"
    return bundled([gathered(audit(PRISM), folder() / "page")], path, page=True)["page.html"].decode()


def made(change: Change) -> bytes:
    page = change(honest())
    return page if isinstance(page, bytes) else page.encode()


def acted(browser: Any, address: str) -> list[str]:
    """What the page at an address ran, or asked for besides itself."""
    ran = [item["args"][0].get("value") for item in browser.told("Runtime.consoleAPICalled")]
    asked = [item["request"]["url"] for item in browser.told("Network.requestWillBeSent")]
    gone = [item["frame"]["url"] for item in browser.told("Page.frameNavigated")]
    return [str(item) for item in [*ran, *asked, *gone] if item not in (address, "about:srcdoc")]
