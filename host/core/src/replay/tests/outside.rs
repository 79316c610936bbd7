//! `select`, cancels and the world outside: which fact comes first.

use super::{ask, check, load, ms, read_record};
use crate::id::{EventId, Operation};
use crate::replay::{Choice, Mail, Replay};

#[test]
fn select_takes_the_answer_that_stands_first_in_the_journal() {
    let journal = "0:a sleep 100 | 1:b sleep 50 | 2:go wait | 2:go event 1 | 1:b slept | 0:a woken";
    let opened = ["sleep a => 0", "sleep b => 1", "wait go => 2"];
    let all = [
        "select 0 1 2 => event 2 evt_1",
        "select 1 0 => slept 1",
        "select 0 => woken 0",
    ];
    check(journal, &[&opened[..], &all[..]].concat());
    // Among those asked for only; the others keep.
    let some = [
        "select 0 1 => slept 1",
        "select 0 => woken 0",
        "select 2 2 => event 2 evt_1",
    ];
    check(journal, &[&opened[..], &some[..]].concat());
}

#[test]
fn a_withdrawn_operation_is_not_told() {
    check(
        "0:a sleep 100 | 1:t task 1 | 1:t started 1 | 1:t task-done | 0:a slept",
        &[
            "sleep a => 0",
            "task t 1 => 1",
            "withdraw 1 => ok",
            "select 0 => slept 0",
            "select 1 => misuse: select was given operation 1, which has been answered or withdrawn",
            "withdraw 1 => ok",
        ],
    );
    let mut replay = load("0:go wait 50");
    ask(&mut replay, "wait go");
    ask(&mut replay, "withdraw 0");
    assert_eq!(choose(&replay, &[0], 100, &[(1, "go", 5)], None), None);
    assert_eq!(replay.due(&[Operation(0)]), None);
    assert_eq!(replay.open_operations(), 0);
}

#[test]
fn a_cancel_is_told_once_and_never_before_an_answer_that_stands_earlier() {
    // At a select.
    check(
        "0:nap sleep 100 | cancel | 0:nap slept",
        &[
            "sleep nap => 0",
            "select 0 => cancelled: enough",
            "select 0 => slept 0",
        ],
    );
    check(
        "0:nap sleep 100 | 0:nap slept | cancel",
        &[
            "sleep nap => 0",
            "select 0 => slept 0",
            "step a => cancelled: enough",
            "step a => new",
        ],
    );
    // At a step, which takes no number by it.
    check(
        "0:a done | cancel | 1:b done",
        &[
            "step a => done",
            "step b => cancelled: enough",
            "step b => done",
            "end => ok",
        ],
    );
    // At the retry of a step.
    check(
        "0:a failed-attempt 1 20 | 0:a backoff-over | cancel | 0:a done",
        &[
            "step a => backoff 0",
            "select 0 => slept 0",
            "retry 0 => cancelled: enough",
            "retry 0 => done",
        ],
    );
    // Never by an operation that does not wait.
    check(
        "cancel | 0:nap sleep 100 | 1:k published",
        &[
            "sleep nap => 0",
            "publish k => ok",
            "select 0 => cancelled: enough",
            "select 0 => new",
        ],
    );
}

#[test]
fn a_second_cancel_changes_nothing() {
    let mut replay = load("cancel | cancel");
    assert_eq!(ask(&mut replay, "step a"), "cancelled: enough");
    assert_eq!(ask(&mut replay, "step a"), "new");
    replay.record(read_record("cancel"), ms(90));
    assert_eq!(ask(&mut replay, "step a"), "new");
}

#[test]
fn a_cancel_that_comes_at_the_end_of_the_journal_is_told_at_the_same_call() {
    for journal in ["", "0:nap sleep 100"] {
        let mut replay = load(journal);
        assert!(!replay.is_cancelled());
        let call = if journal.is_empty() {
            "step a"
        } else {
            ask(&mut replay, "sleep nap");
            "select 0"
        };
        assert_eq!(ask(&mut replay, call), "new");
        replay.record(read_record("cancel"), ms(70));
        assert_eq!(replay.grace_until(), Some(ms(30_000)));
        assert_eq!(ask(&mut replay, call), "cancelled: enough");
        assert_eq!(replay.now(), ms(70));
        assert_eq!(ask(&mut replay, call), "new");
        assert!(replay.is_cancelled());
    }
}

