//! A run's log, page by page.

use axum::extract::State;
use serde::Deserialize;
use stepwell_core::id::RunId;

use super::find;
use crate::body::JsonResponse;
use crate::error::Problem;
use crate::extract::{Path, Query, Tenant, bad, number};
use crate::patience::{Patience, is_settled};
use crate::server::Server;
use crate::wire;

/// Lines on one page.
const LIMIT_DEFAULT: usize = 200;
/// The same, at most.
const LIMIT_MAX: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogsQuery {
    #[serde(default, deserialize_with = "number")]
    after: Option<u64>,
    #[serde(default, deserialize_with = "number")]
    limit: Option<usize>,
    #[serde(default, deserialize_with = "number")]
    wait_ms: Option<u64>,
}

/// `GET /v1/runs/{run}/logs`: with `wait_ms`, once there is a line after `after`, or the run has
/// ended or is stuck.
pub(super) async fn get(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(id): Path<RunId>,
    Query(query): Query<LogsQuery>,
) -> Result<JsonResponse<wire::Logs>, Problem> {
    let after = query.after.unwrap_or(0);
    let limit = query.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(bad(
            "`limit`",
            &format!("{limit} is not from 1 to {LIMIT_MAX}"),
        ));
    }
    find(&server, &tenant, id).await?;
    let mut patience = Patience::new(&server, id, query.wait_ms)?;
    loop {
        let run = find(&server, &tenant, id).await?;
        let lines = server
            .engine()
            .store()
            .logs(&tenant, id, after, limit)
            .await?;
        if !lines.is_empty() || is_settled(run.status) || !patience.next_look().await {
            return Ok(JsonResponse(wire::Logs::page(&run, after, lines)));
        }
    }
}
