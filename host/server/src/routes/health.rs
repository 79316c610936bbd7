//! Whether the host can do its work.

use axum::extract::State;
use serde::Serialize;
use stepwell_store::RunFilter;

use crate::body::JsonResponse;
use crate::error::Problem;
use crate::extract::Tenant;
use crate::server::Server;

#[derive(Serialize)]
pub(super) struct Health {
    status: &'static str,
    version: &'static str,
}

/// Reads from the store: a host that cannot is of no use to anybody.
pub(super) async fn get(
    State(server): State<Server>,
    Tenant(tenant): Tenant,
) -> Result<JsonResponse<Health>, Problem> {
    server
        .engine()
        .store()
        .runs(
            &tenant,
            RunFilter {
                limit: 1,
                ..RunFilter::default()
            },
        )
        .await?;
    Ok(JsonResponse(Health {
        status: "ok",
        version: env!("CARGO_PKG_VERSION"),
    }))
}
