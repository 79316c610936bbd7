//! Registering components, and the versions that come of it.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use stepwell_core::id::{VersionLabel, WorkflowName};
use stepwell_engine::register::Registration;
use tokio::sync::Semaphore;

use crate::body::{self, Bounds, JsonResponse};
use crate::error::{Kind, Problem};
use crate::extract::{Path, Query, Tenant, bad};
use crate::server::Server;
use crate::wire;

/// For a component to arrive: 32 MiB at a little over 2 Mbit/s.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// For a place among the uploads.
const PLACE_TIMEOUT: Duration = Duration::from_secs(30);

/// `PUT /v1/versions/{version}`: 201, or 200 if the same was registered before.
pub(super) async fn register(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(label): Path<VersionLabel>,
    Query(query): Query<Vec<(String, String)>>,
    request: Request,
) -> Result<impl IntoResponse, Problem> {
    let environment = query
        .into_iter()
        .map(environment_variable)
        .collect::<Result<_, _>>()?;
    let _place = tokio::time::timeout(PLACE_TIMEOUT, server.upload_places().acquire())
        .await
        .map_err(|_| {
            Problem::new(
                Kind::Busy,
                "other components are being registered; try again soon",
            )
        })?;
    let (parts, body) = request.into_parts();
    let bounds = Bounds {
        bytes_max: server.engine().config().limits.component_bytes_max,
        timeout: UPLOAD_TIMEOUT,
        // An upload has a place already, so it never waits for one of these.
        places: &Semaphore::new(1),
    };
    let component = body::read(&parts.headers, body, &bounds).await?;
    let registration = Registration {
        tenant,
        label: label.clone(),
        component: component.as_ref().into(),
        environment,
    };
    drop(component);
    let registered = server.engine().register(registration).await?;
    let status = if registered.is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((
        status,
        JsonResponse(wire::Registered::new(label.to_string(), &registered)),
    ))
}

fn environment_variable((parameter, text): (String, String)) -> Result<(String, String), Problem> {
    if parameter != "env" {
        return Err(bad(
            "the query",
            &format!("unknown parameter `{parameter}`, expected `env`"),
        ));
    }
    match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(bad(
            "the query",
            &format!("`env={text}` sets nothing; write `env=NAME=value`"),
        )),
    }
}

/// `GET /v1/versions`
pub(super) async fn list(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
) -> Result<JsonResponse<wire::Versions>, Problem> {
    let versions = server.engine().store().versions(&tenant).await?;
    Ok(JsonResponse(wire::Versions {
        versions: versions.into_iter().map(wire::Version::from).collect(),
    }))
}

/// `GET /v1/workflows/{workflow}/versions`
pub(super) async fn list_of_workflow(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
    Path(workflow): Path<WorkflowName>,
) -> Result<JsonResponse<wire::Versions>, Problem> {
    let versions = server.engine().store().versions(&tenant).await?;
    let versions: Vec<_> = versions
        .into_iter()
        .filter(|version| version.workflow == workflow)
        .map(wire::Version::from)
        .collect();
    if versions.is_empty() {
        return Err(stepwell_engine::start::Error::NoSuchWorkflow { workflow }.into());
    }
    Ok(JsonResponse(wire::Versions { versions }))
}
