//! What a guest can learn about the world it is in.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wasip2::clocks::monotonic_clock;
use wasip2::random::{insecure, insecure_seed, random};

use crate::Workflow;
use crate::steps::{nap, step};

pub(crate) const WORKFLOWS: &[Workflow] = &[
    ("clocks", clocks),
    ("clocks-in-step", |_| step("clocks", in_task)),
    ("instants-across-a-step", instants_across_a_step),
    ("random", |_| draws(|_| {})),
    ("random-with-steps-between", |_| {
        draws(|name| {
            step(name, || {
                hex(&random::get_random_bytes(100)) + &hex(&insecure::get_insecure_random_bytes(9))
            });
        })
    }),
    ("random-in-step", |_| {
        step("draw", || hex(&random::get_random_bytes(16)))
    }),
    ("random-much", |_| {
        hex(&random::get_random_bytes(2 * 1024 * 1024))
    }),
    ("hash-order", |_| {
        format!("{} {}", hash_order(), step("hash", hash_order))
    }),
    ("thread-sleep", |_| {
        std::thread::sleep(Duration::from_millis(20));
        "slept".to_owned()
    }),
    ("thread-sleep-in-step", |_| step("sleeping", in_task)),
    ("poll-outside", |_| {
        wasip2::io::poll::poll(&[&monotonic_clock::subscribe_duration(1)]);
        "polled".to_owned()
    }),
    ("ready-outside", |_| {
        monotonic_clock::subscribe_duration(1).ready().to_string()
    }),
    ("poll-what-is-ready", poll_what_is_ready),
    ("pollable-kept-from-a-step", |_| {
        let mut kept = None;
        step("keeping", || {
            let pollable = monotonic_clock::subscribe_duration(1);
            pollable.block();
            kept = Some(pollable);
            String::new()
        });
        kept.expect("kept").ready().to_string()
    }),
    ("pollable-kept-into-a-step", |_| {
        let pollable = monotonic_clock::subscribe_duration(1_000_000);
        step("blocking", || {
            pollable.block();
            "blocked".to_owned()
        })
    }),
    ("surroundings", surroundings),
    ("hoard", |_| {
        let mut hoard = Vec::new();
        loop {
            hoard.push(monotonic_clock::subscribe_duration(1));
        }
    }),
];

fn wall_ms() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis()
}

/// Both clocks, before and after an operation, with work between the readings.
fn clocks(_: &str) -> String {
    let mut seen = String::new();
    for round in 0..2 {
        let (wall, monotonic) = (wall_ms(), monotonic_clock::now());
        let mut sum = 0_u64;
        for number in 0..3_000_000_u64 {
            sum = std::hint::black_box(sum ^ number);
        }
        assert_eq!(
            (wall, monotonic),
            (wall_ms(), monotonic_clock::now()),
            "the clocks stand still"
        );
        let _ = write!(seen, "{wall} {monotonic} ");
        if round == 0 {
            nap();
        }
    }
    seen.trim_end().to_owned()
}

/// The wall clock, and how long a sleep of 20 ms took by both clocks.
pub(crate) fn in_task() -> String {
    let (wall, instant) = (wall_ms(), Instant::now());
    std::thread::sleep(Duration::from_millis(20));
    format!(
        "{wall} {} {}",
        wall_ms() - wall,
        instant.elapsed().as_millis()
    )
}

/// How long a step of 20 ms takes, by an instant from before it.
fn instants_across_a_step(_: &str) -> String {
    let before = Instant::now();
    step("sleeping", || {
        std::thread::sleep(Duration::from_millis(20));
        before.elapsed().as_millis().to_string()
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn draws(between: impl Fn(&str)) -> String {
    let mut drawn = hex(&random::get_random_bytes(5));
    between("first");
    drawn += &hex(&random::get_random_u64().to_le_bytes());
    drawn += &hex(&insecure::get_insecure_random_bytes(5));
    between("second");
    drawn += &hex(&random::get_random_bytes(40));
    drawn += &hex(&insecure::get_insecure_random_u64().to_le_bytes());
    drawn
}

fn hash_order() -> String {
    let map: HashMap<u32, ()> = (0..20).map(|number| (number, ())).collect();
    let order: Vec<String> = map.keys().map(u32::to_string).collect();
    format!("{}-{:?}", order.join(","), insecure_seed::insecure_seed())
}

/// Everything here is ready whenever it is asked, so it may be asked for anywhere.
fn poll_what_is_ready(_: &str) -> String {
    let past = monotonic_clock::subscribe_duration(0);
    past.block();
    let stdout = wasip2::cli::stdout::get_stdout();
    let writable = stdout.subscribe();
    let ready = wasip2::io::poll::poll(&[&past, &writable]);
    let earlier = monotonic_clock::subscribe_instant(monotonic_clock::now());
    format!("{ready:?} {} {}", writable.ready(), earlier.ready())
}

fn surroundings(_: &str) -> String {
    let mut variables: Vec<String> = std::env::vars()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    variables.sort();
    let mut stdin = Vec::new();
    let read = std::io::stdin().read_to_end(&mut stdin);
    format!(
        "{variables:?} {:?} {:?} {:?} {}",
        std::env::args().collect::<Vec<_>>(),
        read.map_err(|error| error.kind()),
        std::fs::read_dir("/")
            .map(|_| ())
            .map_err(|error| error.kind()),
        std::thread::Builder::new().spawn(|| ()).is_ok(),
    )
}
