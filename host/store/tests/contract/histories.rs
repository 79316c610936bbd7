//! Both bodies are given the same random history of calls and must answer and read alike.

use proptest::prelude::*;
use stepwell_core::id::{Epoch, EventId, Operation, RunId, Sequence, TenantName};
use stepwell_core::journal::{Ending, Entry, Record};
use stepwell_core::run::Status;
use stepwell_store::{
    Append, Change, Claim, LogLevel, LogLine, Message, NewRun, Room, RunFilter, Started, Store,
    Suspension, Then,
};
use tokio::sync::broadcast;

use crate::support::{
    Body, COMPONENT, World, acme, at, attempt, cancel, cancel_delivered, entry, host, json,
    keyed_event, new_run, run, step, taken, tenant, terminate, told, version,
};

const RUNS: u128 = 5;

/// A call, with what it needs from what was learnt before left open.
#[derive(Debug, Clone)]
enum Op {
    Start {
        run: u128,
        key: Option<u8>,
        start_in_ms: Option<u64>,
        claimant: Option<u128>,
        stray: bool,
    },
    Claim {
        host: u128,
        limit: usize,
    },
    Renew {
        host: u128,
        for_ms: u64,
    },
    Deliver {
        run: u128,
        message: Message,
        stranger: bool,
    },
    Append {
        run: u128,
        entries: Vec<Kind>,
        then: Next,
        stale: Stale,
        seen: Seen,
    },
    Log {
        run: u128,
        lines: u8,
    },
    Pass {
        ms: u64,
    },
}

#[derive(Debug, Clone)]
enum Kind {
    Step,
    Attempt,
    Publish(u8),
    Take,
    Reply,
    CancelDelivered,
    Long,
}

#[derive(Debug, Clone)]
enum Next {
    Run,
    Suspend(Suspension, Option<u64>),
    End(u8),
    Stick,
    Release,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stale {
    No,
    Epoch,
    Length,
}

#[derive(Debug, Clone, Copy)]
enum Seen {
    Nothing,
    Everything,
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![Just("a".to_owned()), Just("b".to_owned())]
}

fn messages() -> impl Strategy<Value = Message> {
    prop_oneof![
        6 => (names(), prop::option::of(0..3_u8)).prop_map(|(name, key)| {
            keyed_event(&name, key.map(|key| key.to_string()).as_deref())
        }),
        1 => Just(cancel()),
        2 => Just(Message::Pause),
        3 => Just(Message::Resume),
        3 => Just(Message::Wake),
        1 => Just(terminate()),
    ]
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Step),
        2 => Just(Kind::Attempt),
        1 => (0..2_u8).prop_map(Kind::Publish),
        2 => Just(Kind::Take),
        1 => Just(Kind::Reply),
        1 => Just(Kind::CancelDelivered),
        1 => Just(Kind::Long),
    ]
}

