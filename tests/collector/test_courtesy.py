from __future__ import annotations

import threading

from hansard_collector.pipeline.group_commit import Courtesy


def test_nobody_is_waited_for_when_nobody_waits() -> None:
    assert Courtesy().give_way() == 0.0


def test_the_pipeline_goes_on_as_soon_as_the_answer_is_given() -> None:
    courtesy = Courtesy()
    courtesy.ask()
    courtesy.ask()
    courtesy.release()
    began = threading.Event()
    gave: list[float] = []

    def work() -> None:
        began.set()
        gave.append(courtesy.give_way())

    thread = threading.Thread(target=work)
    thread.start()
    began.wait()
    courtesy.release()
    thread.join(timeout=10)

    assert not thread.is_alive()
    assert gave[0] < 0.05


def test_at_most_half_of_the_time_is_given_away() -> None:
    times = iter([10.0, 10.05, 10.06, 10.09, 10.11, 10.16])
    courtesy = Courtesy(clock=lambda: next(times))
    courtesy.ask()

    gave = [round(courtesy.give_way(), 3) for _ in range(4)]

    assert gave == [0.05, 0.0, 0.0, 0.05]
