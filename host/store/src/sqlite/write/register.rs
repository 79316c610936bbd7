//! Registers a component's workflows under one label: all of them or none.

use crate::sqlite::fault::Result;
use crate::sqlite::writer::Tx;
use crate::sqlite::{components, tenants, versions};
use crate::version::{NewVersion, Registered};

pub(in crate::sqlite) fn register(tx: &mut Tx<'_>, new: &NewVersion) -> Result<Registered> {
    let rows = tx.rows();
    let known = tenants::find(rows, &new.tenant)?;
    let mut missing = Vec::new();
    for (workflow, manifest) in &new.workflows {
        let found = match known {
            Some(tenant) => versions::find(rows, tenant, workflow, Some(&new.label))?,
            None => None,
        };
        match found {
            Some(row) if row.digest == new.digest && row.environment == new.environment => {}
            Some(row) => {
                return Ok(Registered::Conflict {
                    workflow: workflow.clone(),
                    digest: row.digest,
                });
            }
            None => missing.push((workflow, manifest)),
        }
    }
    if missing.is_empty() {
        return Ok(Registered::Same);
    }
    let tenant = tenants::find_or_insert(rows, &new.tenant)?;
    components::insert(rows, tenant, new.digest, &new.component)?;
    for (workflow, manifest) in missing {
        versions::insert(rows, tenant, new, workflow, manifest)?;
    }
    Ok(Registered::New)
}
