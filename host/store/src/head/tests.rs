//! Whatever happens to a head, what the rest of the store builds on stays true.

use proptest::prelude::*;
use stepwell_core::id::Operation;
use stepwell_core::payload::Payload;

use super::*;

const RUN: RunId = RunId::from_raw(7);

#[derive(Debug, Clone)]
enum Act {
    Claim,
    Orphan,
    Append {
        then: Then,
        progress: bool,
        met: bool,
        cancel_seen: bool,
        inbox_seen: u64,
    },
    Deliver(Message),
}

fn messages() -> impl Strategy<Value = Message> {
    let event = prop::sample::select(vec!["a", "b"]).prop_map(|name| Message::Event {
        name: name.to_owned(),
        payload: Payload::null(),
        delivery_key: None,
        mailbox_events_max: 2,
    });
    prop_oneof![
        4 => event,
        1 => Just(Message::Cancel { reason: String::new() }),
        2 => Just(Message::Pause),
        3 => Just(Message::Resume),
        2 => Just(Message::Wake),
        1 => Just(Message::Terminate { reason: String::new() }),
    ]
}

fn thens() -> impl Strategy<Value = Then> {
    let flags = (
        any::<bool>(),
        any::<bool>(),
        prop::bool::weighted(0.2),
        any::<bool>(),
    );
    let suspension = (flags, prop::option::of(0..99_u64));
    prop_oneof![
        3 => Just(Then::Run),
        4 => suspension.prop_map(|((waits, sleeps, tasks_run, release), due)| Then::Suspend(Suspension {
            status: if sleeps { Status::Sleeping } else { Status::Waiting },
            due: due.map(Timestamp::from_ms),
            events: if waits { vec!["a".to_owned()] } else { Vec::new() },
            sleeps,
            tasks_run,
            release,
        })),
        1 => Just(Then::End),
        1 => Just(Then::Stick { reason: "stuck".to_owned() }),
        2 => Just(Then::Release),
    ]
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Claim),
        1 => Just(Act::Orphan),
        6 => (thens(), any::<bool>(), any::<bool>(), any::<bool>(), 0..9_u64).prop_map(
            |(then, progress, met, cancel_seen, inbox_seen)| Act::Append {
                then, progress, met, cancel_seen, inbox_seen,
            }
        ),
        5 => messages().prop_map(Act::Deliver),
    ]
}

/// Carries out what may be carried out; answers with what hosts were told, if anything was done.
fn act(head: &mut Head, act: &Act, at: Timestamp) -> Option<Option<Change>> {
    match act {
        Act::Claim => {
            head.claimable_since(at)?;
            head.claim(HostId::from_raw(1), at);
            Some(None)
        }
        Act::Orphan => head.host.is_some().then(|| head.orphan(RUN, at)),
        Act::Append {
            then,
            progress,
            met,
            cancel_seen,
            inbox_seen,
        } => {
            let record = match (then, progress) {
                (Then::End, _) => Record::Ended(Ending::Completed(Payload::null())),
                (_, true) => Record::TimedOut {
                    operation: Operation(0),
                },
                (_, false) => Record::AttemptStarted {
                    operation: Operation(0),
                    name: String::new(),
                    number: 1,
                    deadline_at: None,
                },
            };
            let append = Append {
                run: RUN,
                epoch: head.epoch,
                next: head.next,
                entries: vec![Entry { at, record }],
                inbox_seen: EventId(*inbox_seen),
                cancel_seen: *cancel_seen,
                then: then.clone(),
                at,
            };
            head.check(&append).ok()?;
            let met = head.asks_for_unseen(&append).is_some() && *met;
            Some(head.advance(&append, 10, met))
        }
        Act::Deliver(message) => {
            if head.refuse(message).is_some() {
                return None;
            }
            Some(head.accept(RUN, message, at, 10).1)
        }
    }
}

proptest! {
    #[test]
    fn no_history_breaks_what_the_store_builds_on(
        acts in prop::collection::vec((acts(), 0..20_u64), 0..80), start_in_ms in prop::option::of(0..50_u64),
    ) {
        let mut now_ms = 10;
        let start_at = start_in_ms.map(|ms| Timestamp::from_ms(now_ms + ms));
        let mut head = Head::started(start_at, Timestamp::from_ms(now_ms));
        for (next, pass_ms) in &acts {
            now_ms += pass_ms;
            let now = Timestamp::from_ms(now_ms);
            let before = head.clone();
            let Some(told) = act(&mut head, next, now) else {
                prop_assert_eq!(&head, &before);
                continue;
            };

            // What only grows.
            prop_assert_eq!(head.revision, before.revision + 1);
            prop_assert!(head.epoch >= before.epoch && head.updated_at >= before.updated_at);
            prop_assert!(head.next >= before.next && head.inbox_last >= before.inbox_last);
            prop_assert!(head.cancel_requested || !before.cancel_requested);
            prop_assert!(!before.status.is_final(), "something happened after the end");

            // What goes together.
            if head.status == Status::Running || head.status.is_final() || head.status == Status::Stuck {
                prop_assert!(head.ready_since.is_none() && head.due.is_none());
                prop_assert!(head.waits.is_empty() && !head.sleeps);
            }
            if head.status == Status::Running {
                prop_assert!(head.host.is_some());
            }
            if head.status.is_final() || head.status == Status::Stuck || head.status == Status::Queued {
                prop_assert!(head.host.is_none());
            }
            if head.status == Status::Queued {
                prop_assert!(head.ready_since.is_some());
            }
            prop_assert_eq!(head.stuck_reason.is_some(), head.status == Status::Stuck);

            // Nobody is left waiting: whoever becomes ready or due with no host is told of.
            let available = head.availability(RUN);
            if available.is_some() && available != before.availability(RUN) {
                prop_assert_eq!(told, available);
            }
            if head.host.is_some() && matches!(next, Act::Deliver(_)) {
                prop_assert_eq!(told, Some(Change::Inbox { run: RUN }));
            }
        }
    }
}

#[test]
fn a_run_that_was_asked_to_stop_is_ready_unless_somebody_looks_after_it() {
    let at = Timestamp::from_ms;
    let cancel = Message::Cancel {
        reason: String::new(),
    };
    let mut head = Head::started(Some(at(1_000)), at(1));
    assert_eq!(
        head.accept(RUN, &cancel, at(2), 0).1,
        Some(Change::Ready { run: RUN })
    );
    head.claim(HostId::from_raw(1), at(3));
    assert_eq!(head.ready_since, None);
    assert_eq!(head.orphan(RUN, at(4)), Some(Change::Ready { run: RUN }));
}
