"""The schedule of a webhook's requests, without threads, requests or a clock."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oh_jupyter.storage.webhook.changes import Failure, PendingChange, Request
from oh_jupyter.storage.webhook.lanes import MAX_REQUESTS, Lanes
from oh_jupyter.storage.webhook.scheduler import (
    MAX_PAUSE_SECONDS,
    PROBE_SECONDS,
    PathBarrier,
    Pause,
    RetryPolicy,
    after_failure,
    plan,
)

NOW = 1e9
DURABLE, TEMPORARY = RetryPolicy(durable=True), RetryPolicy(durable=False)
UNAVAILABLE = Failure("HTTP status 503")
SILENT = Failure("no response (Timeout)", answered=False)


def change(number, key, method="POST", **fields):
    return PendingChange(number, f"id.{number}", method, key, key, recorded=NOW, **fields)


def in_flight(*changes):
    return Request(changes[0].id, changes)


def sent(made):
    """Numbers of the changes that a plan sends: lanes of requests of changes."""
    return [[[each.number for each in request.changes] for request in lane] for lane in made.lanes]


def numbers(changes):
    return [each.number for each in changes]


def test_which_paths_block_which():
    blocked = PathBarrier(["a/b"])
    related = {key: key in blocked for key in ("a/b", "a", "", "a/b/c", "a/bc", "ab", "b")}
    assert [key for key, is_blocked in related.items() if is_blocked] == ["a/b", "a", "", "a/b/c"]
    assert "any/thing" in PathBarrier([""])


def test_nothing_is_sent_and_nothing_wakes_without_changes():
    made = plan([], NOW, DURABLE)
    assert (sent(made), made.wake_at, made.waiting_from) == ([], math.inf, math.inf)


def test_independent_paths_have_lanes_of_their_own():
    pending = [change(1, "a"), change(2, "b"), change(3, "a")]
    assert sent(plan(pending, NOW, DURABLE)) == [[[1], [3]], [[2]]]


def test_a_deletion_waits_for_the_files_below():
    pending = [change(1, "d/f"), change(2, "d", "DELETE"), change(3, "d/f"), change(4, "e")]
    made = plan(pending, NOW, DURABLE)
    assert sent(made) == [[[1]], [[4]]]
    assert (made.waits_for_response, made.waiting_from, made.wake_at) == (True, 2, math.inf)


def test_a_change_follows_the_request_in_flight_of_its_path():
    first = change(1, "f")
    made = plan([first, change(2, "f")], NOW, DURABLE, in_flight=[in_flight(first)])
    assert sent(made) == [[[2]]]
    assert not made.waits_for_response


def test_a_postponed_path_wakes_when_it_is_due_and_blocks_only_itself():
    pending = [change(1, "d/f", tries=1, due=NOW + 5), change(2, "d"), change(3, "e")]
    made = plan(pending, NOW, DURABLE)
    assert (sent(made), made.wake_at, made.waiting_from) == ([[[3]]], NOW + 5, 1)
    assert sent(plan(pending, NOW + 5, DURABLE)) == [[[1]], [[3]]]


def test_a_flush_skips_growing_pauses_and_not_the_seconds_between_tries():
    pending = [change(1, "a", rounds=1, due=NOW + 100), change(2, "b", tries=1, due=NOW + 1)]
    made = plan(pending, NOW, DURABLE, retry_now=True)
    assert (sent(made), made.wake_at, made.waiting_from) == ([[[1]]], NOW + 1, 2)


def test_a_flush_does_not_wait_for_growing_pauses():
    made = plan([change(1, "a", rounds=1, due=NOW + 100)], NOW, DURABLE)
    assert made.waiting_from == math.inf


@pytest.mark.parametrize("batch_bytes", [0, 100])
@pytest.mark.parametrize(("ours", "wake_at"), [(True, math.inf), (False, NOW + 1)])
def test_a_change_that_is_being_applied_blocks_its_path(ours, wake_at, batch_bytes):
    pending = [change(1, "f", applied=False, ours=ours), change(2, "f"), change(3, "g")]
    made = plan(pending, NOW, DURABLE, batch_bytes=batch_bytes)
    assert (sent(made), made.wake_at) == ([[[3]]], wake_at)


def test_of_a_postponed_path_the_last_change_takes_the_schedule():
    pending = [
        change(1, "f", rounds=2, attempts=6, due=NOW + 50, reason="HTTP status 503"),
        change(2, "f"),
        change(3, "f"),
    ]
    made = plan(pending, NOW, DURABLE)
    assert numbers(made.replaced) == [1, 2]
    (last,) = made.rescheduled
    assert (last.number, last.rounds, last.attempts, last.due) == (3, 2, 6, NOW + 50)
    assert (made.lanes, made.wake_at) == ([], NOW + 50)


def test_a_new_change_hastens_its_path():
    pending = [
        change(1, "f", rounds=3, due=NOW + 100),
        change(2, "f"),
        change(3, "g", rounds=3, due=NOW + 90),
    ]
    assert plan(pending, NOW, DURABLE).wake_at == NOW + 90
    made = plan(pending, NOW, DURABLE, fresh={2})
    assert made.wake_at == NOW + PROBE_SECONDS
    assert [(each.number, each.due) for each in made.rescheduled if each.number != 1] == [
        (2, NOW + PROBE_SECONDS)
    ]
    soon = [change(1, "f", rounds=3, due=NOW + 2), change(2, "f")]
    assert plan(soon, NOW, DURABLE, fresh={2}).wake_at == NOW + 2
    requested = Pause(NOW + 60, requested=True)
    assert plan(pending, NOW, DURABLE, fresh={2}, pause=requested).wake_at == NOW + 90


def test_a_pause_of_the_receiver_holds_everything():
    made = plan([change(1, "a"), change(2, "b")], NOW, DURABLE, pause=Pause(NOW + 7))
    assert (sent(made), made.wake_at) == ([], NOW + 7)


def test_a_new_change_is_tried_soon_after_the_last_request():
    pause, pending = Pause(NOW + 100, outages=3), [change(1, "a", rounds=3), change(2, "b")]
    made = plan(pending, NOW, DURABLE, pause=pause, fresh={2}, idle_seconds=4)
    assert (made.pause, made.lanes) == (Pause(NOW + PROBE_SECONDS - 4, outages=3), [])
    assert plan(pending, NOW, DURABLE, pause=pause, fresh={2}, idle_seconds=10).lanes
    assert plan(pending, NOW, DURABLE, pause=pause, retry_now=True).lanes
    assert plan(pending, NOW, DURABLE, pause=pause).pause == pause


def test_only_a_requested_pause_cannot_be_shortened():
    assert Pause(NOW + 60).shorten(NOW, NOW + 10).until == NOW + 10
    assert Pause(NOW + 60, requested=True).shorten(NOW, 0).until == NOW + 60
    assert Pause(NOW - 1, requested=True).shorten(NOW, 0) == Pause(0)


def test_a_batch_has_the_last_change_of_each_path():
    pending = [change(1, "d/x"), change(2, "d", "DELETE"), change(3, "d/x"), change(4, "e", size=9)]
    made = plan(pending, NOW, DURABLE, batch_bytes=100)
    assert (sent(made), numbers(made.replaced)) == ([[[2, 3, 4]]], [1])


def test_batches_are_split_by_size():
    pending = [change(n, f"{n}", size=40) for n in range(1, 6)]
    assert sent(plan(pending, NOW, DURABLE, batch_bytes=80)) == [[[1, 2]], [[3, 4]], [[5]]]


def test_a_tried_batch_stays_as_it_is():
    pending = [
        change(1, "a", batch="id.1", tries=1),
        change(2, "b", batch="id.1", tries=1),
        change(3, "a"),
        change(4, "c"),
    ]
    made = plan(pending, NOW, DURABLE, batch_bytes=100)
    assert (sent(made), made.waits_for_response) == ([[[1, 2]], [[4]]], True)
    assert made.lanes[0][0].id == "id.1"


def test_nothing_follows_a_batch_in_flight_that_has_one_of_its_paths():
    first = change(1, "a", batch="id.1")
    made = plan([first, change(2, "a")], NOW, DURABLE, in_flight=[in_flight(first)], batch_bytes=9)
    assert (sent(made), made.waits_for_response) == ([], True)


def test_beyond_the_limit_replaced_changes_go_first_and_the_newest_stays():
    pending = [change(n, f"{n % 3}", size=10) for n in range(6)]
    made = plan(pending, NOW, DURABLE, max_bytes=40)
    assert (numbers(made.replaced), numbers(made.dropped)) == ([0, 1, 2], [])
    made = plan(pending, NOW, DURABLE, max_bytes=20)
    assert (numbers(made.replaced), numbers(made.dropped)) == ([0, 1, 2], [3, 4])
    assert sent(made) == [[[5]]]
    writing = change(2, "f", size=10, applied=False)
    made = plan([change(1, "f", size=10), writing], NOW, DURABLE, max_bytes=15)
    assert (numbers(made.replaced), numbers(made.dropped)) == ([], [1])
    made = plan([change(1, "f", size=10)], NOW, DURABLE, max_bytes=1)
    assert (sent(made), made.dropped) == ([[[1]]], [])


def test_three_tries_then_a_pause_or_the_end():
    changes, pause = [change(1, "f")], Pause()
    for tries in (1, 2):
        changes, pause, is_final = after_failure(changes, UNAVAILABLE, pause, NOW, DURABLE)
        assert (changes[0].tries, changes[0].due, is_final) == (tries, NOW + 1, False)
    assert after_failure(changes, UNAVAILABLE, pause, NOW, TEMPORARY).is_final
    assert after_failure(changes, UNAVAILABLE, pause, NOW + 6 * 86400, DURABLE).is_final
    changes, pause, is_final = after_failure(changes, UNAVAILABLE, pause, NOW, DURABLE)
    (failed,) = changes
    assert (failed.tries, failed.attempts, failed.rounds, is_final) == (0, 3, 1, False)
    assert NOW + 4 <= failed.due <= NOW + 6
    assert pause == Pause()


def test_a_permanent_failure_is_final():
    failure = Failure("HTTP status 400", permanent=True, retry_after=60)
    assert after_failure([change(1, "f")], failure, Pause(), NOW, DURABLE)[1:] == (Pause(), True)


def test_a_receiver_that_is_silent_gets_a_pause_that_grows():
    pause = Pause()
    pauses = []
    changes = [change(1, "f", tries=2)]
    for _ in range(6):
        now = max(NOW, pause.until)
        retry = after_failure(changes, SILENT, pause, now, DURABLE)
        pause, changes = retry.pause, [each._replace(tries=2) for each in retry.changes]
        pauses.append(pause.until - now)
    assert pauses == sorted(pauses[:3]) + pauses[3:]
    assert 4 <= pauses[0] <= 6
    assert max(pauses) <= MAX_PAUSE_SECONDS
    assert after_failure([change(1, "f")], SILENT, Pause(), NOW, TEMPORARY).pause == Pause()


def test_retry_after_is_a_pause_for_all_of_two_minutes_at_most():
    failure = Failure("HTTP status 429", retry_after=86400)
    _, pause, _ = after_failure([change(1, "f")], failure, Pause(), NOW, TEMPORARY)
    assert pause == Pause(NOW + MAX_PAUSE_SECONDS, requested=True)


def test_lanes_are_sent_side_by_side_up_to_a_limit():
    lanes = Lanes()
    assert (bool(lanes), lanes.seconds_to_send(concurrent=True)) == (False, math.inf)
    made = plan([change(n, f"{n % 10}") for n in range(1, 21)], NOW, DURABLE)
    lanes.replace(made.lanes)
    for number in range(MAX_REQUESTS):
        assert lanes.seconds_to_send(concurrent=True) < 1
        assert lanes.open_from() == 1
        lane = lanes.next_lane()
        lanes.start(lane.popleft(), lane)
        assert lanes.seconds_to_send(concurrent=False) == math.inf
        assert len(lanes.in_flight) == number + 1
    assert lanes.seconds_to_send(concurrent=True) == math.inf
    lanes.in_flight.pop(next(iter(lanes.in_flight)))
    assert lanes.open_from() == 2
    lanes.clear()
    assert lanes
    assert lanes.seconds_to_send(concurrent=True) == math.inf


KEYS = ["a", "a/b", "a/b/c", "d", "d/e", "f", ""]


@st.composite
def queues(draw):
    """Pending changes in any state, some of them in flight, and the receiver's pause."""
    pending = []
    for number in range(1, draw(st.integers(0, 12)) + 1):
        rounds, tries = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        pending.append(
            change(
                number,
                draw(st.sampled_from(KEYS)),
                draw(st.sampled_from(["POST", "DELETE"])),
                size=draw(st.integers(0, 50)),
                rounds=rounds,
                tries=tries,
                due=NOW + draw(st.sampled_from([-5, 0, 50])) if rounds or tries else 0.0,
                applied=draw(st.sampled_from([True, True, False])),
                ours=draw(st.booleans()),
            )
        )
    return pending


