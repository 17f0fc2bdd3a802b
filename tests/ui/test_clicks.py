"""A callback goes to its end, also where Streamlit drops it for a newer message."""

from __future__ import annotations

import pytest
from streamlit.runtime.scriptrunner import RerunData, RerunException, StopException

from specviz.ui.clicks import whole


def test_a_callback_that_is_cut_short_begins_anew_and_the_newer_message_follows() -> None:
    done, newer = [], [RerunException(RerunData(query_string="newer"))]

    @whole
    def click(what: str, *, times: int) -> None:
        if newer:
            raise newer.pop()
        done.append((what, times))

    with pytest.raises(RerunException) as told:
        click("run", times=1)
    assert done == [("run", 1)] and told.value.rerun_data.query_string == "newer"
    click("run", times=2)
    assert done == [("run", 1), ("run", 2)], "nothing follows where nothing came"


@pytest.mark.parametrize("end", [StopException(), KeyError("a fault of ours")])
def test_the_end_of_the_session_and_a_fault_end_it(end: BaseException) -> None:
    times = []

    @whole
    def click() -> None:
        times.append(1)
        raise end

    with pytest.raises(type(end)):
        click()
    assert times == [1]
