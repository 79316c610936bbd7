//! What may be asked of a run: one route for each verb.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use stepwell_core::id::{RunId, TenantName};
use stepwell_core::run::Verb;
use stepwell_store::{Delivered, Message};

use super::find;
use crate::body::{JsonRequest, JsonResponse};
use crate::error::{Kind, Problem};
use crate::extract::{Path, Tenant, bad};
use crate::server::Server;
use crate::wire;

/// The longest reason: it goes into the journal.
const REASON_BYTES_MAX: usize = 4 * 1024;

/// `POST /v1/runs/{run}/cancel`
pub(super) async fn cancel(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(run): Path<RunId>,
    JsonRequest(request): JsonRequest<wire::Verb>,
) -> Result<Response, Problem> {
    let reason = kept_reason(request)?;
    ask(
        &server,
        &tenant,
        run,
        Verb::Cancel,
        Message::Cancel { reason },
    )
    .await
}

/// `POST /v1/runs/{run}/terminate`
pub(super) async fn terminate(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(run): Path<RunId>,
    JsonRequest(request): JsonRequest<wire::Verb>,
) -> Result<Response, Problem> {
    let reason = kept_reason(request)?;
    ask(
        &server,
        &tenant,
        run,
        Verb::Terminate,
        Message::Terminate { reason },
    )
    .await
}

/// `POST /v1/runs/{run}/pause`
pub(super) async fn pause(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(run): Path<RunId>,
    JsonRequest(request): JsonRequest<wire::Verb>,
) -> Result<Response, Problem> {
    no_reason(&request, Verb::Pause)?;
    ask(&server, &tenant, run, Verb::Pause, Message::Pause).await
}

/// `POST /v1/runs/{run}/resume`
pub(super) async fn resume(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(run): Path<RunId>,
    JsonRequest(request): JsonRequest<wire::Verb>,
) -> Result<Response, Problem> {
    no_reason(&request, Verb::Resume)?;
    ask(&server, &tenant, run, Verb::Resume, Message::Resume).await
}

/// `POST /v1/runs/{run}/wake`
pub(super) async fn wake(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(run): Path<RunId>,
    JsonRequest(request): JsonRequest<wire::Verb>,
) -> Result<Response, Problem> {
    no_reason(&request, Verb::Wake)?;
    ask(&server, &tenant, run, Verb::Wake, Message::Wake).await
}

fn kept_reason(request: wire::Verb) -> Result<String, Problem> {
    let reason = request.reason.unwrap_or_default();
    if reason.len() > REASON_BYTES_MAX {
        return Err(bad(
            "`reason`",
            &format!(
                "it has {} bytes; the limit is {REASON_BYTES_MAX}",
                reason.len()
            ),
        ));
    }
    Ok(reason)
}

/// These verbs leave nothing in the journal, so a reason would be lost without a word.
fn no_reason(request: &wire::Verb, verb: Verb) -> Result<(), Problem> {
    match request.reason {
        Some(_) => Err(bad(
            "`reason`",
            &format!("a {verb} keeps no reason; leave it out"),
        )),
        None => Ok(()),
    }
}

/// 202, or 200 if it had been asked before.
async fn ask(
    server: &Server,
    tenant: &TenantName,
    run: RunId,
    verb: Verb,
    message: Message,
) -> Result<Response, Problem> {
    let is_new = match server.engine().deliver(tenant, run, message).await? {
        Delivered::Accepted { .. } => true,
        Delivered::Already { .. } => false,
        Delivered::Refused { status } => return Err(Problem::refused(run, verb, status)),
        Delivered::NoSuchRun => return Err(Problem::no_such_run(run)),
        Delivered::MailboxFull => {
            return Err(Problem::new(
                Kind::Internal,
                format!("the store counts a {verb} as an event; please report it"),
            ));
        }
    };
    let status = find(server, tenant, run).await?.status;
    let code = if is_new {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    };
    let verdict = wire::Verdict {
        run: run.to_string(),
        verb: verb.to_string(),
        is_new,
        status: status.to_string(),
    };
    Ok((code, JsonResponse(verdict)).into_response())
}
