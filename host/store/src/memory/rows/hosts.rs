//! Hosts, their leases, and what they claim.

use stepwell_core::id::{Epoch, HostId, RunId};
use stepwell_core::time::Timestamp;

use super::{Rows, RunRows, Told};
use crate::claim::{Claim, Room};
use crate::head::Lease;

impl Rows {
    pub(in crate::memory) fn renew_lease(&mut self, host: HostId, lease_until: Timestamp) {
        self.hosts.insert(host, lease_until);
        self.counts.commits += 1;
    }

    pub(in crate::memory) fn claim(
        &mut self,
        host: HostId,
        now: Timestamp,
        room: Room,
        told: &mut Told,
    ) -> Vec<Claim> {
        self.expire(now, told);
        if !self.hosts.contains_key(&host) {
            return Vec::new();
        }
        let claimable = self.runs.iter().filter_map(|(id, run)| {
            let since = run.head.claimable_since(now)?;
            Some((since, *id, run.head.is_suspect()))
        });
        let (mut suspects, mut found): (Vec<_>, Vec<_>) =
            claimable.partition(|(_, _, is_suspect)| *is_suspect);
        suspects.sort_unstable();
        suspects.truncate(room.suspects);
        found.extend(suspects);
        found.sort_unstable();
        found.truncate(room.runs);
        let mut claims = Vec::with_capacity(found.len());
        for (_, id, _) in found {
            if let Some(run) = self.runs.get_mut(&id) {
                let lease = run.head.claim(host, now);
                claims.push(run.claimed(id, lease));
                told.touched(id, None);
            }
        }
        self.counts.commits += u64::from(!claims.is_empty());
        claims
    }

    pub(in crate::memory) fn held(&self, host: HostId) -> Vec<(RunId, Epoch)> {
        self.runs
            .iter()
            .filter(|(_, run)| run.head.host == Some(host))
            .map(|(id, run)| (*id, run.head.epoch))
            .collect()
    }

    pub(in crate::memory) fn abandon(
        &mut self,
        id: RunId,
        epoch: Epoch,
        at: Timestamp,
        told: &mut Told,
    ) {
        let held = self.runs.get_mut(&id);
        if let Some(run) = held.filter(|run| run.head.is_held_under(epoch)) {
            told.touched(id, run.head.orphan(id, at));
            self.counts.commits += 1;
        }
    }

    /// Takes a run from its host, as another host would that takes it for dead.
    pub(in crate::memory) fn lose_lease(&mut self, id: RunId, told: &mut Told) {
        if let Some(run) = self.runs.get_mut(&id).filter(|run| run.head.host.is_some()) {
            let at = run.head.updated_at;
            told.touched(id, run.head.orphan(id, at));
        }
    }

    pub(in crate::memory) fn expire_all(&mut self, told: &mut Told) {
        self.hosts.clear();
        let held: Vec<_> = self.runs.keys().copied().collect();
        held.into_iter().for_each(|id| self.lose_lease(id, told));
    }

    pub(super) fn expire(&mut self, now: Timestamp, told: &mut Told) {
        let hosts_before = self.hosts.len();
        self.hosts.retain(|_, until| *until > now);
        if self.hosts.len() == hosts_before {
            return;
        }
        for (id, run) in &mut self.runs {
            if run
                .head
                .host
                .is_some_and(|host| !self.hosts.contains_key(&host))
            {
                told.touched(*id, run.head.orphan(*id, now));
            }
        }
    }
}

impl RunRows {
    pub(super) fn claimed(&self, run: RunId, lease: Lease) -> Claim {
        Claim {
            run,
            tenant: self.tenant.clone(),
            workflow: self.workflow.clone(),
            label: self.label.clone(),
            digest: self.digest,
            environment: self.environment.clone(),
            generation: self.head.generation,
            input: self.input.clone(),
            started_at: self.started_at,
            epoch: self.head.epoch,
            next: self.head.next,
            journal_bytes: self.head.journal_bytes,
            host_lost: lease.host_lost,
            claims_without_progress: lease.claims_without_progress,
            paused: self.head.paused,
            inbox: self.inbox.values().cloned().collect(),
        }
    }
}
