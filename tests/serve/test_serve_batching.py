"""Sentences of many requests share batches; nobody is lost, mixed up or kept waiting in vain."""

import threading
import time
from collections.abc import Sequence

import pytest

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.result import Translation
from pellucid.serve.batching import Batcher, EngineError, Job, LoneWork, Outcome, Ticket
from pellucid.serve.metrics import Metrics
from pellucid.serve.server.errors import OverloadedError, UnavailableError

GREEDY = DecodingConfig(beam_size=1)
WIDE = DecodingConfig(beam_size=4)
LATER = 1e9


def said(text: str) -> Translation:
    return Translation(text.upper(), 0.0, (), (), (), text)


class Engine:
    """Counts what it is given; waits at a gate between the steps of each text that says so."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.steps = 0
        self.gate = threading.Event()
        self.at_gate = threading.Event()

    def __call__(self, texts, settings, watcher) -> list[Translation]:
        self.batches.append(texts)
        for length in range(3):
            watcher.before_step(length)
            self.steps += 1
            if "wait" in texts and length == 0:
                self.at_gate.set()
                assert self.gate.wait(30)
        if "bad" in texts:
            raise RuntimeError("/secret/path and the words of a user")
        return [said(text) for text in texts]


class Client:
    """Somebody who waits for answers."""

    def __init__(self) -> None:
        self.answers: dict[int, Outcome] = {}
        self.arrived = threading.Condition()

    def deliver(self, outcomes: Sequence[tuple[int, Outcome]]) -> None:
        with self.arrived:
            for index, outcome in outcomes:
                assert index not in self.answers
                self.answers[index] = outcome
            self.arrived.notify_all()

    def wait(self, count: int) -> list[Outcome]:
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.answers) >= count, 30)
        return [self.answers[index] for index in sorted(self.answers)]


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def make(engine: Engine):
    made: list[Batcher] = []

    def make(**options) -> Batcher:
        sizes = {"max_queue": 8, "max_batch": 8, "batch_tokens": 1000, **options}
        made.append(Batcher(engine, Metrics(), **sizes))
        made[-1].start()
        return made[-1]

    yield make
    engine.gate.set()
    for each in made:
        each.stop()
        assert each.join(30)


def ask(
    batcher: Batcher,
    *texts: str,
    settings: DecodingConfig | LoneWork = GREEDY,
    tokens: int = 3,
    deadline: float = LATER,
) -> tuple[Client, Ticket]:
    client = Client()
    jobs = [Job(index, text, tokens, settings) for index, text in enumerate(texts)]
    ticket = Ticket(jobs, deadline, client.deliver)
    batcher.submit(ticket)
    return client, ticket


def hold(batcher: Batcher, engine: Engine, **options) -> tuple[Client, Ticket]:
    """Have the engine stand still in the middle of a batch."""
    held = ask(batcher, "wait", **options)
    assert engine.at_gate.wait(30)
    return held


def test_what_arrives_while_the_model_is_busy_is_translated_together(make, engine: Engine):
    batcher = make()
    hold(batcher, engine)
    clients = [ask(batcher, name)[0] for name in "abc"]
    engine.gate.set()
    assert [client.wait(1)[0].text for client in clients] == ["A", "B", "C"]
    assert engine.batches == [["wait"], ["a", "b", "c"]]


def test_a_request_of_many_sentences_gives_one_in_its_turn(make, engine: Engine):
    batcher = make(max_batch=3)
    hold(batcher, engine)
    many, _ = ask(batcher, "a", "b", "c", "d")
    one, _ = ask(batcher, "x")
    engine.gate.set()
    assert one.wait(1)[0].text == "X"
    assert [each.text for each in many.wait(4)] == ["A", "B", "C", "D"]
    assert engine.batches[1] == ["a", "x", "b"]


def test_only_sentences_that_are_searched_alike_share_a_batch(make, engine: Engine):
    batcher = make()
    hold(batcher, engine)
    clients = [
        ask(batcher, n, settings=s)[0] for n, s in zip("abcd", [GREEDY, WIDE] * 2, strict=True)
    ]
    engine.gate.set()
    for client in clients:
        client.wait(1)
    assert engine.batches[1:] == [["a", "c"], ["b", "d"]]


def test_a_batch_keeps_to_its_tokens(make, engine: Engine):
    """Rows · beam · (longest + stop): 2 · 4 · 11 = 88 fit into 100, 3 · 4 · 11 = 132 do not."""
    batcher = make(batch_tokens=100)
    hold(batcher, engine)
    clients = [ask(batcher, name, settings=WIDE, tokens=10)[0] for name in "abc"]
    engine.gate.set()
    for client in clients:
        client.wait(1)
    assert engine.batches[1:] == [["a", "b"], ["c"]]


def test_a_full_queue_refuses_one_more(make, engine: Engine):
    batcher = make(max_queue=2)
    hold(batcher, engine)
    kept = [ask(batcher, name)[0] for name in "ab"]
    with pytest.raises(OverloadedError, match=r"^2 requests are waiting; try again later$"):
        ask(batcher, "c")
    engine.gate.set()
    assert [client.wait(1)[0].text for client in kept] == ["A", "B"]


def test_a_slow_model_has_a_shorter_queue(make, monkeypatch):
    """No more requests wait than can be answered in time; the queue grows again with the pace."""
    batcher = make(max_queue=100, max_batch=2, max_queue_seconds=20.0)
    now = [0.0]
    monkeypatch.setattr("pellucid.serve.batching.time.monotonic", lambda: now[0])
    seconds = 4.0

    def translate(texts, _settings, _watcher) -> list[Translation]:
        now[0] += seconds
        return [said(text) for text in texts]

    def run(waiting: int, settings: DecodingConfig | LoneWork = GREEDY, size: int = 2) -> None:
        """Run one batch of requests, of which others wait for the end."""
        tickets = [Ticket([Job(0, "a", 1, settings)], LATER, Client().deliver) for _ in range(size)]
        batcher._queue.extend(tickets[:1] * waiting)
        batcher._run([(ticket, ticket.waiting[0]) for ticket in tickets])
        batcher._queue.clear()

    def walk(_watcher: SearchWatcher) -> str:
        now[0] += 0.001
        return "walked"

    batcher.stop()
    batcher.join(30)
    batcher.translate = translate
    assert batcher.room == 100
    run(waiting=0)
    assert batcher.room == 100, "a lone batch says nothing of the pace under load"
    run(waiting=1)
    assert batcher.room == 10, "2 seconds each, in 20 seconds"
    run(waiting=1, settings=walk, size=1)
    assert batcher.room == 10, "a walk says nothing of translations"
    seconds = 40.0
    run(waiting=1)
    assert batcher.room == 8, "never fewer"
    seconds = 0.002
    for _ in range(30):
        run(waiting=0)
    assert batcher.room == 100


def test_who_leaves_the_queue_makes_room_at_once(make, engine: Engine):
    batcher = make(max_queue=1)
    hold(batcher, engine)
    gone, ticket = ask(batcher, "gone")
    batcher.leave(ticket)
    stays, _ = ask(batcher, "stays")
    engine.gate.set()
    assert stays.wait(1)[0].text == "STAYS"
    assert not gone.answers
    assert ["gone"] not in engine.batches


def test_a_running_batch_stops_before_its_next_step_when_all_have_left(make, engine: Engine):
    """H9: at most one step after the client is gone."""
    batcher = make()
    gone, ticket = hold(batcher, engine)
    batcher.leave(ticket)
    engine.gate.set()
    assert ask(batcher, "next")[0].wait(1)[0].text == "NEXT"
    assert engine.steps == 1 + 3
    assert not gone.answers


def test_a_running_batch_goes_on_while_one_client_waits(make, engine: Engine):
    batcher = make(wait_seconds=5.0, max_batch=2)
    _, ticket = ask(batcher, "wait")
    stays, _ = ask(batcher, "b")
    assert engine.at_gate.wait(30)
    assert engine.batches == [["wait", "b"]]
    batcher.leave(ticket)
    engine.gate.set()
    assert stays.wait(1)[0].text == "B"


def test_what_is_too_late_is_neither_begun_nor_gone_on_with(make, engine: Engine):
    batcher = make()
    hold(batcher, engine, deadline=time.monotonic() + 0.01)
    late, _ = ask(batcher, "late", deadline=time.monotonic() - 1)
    while time.monotonic() < batcher._ticked + 0.05:
        time.sleep(0.01)
    engine.gate.set()
    assert ask(batcher, "next")[0].wait(1)[0].text == "NEXT"
    assert engine.batches == [["wait"], ["next"]]
    assert engine.steps == 1 + 3
    assert not late.answers


def test_only_the_guilty_sentence_of_a_batch_fails(make, engine: Engine, caplog):
    """H8: the engine goes on; neither log nor answer has the words of the exception."""
    batcher = make()
    hold(batcher, engine)
    clients = [ask(batcher, name)[0] for name in ("a", "bad", "c")]
    engine.gate.set()
    first, bad, last = [client.wait(1)[0] for client in clients]
    assert (first.text, last.text) == ("A", "C")
    assert isinstance(bad, EngineError)
    assert str(bad) == "the model failed on this text"
    assert "secret" not in caplog.text
    assert "RuntimeError at" in caplog.text
    assert ask(batcher, "next")[0].wait(1)[0].text == "NEXT"


def test_short_sentences_pass_between_the_steps_of_a_long_batch(make, engine: Engine):
    """H15: they are answered while the long one is still being translated."""
    batcher = make()
    slow, _ = hold(batcher, engine, tokens=500)
    quick, _ = ask(batcher, "quick")
    also_long, _ = ask(batcher, "long", tokens=500)
    engine.gate.set()
    assert quick.wait(1)[0].text == "QUICK"
    slow.wait(1)
    also_long.wait(1)
    assert engine.batches == [["wait"], ["quick"], ["long"]]


def test_short_ones_are_answered_before_the_long_one_is(make):
    seen: list[str] = []
    quick_came = threading.Event()

    def engine(texts, settings, watcher) -> list[Translation]:
        for length in range(2):
            if texts == ["long"] and length == 1:
                assert quick_came.wait(30)
            watcher.before_step(length)
        seen.extend(texts)
        return [said(text) for text in texts]

    batcher = Batcher(engine, Metrics(), max_queue=8, max_batch=8, batch_tokens=1000)
    batcher.start()
    long, _ = ask(batcher, "long", tokens=500)
    while batcher._queue:
        time.sleep(0.001)
    quick, _ = ask(batcher, "quick")
    quick_came.set()
    long.wait(1)
    quick.wait(1)
    batcher.stop()
    assert batcher.join(30)
    assert seen == ["quick", "long"]


def test_other_work_is_done_between_two_batches(make, engine: Engine):
    batcher = make()
    hold(batcher, engine)
    client, _ = ask(batcher, "", settings=lambda _: threading.current_thread().name)
    failing, _ = ask(batcher, "", settings=lambda _: 1 / 0)
    engine.gate.set()
    assert client.wait(1) == ["pellucid-batcher"]
    assert isinstance(failing.wait(1)[0], EngineError)


def test_sentences_pass_between_the_steps_of_lone_work_and_other_lone_work_does_not(make):
    """Else each of a row of walks would run, and keep its memory, inside the one before it."""
    order: list[str] = []
    came = threading.Event()

    def engine(texts, settings, watcher) -> list[Translation]:
        watcher.before_step(0)
        order.extend(texts)
        return [said(text) for text in texts]

    def walk(watcher: SearchWatcher) -> str:
        assert came.wait(30)
        for length in range(3):
            watcher.before_step(length)
        order.append("walk")
        return "walked"

    batcher = Batcher(engine, Metrics(), max_queue=8, max_batch=8, batch_tokens=1000)
    batcher.start()
    walks = [ask(batcher, "", settings=walk)[0] for _ in range(2)]
    while len(batcher._queue) > 1:
        time.sleep(0.001)
    long, _ = ask(batcher, "long", tokens=500)
    short, _ = ask(batcher, "short")
    came.set()
    for client in (*walks, long, short):
        client.wait(1)
    batcher.stop()
    assert batcher.join(30)
    assert sorted(order[:2]) == ["long", "short"]
    assert order[2:] == ["walk", "walk"]


def test_lone_work_ends_before_its_next_step_when_its_client_has_left(make, engine: Engine):
    steps: list[int] = []
    begun, may_go_on = threading.Event(), threading.Event()

    def walk(watcher: SearchWatcher) -> None:
        for length in range(3):
            watcher.before_step(length)
            steps.append(length)
            begun.set()
            assert may_go_on.wait(30)

    batcher = make()
    gone, ticket = ask(batcher, "", settings=walk)
    assert begun.wait(30)
    batcher.leave(ticket)
    may_go_on.set()
    assert ask(batcher, "next")[0].wait(1)[0].text == "NEXT"
    assert steps == [0]
    assert not gone.answers


def test_stopping_refuses_what_waits_and_ends_what_runs(make, engine: Engine):
    batcher = make()
    running, _ = hold(batcher, engine)
    waiting, _ = ask(batcher, "a")
    batcher.stop()
    assert isinstance(waiting.wait(1)[0], UnavailableError)
    with pytest.raises(UnavailableError, match=r"^the server is stopping$"):
        ask(batcher, "b")
    engine.gate.set()
    assert running.wait(1)[0].text == "WAIT"


def test_a_thread_that_stands_still_is_noticed(make, engine: Engine):
    """H11: time since the last step grows while nothing moves, and only then."""
    batcher = make()
    hold(batcher, engine)
    first = batcher.seconds_since_tick()
    while batcher.seconds_since_tick() < first + 0.02:
        time.sleep(0.005)
    engine.gate.set()
    ask(batcher, "a")[0].wait(1)
    assert batcher.seconds_since_tick() < 20
