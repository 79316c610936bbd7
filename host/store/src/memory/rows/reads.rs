//! Reads.

use stepwell_core::id::{EventId, RunId, Sequence, TenantName};
use stepwell_core::journal::{Ending, Entry, Record};
use stepwell_core::time::Timestamp;

use super::{Rows, RunRows};
use crate::change::Counts;
use crate::inbox::{Event, Inbox};
use crate::log::LogRow;
use crate::run::{Published, RUNS_MAX, Run, RunFilter};

impl Rows {
    pub(in crate::memory) fn run(&self, tenant: &TenantName, id: RunId) -> Option<Run> {
        self.of(tenant, id).map(|run| run.shown(id))
    }

    pub(in crate::memory) fn runs(&self, tenant: &TenantName, filter: &RunFilter) -> Vec<Run> {
        self.runs
            .iter()
            .rev()
            .filter(|(id, run)| {
                run.tenant == *tenant && filter.before.is_none_or(|before| **id < before)
            })
            .filter(|(_, run)| {
                filter
                    .workflow
                    .as_ref()
                    .is_none_or(|workflow| *workflow == run.workflow)
            })
            .filter(|(_, run)| {
                filter.statuses.is_empty() || filter.statuses.contains(&run.head.facts().visible())
            })
            .take(filter.limit.min(RUNS_MAX))
            .map(|(id, run)| run.shown(*id))
            .collect()
    }

    pub(in crate::memory) fn history(
        &self,
        tenant: &TenantName,
        id: RunId,
        from: Sequence,
        limit: usize,
    ) -> Option<Vec<(Sequence, Entry)>> {
        let run = self.of(tenant, id)?;
        let numbered = (0..).map(Sequence).zip(run.journal.iter().cloned());
        Some(
            numbered
                .filter(|(sequence, _)| *sequence >= from)
                .take(limit)
                .collect(),
        )
    }

    pub(in crate::memory) fn events(&self, tenant: &TenantName, id: RunId) -> Vec<Event> {
        self.of(tenant, id)
            .into_iter()
            .flat_map(|run| run.events.values().cloned())
            .collect()
    }

    pub(in crate::memory) fn published(&self, tenant: &TenantName, id: RunId) -> Vec<Published> {
        self.of(tenant, id)
            .into_iter()
            .flat_map(|run| run.published.values().cloned())
            .collect()
    }

    pub(in crate::memory) fn logs(
        &self,
        tenant: &TenantName,
        id: RunId,
        after: u64,
        limit: usize,
    ) -> Vec<LogRow> {
        let lines = self.logs.get(&id).map_or(&[][..], Vec::as_slice);
        (1..)
            .zip(lines)
            .filter(|(number, line)| *number > after && line.tenant == *tenant)
            .take(limit)
            .map(|(number, line)| LogRow {
                number,
                line: line.clone(),
            })
            .collect()
    }

    pub(in crate::memory) fn journal(&self, id: RunId) -> Vec<Entry> {
        self.runs
            .get(&id)
            .map_or_else(Vec::new, |run| run.journal.clone())
    }

    pub(in crate::memory) fn inbox(&self, id: RunId, after: EventId) -> Inbox {
        match self.runs.get(&id) {
            Some(run) => Inbox {
                items: run
                    .inbox
                    .values()
                    .filter(|item| item.id > after)
                    .cloned()
                    .collect(),
                paused: run.head.paused,
            },
            None => Inbox {
                items: Vec::new(),
                paused: false,
            },
        }
    }

    pub(in crate::memory) fn due(
        &self,
        from: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Vec<(Timestamp, RunId)> {
        let mut found: Vec<_> = self
            .runs
            .iter()
            .filter(|(_, run)| run.head.is_claimable())
            .filter_map(|(id, run)| run.head.due.map(|due| (due, *id)))
            .filter(|(due, _)| (from..until).contains(due))
            .collect();
        found.sort_unstable();
        found.truncate(limit);
        found
    }

    pub(in crate::memory) fn counts(&self) -> Counts {
        self.counts
    }

    fn of(&self, tenant: &TenantName, id: RunId) -> Option<&RunRows> {
        self.runs.get(&id).filter(|run| run.tenant == *tenant)
    }
}

impl RunRows {
    fn shown(&self, run: RunId) -> Run {
        Run {
            run,
            tenant: self.tenant.clone(),
            workflow: self.workflow.clone(),
            label: self.label.clone(),
            digest: self.digest,
            generation: self.head.generation,
            status: self.head.facts().visible(),
            created_at: self.created_at,
            updated_at: self.head.updated_at,
            due: self.head.due,
            entries: self.head.next,
            journal_bytes: self.head.journal_bytes,
            input: self.input.clone(),
            ending: self.ending(),
            stuck_reason: self.head.stuck_reason.clone(),
            host: self.head.host,
            revision: self.head.revision,
        }
    }

    fn ending(&self) -> Option<Ending> {
        match self.journal.last() {
            Some(Entry {
                record: Record::Ended(ending),
                ..
            }) => Some(ending.clone()),
            _ => None,
        }
    }
}
