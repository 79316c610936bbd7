//! A guest played from a list.

use std::time::Duration;

use super::host::{Host, rules_of};
use super::{Act, Stop};
use crate::id::{EventId, Operation};
use crate::journal::{Opening, OperationKind, Record};
use crate::payload::{Failure, Payload};
use crate::replay::{Error, SelectAnswer, StepAnswer};

/// Does what its list says, and lets what it is told change what it does: whoever is told
/// something else asks for something else, and is found out.
pub(super) struct Guest<'a> {
    acts: &'a [Act],
    /// Of all that it was told.
    digest: u64,
    /// What it may select, and the rules of what is a step in its backoff.
    held: Vec<(Operation, Option<u8>)>,
}

impl<'a> Guest<'a> {
    pub(super) fn new(acts: &'a [Act]) -> Self {
        Self {
            acts,
            digest: 0,
            held: Vec::new(),
        }
    }

    pub(super) fn run(&mut self, host: &mut Host) -> Result<(), Stop> {
        for act in self.acts {
            self.act(act, host)?;
        }
        while !self.held.is_empty() {
            self.select(u8::MAX, host)?;
        }
        host.replay.end().map_err(Error::from)?;
        Ok(())
    }

    fn hear(&mut self, call: &str, answer: &dyn std::fmt::Debug, host: &mut Host) {
        let told = format!("{call} => {answer:?} at {}", host.replay.now().as_ms());
        for byte in told.bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        host.history.told.push((told, host.length()));
    }

    fn act(&mut self, act: &Act, host: &mut Host) -> Result<(), Stop> {
        // So small a pool of names that repetitions are common.
        let shift = self.digest % 2;
        let name = |number: u8| format!("n{}", (u64::from(number) + shift) % 3);
        match *act {
            Act::Step {
                name: number,
                rules,
                is_nonsense,
            } => {
                let name = name(number);
                let answer = host.step(&name, rules, is_nonsense)?;
                self.hear_step(&name, rules, &answer, host);
            }
            Act::Sleep {
                name: number,
                duration_ms,
            } => {
                let asked = host.open(OperationKind::Sleep, &name(number), None, |now| {
                    let due = now.after(Duration::from_millis(duration_ms.into()));
                    (duration_ms <= 5_000).then_some(Opening::Sleep { due })
                })?;
                self.hold("sleep", asked, host);
            }
            Act::Wait {
                name: number,
                timeout_ms,
            } => {
                let asked = host.open(OperationKind::Wait, &name(number), None, |now| {
                    let timeout_at =
                        timeout_ms.map(|ms| now.after(Duration::from_millis(ms.into())));
                    Some(Opening::Wait { timeout_at })
                })?;
                self.hold("wait", asked, host);
            }
            Act::Task {
                name: number,
                rules,
            } => {
                let input_digest = [rules; 32];
                let (kind, digest) = (OperationKind::Task, Some(input_digest));
                let opening = |_| Some(Opening::Task { input_digest });
                let asked = host.open(kind, &name(number), digest, opening)?;
                if let Ok(operation) = asked {
                    host.tasks.insert(operation, rules_of(rules));
                }
                self.hold("task", asked, host);
            }
            Act::Publish { key, is_too_large } => {
                let key = name(key);
                let answer = host.immediate(OperationKind::Publish, &key, |operation| {
                    let value = Payload::null();
                    (!is_too_large).then_some(Record::Published {
                        operation,
                        key: key.clone(),
                        value,
                    })
                })?;
                self.hear("publish", &answer, host);
            }
            Act::Reply { event } => {
                let event = EventId(u64::from(event % 3));
                let answer =
                    host.immediate(OperationKind::Reply, &event.to_string(), |operation| {
                        let answer = Ok(Payload::null());
                        (event.0 > 0).then_some(Record::Replied {
                            operation,
                            event,
                            answer,
                        })
                    })?;
                self.hear("reply", &answer, host);
            }
            Act::Withdraw { which } => {
                if !self.held.is_empty() {
                    let (operation, _) = self.held.remove(usize::from(which) % self.held.len());
                    host.replay.withdraw(operation)?;
                    host.tasks.remove(&operation);
                    self.hear("withdraw", &operation, host);
                }
            }
            Act::Select { mask } => self.select(mask, host)?,
        }
        Ok(())
    }

    fn select(&mut self, mask: u8, host: &mut Host) -> Result<(), Stop> {
        let bits = |index: usize| mask == u8::MAX || mask & (1 << (index % 8)) != 0;
        let among = self
            .held
            .iter()
            .enumerate()
            .filter(|(index, _)| bits(*index));
        let among: Vec<_> = among.map(|(_, (operation, _))| *operation).collect();
        if among.is_empty() {
            return Ok(());
        }
        let answer = host.select(&among)?;
        self.hear("select", &answer, host);
        let operation = match answer {
            SelectAnswer::Slept(operation, _)
            | SelectAnswer::Event(operation, _)
            | SelectAnswer::TimedOut(operation)
            | SelectAnswer::Task(operation, _) => operation,
            SelectAnswer::Cancelled(_) => return Ok(()),
        };
        let index = self.held.iter().position(|(held, _)| *held == operation);
        let (_, rules) = self
            .held
            .remove(index.expect("an answer is to what was asked"));
        if let Some(rules) = rules {
            self.retry(operation, rules, host)?;
        }
        Ok(())
    }

    fn retry(&mut self, step: Operation, rules: u8, host: &mut Host) -> Result<(), Stop> {
        let answer = host.retry_step(step, rules)?;
        self.hear_step("retry", rules, &answer, host);
        // Clean-up goes on with the step that the cancel was told instead of.
        if let StepAnswer::Cancelled(_) = answer {
            self.retry(step, rules, host)?;
        }
        Ok(())
    }

    fn hear_step(&mut self, call: &str, rules: u8, answer: &StepAnswer, host: &mut Host) {
        self.hear(call, answer, host);
        if let StepAnswer::Backoff(operation) = answer {
            self.held.push((*operation, Some(rules)));
        }
    }

    fn hold(&mut self, call: &str, asked: Result<Operation, Failure>, host: &mut Host) {
        self.hear(call, &asked, host);
        if let Ok(operation) = asked {
            self.held.push((operation, None));
        }
    }
}