def related(one, other):
    return one in PathBarrier([other])


def flat(lanes):
    return [each for lane in lanes for request in lane for each in request.changes]


@given(
    pending=queues(),
    retry_now=st.booleans(),
    paused=st.integers(-5, 5),
    batch_bytes=st.sampled_from([0, 60]),
    flying=st.integers(0, 2),
)
def test_every_plan_keeps_the_order(pending, retry_now, paused, batch_bytes, flying):
    flying = [lane[0] for lane in plan(pending, NOW, DURABLE).lanes[:flying]]
    made = plan(
        pending,
        NOW,
        DURABLE,
        pause=Pause(NOW + paused),
        in_flight=flying,
        retry_now=retry_now,
        batch_bytes=batch_bytes,
    )
    ahead_of_all = {each.number: each.key for request in flying for each in request.changes}
    planned = numbers(flat(made.lanes))
    assert len(planned) == len(set(planned))
    assert not set(planned) & {*ahead_of_all, *numbers(made.replaced)}
    for lane in made.lanes:
        ahead = set(numbers(made.replaced))
        for request in lane:
            ahead |= set(numbers(request.changes))
            for each in request.changes:
                assert each.applied
                # What it could overtake is ahead of it: in its lane, or in flight on its path.
                for earlier in pending[: each.number - 1]:
                    if earlier.number not in ahead and related(earlier.key, each.key):
                        assert ahead_of_all[earlier.number] == each.key
        head = lane[0].changes
        if head[0].key not in ahead_of_all.values():
            assert retry_now or paused <= 0
            may_skip = retry_now and not any(each.tries for each in head)
            assert may_skip or all(each.due <= NOW for each in head)
    for one, other in itertools.combinations(made.lanes, 2):
        for each, another in itertools.product(flat([one]), flat([other])):
            assert not related(each.key, another.key)


