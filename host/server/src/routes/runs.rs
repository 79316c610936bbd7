//! Starting runs and looking at them.

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde::Deserialize;
use stepwell_core::id::{RunId, VersionLabel, WorkflowName};
use stepwell_core::payload::Payload;
use stepwell_core::run::Status;
use stepwell_core::time::Timestamp;
use stepwell_engine::start::Start;
use stepwell_store::RunFilter;

use super::find;
use crate::body::{JsonRequest, JsonResponse};
use crate::error::Problem;
use crate::extract::{Path, Query, Tenant, bad, header, number};
use crate::patience::{Patience, is_settled};
use crate::server::Server;
use crate::wire;

/// Runs on one page.
const LIST_DEFAULT: usize = 50;
/// The same, at most. The store reads whole runs for it, input included.
const LIST_MAX: usize = 200;

/// The header that says what `idempotency_key` says.
const KEY_HEADER: &str = "idempotency-key";

/// `POST /v1/workflows/{workflow}/runs`: 201, or 200 if its idempotency key had started it before.
pub(super) async fn start(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(workflow): Path<WorkflowName>,
    headers: HeaderMap,
    JsonRequest(request): JsonRequest<wire::Start>,
) -> Result<impl IntoResponse, Problem> {
    let label = request
        .version
        .as_deref()
        .map(str::parse::<VersionLabel>)
        .transpose();
    let label = label.map_err(|error| bad("`version`", &error))?;
    let start = Start {
        tenant,
        workflow,
        label,
        idempotency_key: idempotency_key(&headers, request.idempotency_key)?,
        start_at: start_at(&server, request.start_at, request.delay)?,
        input: payload("input", request.input, request.input_base64)?,
    };
    let started = server.engine().start(start).await?;
    let status = if started.is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let body = wire::Started {
        run: started.run.to_string(),
        is_new: started.is_new,
    };
    Ok((
        status,
        [(LOCATION, format!("/v1/runs/{}", started.run))],
        JsonResponse(body),
    ))
}

fn idempotency_key(
    headers: &HeaderMap,
    in_body: Option<String>,
) -> Result<Option<String>, Problem> {
    let Some(header) = header(headers, KEY_HEADER)? else {
        return Ok(in_body);
    };
    match in_body {
        Some(key) if key != header => Err(bad(
            "`idempotency_key`",
            &"it differs from the header Idempotency-Key; send the key in one of the two places",
        )),
        _ => Ok(Some(header.to_owned())),
    }
}

fn start_at(
    server: &Server,
    at: Option<wire::Instant>,
    delay: Option<wire::Span>,
) -> Result<Option<Timestamp>, Problem> {
    match (at, delay) {
        (Some(_), Some(_)) => Err(bad(
            "`start_at`",
            &"`delay` says when to start, too; send one of the two",
        )),
        (Some(at), None) => Ok(Some(at.0)),
        (None, Some(delay)) => Ok(Some(server.clock().now().after(delay.0))),
        (None, None) => Ok(None),
    }
}

/// A payload from its two fields; JSON `null` if both are absent.
pub(super) fn payload(
    field: &'static str,
    json: Option<wire::Json>,
    base64: Option<String>,
) -> Result<Payload, Problem> {
    if json.is_some() && base64.is_some() {
        return Err(bad(
            &format!("`{field}`"),
            &format!("`{field}_base64` gives it, too; send one of the two"),
        ));
    }
    let payload =
        wire::from_request(field, json, base64).map_err(|error| bad("the body", &error))?;
    Ok(payload.unwrap_or_else(Payload::null))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    workflow: Option<String>,
    /// One or more, separated by commas.
    status: Option<String>,
    #[serde(default, deserialize_with = "number")]
    limit: Option<usize>,
    before: Option<String>,
}

/// `GET /v1/runs`
pub(super) async fn list(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Query(query): Query<ListQuery>,
) -> Result<JsonResponse<wire::Runs>, Problem> {
    let workflow = query
        .workflow
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error| bad("`workflow`", &error))?;
    let before = query
        .before
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error| bad("`before`", &error))?;
    let statuses = query
        .status
        .iter()
        .flat_map(|list| list.split(','))
        .map(|name| name.trim().parse::<Status>());
    let statuses = statuses
        .collect::<Result<_, _>>()
        .map_err(|error| bad("`status`", &error))?;
    let limit = query.limit.unwrap_or(LIST_DEFAULT);
    if !(1..=LIST_MAX).contains(&limit) {
        return Err(bad(
            "`limit`",
            &format!("{limit} is not from 1 to {LIST_MAX}"),
        ));
    }
    // One more than asked for tells whether there is a next page.
    let filter = RunFilter {
        workflow,
        statuses,
        before,
        limit: limit + 1,
    };
    let mut runs = server.engine().store().runs(&tenant, filter).await?;
    let is_last = runs.len() <= limit;
    runs.truncate(limit);
    let before = runs
        .last()
        .filter(|_| !is_last)
        .map(|run| run.run.to_string());
    Ok(JsonResponse(wire::Runs {
        runs: runs.iter().map(wire::RunSummary::from).collect(),
        before,
    }))
}

/// `GET /v1/runs/{run}`
pub(super) async fn get(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(run): Path<RunId>,
) -> Result<JsonResponse<wire::Run>, Problem> {
    Ok(JsonResponse(wire::Run::from(
        &find(&server, &tenant, run).await?,
    )))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitQuery {
    #[serde(default, deserialize_with = "number")]
    wait_ms: Option<u64>,
}

/// `GET /v1/runs/{run}/wait`: the run, once it has ended or needs an operator, or as it is when the
/// time is up (60 s unless `wait_ms` says less).
pub(super) async fn wait(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(id): Path<RunId>,
    Query(query): Query<WaitQuery>,
) -> Result<JsonResponse<wire::Run>, Problem> {
    find(&server, &tenant, id).await?;
    let mut patience = Patience::new(&server, id, Some(query.wait_ms.unwrap_or(u64::MAX)))?;
    loop {
        let run = find(&server, &tenant, id).await?;
        if is_settled(run.status) || !patience.next_look().await {
            return Ok(JsonResponse(wire::Run::from(&run)));
        }
    }
}

/// `GET /v1/runs/{run}/published`
pub(super) async fn published(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(run): Path<RunId>,
) -> Result<JsonResponse<wire::Published>, Problem> {
    find(&server, &tenant, run).await?;
    let values = server.engine().store().published(&tenant, run).await?;
    Ok(JsonResponse(wire::Published::new(run, &values)))
}
