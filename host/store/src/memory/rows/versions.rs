//! Components and versions.

use std::sync::Arc;

use stepwell_core::id::{ComponentDigest, TenantName, VersionLabel, WorkflowName};

use super::{Rows, Tenant};
use crate::version::{NewVersion, Registered, Version};

impl Rows {
    pub(in crate::memory) fn register(&mut self, new: &NewVersion) -> Registered {
        let known = self.tenants.get(&new.tenant);
        let mut missing = Vec::new();
        for (workflow, manifest) in &new.workflows {
            match known.and_then(|tenant| tenant.find(workflow, &new.label)) {
                Some(version)
                    if version.digest == new.digest && version.environment == new.environment => {}
                Some(version) => {
                    return Registered::Conflict {
                        workflow: workflow.clone(),
                        digest: version.digest,
                    };
                }
                None => missing.push((workflow, manifest)),
            }
        }
        if missing.is_empty() {
            return Registered::Same;
        }
        let tenant = self.tenants.entry(new.tenant.clone()).or_default();
        tenant
            .components
            .entry(new.digest)
            .or_insert_with(|| Arc::clone(&new.component));
        for (workflow, manifest) in missing {
            for version in &mut tenant.versions {
                version.is_default &= version.workflow != *workflow;
            }
            tenant.versions.push(Version {
                workflow: workflow.clone(),
                label: new.label.clone(),
                digest: new.digest,
                manifest: manifest.clone(),
                environment: new.environment.clone(),
                registered_at: new.at,
                is_default: true,
            });
        }
        self.counts.commits += 1;
        Registered::New
    }

    pub(in crate::memory) fn version(
        &self,
        tenant: &TenantName,
        workflow: &WorkflowName,
        label: Option<&VersionLabel>,
    ) -> Option<Version> {
        let tenant = self.tenants.get(tenant)?;
        let found = match label {
            Some(label) => tenant.find(workflow, label),
            None => tenant
                .versions
                .iter()
                .find(|version| version.workflow == *workflow && version.is_default),
        };
        found.cloned()
    }

    pub(in crate::memory) fn versions(&self, tenant: &TenantName) -> Vec<Version> {
        let mut versions: Vec<_> = self
            .tenants
            .get(tenant)
            .into_iter()
            .flat_map(|tenant| tenant.versions.iter().rev().cloned())
            .collect();
        // Stable: within a workflow, newest first.
        versions.sort_by(|a, b| a.workflow.cmp(&b.workflow));
        versions
    }

    pub(in crate::memory) fn component(
        &self,
        tenant: &TenantName,
        digest: ComponentDigest,
    ) -> Option<Arc<[u8]>> {
        self.tenants.get(tenant)?.components.get(&digest).cloned()
    }
}

impl Tenant {
    pub(super) fn find(&self, workflow: &WorkflowName, label: &VersionLabel) -> Option<&Version> {
        self.versions
            .iter()
            .find(|version| version.workflow == *workflow && version.label == *label)
    }
}
