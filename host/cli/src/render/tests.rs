//! Drawings, as snapshots: each diff is a change of what people see.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use insta::assert_snapshot;
use serde_json::{Value, json};
use stepwell_core::time::Timestamp;
use stepwell_server::wire::{Entry, Instant, Line, PublishedValue, Run, Runs, Versions};

use super::{Live, Shown, Style, ended, line, run, runs, versions};

const ID: &str = "run_01920000000070008000000000000001";

/// The run below was started at this time.
fn start() -> Instant {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn at(ms: u64) -> String {
    Instant(Timestamp::from_ms(start().0.as_ms() + ms)).to_string()
}

fn now(ms: u64) -> Timestamp {
    Timestamp::from_ms(start().0.as_ms() + ms)
}

/// A run document with these fields changed or added.
fn a_run(changes: Value) -> Run {
    let mut run = json!({
        "run": ID, "tenant": "default", "workflow": "order", "version": "1.0", "digest": "sha256:ab",
        "status": "running", "is_final": false, "created_at": at(0), "updated_at": at(0),
        "generation": 0, "entries": 3, "journal_bytes": 640, "revision": 7, "input": { "id": 12_345_678_901_234_567_u64 },
    });
    run.as_object_mut()
        .unwrap()
        .extend(changes.as_object().unwrap().clone());
    serde_json::from_str(&run.to_string()).unwrap()
}

fn entries(entries: &[Value]) -> Vec<Entry> {
    let numbered = entries.iter().enumerate().map(|(sequence, entry)| {
        let mut entry = entry.clone();
        entry["sequence"] = json!(sequence);
        serde_json::from_str(&entry.to_string()).unwrap()
    });
    numbered.collect()
}

fn shown(run: Run, entries: Vec<Entry>) -> Shown {
    Shown {
        run,
        entries,
        published: Vec::new(),
        logs: Vec::new(),
        event_schemas: std::collections::BTreeMap::new(),
        has_values: false,
    }
}

fn declined(ms: u64, number: u32) -> Value {
    json!({
        "type": "attempt-ended", "at": at(ms), "operation": 1, "name": "charge", "attempt": number, "end": "failed",
        "failure": { "kind": "card-declined", "message": "no funds", "retryable": true }, "retry_at": at(ms + 1_000),
    })
}

fn order() -> Vec<Entry> {
    entries(&[
        json!({ "type": "step-completed", "at": at(120), "operation": 0, "name": "reserve", "attempts": 1, "value": { "ok": true } }),
        declined(300, 1),
        declined(1_500, 2),
        json!({ "type": "backoff-over", "at": at(2_500), "operation": 1 }),
        json!({ "type": "step-completed", "at": at(2_900), "operation": 1, "name": "charge", "attempts": 3, "value": "ch_1" }),
        json!({ "type": "published", "at": at(2_900), "operation": 2, "key": "progress", "value": 50 }),
        json!({ "type": "sleep-started", "at": at(2_900), "operation": 3, "name": "cool-off", "due_at": at(8_900) }),
        json!({ "type": "slept", "at": at(8_900), "operation": 3, "wake": "elapsed" }),
        json!({ "type": "wait-started", "at": at(8_900), "operation": 4, "name": "approval", "timeout_at": at(86_408_900) }),
    ])
}

#[test]
fn a_waiting_run_says_what_it_waits_for_and_how_to_send_it() {
    let run_document =
        a_run(json!({ "status": "waiting", "due_at": at(86_408_900), "entries": 9 }));
    let mut shown = shown(run_document, order());
    shown.has_values = true;
    let schema =
        r#"{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"}}}"#;
    shown
        .event_schemas
        .insert("approval".to_owned(), schema.to_owned());
    shown.published = vec![
        serde_json::from_value::<PublishedValue>(json!({ "key": "progress", "at": at(2_900) }))
            .unwrap(),
    ];
    shown.published[0].value =
        Some(serde_json::value::RawValue::from_string("50".to_owned()).unwrap());
    shown.logs = vec![
        serde_json::from_value::<Line>(json!({
            "number": 1, "at": at(110), "level": "info", "message": "reserving \u{1b}[31m", "fields": { "item": "book" },
        }))
        .unwrap(),
    ];
    assert_snapshot!(run(Style::PLAIN, now(12_000), &shown));
}

#[test]
fn a_completed_run_shows_its_result_byte_for_byte() {
    let mut journal = order();
    journal.extend(entries(&[
        json!({ "type": "event-taken", "at": at(9_500), "operation": 4, "event": "evt_1", "sent_at": at(9_499), "value": { "by": "anna" } }),
        json!({ "type": "completed", "at": at(9_600), "value": "done" }),
    ]));
    let run_document = a_run(json!({
        "status": "completed", "is_final": true, "updated_at": at(9_600), "entries": 11,
        "result": { "total": 18_446_744_073_709_551_615_u64 },
    }));
    assert_snapshot!(run(
        Style::PLAIN,
        now(60_000),
        &shown(run_document, journal)
    ));
}

#[test]
fn a_failed_run_tells_the_step_the_attempts_and_the_backtrace() {
    let run_document = a_run(json!({
        "status": "failed", "is_final": true, "updated_at": at(4_000), "entries": 4,
        "failure": {
            "source": "step", "step": "charge", "attempts": 3, "end": "trapped", "kind": "panic",
            "message": "index out of bounds\nthe len is 0", "retryable": true,
            "backtrace": "0: order::charge at src/lib.rs:12:9\n1: order::run at src/lib.rs:40:5",
        },
    }));
    let journal = entries(&[
        declined(100, 1),
        declined(1_200, 2),
        json!({
            "type": "step-failed", "at": at(4_000), "operation": 1, "name": "charge", "attempts": 3, "end": "trapped",
            "failure": { "kind": "panic", "message": "index out of bounds", "retryable": true },
        }),
        json!({ "type": "failed", "at": at(4_000) }),
    ]);
    assert_snapshot!(run(
        Style::PLAIN,
        now(3_600_000),
        &shown(run_document, journal)
    ));
}

#[test]
fn a_stuck_run_says_why_and_what_to_do() {
    let run_document = a_run(json!({
        "status": "stuck", "entries": 0, "reason": "no progress over 5 claims in a row; the host went down each time",
    }));
    assert_snapshot!(run(
        Style::PLAIN,
        now(90_000),
        &shown(run_document, Vec::new())
    ));
}

#[test]
fn a_long_journal_is_drawn_from_both_ends() {
    let steps: Vec<_> = (0..500_u64)
        .map(|n| json!({ "type": "step-completed", "at": at(n * 10), "operation": n, "name": format!("step-{n}"), "attempts": 1 }))
        .collect();
    let drawn = run(
        Style::PLAIN,
        now(6_000),
        &shown(a_run(json!({ "entries": 500 })), entries(&steps)),
    );
    assert!(drawn.contains("420 operations"), "{drawn}");
    assert!(
        drawn.contains("step-19 ") && !drawn.contains("step-20 ") && drawn.contains("step-499 "),
        "{drawn}"
    );
}

#[test]
fn a_run_is_told_line_by_line_as_it_happens() {
    let mut live = Live::new(Style::PLAIN);
    let mut drawn: String = order()
        .iter()
        .filter_map(|entry| live.entry(start(), entry))
        .collect();
    let more = entries(&[
        json!({ "type": "event-taken", "at": at(9_500), "operation": 4, "event": "evt_1", "value": { "by": "anna" } }),
        json!({ "type": "task-started", "at": at(9_500), "operation": 5, "name": "pack" }),
        json!({ "type": "task-completed", "at": at(9_900), "operation": 5, "attempts": 2, "value": 1 }),
        json!({ "type": "cancel-delivered", "at": at(9_950), "reason": "customer changed their mind", "grace_until": at(40_000) }),
        json!({ "type": "a-type-of-tomorrow", "at": at(9_960), "operation": 6 }),
        json!({ "type": "completed", "at": at(9_999) }),
    ]);
    drawn.extend(more.iter().filter_map(|entry| live.entry(start(), entry)));
    assert_snapshot!(drawn);
}

#[test]
fn lists_line_up() {
    let list: Runs = serde_json::from_value(json!({
        "runs": [
            { "run": ID, "workflow": "order", "version": "1.0", "status": "sleeping", "created_at": at(0), "updated_at": at(0), "due_at": at(82_800_000), "entries": 3 },
            { "run": ID, "workflow": "nightly-report", "version": "2026-03", "status": "failed", "created_at": at(0), "updated_at": at(0), "entries": 3, "reason": "card-declined: no funds" },
            { "run": ID, "workflow": "order", "version": "1.0", "status": "completed", "created_at": at(0), "updated_at": at(0), "entries": 3 },
        ],
        "before": ID,
    }))
    .unwrap();
    let known: Versions = serde_json::from_value(json!({ "versions": [
        { "workflow": "order", "version": "1.1", "digest": format!("sha256:{}", "ab".repeat(32)), "registered_at": at(0), "is_default": true, "environment": { "SHOP": "x" } },
        { "workflow": "order", "version": "1.0", "digest": format!("sha256:{}", "cd".repeat(32)), "registered_at": at(0), "is_default": false, "environment": {} },
    ] }))
    .unwrap();
    let drawn = format!(
        "{}\n{}",
        runs(Style::PLAIN, now(240_000), &list),
        versions(Style::PLAIN, now(240_000), &known)
    );
    assert_snapshot!(drawn);
}

#[test]
fn colour_only_adds_escapes() {
    let shown = shown(a_run(json!({ "status": "waiting" })), order());
    let coloured = run(Style::COLOUR, now(12_000), &shown);
    let mut stripped = coloured.clone();
    while let Some(begin) = stripped.find('\u{1b}') {
        let end = begin + stripped[begin..].find('m').unwrap();
        stripped.replace_range(begin..=end, "");
    }
    let trimmed: Vec<_> = stripped.lines().map(str::trim_end).collect();
    assert_eq!(
        trimmed.join("\n"),
        run(Style::PLAIN, now(12_000), &shown).trim_end()
    );
    assert_ne!(coloured, stripped);
}

#[test]
fn nothing_a_guest_says_reaches_the_terminal_raw() {
    let hostile = "x\u{1b}]0;title\u{7}";
    let failure =
        json!({ "kind": hostile, "message": hostile, "retryable": false, "backtrace": hostile });
    let run_document = a_run(json!({
        "status": "failed", "is_final": true, "workflow": hostile, "version": hostile, "failure": failure,
    }));
    let journal = entries(&[
        json!({ "type": "step-failed", "at": at(1), "operation": 0, "name": hostile, "attempts": 1, "end": "failed", "failure": failure }),
        json!({ "type": "published", "at": at(1), "operation": 1, "key": hostile, "value": 1 }),
    ]);
    let mut live = Live::new(Style::PLAIN);
    let mut drawn: String = journal
        .iter()
        .filter_map(|entry| live.entry(start(), entry))
        .collect();
    drawn.push_str(&ended(Style::PLAIN, &run_document));
    let logged = json!({ "number": 1, "at": at(1), "level": "info", "message": hostile, "fields": { hostile: hostile } });
    drawn.push_str(&line(
        Style::PLAIN,
        &serde_json::from_value(logged).unwrap(),
    ));
    drawn.push_str(&run(Style::PLAIN, now(10), &shown(run_document, journal)));
    assert!(!drawn.contains(['\u{1b}', '\u{7}']), "{drawn:?}");
}