fn nexts() -> impl Strategy<Value = Next> {
    let status = prop::sample::select(vec![Status::Sleeping, Status::Waiting, Status::Retrying]);
    let flags = (any::<bool>(), prop::bool::weighted(0.2), any::<bool>());
    let suspension = (status, prop::collection::vec(names(), 0..2), flags);
    prop_oneof![
        5 => Just(Next::Run),
        5 => (suspension, prop::option::of(0..60_u64)).prop_map(|((status, events, (sleeps, tasks_run, release)), due)| {
            Next::Suspend(Suspension { status, due: None, events, sleeps, tasks_run, release }, due)
        }),
        2 => (0..4_u8).prop_map(Next::End),
        1 => Just(Next::Stick),
        2 => Just(Next::Release),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let runs = || 0..RUNS;
    let stale =
        prop_oneof![8 => Just(Stale::No), 1 => Just(Stale::Epoch), 1 => Just(Stale::Length)];
    let seen = prop_oneof![Just(Seen::Nothing), Just(Seen::Everything)];
    prop_oneof![
        4 => (
            runs(),
            prop::option::weighted(0.3, 0..2_u8),
            prop::option::weighted(0.3, 0..40_u64),
            prop::option::weighted(0.7, 1..3_u128),
            prop::bool::weighted(0.1),
        )
            .prop_map(|(run, key, start_in_ms, claimant, stray)| Op::Start {
                run, key, start_in_ms, claimant, stray,
            }),
        4 => (1..3_u128, 0..4_usize).prop_map(|(host, limit)| Op::Claim { host, limit }),
        3 => (1..3_u128, 20..90_u64).prop_map(|(host, for_ms)| Op::Renew { host, for_ms }),
        7 => (runs(), messages(), prop::bool::weighted(0.05)).prop_map(|(run, message, stranger)| {
            Op::Deliver { run, message, stranger }
        }),
        12 => (runs(), prop::collection::vec(kinds(), 0..4), nexts(), stale, seen).prop_map(
            |(run, entries, then, stale, seen)| Op::Append { run, entries, then, stale, seen },
        ),
        1 => (runs(), 0..3_u8).prop_map(|(run, lines)| Op::Log { run, lines }),
        4 => (1..50_u64).prop_map(|ms| Op::Pass { ms }),
    ]
}

/// What the caller has learnt of a run that it drives.
#[derive(Debug, Clone)]
struct Known {
    epoch: Epoch,
    next: Sequence,
}

/// Both bodies, side by side.
struct Pair {
    memory: World,
    sqlite: World,
    changes: [broadcast::Receiver<Change>; 2],
    known: Vec<Option<Known>>,
    now_ms: u64,
}

impl Pair {
    async fn new() -> Self {
        let (memory, sqlite) = (
            World::new(Body::Memory).await,
            World::new(Body::Sqlite).await,
        );
        for world in [&memory, &sqlite] {
            world
                .store
                .register(version(tenant("globex"), COMPONENT, "1"))
                .await
                .unwrap();
            for number in [1, 2] {
                world.store.renew_lease(host(number), at(60)).await.unwrap();
            }
        }
        let changes = [memory.store.changes(), sqlite.store.changes()];
        Self {
            memory,
            sqlite,
            changes,
            known: vec![None; RUNS as usize],
            now_ms: 10,
        }
    }

    async fn apply(&mut self, op: &Op) -> Result<(), TestCaseError> {
        if let Op::Pass { ms } = op {
            self.now_ms += ms;
            return Ok(());
        }
        let inboxes = self.inbox_ends().await;
        let (ours, theirs) = (
            self.answer(&*self.memory.store, op, &inboxes).await,
            self.answer(&*self.sqlite.store, op, &inboxes).await,
        );
        prop_assert_eq!(&ours.text, &theirs.text, "{:?}", op);
        for claim in ours.claims {
            let known = Known {
                epoch: claim.epoch,
                next: claim.next,
            };
            self.known[index(claim.run)] = Some(known);
        }
        if let Some((run, appended)) = ours.appended
            && let Some(known) = &mut self.known[index(run)]
        {
            known.next = appended;
        }
        let [memory, sqlite] = &mut self.changes;
        prop_assert_eq!(told(memory), told(sqlite), "{:?}", op);
        self.compare().await
    }

    /// The newest item of each run's inbox.
    async fn inbox_ends(&self) -> Vec<EventId> {
        let mut ends = Vec::new();
        for number in 0..RUNS {
            let inbox = self
                .memory
                .store
                .inbox(run(number), EventId(0))
                .await
                .unwrap();
            ends.push(inbox.items.last().map_or(EventId(0), |item| item.id));
        }
        ends
    }

    async fn answer(&self, store: &dyn Store, op: &Op, inboxes: &[EventId]) -> Answer {
        let now = at(self.now_ms);
        match op {
            Op::Start {
                run,
                key,
                start_in_ms,
                claimant,
                stray,
            } => {
                // Each run is started once; its id is made by the caller.
                if store.run(&acme(), self::run(*run)).await.unwrap().is_some() {
                    return Answer::default();
                }
                let mut new: NewRun = new_run(*run, self.now_ms);
                new.idempotency_key = key.map(|key| key.to_string());
                new.start_at = start_in_ms.map(|ms| at(self.now_ms + ms));
                if *stray {
                    new.label = "9".parse().unwrap();
                }
                let started = store.start(new, claimant.map(host)).await;
                let claims = match &started {
                    Ok(Started::Created(Some(claim))) => vec![(**claim).clone()],
                    _ => Vec::new(),
                };
                Answer {
                    text: format!("{started:?}"),
                    claims,
                    appended: None,
                }
            }
            Op::Claim {
                host: number,
                limit,
            } => {
                let room = Room {
                    runs: *limit,
                    suspects: *limit / 2,
                };
                let claims = store.claim(host(*number), now, room).await.unwrap();
                Answer {
                    text: format!("{claims:?}"),
                    claims,
                    appended: None,
                }
            }
            Op::Renew {
                host: number,
                for_ms,
            } => {
                let renewed = store
                    .renew_lease(host(*number), at(self.now_ms + for_ms))
                    .await;
                Answer {
                    text: format!("{renewed:?}"),
                    ..Answer::default()
                }
            }
            Op::Deliver {
                run,
                message,
                stranger,
            } => {
                let tenant: TenantName = if *stranger { tenant("globex") } else { acme() };
                let delivered = store
                    .deliver(&tenant, self::run(*run), message.clone(), now)
                    .await;
                Answer {
                    text: format!("{delivered:?}"),
                    ..Answer::default()
                }
            }
            Op::Append {
                run,
                entries,
                then,
                stale,
                seen,
            } => {
                let Some(append) = self.append(*run, entries, then, *stale, *seen, inboxes) else {
                    return Answer::default();
                };
                let after = append.next.plus(append.entries.len());
                let continued = matches!(
                    append.entries.last(),
                    Some(Entry {
                        record: Record::Ended(Ending::ContinuedAsNew(_)),
                        ..
                    })
                );
                let done = store.append(append).await;
                let after = if continued { Sequence(0) } else { after };
                let appended = done.is_ok().then_some((self::run(*run), after));
                Answer {
                    text: format!("{done:?}"),
                    claims: Vec::new(),
                    appended,
                }
            }
            Op::Log { run, lines } => {
                let line = |number: u8| LogLine {
                    tenant: acme(),
                    run: self::run(*run),
                    at: now,
                    level: LogLevel::Info,
                    message: number.to_string(),
                    fields: Vec::new(),
                };
                let written = store.write_logs((0..*lines).map(line).collect()).await;
                Answer {
                    text: format!("{written:?}"),
                    ..Answer::default()
                }
            }
            Op::Pass { .. } => Answer::default(),
        }
    }

    fn append(
        &self,
        number: u128,
        kinds: &[Kind],
        then: &Next,
        stale: Stale,
        seen: Seen,
        inboxes: &[EventId],
    ) -> Option<Append> {
        let known = self.known[number as usize].clone()?;
        let ms = self.now_ms;
        let newest = inboxes[number as usize];
        let mut entries: Vec<_> = kinds
            .iter()
            .map(|kind| match kind {
                Kind::Step => step(ms, 1),
                Kind::Attempt => attempt(ms),
                Kind::Publish(key) => publish(ms, &key.to_string(), &ms.to_string()),
                Kind::Take => taken(ms, newest.0, "a"),
                Kind::Reply => {
                    let record = Record::Replied {
                        operation: Operation(2),
                        event: newest,
                        answer: Ok(json("1")),
                    };
                    entry(ms, record)
                }
                Kind::CancelDelivered => cancel_delivered(ms),
                Kind::Long => publish(ms, "long", &format!("\"{}\"", "x".repeat(3_000))),
            })
            .collect();
        let then = match then {
            Next::Run => Then::Run,
            Next::Suspend(suspension, due_in_ms) => Then::Suspend(Suspension {
                due: due_in_ms.map(|due| at(ms + due)),
                ..suspension.clone()
            }),
            Next::Stick => Then::Stick {
                reason: "stuck".to_owned(),
            },
            Next::Release => Then::Release,
            Next::End(kind) => {
                let ending = match kind {
                    0 => Ending::Completed(json("1")),
                    1 => Ending::Cancelled {
                        reason: "r".to_owned(),
                    },
                    _ => Ending::ContinuedAsNew(json(&ms.to_string())),
                };
                entries.push(entry(ms, Record::Ended(ending)));
                Then::End
            }
        };
        let (epoch, next) = (known.epoch.0, known.next.0);
        Some(Append {
            run: run(number),
            epoch: Epoch(if stale == Stale::Epoch {
                epoch - 1
            } else {
                epoch
            }),
            next: Sequence(if stale == Stale::Length {
                next + 1
            } else {
                next
            }),
            entries,
            inbox_seen: match seen {
                Seen::Nothing => EventId(0),
                Seen::Everything => newest,
            },
            cancel_seen: matches!(seen, Seen::Everything),
            then,
            at: at(ms),
        })
    }

    async fn compare(&self) -> Result<(), TestCaseError> {
        let (ours, theirs) = (
            all(&*self.memory.store).await,
            all(&*self.sqlite.store).await,
        );
        prop_assert_eq!(ours, theirs);
        Ok(())
    }
}

#[derive(Default)]
struct Answer {
    text: String,
    claims: Vec<Claim>,
    appended: Option<(RunId, Sequence)>,
}

fn index(run: RunId) -> usize {
    usize::try_from(run.raw()).unwrap()
}

fn publish(ms: u64, key: &str, value: &str) -> Entry {
    entry(
        ms,
        Record::Published {
            operation: Operation(3),
            key: key.to_owned(),
            value: json(value),
        },
    )
}

/// Everything that can be read.
async fn all(store: &dyn Store) -> Vec<String> {
    let mut read = Vec::new();
    let everything = RunFilter {
        limit: 100,
        ..RunFilter::default()
    };
    read.push(format!(
        "{:?}",
        store.runs(&acme(), everything.clone()).await
    ));
    let open = RunFilter {
        statuses: vec![Status::Running, Status::Waiting, Status::Queued],
        ..everything
    };
    read.push(format!("{:?}", store.runs(&acme(), open).await));
    read.push(format!("{:?}", store.due(at(0), at(u64::MAX), 100).await));
    for number in 0..RUNS {
        let run = run(number);
        read.push(format!(
            "{:?}",
            store.history(&acme(), run, Sequence(1), 3).await
        ));
        read.push(format!("{:?}", store.journal(run).await));
        read.push(format!("{:?}", store.inbox(run, EventId(0)).await));
        read.push(format!("{:?}", store.events(&acme(), run).await));
        read.push(format!("{:?}", store.published(&acme(), run).await));
        read.push(format!("{:?}", store.logs(&acme(), run, 0, 100).await));
    }
    read
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn all_bodies_agree_on_any_history(ops in prop::collection::vec(ops(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut pair = Pair::new().await;
            for op in &ops {
                pair.apply(op).await?;
            }
            Ok::<(), TestCaseError>(())
        })?;
    }
}
