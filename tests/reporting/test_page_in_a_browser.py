"""The page in a real browser: no error, filters, sorts, compares, links, fits a phone, follows a dark system."""

from __future__ import annotations

import shutil

import made_up
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nonmember.reports.audit_page.write import write_page
from nonmember.reports.index_page.write import write_index

selenium = pytest.importorskip("selenium", reason="selenium is not installed")
from selenium import webdriver  # noqa: E402
from selenium.common.exceptions import WebDriverException  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000")


@pytest.fixture(scope="module")
def browser():
    driver, binary = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
    if not driver or not binary:
        pytest.skip("no chromium with chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    except WebDriverException as error:
        pytest.skip(f"the browser does not start: {error.msg}")
    yield started
    started.quit()


def opened(browser, address):
    """The browser, with the page at this address loaded and its script run: on a busy machine `get` returns before."""
    loaded = "return document.readyState === 'complete' && location.href.startsWith(arguments[0])"
    browser.get("about:blank")
    browser.get(address)
    WebDriverWait(browser, 30).until(lambda _: browser.execute_script(loaded, address.partition("#")[0]))
    return browser


def set_screen(browser, width, height, scheme="light"):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@pytest.fixture(scope="module")
def audits(tmp_path_factory):
    """A folder with an index: three of a sweep over lambda with pages, and one with warnings and many documents."""
    folder = tmp_path_factory.mktemp("audits")
    values = zip((0.1, 0.3, 0.9), (0.1, 0.3, 0.2), strict=True)
    swept = [made_up.result(settings={"distillation": {"lambda_": x}}, statistic=y, ci_low=y - 0.1) for x, y in values]
    gate = {"value": -0.061962, "bound": 0.35, "upper": True, "passed": True}
    other = made_up.result(target="a target", warnings=("careful",), details={"gates": {"nll_third": gate}})
    made_up.write(folder, *swept, other)
    rng = np.random.default_rng(0)
    scores = {"doc_id": [f"d{number}" for number in range(60)], "target": rng.permutation(60) / 7}
    for path in sorted(folder.rglob("result.json")):
        pq.write_table(pa.table(scores), path.with_name("scores.parquet"))
        write_page(path.parent)
    write_index(folder)
    return folder


def texts(browser, selector):
    script = "return [...document.querySelectorAll(arguments[0])].map((item) => item.textContent.trim())"
    return browser.execute_script(script, selector)


def fits(browser, width):
    root = "document.documentElement"
    needed, given = browser.execute_script(f"return [{root}.scrollWidth, {root}.clientWidth]")
    return needed <= given <= width


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_the_documents_of_an_audit(browser, audits, width):
    """Sorted, searched, paged through; no number is broken in two; at a desk the picture stands beside the answer."""
    set_screen(browser, width, 844)
    browser.get_log("browser")
    opened(browser, (audits / "table2/0003/audit.html").as_uri())
    assert texts(browser, "output") == ["60 of 60 documents"]
    assert texts(browser, ".documents tbody th") == [f"d{number}" for number in range(25)]
    following = browser.find_elements(By.CSS_SELECTOR, ".pages button")[1]
    browser.execute_script("arguments[0].click(); arguments[0].click()", following)
    assert texts(browser, ".documents tbody th") == [f"d{number}" for number in range(50, 60)]
    assert not following.is_enabled()
    header = browser.find_element(By.CSS_SELECTOR, ".documents thead th:nth-child(2) button")
    browser.execute_script("arguments[0].click(); arguments[0].click()", header)
    assert texts(browser, ".documents tbody td")[:3] == ["8.4286", "8.2857", "8.1429"]
    browser.find_element(By.CSS_SELECTOR, "input[type=search]").send_keys("d5")
    assert texts(browser, "output") == ["11 of 60 documents"]
    assert fits(browser, width)
    heights = browser.execute_script("""
        return [...document.querySelectorAll("td.number, dl.first dd")].map((cell) => {
            const range = document.createRange();
            range.selectNodeContents(cell.firstChild);
            return range.getClientRects().length;
        });
    """)
    assert set(heights) == {1}
    answer, picture = (browser.find_element(By.CSS_SELECTOR, item).rect for item in (".answer", "header figure svg"))
    assert (picture["x"] > answer["x"] + 400) == (width == 1280)
    assert browser.get_log("browser") == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_the_index_of_audits(browser, audits, width):
    set_screen(browser, width, 844)
    browser.get_log("browser")
    opened(browser, (audits / "index.html").as_uri())
    assert texts(browser, "output") == ["4 of 4 audits"]
    assert len(texts(browser, ".audits tbody tr")) == 4
    header = browser.find_element(By.CSS_SELECTOR, ".audits thead th:nth-child(5) button")
    browser.execute_script("arguments[0].click()", header)
    shown = [text.removesuffix("Delta") for text in texts(browser, ".audits tbody td:nth-child(5)")]
    assert shown == ["+0.100", "+0.200", "+0.250", "+0.300"]
    assert fits(browser, width)
    browser.find_element(By.CSS_SELECTOR, "input[type=search]").send_keys("target table2")
    assert texts(browser, "output") == ["4 of 4 audits"]
    browser.find_element(By.CSS_SELECTOR, "input[type=search]").send_keys(" 0001")
    assert texts(browser, "output") == ["1 of 4 audits"]
    browser.execute_script("arguments[0].click()", browser.find_element(By.CSS_SELECTOR, ".audits a"))
    WebDriverWait(browser, 30).until(lambda _: browser.current_url.endswith("/table2/0001/audit.html"))
    assert browser.get_log("browser") == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_the_index_compares(browser, audits, width):
    """What differs stands side by side, and the statistic is drawn over what was swept."""
    set_screen(browser, width, 844)
    browser.get_log("browser")
    opened(browser, (audits / "index.html").as_uri())
    boxes = browser.find_elements(By.CSS_SELECTOR, ".audits tbody input")
    for box in boxes[:3]:
        browser.execute_script("arguments[0].click()", box)
    assert texts(browser, "#compare h3") == ["3 audits, 3 settings and results differ"]
    assert texts(browser, "#compare thead th") == ["", "Delta", "interval", "settings.distillation.lambda_"]
    assert texts(browser, "#compare tbody td:last-child") == ["0.1", "0.3", "0.9"]
    assert texts(browser, "#compare figcaption") == ["Delta by lambda"]
    assert len(browser.find_elements(By.CSS_SELECTOR, "#compare circle")) == 3
    xs = [float(dot.get_attribute("cx")) for dot in browser.find_elements(By.CSS_SELECTOR, "#compare circle")]
    assert (xs[1] - xs[0]) / (xs[2] - xs[0]) == pytest.approx(0.25)
    assert fits(browser, width)
    browser.execute_script("arguments[0].click()", browser.find_element(By.CSS_SELECTOR, "#compare header button"))
    assert not browser.find_element(By.ID, "compare").is_displayed()
    assert browser.get_log("browser") == []


@pytest.mark.slow
def test_five_thousand_audits_are_searched_at_once(browser, tmp_path):
    made_up.write(tmp_path, *(made_up.result(seed=number, statistic=number / 5000) for number in range(5000)))
    opened(browser, write_index(tmp_path).path.as_uri())
    assert texts(browser, "output") == ["5,000 of 5,000 audits"]
    seconds = browser.execute_script("""
        const field = document.querySelector("input[type=search]"), start = performance.now();
        for (const text of ["t", "ta", "table2/0001", ""]) {
            field.value = text;
            field.dispatchEvent(new Event("input", {bubbles: true}));
        }
        document.querySelectorAll("thead button").forEach((button) => button.click());
        document.body.offsetHeight;
        return (performance.now() - start) / 1000;
    """)
    assert seconds < 2
