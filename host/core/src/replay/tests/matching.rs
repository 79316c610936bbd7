//! Calls against journals: what is answered, what is new, what diverges and with which words.

use super::{ask, check, load, ms, read_record};

#[test]
fn what_is_recorded_is_answered_and_then_all_is_new() {
    check("", &["step a => new"]);
    check("", &["sleep nap => new"]);
    check("", &["publish k => new"]);
    check("0:a done", &["step a => done", "step b => new"]);
    check("0:a failed", &["step a => failed a after 1", "end => ok"]);
    check(
        "0:nap sleep 100 | 0:nap slept | 1:a done",
        &[
            "sleep nap => 0",
            "select 0 => slept 0",
            "step a => done",
            "end => ok",
        ],
    );
    check(
        "0:go wait 90 | 1:t task 7 | 1:t started 1 | 1:t task-done | 0:go event 3",
        &[
            "wait go => 0",
            "task t 7 => 1",
            "select 0 1 => task-done 1",
            "select 0 => event 0 evt_3",
        ],
    );
    check(
        "0:k published | 1:evt_3 replied | 2:a done",
        &[
            "publish k => ok",
            "reply evt_3 => ok",
            "step a => done",
            "publish k => new",
        ],
    );
}

#[test]
fn refusals_are_repeated_and_take_a_number() {
    check(
        "0:nap refused sleep | 1:k refused publish | 2:x refused reply | 3:t refused task | 4:a done",
        &[
            "sleep nap => refused",
            "publish k => refused",
            "reply x => refused",
            "task t 9 => refused",
            "step a => done",
            "select 0 => misuse: select was given operation 0, which has been answered or withdrawn",
        ],
    );
}

#[test]
fn a_step_name_that_occurs_again_is_numbered() {
    check(
        "0:charge done | 1:ship done | 2:charge#2 done | 3:charge#3 done",
        &[
            "step charge => done",
            "step ship => done",
            "step charge => done",
            "step charge => done",
        ],
    );
    check(
        "0:charge done | 1:charge#2 done",
        &[
            "step charge => done",
            "step ship => diverged: operation 1: this code asks for step `ship`, \
             but the journal has step `charge#2`",
        ],
    );
    let mut replay = load("0:charge done");
    assert_eq!(ask(&mut replay, "step charge"), "done");
    assert_eq!(ask(&mut replay, "step charge"), "new");
    replay.open_step("charge");
    let (entry, error) = {
        assert_eq!(ask(&mut replay, "step charge"), "new");
        replay.refuse_step(
            "charge",
            crate::payload::Failure::permanent("no", ""),
            ms(50),
        )
    };
    assert_eq!(error.step, "charge#3");
    assert_eq!(entry.record.operation(), Some(crate::id::Operation(2)));
}

#[test]
fn a_difference_names_its_place_and_both_sides() {
    let journal = "0:charge done | 1:nap sleep 100 | 1:nap slept | 2:ship done";
    let charged = "step charge => done";
    // Renamed.
    check(
        journal,
        &[
            "step pay => diverged: operation 0: this code asks for step `pay`, \
           but the journal has step `charge`",
        ],
    );
    // Reordered.
    check(
        journal,
        &[
            "sleep nap => diverged: operation 0: this code asks for sleep `nap`, \
           but the journal has step `charge`",
        ],
    );
    // Added.
    check(
        journal,
        &[
            charged,
            "publish status => diverged: operation 1: this code asks for publish `status`, \
                    but the journal has sleep `nap`",
        ],
    );
    // Removed.
    check(
        journal,
        &[
            charged,
            "step ship => diverged: operation 1: this code asks for step `ship`, \
                    but the journal has sleep `nap`",
        ],
    );
    // Of another kind.
    check(
        journal,
        &[
            charged,
            "wait nap => diverged: operation 1: this code asks for wait `nap`, \
                    but the journal has sleep `nap`",
        ],
    );
    // Ended early.
    check(
        journal,
        &[
            charged,
            "sleep nap => 1",
            "select 1 => slept 1",
            "end => diverged: operation 2: this code asks for the end of the workflow, \
           but the journal has step `ship`",
        ],
    );
    // Another input.
    check(
        "0:t task 7",
        &[
            "task t 8 => diverged: operation 0: this code asks for task `t` with input \
           sha256:080808080808…, but the journal has task `t` with input sha256:070707070707…",
        ],
    );
}

