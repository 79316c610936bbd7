//! Every route. All are about the tenant that the header `Stepwell-Tenant` names.
//!
//! | route | does |
//! |---|---|
//! | `GET /v1/health` | 200 if the store answers |
//! | `PUT /v1/versions/{version}?env=K=V` | registers the component in the body under this label |
//! | `GET /v1/versions` | all versions |
//! | `GET /v1/workflows/{workflow}/versions` | those of one workflow |
//! | `POST /v1/workflows/{workflow}/runs` | starts a run |
//! | `GET /v1/runs?workflow&status&limit&before` | lists runs, newest first |
//! | `GET /v1/runs/{run}` | one run |
//! | `GET /v1/runs/{run}/wait?wait_ms` | the same, once it has ended or is stuck |
//! | `GET /v1/runs/{run}/history?from&limit&wait_ms` | its journal |
//! | `GET /v1/runs/{run}/logs?after&limit&wait_ms` | its log |
//! | `GET /v1/runs/{run}/published` | what it shows to the outside |
//! | `GET /v1/runs/{run}/events` | events and what became of them |
//! | `POST /v1/runs/{run}/events/{event}` | sends one |
//! | `GET /v1/runs/{run}/events/{event}?wait_ms` | one event, once it was answered |
//! | `POST /v1/runs/{run}/cancel`, `…/terminate` | stops it; `reason` says why |
//! | `POST /v1/runs/{run}/pause`, `…/resume`, `…/wake` | holds it, lets it go on, ends its sleep |
//!
//! `wait_ms` lets a request wait for news, up to 60 s; it is answered with what there is when the
//! time is up.

mod events;
mod health;
mod history;
mod logs;
mod runs;
mod verbs;
mod versions;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use stepwell_core::id::{RunId, TenantName};

use crate::error::{Kind, Problem};
use crate::linger;
use crate::server::Server;

pub(crate) fn router(server: Server) -> Router {
    Router::new()
        .route("/v1/health", get(health::get))
        .route("/v1/versions", get(versions::list))
        .route("/v1/versions/{version}", put(versions::register))
        .route(
            "/v1/workflows/{workflow}/versions",
            get(versions::list_of_workflow),
        )
        .route("/v1/workflows/{workflow}/runs", post(runs::start))
        .route("/v1/runs", get(runs::list))
        .route("/v1/runs/{run}", get(runs::get))
        .route("/v1/runs/{run}/wait", get(runs::wait))
        .route("/v1/runs/{run}/history", get(history::get))
        .route("/v1/runs/{run}/logs", get(logs::get))
        .route("/v1/runs/{run}/published", get(runs::published))
        .route("/v1/runs/{run}/events", get(events::list))
        .route(
            "/v1/runs/{run}/events/{event}",
            post(events::send).get(events::get),
        )
        .route("/v1/runs/{run}/cancel", post(verbs::cancel))
        .route("/v1/runs/{run}/pause", post(verbs::pause))
        .route("/v1/runs/{run}/resume", post(verbs::resume))
        .route("/v1/runs/{run}/wake", post(verbs::wake))
        .route("/v1/runs/{run}/terminate", post(verbs::terminate))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn(refuse_cross_origin))
        .layer(middleware::from_fn(linger::linger))
        .with_state(server)
}

async fn no_such_path(uri: Uri) -> Problem {
    Problem::new(
        Kind::NoSuchPath,
        format!(
            "there is nothing at {}; every path begins with /v1/",
            uri.path()
        ),
    )
}

async fn no_such_method(method: Method, uri: Uri) -> Problem {
    Problem::new(
        Kind::NoSuchMethod,
        format!(
            "{} takes no {method}; the header Allow says what it takes",
            uri.path()
        ),
    )
}

/// A page that a developer happens to visit must not start runs on the host on their own machine:
/// browsers name the page's origin, and it has to be this server.
async fn refuse_cross_origin(request: Request, next: Next) -> Response {
    match foreign_origin(request.headers()) {
        None => next.run(request).await,
        Some(origin) => {
            let detail =
                format!("a page at {origin} asked for this, and only pages of this server may");
            Problem::new(Kind::CrossOrigin, detail).into_response()
        }
    }
}

fn foreign_origin(headers: &HeaderMap) -> Option<&str> {
    let text = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let origin = text(ORIGIN)?;
    let authority = origin
        .split_once("://")
        .map_or(origin, |(_, authority)| authority);
    (text(HOST) != Some(authority)).then_some(origin)
}

/// The run, if this tenant has it.
async fn find(
    server: &Server,
    tenant: &TenantName,
    run: RunId,
) -> Result<stepwell_store::Run, Problem> {
    server
        .engine()
        .store()
        .run(tenant, run)
        .await?
        .ok_or_else(|| Problem::no_such_run(run))
}
