"""Pictures written small are the same pictures."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from nonmember.reports.render import figures
from nonmember.reports.render.figures import compact

LABEL = 'a d="M 1.23456 2" <!-- x="1.23456" -->'
NAMED = re.compile(r"#one-[^)]*")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def paint(canvas):
    axis = canvas.subplots()
    places = np.random.default_rng(1).normal(size=(2, 9))
    axis.scatter(*places, color=figures.colour(0), alpha=0.3, label=LABEL)
    axis.scatter([1, 2], [3, 1], color=[figures.colour(1), figures.colour(2)])
    axis.plot(*places)
    axis.set_ylabel("turned")
    axis.legend()


def seen(svg):
    """What a viewer paints, in its order: names, attributes with inherited style, texts; and all places."""
    things, places, ids = [], [], {}

    def visit(node, style):
        style = node.get("style") or style
        kept = {
            name: NAMED.sub(lambda item: ids.setdefault(item[0], str(len(ids))), value)
            for name, value in node.attrib.items()
            if name not in ("id", "style")
        }
        for name in {"d", "x", "y", "transform"} & kept.keys():
            numbers = NUMBER.findall(kept.pop(name))
            if name != "transform" or float(numbers[0]):  # a rotation by nothing
                places.extend(map(float, numbers))
        is_painted = node.tag.rpartition("}")[2] in ("path", "use", "text", "rect")
        things.append((node.tag, kept, style if is_painted else None, (node.text or "").strip()))
        for child in node:
            visit(child, style)

    root = ElementTree.fromstring(svg)
    visit(root, None)
    assert ids.keys() <= {f"#{node.get('id')}" for node in root.iter()}
    return things, np.array(places)


@pytest.mark.pictures
def test_the_same_things_are_painted_in_two_thirds_of_the_bytes(monkeypatch):
    """As matplotlib writes it, and compact."""
    small = figures.draw("one", 3, 2, paint)[0]
    monkeypatch.setattr(figures, "compact", lambda svg: svg)
    whole = figures.draw("one", 3, 2, paint)[0]
    (things, places), (small_things, small_places) = map(seen, (whole, small))
    assert small_things == things
    np.testing.assert_allclose(small_places, places, atol=0.005 + 1e-9)
    assert any(text == LABEL for *_, text in small_things)
    assert len(small) < 2 / 3 * len(whole)
    assert compact(small) == small