@given(pending=queues(), paused=st.integers(-5, 5), batch_bytes=st.sampled_from([0, 60]))
def test_every_plan_leads_on(pending, paused, batch_bytes):
    """Whatever waits has an event: a request, a time, or the end of our own write."""
    made = plan(pending, NOW, DURABLE, pause=Pause(NOW + paused), batch_bytes=batch_bytes)
    remaining = [each for each in pending if each.number not in numbers(made.replaced)]
    if remaining and not any(each.ours and not each.applied for each in remaining):
        assert made.lanes or made.wake_at < math.inf
    assert made.wake_at > NOW
    if made.waits_for_response:
        assert made.lanes


class Simulation:
    """A dispatcher without threads, whose receiver does what the test draws."""

    def __init__(self, durable, batch_bytes):
        self.policy = RetryPolicy(durable=durable)
        self.batch_bytes = batch_bytes
        self.now = NOW
        self.pause = Pause()
        self.pending = {}
        self.lanes = Lanes()
        self.accepted = []
        self.dead = []
        self.fresh = set()
        self.number = 0

    def write(self, key, method):
        self.number += 1
        self.pending[self.number] = change(self.number, key, method)._replace(recorded=self.now)
        self.fresh.add(self.number)

    def plan(self, retry_now=False):
        made = plan(
            list(self.pending.values()),
            self.now,
            self.policy,
            pause=self.pause,
            in_flight=self.lanes.in_flight,
            fresh=self.fresh,
            retry_now=retry_now,
            batch_bytes=self.batch_bytes,
        )
        self.pause = made.pause
        self.fresh = set()
        for each in made.replaced:
            newer = [p for p in self.pending.values() if p.key == each.key]
            assert max(newer).number > each.number
            del self.pending[each.number]
        for each in made.rescheduled:
            if each.number in self.pending:
                self.pending[each.number] = each
        self.lanes.replace(made.lanes)
        return made

    def may_send(self):
        return self.lanes.seconds_to_send(concurrent=True) < math.inf

    def send(self, lane=None):
        lane = lane or self.lanes.next_lane()
        request = lane.popleft()
        sending = {each.number for each in request.changes}
        for each in request.changes:
            for other in self.pending.values():
                if other.number < each.number and other.number not in sending:
                    assert not related(other.key, each.key), (other, each)
        if self.batch_bytes:
            changes = tuple(each._replace(batch=request.id) for each in request.changes)
            request = Request(request.id, changes)
            self.pending.update((each.number, each) for each in changes)
        self.lanes.start(request, lane)

    def respond(self, failure):
        request = next(iter(self.lanes.in_flight))
        lane = self.lanes.in_flight.pop(request)
        if failure is not None:
            retry = after_failure(request.changes, failure, self.pause, self.now, self.policy)
            if not retry.is_final:
                self.pending.update((each.number, each) for each in retry.changes)
                self.pause = retry.pause
                self.plan()
                return
            self.dead += retry.changes
        else:
            self.accepted += request.changes
            self.pause = self.pause.shorten(self.now, 0)
        for each in request.changes:
            del self.pending[each.number]
        if lane:
            self.send(lane)


STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(KEYS), st.sampled_from(["POST", "DELETE"])),
    st.tuples(
        st.just("respond"),
        st.sampled_from(
            [
                None,
                None,
                UNAVAILABLE,
                SILENT,
                Failure("400", permanent=True),
                Failure("429", retry_after=9),
            ]
        ),
    ),
    st.tuples(st.just("plan"), st.booleans()),
    st.tuples(st.just("send")),
    st.tuples(st.just("wait"), st.integers(1, 60)),
)


@given(
    steps=st.lists(STEPS, max_size=60),
    durable=st.booleans(),
    batch_bytes=st.sampled_from([0, 1, 100]),
)
def test_whatever_the_receiver_does_each_change_arrives_in_order_or_dies(
    steps, durable, batch_bytes
):
    simulation = Simulation(durable, batch_bytes)
    for name, *arguments in steps:
        if name == "wait":
            simulation.now += arguments[0]
        elif name == "send":
            if simulation.may_send():
                simulation.send()
        elif name == "respond":
            if simulation.lanes.in_flight:
                simulation.respond(*arguments)
        else:
            getattr(simulation, name)(*arguments)
    for _ in range(1000):
        if not simulation.pending:
            break
        made = simulation.plan()
        while simulation.may_send():
            simulation.send()
        if not simulation.lanes:
            assert simulation.now < made.wake_at < math.inf
            simulation.now = made.wake_at
        while simulation.lanes.in_flight:
            simulation.respond(None)
    assert simulation.pending == {}
    for key in KEYS:
        of_path = [each.number for each in simulation.accepted if each.key == key]
        assert of_path == sorted(of_path)
