"""What Playwright knows of an element only while it is in the page; a test fails where it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Locator


def box_of(element: Locator) -> FloatRect:
    box = element.bounding_box()
    assert box is not None, f"{element} is not drawn"
    return box


def text_of(element: Locator) -> str:
    text = element.text_content()
    assert text is not None, f"{element} has no text"
    return text


def label_of(element: Locator) -> str:
    label = element.get_attribute("aria-label")
    assert label is not None, f"{element} has no label"
    return label
