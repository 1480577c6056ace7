"""A conversation with confirmations, in words and with buttons."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

import hansard
from hansard._gate.pending import Waiting
from hansard.chat import PROMPT, Channel, ChatGate, Question, TextChannel, verdict_of
from hansard.errors import GateUnavailable
from tests.instrumentation.gating.gates import Desk

CREATED: list[str] = []


@hansard.tool(effect="write", name="create", describe="Create contact {name}")
def create(name: str) -> str:
    CREATED.append(name)
    if name == "nobody":
        raise LookupError("there is no such company")
    return name


@dataclass
class Agent:
    """Creates whoever is named after the word create; anything else it repeats."""

    call: Callable[[str, dict[str, Any]], Any] = lambda name, arguments: None
    heard: list[str] = field(default_factory=list)

    def __call__(self, message: str) -> str:
        self.heard.append(message)
        if not message.startswith("create "):
            return f"You said: {message}"
        for name in message.removeprefix("create ").split(" and "):
            self.call("create", {"name": name})
        return "I'd like to do that."


@dataclass
class Typed:
    """A person at a channel of text."""

    chat: ChatGate
    shown: list[str]

    def say(self, text: str) -> list[str]:
        before = len(self.shown)
        self.chat.handle(text, by="ana")
        return self.shown[before:]

    def answer(self, verdict: str) -> list[str]:
        return self.say(verdict)


@dataclass
class Buttons:
    """A channel with buttons: shows what waits, without a word of how to reply."""

    name: str = "buttons"
    shown: list[str] = field(default_factory=list)
    offered: list[str] = field(default_factory=list)

    def send(self, text: str) -> None:
        self.shown.append(text)

    def ask(self, question: Question) -> None:
        self.offered = [one["approval_id"] for one in question.actions]
        self.shown.append(f"{question.text}\n\n{question.actions[0]['description']}")


@dataclass
class Pressed(Typed):
    channel: Buttons = field(default_factory=Buttons)

    def answer(self, verdict: str) -> list[str]:
        before = len(self.shown)
        for identity in self.channel.offered:
            self.chat.press(identity, "yes" if verdict == "yes" else "no", by="ana")
        return self.shown[before:]


def chat_on(store: Desk, channel: Channel, **options: Any) -> tuple[ChatGate, Agent]:
    agent = Agent()
    chat = ChatGate(channel, agent=agent, tools=[create], decisions=store.decisions, **options)
    agent.call = chat.gate.call
    return chat, agent


def typed(store: Desk, **options: Any) -> Typed:
    shown: list[str] = []
    return Typed(chat_on(store, TextChannel("chat", shown.append), **options)[0], shown)


@pytest.fixture(params=["words", "buttons"])
def person(request: pytest.FixtureRequest, store: Desk) -> Typed:
    if request.param == "words":
        return typed(store)
    channel = Buttons()
    return Pressed(chat_on(store, channel)[0], channel.shown, channel)


@pytest.fixture(autouse=True)
def nobody_created() -> None:
    CREATED.clear()


def heard(person: Typed) -> list[str]:
    found: list[str] = person.chat._agent.heard  # type: ignore[attr-defined]
    return found


# ---- the same in words and with buttons


@pytest.mark.covers("CG-12", "CG-15", "CG-24", "CF-33", "CF-32")
def test_yes_runs_what_waits_without_the_agent(person: Typed, store: Desk) -> None:
    [asked] = person.say("create Maria")
    assert asked.startswith("I'd like to do that.\n\nCreate contact Maria")
    assert CREATED == []

    assert person.answer("yes") == ["Done! Create contact Maria."]
    assert (CREATED, heard(person)) == (["Maria"], ["create Maria"])
    assert person.chat.pending() == []


def test_yes_is_not_of_a_draft_that_was_not_shown(person: Typed, store: Desk) -> None:
    person.say("create Maria")
    [waiting] = person.chat.pending()
    store.store.revise(waiting["approval_id"], by="bo", note="another one")
    store.store.repropose(waiting["approval_id"], {"name": "Eve"})

    again = person.answer("yes")
    created = list(CREATED)

    assert created == []
    assert "something new, which was not shown yet" in again[0]
    assert person.answer("yes") == ["Done! create(name: Eve)."]


@pytest.mark.covers("CG-13", "CF-33")
def test_no_cancels(person: Typed) -> None:
    person.say("create Maria")

    assert person.answer("no") == ["Cancelled."]
    assert person.answer("no") != ["Cancelled."]
    assert CREATED == []


@pytest.mark.covers("CG-14", "CF-33", "TS-26")
def test_anything_else_cancels_and_is_answered_as_usual(person: Typed) -> None:
    person.say("create Maria")

    assert person.say("actually, show me my pipeline") == [
        "Cancelled: Create contact Maria.",
        "You said: actually, show me my pipeline",
    ]
    assert (CREATED, person.chat.pending()) == ([], [])


@pytest.mark.covers("CG-10", "CF-33")
def test_a_newer_action_takes_the_place_of_the_one_that_waits(person: Typed, store: Desk) -> None:
    person.say("create Maria and Ann")

    [waiting] = person.chat.pending()
    assert waiting["arguments"] == {"name": "Ann"}
    first = store.store.approvals()[-1]
    assert (first.status, first.reason) == ("rejected", "superseded")
    person.answer("yes")
    assert CREATED == ["Ann"]


@pytest.mark.covers("CG-11", "CF-33")
def test_after_five_minutes_nothing_waits_any_more(person: Typed, store: Desk) -> None:
    person.say("create Maria")
    store.pass_time(299)
    assert len(person.chat.pending()) == 1
    store.pass_time(2)

    late = "Create contact Maria was not run: it is expired."
    assert person.answer("yes") in (["You said: yes"], [late])
    assert CREATED == []


@pytest.mark.covers("CG-11")
@pytest.mark.parametrize("expires_s", [60, 900])
def test_another_time_to_answer_is_kept_to(store: Desk, expires_s: int) -> None:
    person = typed(store, expires_in_s=expires_s)
    person.say("create Maria")
    store.pass_time(expires_s - 1)
    assert person.answer("yes") == ["Done! Create contact Maria."]

    person.say("create Noor")
    store.pass_time(expires_s + 1)
    assert person.chat.pending() == []
    person.answer("yes")
    assert CREATED == ["Maria"]


def test_after_a_clock_was_set_back_nothing_waits_any_more(person: Typed, store: Desk) -> None:
    person.say("create Maria")
    store.pass_time(-3_600)

    late = "Create contact Maria was not run: it is expired."
    assert person.answer("yes") in (["You said: yes"], [late])
    assert CREATED == []


def test_yes_to_what_was_rejected_in_between_says_so(store: Desk) -> None:
    @hansard.tool(effect="write", name="merge", describe="Merge {name}")
    def merge(name: str) -> None:
        for other in chat.pending():
            store.store.reject(other["approval_id"], by="bob")

    def agent(message: str) -> str:
        for name in ("Ann", "Bob"):
            chat.gate.call("merge", {"name": name})
        return "Two of them."

    shown: list[str] = []
    channel = TextChannel("chat", shown.append)
    chat = ChatGate(channel, agent=agent, tools=[merge], decisions=store.decisions, batch=True)
    chat.handle("Merge Ann and Bob")
    chat.handle("yes", by="ana")

    assert shown[1] == "Done! Merge Ann."
    assert shown[2].startswith("Merge Bob was not run: ")
    assert "rejected already, by bob" in shown[2]


def test_no_that_comes_after_somebody_else_approved_says_so(store: Desk) -> None:
    channel = Buttons()
    person = Pressed(chat_on(store, channel)[0], channel.shown, channel)
    person.say("create Maria")
    store.store.approve(channel.offered[0], by="bob")

    assert person.answer("no") == ["Create contact Maria was not cancelled: it is approved."]
    assert person.answer("yes") == []


@pytest.mark.covers("CG-24")
def test_an_error_of_the_tool_is_told(person: Typed) -> None:
    person.say("create nobody")

    assert person.answer("yes") == [
        "Create contact nobody failed: LookupError: there is no such company"
    ]
    assert person.chat.pending() == []


# ---- words


@pytest.mark.parametrize(
    ("reply", "meaning"),
    [
        ("yes", "yes"), (" Y ", "yes"), ("YES\n", "yes"), ("n", "no"), ("No ", "no"),
        ("yes!", "other"), ("yes please", "other"), ("yep", "other"), ("", "other"),
        ("ye s", "other"), ("not yes", "other"), ("no, yes", "other"), ("1", "other"),
        ("true", "other"), ("approved", "other"),
    ],
)  # fmt: skip
@pytest.mark.covers("CG-12", "CG-13")
def test_only_the_words_themselves_decide(reply: str, meaning: str) -> None:
    assert verdict_of(reply) == meaning


@pytest.mark.covers("CG-23")
def test_the_prompt_is_the_handlers_and_not_the_models(store: Desk) -> None:
    [asked] = typed(store).say("create Maria")

    assert asked == f"I'd like to do that.\n\nCreate contact Maria\n{PROMPT}"
    assert PROMPT == '-- reply "yes" to confirm or "no" to cancel.'


@pytest.mark.covers("CG-16", "TS-26")
@pytest.mark.parametrize("is_same", [True, False], ids=["one process", "two processes"])
def test_yes_delivered_twice_at_once_runs_once(store: Desk, is_same: bool) -> None:
    person = typed(store)
    person.say("create Maria")
    other, _ = chat_on(store, TextChannel("chat", person.shown.append))
    again = person.chat if is_same else other
    together = threading.Barrier(2)

    def deliver(chat: ChatGate) -> None:
        together.wait(10)
        chat.handle("yes", by="ana")

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(deliver, [person.chat, again]))

    assert CREATED == ["Maria"]
    assert person.shown.count("Done! Create contact Maria.") == 1


@pytest.mark.covers("CG-18")
def test_after_a_restart_yes_still_runs_it(store: Desk) -> None:
    typed(store).say("create Maria")
    person = typed(store)
    person.chat.gate.waiting = Waiting()

    assert person.say("yes") == ["Done! Create contact Maria."]
    assert CREATED == ["Maria"]


def test_what_was_approved_elsewhere_is_run_and_told(store: Desk) -> None:
    person = typed(store)
    person.say("create Maria")
    [waiting] = person.chat.pending()
    store.store.approve(waiting["approval_id"], by="bob")

    person.chat.resume()
    person.chat.resume()

    assert person.shown[-1] == "Done! Create contact Maria."
    assert CREATED == ["Maria"]


def test_what_was_never_shown_is_not_confirmed_by_a_yes(store: Desk) -> None:
    person = typed(store)
    person.say("create Maria")
    person.chat.gate.call("create", {"name": "Mallory"})  # behind the person's back

    [asked] = person.say("yes")
    assert asked.startswith("There is something new, which was not shown yet.\n\nCreate contact M")
    assert CREATED == []
    person.say("yes")
    assert CREATED == ["Mallory"]


def test_a_question_that_could_not_be_sent_was_not_shown(store: Desk) -> None:
    person = typed(store)
    assert isinstance(person.chat.channel, TextChannel)
    person.chat.channel.write = offline
    with pytest.raises(ConnectionError):
        person.say("create Maria")
    person.chat.channel.write = person.shown.append

    [asked] = person.say("yes")

    assert asked.startswith("There is something new, which was not shown yet.\n\nCreate contact M")
    assert CREATED == []
    assert person.say("yes") == ["Done! Create contact Maria."]


def test_an_action_whose_question_was_not_saved_was_not_shown(store: Desk) -> None:
    shown: list[str] = []
    chat, agent = chat_on(store, TextChannel("chat", shown.append))
    connection = store.store._connections.get()

    def propose_on_a_disk_that_fills(name: str, arguments: dict[str, Any]) -> None:
        chat.gate.call(name, arguments)
        connection.pragma("query_only", value=True)

    agent.call = propose_on_a_disk_that_fills
    chat.handle("create Maria")
    connection.pragma("query_only", value=False)
    chat.handle("yes")

    assert shown[0].startswith("Nothing was done: ")
    assert "Create contact Maria" in shown[1]
    assert CREATED == []


def offline(text: str) -> None:
    raise ConnectionError("the messenger does not answer")


def test_two_channels_do_not_answer_for_each_other(store: Desk) -> None:
    person = typed(store)
    shown: list[str] = []
    other, _ = chat_on(store, TextChannel("other", shown.append))
    person.say("create Maria")

    other.handle("yes")

    assert (CREATED, shown, len(person.chat.pending())) == ([], ["You said: yes"], 1)


@pytest.mark.covers("CG-27")
def test_several_writes_are_confirmed_together_and_can_be_taken_off_the_list(store: Desk) -> None:
    person = typed(store, batch=True)
    [asked] = person.say("create Ann and Bob and Cleo and Dan and Eve")
    names = ["Ann", "Bob", "Cleo", "Dan", "Eve"]
    lines = [f"{number}. Create contact {one}" for number, one in enumerate(names, 1)]
    assert all(line in asked for line in lines)

    [asked] = person.say("remove 2, 4")
    assert "2. Create contact Cleo" in asked
    assert "Bob" not in asked
    assert person.say("y") == [f"Done! Create contact {one}." for one in ("Ann", "Cleo", "Eve")]
    assert CREATED == ["Ann", "Cleo", "Eve"]


def test_a_batch_can_be_cancelled_whole_and_ends_when_all_is_taken_off(store: Desk) -> None:
    person = typed(store, batch=True)
    person.say("create Ann and Bob")
    assert person.say("without 1 2") == ["Cancelled."]
    person.say("create Ann and Bob")
    assert person.say("n") == ["Cancelled."]
    person.say("create Ann and Bob")
    assert person.say("remove 7")[-1] == "You said: remove 7"

    assert CREATED == []


# ---- evaluation


@pytest.mark.covers("CG-19", "CG-20", "TS-26")
def test_an_answer_that_asks_is_not_judged_and_every_other_is(store: Desk) -> None:
    judged: list[str] = []

    def judge(message: str, answer: str) -> bool:
        judged.append(message)
        return True

    person = typed(store, evaluator=judge)
    person.say("create Maria")
    assert judged == []
    person.say("I should probably create somebody")

    assert judged == ["I should probably create somebody"]


def test_an_answer_that_is_not_good_is_asked_for_once_more(store: Desk) -> None:
    person = typed(store, evaluator=lambda message, answer: False)
    person.say("hello")

    assert heard(person) == ["hello", "hello"]


@pytest.mark.covers("CG-22", "TS-26")
def test_a_broken_evaluator_lets_the_answer_pass_and_is_an_event(store: Desk) -> None:
    def judge(message: str, answer: str) -> bool:
        raise RuntimeError("no model")

    person = typed(store, evaluator=judge)

    assert person.say("hello") == ["You said: hello"]
    assert "failure evaluator" in store.events()


# ---- fail closed


@pytest.mark.covers("CG-21", "TS-26")
def test_where_nothing_can_be_saved_the_person_is_told_and_nothing_runs(store: Desk) -> None:
    person = typed(store)
    person.say("create Maria")
    store.store._connections.get().pragma("query_only", value=True)

    for message in ("yes", "create Ann", "hello"):
        [told] = person.say(message)
        assert told.startswith("Nothing was done: ")
    with pytest.raises(GateUnavailable):
        person.chat.gate.call("create", {"name": "Ann"})

    assert CREATED == []


def test_messages_are_events_without_their_text(store: Desk) -> None:
    person = typed(store)
    person.say("create Maria")
    person.say("yes")

    assert [one for one in store.events() if one.startswith("message")] == [
        "message.inbound receive",
        "message.outbound send",
        "message.inbound receive",
        "message.outbound send",
    ]
    told = store.store.events(limit=500)
    assert not [one for one in told if one.type.startswith("message") and "Maria" in one.body]
