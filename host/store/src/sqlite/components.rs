//! Table `components`: the bytes of each component, once per tenant and digest.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};
use sha2::{Digest, Sha256};
use stepwell_core::id::ComponentDigest;

use super::fault::{Fault, Result};
use super::tenants::TenantId;

const FIND: &str = "SELECT bytes FROM components WHERE tenant = ?1 AND digest = ?2";
const INSERT: &str = "INSERT INTO components (tenant, digest, bytes) VALUES (?1, ?2, ?3)
    ON CONFLICT (tenant, digest) DO NOTHING";

/// The bytes, which are checked against the digest: they are about to be compiled and run.
pub(super) fn find(
    rows: &Connection,
    tenant: TenantId,
    digest: ComponentDigest,
) -> Result<Option<Arc<[u8]>>> {
    let found: Option<Arc<[u8]>> = rows
        .prepare_cached(FIND)?
        .query_row((tenant.0, digest.as_bytes()), |row| {
            Ok(Arc::from(row.get_ref(0)?.as_blob()?))
        })
        .optional()?;
    if let Some(bytes) = &found {
        let found = ComponentDigest::from_bytes(Sha256::digest(bytes).into());
        if found != digest {
            return Err(Fault::damaged(
                format!("component {digest}"),
                format!("its bytes have digest {found}"),
            ));
        }
    }
    Ok(found)
}

pub(super) fn insert(
    rows: &Connection,
    tenant: TenantId,
    digest: ComponentDigest,
    bytes: &[u8],
) -> Result<()> {
    rows.prepare_cached(INSERT)?
        .execute((tenant.0, digest.as_bytes(), bytes))?;
    Ok(())
}