/// `(id, name, at)` for each event.
type Mailbox<'a> = &'a [(u64, &'a str, u64)];

/// The choice as text.
fn choose(
    replay: &Replay,
    among: &[u32],
    now: u64,
    mailbox: Mailbox<'_>,
    woken_at: Option<u64>,
) -> Option<String> {
    let among: Vec<_> = among.iter().copied().map(Operation).collect();
    let mails = mailbox.iter().map(|&(id, name, at)| Mail {
        id: EventId(id),
        name,
        at: ms(at),
    });
    let choice = replay.choose(&among, ms(now), mails, woken_at.map(ms))?;
    Some(match choice {
        Choice::Elapsed(operation) => format!("elapsed {operation}"),
        Choice::Woken(operation) => format!("woken {operation}"),
        Choice::Event(operation, id) => format!("event {operation} {id}"),
        Choice::TimedOut(operation) => format!("timed-out {operation}"),
        Choice::BackoffOver(operation) => format!("backoff-over {operation}"),
    })
}

/// Asks for everything in a journal of openings.
fn open(journal: &str) -> Replay {
    let mut replay = load(journal);
    for entry in journal.split('|') {
        let words: Vec<_> = entry.split_whitespace().collect();
        let (_, name) = words[0].split_once(':').unwrap();
        match words[1] {
            "sleep" => ask(&mut replay, &format!("sleep {name}")),
            "wait" => ask(&mut replay, &format!("wait {name}")),
            "task" => ask(&mut replay, &format!("task {name} {}", words[2])),
            "failed-attempt" => ask(&mut replay, &format!("step {name}")),
            _ => String::new(),
        };
    }
    replay
}

/// `now, mailbox, wake => choice` for one journal.
fn check_choice(
    journal: &str,
    among: &[u32],
    (now, mailbox, woken_at): (u64, Mailbox<'_>, Option<u64>),
    expected: &str,
) {
    let choice = choose(&open(journal), among, now, mailbox, woken_at);
    let found = choice.as_deref().unwrap_or("none");
    assert_eq!(
        found, expected,
        "{journal} among {among:?} at {now}, {mailbox:?}, {woken_at:?}"
    );
}

#[test]
fn a_timer_elapses_when_its_time_has_come_and_not_before() {
    let sleeps = "0:a sleep 100 | 1:b sleep 50";
    check_choice(sleeps, &[0, 1], (49, &[], None), "none");
    check_choice(sleeps, &[0, 1], (50, &[], None), "elapsed 1");
    check_choice(sleeps, &[0], (99, &[], None), "none");
    // However late we look, the order is that of the times.
    check_choice(sleeps, &[0, 1], (9_999, &[], None), "elapsed 1");
    check_choice(
        "0:a sleep 50 | 1:b sleep 50",
        &[1, 0],
        (50, &[], None),
        "elapsed 0",
    );
    let backoff = "0:s failed-attempt 1 70 | 1:a sleep 60";
    check_choice(backoff, &[0, 1], (70, &[], None), "elapsed 1");
    check_choice(backoff, &[0], (69, &[], None), "none");
    check_choice(backoff, &[0], (70, &[], None), "backoff-over 0");
}

#[test]
fn one_event_satisfies_the_oldest_wait() {
    let waits = "0:go wait | 1:go wait | 2:stop wait";
    check_choice(
        waits,
        &[2, 1, 0],
        (9, &[(1, "go", 5)], None),
        "event 0 evt_1",
    );
    check_choice(waits, &[2, 1], (9, &[(1, "go", 5)], None), "event 1 evt_1");
    check_choice(waits, &[2], (9, &[(1, "go", 5)], None), "none");
    // First in, first out.
    check_choice(
        waits,
        &[0],
        (9, &[(1, "go", 5), (2, "go", 6)], None),
        "event 0 evt_1",
    );
    // The event that was sent first, whichever wait was opened first.
    check_choice(
        waits,
        &[0, 2],
        (9, &[(1, "stop", 5), (2, "go", 6)], None),
        "event 2 evt_1",
    );
}

#[test]
fn between_an_event_and_a_timeout_the_earlier_wins() {
    let wait = "0:go wait 50";
    check_choice(wait, &[0], (60, &[(1, "go", 49)], None), "event 0 evt_1");
    check_choice(wait, &[0], (60, &[(1, "go", 50)], None), "event 0 evt_1");
    check_choice(wait, &[0], (60, &[(1, "go", 51)], None), "timed-out 0");
    check_choice(wait, &[0], (49, &[], None), "none");
    check_choice(wait, &[0], (50, &[], None), "timed-out 0");
    // Not early, when the clock has stepped back since the event.
    check_choice(wait, &[0], (40, &[(1, "go", 60)], None), "event 0 evt_1");
}

#[test]
fn a_wake_ends_the_sleep_due_soonest() {
    let sleeps = "0:a sleep 100 | 1:b sleep 90 | 2:go wait 200";
    check_choice(sleeps, &[0, 1, 2], (20, &[], Some(15)), "woken 1");
    check_choice(sleeps, &[0, 2], (20, &[], Some(15)), "woken 0");
    check_choice(sleeps, &[2], (20, &[], Some(15)), "none");
    // What came about before it comes first; a sleep that was over by then has elapsed.
    check_choice(
        sleeps,
        &[0, 1, 2],
        (20, &[(1, "go", 14)], Some(15)),
        "event 2 evt_1",
    );
    check_choice(sleeps, &[0, 1, 2], (95, &[], Some(92)), "elapsed 1");
    check_choice(sleeps, &[0, 1, 2], (95, &[], Some(85)), "woken 1");
    // A backoff is no sleep.
    check_choice("0:s failed-attempt 1 70", &[0], (20, &[], Some(15)), "none");
}

#[test]
fn a_loser_stays_for_the_next_select() {
    let mut replay = open("0:go wait 50 | 1:go wait");
    let mailbox = [(1, "go", 60)];
    let choice = choose(&replay, &[0, 1], 70, &mailbox, None);
    assert_eq!(choice.as_deref(), Some("timed-out 0"));
    replay.record(read_record("0:go timed-out"), ms(70));
    assert_eq!(ask(&mut replay, "select 0 1"), "timed-out 0");
    let choice = choose(&replay, &[1], 70, &mailbox, None);
    assert_eq!(choice.as_deref(), Some("event 1 evt_1"));
}

#[test]
fn an_operation_that_has_its_answer_takes_no_other() {
    let replay = open("0:a sleep 100 | 0:a slept | 1:b sleep 120 | 2:go wait 80 | 2:go event 1");
    assert_eq!(
        choose(&replay, &[0, 1, 2], 110, &[(2, "go", 3)], None),
        None
    );
    assert_eq!(
        choose(&replay, &[0, 1, 2], 110, &[], Some(90)).as_deref(),
        Some("woken 1")
    );
}

#[test]
fn a_suspension_knows_what_it_waits_for_and_until_when() {
    let journal = "0:a sleep 100 | 1:go wait 80 | 2:go wait | 3:t task 1 | 3:t started 1 \
                   | 3:t failed-attempt 1 70 | 4:s failed-attempt 1 60 | 5:u task 1";
    let replay = open(journal);
    let due = |among: &[u32]| {
        let among: Vec<_> = among.iter().copied().map(Operation).collect();
        replay.due(&among).map(crate::time::Timestamp::as_ms)
    };
    assert_eq!(due(&[0, 1, 2, 3, 4, 5]), Some(60));
    // When a task goes on is for its host to say.
    assert_eq!(due(&[0, 1, 3]), Some(80));
    assert_eq!(due(&[3]), None);
    assert_eq!(due(&[0, 1]), Some(80));
    assert_eq!(due(&[2, 5]), None);
    assert_eq!(due(&[9]), None);
    let waits = replay.waits(&[0, 1, 2, 3, 4, 5, 9].map(Operation));
    assert_eq!((waits.sleeps, waits.backoffs, waits.tasks), (1, 1, 2));
    assert_eq!(waits.events, ["go", "go"]);
}
