//! Events: sending one, and what became of those that were sent.

use std::str::FromStr;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use stepwell_core::id::{EventId, RunId};
use stepwell_core::limits::Limits;
use stepwell_core::run::Verb;
use stepwell_engine::send::Send;
use stepwell_store::Delivered;

use super::find;
use super::runs::payload;
use crate::body::{JsonRequest, JsonResponse};
use crate::error::{Kind, Problem};
use crate::extract::{Path, Query, Segment, Tenant, number};
use crate::patience::{Patience, is_settled};
use crate::server::Server;
use crate::wire;

/// The name of an event, as guests may wait for it.
#[derive(Debug)]
pub(super) struct EventName(String);

impl FromStr for EventName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes_max = Limits::default().name_bytes_max;
        if text.is_empty() || text.len() > bytes_max {
            return Err(format!(
                "the name of an event is 1 to {bytes_max} bytes of text; this one has {}",
                text.len()
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl Segment for EventName {
    const NAME: &'static str = "event";
}

impl Segment for EventId {
    const NAME: &'static str = "event";
}

/// `POST /v1/runs/{run}/events/{event}`: 202, or 200 if its delivery key had sent it before.
pub(super) async fn send(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(run): Path<RunId>,
    Path(EventName(name)): Path<EventName>,
    JsonRequest(request): JsonRequest<wire::Send>,
) -> Result<impl IntoResponse, Problem> {
    let payload = payload("payload", request.payload, request.payload_base64)?;
    let mailbox_events_max = server.engine().config().limits.mailbox_events_max;
    let event = Send {
        name,
        payload,
        delivery_key: request.delivery_key,
    };
    let (event, is_new) = match server.engine().send(&tenant, run, event).await? {
        Delivered::Accepted { id } => (id, true),
        Delivered::Already { id: Some(id) } => (id, false),
        Delivered::Already { id: None } => {
            return Err(Problem::new(
                Kind::Internal,
                "the store knows this event and has no id for it; please report it",
            ));
        }
        Delivered::Refused { status } => return Err(Problem::refused(run, Verb::Send, status)),
        Delivered::MailboxFull => {
            let detail = format!(
                "the mailbox of run {run} holds {mailbox_events_max} events that no wait has taken, which is the limit; \
                 send it again later"
            );
            return Err(Problem::new(Kind::MailboxFull, detail).with("limit", mailbox_events_max));
        }
        Delivered::NoSuchRun => return Err(Problem::no_such_run(run)),
    };
    let status = if is_new {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    };
    Ok((
        status,
        JsonResponse(wire::Sent {
            run: run.to_string(),
            event: event.to_string(),
            is_new,
        }),
    ))
}

/// `GET /v1/runs/{run}/events`
pub(super) async fn list(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(run): Path<RunId>,
) -> Result<JsonResponse<wire::Events>, Problem> {
    find(&server, &tenant, run).await?;
    let events = server.engine().store().events(&tenant, run).await?;
    Ok(JsonResponse(wire::Events::new(run, &events)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventQuery {
    #[serde(default, deserialize_with = "number")]
    wait_ms: Option<u64>,
}

/// `GET /v1/runs/{run}/events/{event}`: the event; with `wait_ms`, once the workflow has answered it
/// or has ended or is stuck.
pub(super) async fn get(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(id): Path<RunId>,
    Path(event): Path<EventId>,
    Query(query): Query<EventQuery>,
) -> Result<JsonResponse<wire::Event>, Problem> {
    find(&server, &tenant, id).await?;
    let mut patience = Patience::new(&server, id, query.wait_ms)?;
    loop {
        let run = find(&server, &tenant, id).await?;
        let events = server.engine().store().events(&tenant, id).await?;
        let found = events
            .iter()
            .find(|known| known.id == event)
            .ok_or_else(|| {
                Problem::new(
                    Kind::NoSuchEvent,
                    format!("run {id} has no event {event}; `GET /v1/runs/{id}/events` lists them"),
                )
            })?;
        if found.reply.is_some() || is_settled(run.status) || !patience.next_look().await {
            return Ok(JsonResponse(wire::Event::from(found)));
        }
    }
}