#[test]
fn nothing_is_performed_while_the_journal_goes_on() {
    // The journal has no answer to this wait, yet it goes on.
    check(
        "0:nap sleep 100 | 1:a done",
        &[
            "sleep nap => 0",
            "select 0 => diverged: operation 1: this code asks for a wait for \
                             earlier operations, but the journal has step `a`",
        ],
    );
    // The code that wrote this slept before its second attempt.
    check(
        "0:a failed-attempt 1 20 | 0:a backoff-over | 1:nap sleep 100",
        &[
            "step a => backoff 0",
            "select 0 => slept 0",
            "retry 0 => diverged: operation 1: this code asks for another attempt of step `a`, \
             but the journal has sleep `nap`",
        ],
    );
}

#[test]
fn answers_that_nobody_waits_for_are_no_difference() {
    check(
        "0:nap sleep 100 | 1:t task 1 | 1:t started 1 | 1:t task-done | 2:a done",
        &[
            "sleep nap => 0",
            "task t 1 => 1",
            "step a => done",
            "end => ok",
        ],
    );
}

#[test]
fn a_broken_contract_is_told_in_words() {
    let unknown = "misuse: operation 7 was named, but only 1 were asked for so far";
    check(
        "0:nap sleep 100",
        &["sleep nap => 0", &format!("select 0 7 => {unknown}")],
    );
    check(
        "0:nap sleep 100",
        &["sleep nap => 0", &format!("withdraw 7 => {unknown}")],
    );
    check(
        "",
        &["select => misuse: select was given no operation, and would wait for ever"],
    );
    check(
        "0:nap sleep 100 | 0:nap slept",
        &[
            "sleep nap => 0",
            "select 0 => slept 0",
            "select 0 => misuse: select was given operation 0, which has been answered or withdrawn",
            "withdraw 0 => ok",
        ],
    );
    let no_step = |number| {
        format!(
            "misuse: retry-step was called with {number}, which is not a step whose backoff is over"
        )
    };
    check("", &[&format!("retry 4 => {}", no_step(4))]);
    check(
        "0:nap sleep 100",
        &["sleep nap => 0", &format!("retry 0 => {}", no_step(0))],
    );
    check(
        "0:a failed-attempt 1 20 | 0:a backoff-over | 0:a done",
        &[
            "step a => backoff 0",
            &format!("retry 0 => {}", no_step(0)),
            "select 0 => slept 0",
            "select 0 => misuse: select was given operation 0, a step that waits for nothing; \
             call retry-step",
            "retry 0 => done",
            &format!("retry 0 => {}", no_step(0)),
        ],
    );
}

#[test]
fn no_operation_is_asked_for_while_a_body_runs() {
    let mut replay = load("");
    assert_eq!(ask(&mut replay, "step charge"), "new");
    let step = replay.open_step("charge");
    replay.begin_attempt(step, crate::retry::Options::default(), ms(1), false);
    let calls = [
        ("step other", "step"),
        ("retry 0", "retry-step"),
        ("sleep nap", "sleep"),
        ("publish k", "publish"),
        ("select 0", "select"),
        ("withdraw 0", "withdraw"),
    ];
    for (call, name) in calls {
        let expected = format!(
            "misuse: {name} was called while the body of step `charge` runs; call finish-step first"
        );
        assert_eq!(ask(&mut replay, call), expected);
    }
}

