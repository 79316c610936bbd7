//! Starting a run: the input is checked against the version's schema, then the run is stored.

use std::sync::Arc;

use stepwell_core::id::{RunId, TenantName, VersionLabel, WorkflowName};
use stepwell_core::payload::Payload;
use stepwell_core::time::Timestamp;
use stepwell_store::NewRun;
use uuid::Uuid;

use crate::dispatch;
use crate::driver::input_digest;
use crate::key;
use crate::shared::Shared;
use crate::versions::Versions;

/// A run to start.
#[derive(Debug, Clone)]
pub struct Start {
    /// Owner.
    pub tenant: TenantName,
    /// The workflow.
    pub workflow: WorkflowName,
    /// The version; `None` for the workflow's default.
    pub label: Option<VersionLabel>,
    /// What the workflow is given.
    pub input: Payload,
    /// At most one run per tenant and key.
    pub idempotency_key: Option<String>,
    /// When it may begin; `None` for at once.
    pub start_at: Option<Timestamp>,
}

/// A run that exists now. No crash loses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// Its id.
    pub run: RunId,
    /// False if the idempotency key had started it before.
    pub is_new: bool,
}

/// Why no run was started. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No version of this workflow.
    #[error("no workflow `{workflow}` is registered; `stepwell register` registers one")]
    NoSuchWorkflow {
        /// What was asked for.
        workflow: WorkflowName,
    },
    /// Not this version.
    #[error("workflow `{workflow}` has no version `{label}`")]
    NoSuchVersion {
        /// What was asked for.
        workflow: WorkflowName,
        /// What was asked for.
        label: VersionLabel,
    },
    /// Too large.
    #[error("the input has {found} bytes; the payload limit is {max}")]
    InputTooLarge {
        /// Its size in bytes.
        found: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// Not JSON.
    #[error("the input is not JSON: {detail}")]
    InputNotJson {
        /// Where and why.
        detail: String,
    },
    /// Does not fit the schema.
    #[error("the input does not fit the schema of workflow `{workflow}`: {detail}")]
    InputUnfit {
        /// The workflow.
        workflow: WorkflowName,
        /// The first few places that do not fit, and why.
        detail: String,
    },
    /// The key cannot be used.
    #[error("an idempotency key is 1 to 256 bytes of text; this one has {found}")]
    Key {
        /// Its size in bytes.
        found: usize,
    },
    /// The key was used before for something else.
    #[error(
        "the idempotency key was used for run {run} of workflow `{workflow}` with input sha256:{recorded}; \
         this input is sha256:{asked}"
    )]
    KeyConflict {
        /// The earlier run.
        run: RunId,
        /// Its workflow.
        workflow: WorkflowName,
        /// Hexadecimal digest of its input.
        recorded: String,
        /// Hexadecimal digest of this input.
        asked: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] stepwell_store::Error),
}

pub(crate) async fn start(
    shared: &Arc<Shared>,
    versions: &Versions,
    start: Start,
) -> Result<Started, Error> {
    let Start {
        tenant,
        workflow,
        label,
        input,
        idempotency_key,
        start_at,
    } = start;
    let (found, max) = (input.size_bytes(), shared.config.limits.payload_bytes_max);
    if found > max {
        return Err(Error::InputTooLarge { found, max });
    }
    if let Some(key) = &idempotency_key
        && !key::fits(key)
    {
        return Err(Error::Key { found: key.len() });
    }
    if let Payload::Json(text) = &input {
        serde_json::from_str::<&serde_json::value::RawValue>(text).map_err(|error| {
            Error::InputNotJson {
                detail: error.to_string(),
            }
        })?;
    }
    let Some(known) = versions
        .get(&*shared.store, &tenant, &workflow, label.as_ref())
        .await?
    else {
        let default = versions
            .get(&*shared.store, &tenant, &workflow, None)
            .await?;
        return Err(match (label, default) {
            (Some(label), Some(_)) => Error::NoSuchVersion { workflow, label },
            _ => Error::NoSuchWorkflow { workflow },
        });
    };
    if let Some(detail) = known.input_misfits(&input).await {
        return Err(Error::InputUnfit { workflow, detail });
    }
    let run = RunId::from_raw(Uuid::now_v7().as_u128());
    let input_digest = input_digest(&input);
    let new = NewRun {
        tenant,
        run,
        workflow,
        label: known.version.label.clone(),
        digest: known.version.digest,
        input,
        input_digest,
        idempotency_key,
        start_at,
        at: shared.now(),
    };
    let claimant = (shared.room() > 0).then_some(shared.host);
    match shared.store.start(new, claimant).await? {
        stepwell_store::Started::Created(claim) => {
            if let Some(claim) = claim {
                dispatch::drive(shared, *claim);
            }
            Ok(Started { run, is_new: true })
        }
        stepwell_store::Started::Existing { run } => Ok(Started { run, is_new: false }),
        stepwell_store::Started::KeyConflict {
            run,
            workflow,
            input_digest: recorded,
        } => {
            let (recorded, asked) = (hexadecimal(&recorded), hexadecimal(&input_digest));
            Err(Error::KeyConflict {
                run,
                workflow,
                recorded,
                asked,
            })
        }
    }
}

fn hexadecimal(digest: &[u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
