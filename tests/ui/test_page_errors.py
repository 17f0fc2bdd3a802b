"""What a page cannot draw is an error on it with a remedy, not a traceback."""

from __future__ import annotations

import pytest

from specviz.core.errors import SettingsError
from specviz.ui import page


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (SettingsError("There is no home.", "Set SPECVIZ_CACHE."), "Set SPECVIZ\\_CACHE"),
        (PermissionError(13, "Permission denied", "/locked"), "/locked"),
    ],
)
def test_an_error_while_a_page_is_drawn_is_shown(error: Exception, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(page, "show_error", shown.append)

    @page.says_errors
    def show() -> None:
        raise error

    show()
    assert len(shown) == 1 and says in shown[0] and "bug" not in shown[0]
