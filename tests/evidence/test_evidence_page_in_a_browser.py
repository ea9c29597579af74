"""The page of a bundle in a real browser: it fits a phone and a desk, fetches nothing, and answers the question."""

from __future__ import annotations

import time

import pytest
from chromium import started
from hostile_pages import HARMLESS, HOSTILE, acted, made
from made_up_audits import bundled, gathered
from made_up_questions import CLEARANCE, PRISM, READ, audit

from nonmember.reports.audit_page.write import POLICY
from nonmember_verify.page import problem_of

BOXES = """[...document.querySelectorAll("%s")].map((one) => {
    const box = one.getBoundingClientRect();
    return {text: one.innerText, left: box.left, right: box.right, height: box.height, shown: one.checkVisibility()};
})"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = started(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Of two audits: one with many pictures, one with many checks."""
    folder = tmp_path_factory.mktemp("bundle")
    audits = [
        gathered(audit(PRISM, target=READ), folder / "one"),
        gathered(audit(CLEARANCE, heldout=None), folder / "two"),
    ]
    path = folder / "page.html"
    path.write_bytes(bundled(audits, folder / "bundle.zip", page=True)["page.html"])
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_and_answers(browser, page, width, scheme):
    browser.show(width, scheme)
    browser.open(page.as_uri())
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    root = "document.documentElement"
    needed, given = browser.run(f"[{root}.scrollWidth, {root}.clientWidth]")
    assert needed <= given <= width, "no scrolling to the side"

    assert [item["request"]["url"] for item in browser.told("Network.requestWillBeSent")] == [page.as_uri()]
    assert browser.run("performance.getEntriesByType('resource').length") == 0
    assert browser.told("Log.entryAdded") == browser.told("Runtime.consoleAPICalled") == []
    assert browser.run("document.querySelector('meta[http-equiv=Content-Security-Policy]').content") == POLICY

    questions, answers = (browser.run(BOXES % item) for item in (".question", ".answer"))
    assert len(questions) == len(answers) == 2
    assert questions[0]["text"] == "Was suspect texts used to train reader?"
    for item in (*questions, *answers):
        assert item["shown"]
        assert item["text"].strip()
        assert item["height"] > 10
        assert 0 <= item["left"] <= item["right"] <= width
    assert browser.run("document.querySelectorAll('.checks li').length") > 20
    assert browser.run("document.querySelectorAll('figure svg').length") >= 5


def test_the_policy_of_the_page_stops_a_script_and_a_picture(browser, page, tmp_path):
    """Were they slipped in: the verifier says not to open such a page, and a browser runs and fetches nothing of it."""
    added = "<script>document.title = 'ran'</script><img src='http://127.0.0.1:9/seen.png'>"
    changed = tmp_path / "page.html"
    changed.write_text(page.read_text(encoding="utf-8").replace("</main>", f"{added}</main>"), encoding="utf-8")
    browser.open(changed.as_uri())
    assert browser.run("document.title") == "Evidence: 2 audits"
    refused = [item["entry"]["text"] for item in browser.told("Log.entryAdded")]
    assert any("script" in item and "Content Security Policy" in item for item in refused)
    assert any("seen.png" in item and "Content Security Policy" in item for item in refused)


@pytest.mark.slow
def test_a_page_that_acts_is_refused_and_one_that_is_not_refused_does_not_act(browser, tmp_path):
    """Doctored pages as they are, in the browser. Some must act, else nothing would be seen."""
    acting = set()
    for number, (name, change) in enumerate({**HOSTILE, **HARMLESS}.items()):
        path = tmp_path / f"{number}.html"
        path.write_bytes(made(change))
        browser.open(path.as_uri())
        time.sleep(0.05)  # for what begins when the page is there
        if acted(browser, path.as_uri()):
            acting.add(name)
    assert len(acting) >= 9
    assert all(problem_of(made({**HOSTILE, **HARMLESS}[name])) for name in acting)
