//! A run's journal, page by page.

use axum::extract::State;
use serde::Deserialize;
use stepwell_core::id::{RunId, Sequence, TenantName};
use stepwell_core::journal::{Ending, Entry, Record};
use stepwell_core::payload::{Failure, Payload};

use super::find;
use crate::body::JsonResponse;
use crate::error::Problem;
use crate::extract::{Path, Query, Tenant, bad, number};
use crate::patience::{Patience, is_settled};
use crate::server::Server;
use crate::wire;

/// Entries on one page.
const LIMIT_DEFAULT: usize = 200;
/// The same, at most.
const LIMIT_MAX: usize = 1_000;
/// Payload bytes on one page; it ends with the entry that goes over.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Entries in one read: of 1 MiB each, 32 MiB are in memory at once.
const READ_ENTRIES: usize = 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    #[serde(default, deserialize_with = "number")]
    from: Option<u64>,
    #[serde(default, deserialize_with = "number")]
    limit: Option<usize>,
    #[serde(default, deserialize_with = "number")]
    wait_ms: Option<u64>,
}

/// `GET /v1/runs/{run}/history`: with `wait_ms`, once there is an entry from `from` on, or
/// the run has ended, is stuck, or has gone on with a fresh journal.
pub(super) async fn get(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(id): Path<RunId>,
    Query(query): Query<HistoryQuery>,
) -> Result<JsonResponse<wire::History>, Problem> {
    let from = Sequence(query.from.unwrap_or(0));
    let limit = query.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(bad(
            "`limit`",
            &format!("{limit} is not from 1 to {LIMIT_MAX}"),
        ));
    }
    let generation = find(&server, &tenant, id).await?.generation;
    let mut patience = Patience::new(&server, id, query.wait_ms)?;
    loop {
        let run = find(&server, &tenant, id).await?;
        let is_told = run.entries > from || is_settled(run.status) || run.generation != generation;
        if is_told || !patience.next_look().await {
            let entries = page(&server, &tenant, id, from, limit).await?;
            return Ok(JsonResponse(wire::History::page(&run, from, entries)));
        }
    }
}

async fn page(
    server: &Server,
    tenant: &TenantName,
    run: RunId,
    from: Sequence,
    limit: usize,
) -> Result<Vec<(Sequence, Entry)>, Problem> {
    let mut page = Vec::new();
    let mut bytes = 0;
    while page.len() < limit && bytes < PAGE_BYTES_MAX {
        let wanted = READ_ENTRIES.min(limit - page.len());
        let read = server
            .engine()
            .store()
            .history(tenant, run, from.plus(page.len()), wanted)
            .await?;
        let read = read.ok_or_else(|| Problem::no_such_run(run))?;
        let is_last = read.len() < wanted;
        for (sequence, entry) in read {
            if bytes < PAGE_BYTES_MAX {
                bytes += size_bytes(&entry.record);
                page.push((sequence, entry));
            }
        }
        if is_last {
            break;
        }
    }
    Ok(page)
}

/// What an entry's guest values take; the rest is small.
fn size_bytes(record: &Record) -> usize {
    let either = |answer: &Result<Payload, Failure>| match answer {
        Ok(payload) => payload.size_bytes(),
        Err(failure) => failure.size_bytes(),
    };
    match record {
        Record::Refused { failure: cause, .. } | Record::AttemptEnded { cause, .. } => {
            cause.size_bytes()
        }
        Record::StepFailed { error, .. } | Record::TaskFailed { error, .. } => {
            error.cause.size_bytes()
        }
        Record::StepCompleted {
            output: payload, ..
        }
        | Record::TaskCompleted {
            output: payload, ..
        }
        | Record::Published { value: payload, .. }
        | Record::Ended(Ending::Completed(payload) | Ending::ContinuedAsNew(payload)) => {
            payload.size_bytes()
        }
        Record::EventTaken { event, .. } => event.payload.size_bytes(),
        Record::Replied { answer, .. } => either(answer),
        Record::Ended(Ending::Failed(failure)) => failure.cause.size_bytes(),
        Record::Opened { .. }
        | Record::AttemptStarted { .. }
        | Record::BackoffOver { .. }
        | Record::Slept { .. }
        | Record::TimedOut { .. }
        | Record::CancelDelivered { .. }
        | Record::Ended(Ending::Cancelled { .. } | Ending::Terminated { .. }) => 0,
    }
}
