//! Every limit on what a guest or a client may use, with its default. All are on from the start.

use std::time::Duration;

/// The limits of one version's runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory of one instance, in bytes.
    pub memory_bytes_max: u64,
    /// Elements of one table.
    pub table_elements_max: u64,
    /// CPU time of a guest between two waits, and of one attempt of a step or task.
    pub cpu_max: Duration,
    /// One payload: an input, a result, an event, a published value.
    pub payload_bytes_max: usize,
    /// One name: of a step, a sleep, an event, a task, a key.
    pub name_bytes_max: usize,
    /// Entries in one journal; a warning is logged at half. `continue-as-new` starts afresh.
    pub journal_entries_max: u64,
    /// Bytes in one journal, likewise.
    pub journal_bytes_max: u64,
    /// Events that wait in one run's mailbox.
    pub mailbox_events_max: u64,
    /// Operations that are open at once in one run.
    pub open_operations_max: usize,
    /// Tasks of one run that run at once; more wait their turn.
    pub running_tasks_max: usize,
    /// How often in a row a run may continue as new without a step, a task or a wait in between:
    /// what loops like that never ends, and never rests.
    pub idle_generations_max: u32,
    /// Log lines' bytes of one activation.
    pub log_bytes_max: usize,
    /// One component, as uploaded.
    pub component_bytes_max: usize,
    /// What `describe` may answer.
    pub manifest_bytes_max: usize,
    /// The clean-up after a cancel.
    pub cancel_grace: Duration,
    /// The longest sleep that is accepted: ten years of 365.25 days.
    pub sleep_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            memory_bytes_max: 64 * MIB as u64,
            table_elements_max: 20_000,
            cpu_max: Duration::from_secs(10),
            payload_bytes_max: MIB,
            name_bytes_max: 256,
            journal_entries_max: 50_000,
            journal_bytes_max: 64 * MIB as u64,
            mailbox_events_max: 1_000,
            open_operations_max: 10_000,
            running_tasks_max: 16,
            idle_generations_max: 100,
            log_bytes_max: MIB,
            component_bytes_max: 32 * MIB,
            manifest_bytes_max: MIB,
            cancel_grace: Duration::from_secs(30),
            sleep_max: Duration::from_secs(3_652 * 24 * 60 * 60 + 12 * 60 * 60),
        }
    }
}