#[test]
fn an_entry_that_cannot_follow_ends_the_belief_in_a_journal() {
    let damaged = |journal: &str, record: &str, position: usize| {
        check(
            &format!("0:a done | {journal} | 9:z done"),
            &[
                "step a => done",
                &format!(
                    "step b => diverged: operation 1: this code asks for step `b`, but the journal \
                     has `{record}` as entry {position}, which cannot follow the entries before it: \
                     the journal is damaged, restore the data folder from a backup"
                ),
            ],
        );
    };
    damaged("2:b done", "step-completed", 1); // A gap.
    damaged("0:a done", "step-completed", 1); // Twice.
    damaged("0:a slept", "slept", 1); // Of another kind.
    damaged("1:b backoff-over", "backoff-over", 1); // With no attempt.
    damaged("1:b failed-attempt 2 20", "attempt-ended", 1); // The second first.
    damaged("1:b started 4294967295", "attempt-started", 1);
    damaged("1:b refused step", "refused", 1);
    damaged("1:t task-done", "task-completed", 1);
    damaged("ended | cancel", "cancel-delivered", 2); // Past the end.
    check(
        "0:nap sleep 100 | 0:nap slept | 0:nap slept",
        &[
            "sleep nap => 0",
            "select 0 => slept 0",
            "end => diverged: operation 1: this code asks for the end of the workflow, but the \
             journal has `slept` as entry 2, which cannot follow the entries before it: the journal \
             is damaged, restore the data folder from a backup",
        ],
    );
}

#[test]
#[should_panic(expected = "the journal cannot go on with Slept")]
fn a_record_that_cannot_follow_is_never_handed_out() {
    let mut replay = load("0:nap sleep 100");
    replay.record(read_record("0:nap slept"), ms(100));
    replay.record(read_record("0:nap slept"), ms(100));
}

#[test]
fn replaying_ends_with_the_first_call_that_the_journal_does_not_answer() {
    assert!(!load("").is_replaying());
    let mut replay = load("0:nap sleep 100 | 0:nap slept | 1:a done");
    for call in ["sleep nap", "select 0", "step a"] {
        ask(&mut replay, call);
        assert!(replay.is_replaying(), "{call}");
    }
    for call in ["step b", "sleep nap", "publish k"] {
        let mut replay = load("0:a done");
        ask(&mut replay, "step a");
        assert!(replay.is_replaying());
        ask(&mut replay, call);
        assert!(!replay.is_replaying(), "{call}");
    }
    let mut waiting = load("0:nap sleep 100");
    ask(&mut waiting, "sleep nap");
    assert!(waiting.is_replaying());
    ask(&mut waiting, "select 0");
    assert!(!waiting.is_replaying());
}

#[test]
fn workflow_time_is_that_of_the_newest_entry_seen() {
    let mut replay = load("0:nap sleep 100 | 1:a done | 0:nap slept | 2:k published");
    let times = [
        ("sleep nap", 10),
        ("step a", 20),
        ("select 0", 30),
        ("publish k", 40),
    ];
    assert_eq!(replay.now(), ms(1));
    for (call, at) in times {
        ask(&mut replay, call);
        assert_eq!(replay.now(), ms(at), "{call}");
    }
}

#[test]
fn times_never_go_back_when_the_clock_does() {
    let mut replay = load("0:nap sleep 100");
    ask(&mut replay, "sleep nap");
    let times = [(500, 500), (20, 500), (499, 500), (501, 501)];
    for (index, (now, at)) in times.into_iter().enumerate() {
        let record = read_record(&format!("{}:k published", index + 1));
        assert_eq!(replay.record(record, ms(now)).at, ms(at));
        ask(&mut replay, "publish k");
        assert_eq!(replay.now(), ms(at));
    }
    // A journal whose times go back, which no host writes, does not take workflow time along.
    let mut entries = super::read_journal("0:a done | 1:b done");
    entries[1].at = ms(3);
    let mut replay = super::Replay::load(entries, ms(1));
    ask(&mut replay, "step a");
    ask(&mut replay, "step b");
    assert_eq!(replay.now(), ms(10));
    assert_eq!(replay.record(read_record("cancel"), ms(5)).at, ms(10));
}
