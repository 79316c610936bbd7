//! Judges a plan that has been played: what must hold whatever went wrong.

use std::collections::BTreeMap;

use stepwell_core::id::Operation;
use stepwell_core::journal::{Ending, Entry, Opening, Record};
use stepwell_core::retry::AttemptEnd;
use stepwell_core::run::Status;
use stepwell_sandbox::scripted::{Action, Effect};
use stepwell_store::Run;

use super::client::World;
use super::plan::Workflow;

pub(super) fn judge(world: &World) {
    let runs = world.runs();
    assert_eq!(
        runs.len(),
        world.plan.workflows.len(),
        "{}: a key has started a run twice: {runs:#?}",
        world.plan.name
    );
    for (number, workflow) in world.plan.workflows.iter().enumerate() {
        let (run, journal) = world.end_of(number);
        let effects = world.guests.script(u8::try_from(number).unwrap()).effects();
        let judged = Judged {
            workflow,
            run: &run,
            journal: &journal,
            effects: &effects,
        };
        if let Err(wrong) = judged.judge() {
            panic!(
                "{}: workflow {number}: {wrong}\n{run:#?}\n{journal:#?}\n{effects:#?}",
                world.plan.name
            );
        }
    }
}

struct Judged<'a> {
    workflow: &'a Workflow,
    run: &'a Run,
    journal: &'a [Entry],
    effects: &'a [Effect],
}

impl Judged<'_> {
    fn judge(&self) -> Result<(), String> {
        self.times_never_go_back()?;
        self.nothing_ends_twice()?;
        self.nothing_fires_early()?;
        self.no_attempt_begins_twice()?;
        self.what_completed_was_done()?;
        self.the_end_is_as_planned()
    }

    fn times_never_go_back(&self) -> Result<(), String> {
        match self.journal.windows(2).find(|pair| pair[0].at > pair[1].at) {
            Some(pair) => Err(format!("{:?} is before what it follows", pair[1])),
            None => Ok(()),
        }
    }

    fn nothing_ends_twice(&self) -> Result<(), String> {
        let mut ends = BTreeMap::new();
        for entry in self.journal {
            let record = &entry.record;
            let is_immediate = matches!(record, Record::Published { .. } | Record::Replied { .. });
            let is_end = record.is_work() || is_immediate;
            if let Some(operation) = entry.record.operation().filter(|_| is_end) {
                *ends.entry(operation).or_insert(0) += 1;
            }
        }
        match ends.iter().find(|(_, count)| **count > 1) {
            Some((operation, count)) => Err(format!("operation {operation} ends {count} times")),
            None => Ok(()),
        }
    }

    fn nothing_fires_early(&self) -> Result<(), String> {
        let mut due = BTreeMap::new();
        for entry in self.journal {
            match &entry.record {
                Record::Opened {
                    operation,
                    opening: Opening::Sleep { due: at },
                    ..
                } => due.insert(*operation, *at),
                Record::Opened {
                    operation,
                    opening:
                        Opening::Wait {
                            timeout_at: Some(at),
                        },
                    ..
                } => due.insert(*operation, *at),
                Record::AttemptEnded {
                    operation,
                    retry_at,
                    ..
                } => due.insert(*operation, *retry_at),
                Record::Slept { operation, .. }
                | Record::TimedOut { operation }
                | Record::BackoffOver { operation } => {
                    let at = due[operation];
                    if entry.at < at {
                        return Err(format!("operation {operation} fires before {at:?}"));
                    }
                    None
                }
                _ => None,
            };
        }
        Ok(())
    }

    fn no_attempt_begins_twice(&self) -> Result<(), String> {
        let mut begun = BTreeMap::new();
        for effect in self.effects {
            *begun
                .entry((effect.key.clone(), effect.attempt))
                .or_insert(0) += 1;
        }
        match begun.iter().find(|(_, count)| **count > 1) {
            Some((attempt, count)) => Err(format!("{attempt:?} begins {count} times")),
            None => Ok(()),
        }
    }

    fn effects_of(&self, operation: Operation) -> usize {
        let key = format!("{}/{operation}", self.run.run);
        self.effects
            .iter()
            .filter(|effect| effect.key == key)
            .count()
    }

    /// A step or task that has a result was done, and no more attempts were counted than begun, nor
    /// fewer.
    fn what_completed_was_done(&self) -> Result<(), String> {
        for entry in self.journal {
            let (operation, attempts) = match &entry.record {
                Record::StepCompleted {
                    operation,
                    attempts,
                    ..
                }
                | Record::TaskCompleted {
                    operation,
                    attempts,
                    ..
                } => (*operation, *attempts),
                _ => continue,
            };
            let effects = self.effects_of(operation);
            if effects == 0 || effects > attempts as usize {
                return Err(format!(
                    "operation {operation} completed with {attempts} attempts, and {effects} ran"
                ));
            }
        }
        Ok(())
    }

    fn the_end_is_as_planned(&self) -> Result<(), String> {
        let last = self.journal.last().map(|entry| &entry.record);
        if !matches!(last, Some(Record::Ended(_))) {
            return Err("the journal does not end with the end".to_owned());
        }
        let has_once = self.workflow.script.actions.iter().any(
            |action| matches!(action, Action::Step { options, .. } if options.policy.attempts_max == 1),
        );
        match (&self.run.status, &self.run.ending) {
            (Status::Cancelled, _) if self.workflow.is_cancelled => Ok(()),
            (Status::Completed, Some(Ending::Completed(output))) => {
                let actions = self.workflow.script.actions.len();
                if output.as_bytes() == actions.to_string().as_bytes() {
                    Ok(())
                } else {
                    Err(format!("it returned {output:?} after {actions} actions"))
                }
            }
            (Status::Failed, Some(Ending::Failed(failure))) if has_once => match &failure.step {
                Some(step) if step.end == AttemptEnd::HostLost && step.attempts == 1 => Ok(()),
                other => Err(format!(
                    "it failed for another reason than a lost host: {other:?}"
                )),
            },
            other => Err(format!("it ended as {other:?}")),
        }
    }
}
