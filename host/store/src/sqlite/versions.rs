//! Tables `versions` and `default_versions`: (workflow, label) → component, and what new runs get.

use rusqlite::{Connection, OptionalExtension, Row};
use stepwell_core::id::{ComponentDigest, VersionLabel, WorkflowName};

use super::fault::{OrDamaged, Result};
use super::tenants::TenantId;
use super::value::{Columns, time};
use crate::codec;
use crate::version::{NewVersion, Version};

/// A version's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VersionId(pub(super) i64);

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT v.workflow, v.label, v.digest, v.manifest, v.environment, v.registered_at,
                    d.version IS v.version
             FROM versions v
             LEFT JOIN default_versions d ON d.tenant = v.tenant AND d.workflow = v.workflow ",
            $rest
        )
    };
}

const FIND: &str = select!("WHERE v.tenant = ?1 AND v.workflow = ?2 AND v.label = ?3");
const FIND_DEFAULT: &str =
    select!("WHERE v.tenant = ?1 AND v.workflow = ?2 AND d.version = v.version");
const LIST: &str = select!("WHERE v.tenant = ?1 ORDER BY v.workflow, v.version DESC");
const PIN: &str = "SELECT version, workflow, label, digest, environment FROM versions
    WHERE tenant = ?1 AND workflow = ?2 AND label = ?3";
const PINNED: &str =
    "SELECT version, workflow, label, digest, environment FROM versions WHERE version = ?1";
const IDS: &str = "SELECT version FROM versions WHERE tenant = ?1 AND workflow = ?2";
const INSERT: &str = "INSERT INTO versions
    (tenant, workflow, label, digest, manifest, environment, registered_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const SET_DEFAULT: &str =
    "INSERT INTO default_versions (tenant, workflow, version) VALUES (?1, ?2, ?3)
    ON CONFLICT (tenant, workflow) DO UPDATE SET version = excluded.version";

/// What a run is pinned to.
#[derive(Debug, Clone)]
pub(super) struct Pin {
    pub(super) version: VersionId,
    pub(super) workflow: WorkflowName,
    pub(super) label: VersionLabel,
    pub(super) digest: ComponentDigest,
    /// Environment variables that the guest sees.
    pub(super) environment: Vec<(String, String)>,
}

/// A version by label, or the workflow's default.
pub(super) fn find(
    rows: &Connection,
    tenant: TenantId,
    workflow: &WorkflowName,
    label: Option<&VersionLabel>,
) -> Result<Option<Version>> {
    let found = match label {
        Some(label) => rows
            .prepare_cached(FIND)?
            .query_row((tenant.0, workflow.as_str(), label.as_str()), |row| {
                Ok(read(row))
            })
            .optional()?,
        None => rows
            .prepare_cached(FIND_DEFAULT)?
            .query_row((tenant.0, workflow.as_str()), |row| Ok(read(row)))
            .optional()?,
    };
    found.transpose()
}

/// By workflow, newest first.
pub(super) fn list(rows: &Connection, tenant: TenantId) -> Result<Vec<Version>> {
    let mut statement = rows.prepare_cached(LIST)?;
    let mut found = statement.query([tenant.0])?;
    let mut versions = Vec::new();
    while let Some(row) = found.next()? {
        versions.push(read(row)?);
    }
    Ok(versions)
}

/// The numbers of a workflow's versions.
pub(super) fn ids(
    rows: &Connection,
    tenant: TenantId,
    workflow: &WorkflowName,
) -> Result<Vec<VersionId>> {
    let mut statement = rows.prepare_cached(IDS)?;
    let found = statement.query_map((tenant.0, workflow.as_str()), |row| {
        row.get(0).map(VersionId)
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// What a run is to be pinned to, if there is such a version.
pub(super) fn pin(
    rows: &Connection,
    tenant: TenantId,
    workflow: &WorkflowName,
    label: &VersionLabel,
) -> Result<Option<Pin>> {
    let found = rows
        .prepare_cached(PIN)?
        .query_row((tenant.0, workflow.as_str(), label.as_str()), |row| {
            Ok(read_pin(row))
        })
        .optional()?;
    found.transpose()
}

/// What a run is pinned to.
pub(super) fn pinned(rows: &Connection, version: VersionId) -> Result<Pin> {
    rows.prepare_cached(PINNED)?
        .query_row([version.0], |row| Ok(read_pin(row)))?
}

fn read_pin(row: &Row<'_>) -> Result<Pin> {
    let workflow: WorkflowName = row.text(1)?;
    let label: VersionLabel = row.text(2)?;
    let environment =
        codec::decode_pairs(row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?)
            .or_damaged(|| format!("the environment of {workflow} {label}"))?;
    Ok(Pin {
        version: VersionId(row.get(0)?),
        digest: row.value(3)?,
        environment,
        workflow,
        label,
    })
}

/// Writes one workflow of a registration and makes it the default.
pub(super) fn insert(
    rows: &Connection,
    tenant: TenantId,
    new: &NewVersion,
    workflow: &WorkflowName,
    manifest: &str,
) -> Result<()> {
    let version = rows.prepare_cached(INSERT)?.insert((
        tenant.0,
        workflow.as_str(),
        new.label.as_str(),
        new.digest.as_bytes(),
        manifest,
        codec::encode_pairs(&new.environment),
        time(new.at),
    ))?;
    rows.prepare_cached(SET_DEFAULT)?
        .execute((tenant.0, workflow.as_str(), version))?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<Version> {
    let workflow: WorkflowName = row.text(0)?;
    let label: VersionLabel = row.text(1)?;
    let environment =
        codec::decode_pairs(row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?)
            .or_damaged(|| format!("the environment of {workflow} {label}"))?;
    Ok(Version {
        digest: row.value(2)?,
        manifest: row.get(3)?,
        environment,
        registered_at: row.value(5)?,
        is_default: row.get(6)?,
        workflow,
        label,
    })
}
