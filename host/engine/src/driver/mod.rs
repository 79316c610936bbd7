//! Drives one claimed run: gives it an instance, and ends it as the guest, a limit or somebody
//! outside says.
//!
//! ```text
//!        ┌──────────────────────────────────────────────────────────────┐
//!        ▼                                                              │ trap or timeout in a step,
//!   load journal ──► Component::run ──► exit, or ended by the watch ────┤ fault of the host
//!                                              │                        │
//!                 released, given up ◄─────────┼──► diverged: stuck     │
//!                                              ▼                        │
//!                                    ended: completed, failed, …        │
//!                                              └── continued as new ────┘
//! ```

mod durable;
mod reach;
mod state;
mod suspend;
mod tasks;
mod watch;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use stepwell_core::id::{Epoch, EventId, RunId, Sequence, TenantName};
use stepwell_core::journal::{Ending, Record, RunFailure, StepOrigin};
use stepwell_core::limits::Limits;
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::retry::{AttemptEnd, StepError};
use stepwell_sandbox::guest::{Completion, Component, Exit, LogLevel, Trap, TrapKind};
use stepwell_store::{Append, Claim, Error, Then};
use tokio::sync::Mutex;

pub(crate) use durable::input_digest;

use crate::config::CLAIMS_WITHOUT_PROGRESS_MAX;
use crate::shared::Shared;
use crate::signals::Signals;
use crate::suspects::Trial;
use durable::GuestSide;
use reach::reach;
use state::{Halt, RunState, draw};
use watch::Expired;

/// Drives a run until this host no longer does.
///
/// However that comes about, no run stays held by a host that does not drive it: one that cannot
/// be driven on is given up, and claimed anew by whoever can. If that gets no further either, the
/// count of claims without progress sets it aside.
pub(crate) async fn drive(
    shared: Arc<Shared>,
    claim: Claim,
    signals: Arc<Signals>,
    trial: Option<Trial>,
) {
    let held = Held::of(&claim, claim.next);
    let (run, tenant) = (held.run, &held.tenant);
    let driving = drive_claimed(Arc::clone(&shared), claim, Arc::clone(&signals), trial);
    let driven = AssertUnwindSafe(driving).catch_unwind().await;
    match driven {
        Ok(Ok(())) => return,
        // Whoever has it now goes on with it.
        Ok(Err(Error::LeaseLost { .. })) => tracing::debug!(%run, %tenant, "the lease was lost"),
        Ok(Err(damaged @ Error::Damaged { .. })) => {
            match stick(&shared, &signals, &held, damaged.to_string()).await {
                Ok(()) => return,
                Err(error) => tracing::error!(%run, %tenant, %error, "could not be set aside"),
            }
        }
        Ok(Err(error)) => {
            tracing::error!(%run, %tenant, %error, "the run is left where its journal stands");
        }
        Err(_) => {
            tracing::error!(%run, %tenant, "its driver panicked, which is a bug; the run is left where its journal stands");
        }
    }
    // Also after a lost lease: an acknowledgement may have been lost before it. Whoever does not
    // hold the run changes nothing.
    let abandon = || shared.store.abandon(run, held.epoch, shared.now());
    if let Err(error) = reach(run, &signals, abandon).await {
        tracing::warn!(%run, %tenant, %error, "not given up; it is claimed anew when this host is gone");
    }
}

/// Fails if the run is left where its journal stands while this host may still hold it.
async fn drive_claimed(
    shared: Arc<Shared>,
    claim: Claim,
    signals: Arc<Signals>,
    trial: Option<Trial>,
) -> Result<(), Error> {
    if claim.claims_without_progress >= CLAIMS_WITHOUT_PROGRESS_MAX {
        let reason = format!(
            "claimed {CLAIMS_WITHOUT_PROGRESS_MAX} times in a row without progress; it may take its host down. \
             Look at its log, then resume or terminate it"
        );
        let held = Held::of(&claim, claim.next);
        return stick(&shared, &signals, &held, reason).await;
    }
    match component(&shared, &signals, &claim).await? {
        Ok(component) => {
            let mut state = RunState::new(shared, signals, component, claim);
            state.trial = trial;
            drive_to_end(&Arc::new(Mutex::new(state))).await
        }
        Err(reason) => {
            let held = Held::of(&claim, claim.next);
            stick(&shared, &signals, &held, reason).await
        }
    }
}

/// A run as this host holds it: what it needs to say that it does so no longer.
#[derive(Debug)]
struct Held {
    run: RunId,
    tenant: TenantName,
    epoch: Epoch,
    /// The length of the journal in the store.
    next: Sequence,
}

impl Held {
    fn of(claim: &Claim, next: Sequence) -> Self {
        Self {
            run: claim.run,
            tenant: claim.tenant.clone(),
            epoch: claim.epoch,
            next,
        }
    }
}

/// Sets a run aside for an operator, without a word in its journal.
async fn stick(
    shared: &Shared,
    signals: &Signals,
    held: &Held,
    reason: String,
) -> Result<(), Error> {
    tracing::warn!(run = %held.run, tenant = %held.tenant, %reason, "stuck");
    let append = Append {
        run: held.run,
        epoch: held.epoch,
        next: held.next,
        entries: Vec::new(),
        inbox_seen: EventId(0),
        cancel_seen: false,
        then: Then::Stick { reason },
        at: shared.now(),
    };
    reach(held.run, signals, || shared.store.append(append.clone())).await
}

/// How often the sandbox is asked to load a component before an operator is. Its faults (no memory,
/// a full disk, a compiler that was killed) pass, or they don't.
const LOADS_MAX: u32 = 4;

/// The component that a run is pinned to, or why only an operator can get the run any further.
async fn component(
    shared: &Shared,
    signals: &Signals,
    claim: &Claim,
) -> Result<Result<Arc<dyn Component>, String>, Error> {
    let digest = claim.digest;
    if let Some(component) = shared.components.cached(digest) {
        return Ok(Ok(component));
    }
    let read = || shared.store.component(&claim.tenant, digest);
    let Some(bytes) = reach(claim.run, signals, read).await? else {
        return Ok(Err(format!(
            "component {digest} is missing; register it again, then resume the run"
        )));
    };
    let mut loads = 0;
    loop {
        let error = match shared.components.load(digest, Arc::clone(&bytes)).await {
            Ok(component) => return Ok(Ok(component)),
            Err(error) => error,
        };
        loads += 1;
        if signals.is_shutdown() {
            // That is why; the next host loads it.
            return Err(Error::Unavailable {
                action: "load a component",
                detail: "the host shuts down".to_owned(),
            });
        }
        if loads == LOADS_MAX {
            return Ok(Err(format!(
                "component {digest} cannot be loaded: {error}; mend that, then resume the run"
            )));
        }
        tracing::warn!(run = %claim.run, %digest, error, "a component was not loaded; trying again");
        tokio::time::sleep(Duration::from_millis(100) * 4_u32.pow(loads)).await;
    }
}

/// What to do after a guest is gone.
enum Next {
    /// Start it again from the beginning of its journal.
    Replay,
    /// Nothing: the run is over or somebody else's.
    Leave,
}

async fn drive_to_end(state: &Arc<Mutex<RunState>>) -> Result<(), Error> {
    let mut faults = 0_u32;
    loop {
        let mut guest_side = Arc::clone(state).lock_owned().await;
        let journal = match guest_side.replay.length().0.max(guest_side.claim.next.0) {
            0 => Vec::new(),
            _ => guest_side.stored_journal().await?,
        };
        guest_side.load(journal);
        if let Some(ending) = over_before_it_runs(&guest_side) {
            return end(&mut guest_side, ending).await.map(|_| ());
        }
        let activation = guest_side.activation();
        let component = Arc::clone(&guest_side.component);
        let watch = Arc::clone(&guest_side.watch);
        let shared = Arc::clone(&guest_side.shared);
        let run = guest_side.claim.run;
        let guest = component.run(activation, Box::new(GuestSide { state: guest_side }));
        let left = tokio::select! {
            biased;
            exit = guest => Ok(exit),
            expired = watch.expired(&shared, run) => Err(expired),
        };
        // The guest is gone by now, and with it its hold on the state.
        let mut state = state.lock().await;
        state.watch.attempt_ends();
        match state.settle().await {
            // What was not written is still pending, and is tried again with what follows.
            Ok(()) | Err(Error::Unavailable { .. } | Error::Unknown { .. }) => {}
            Err(error) => return Err(error),
        }
        let next = match left {
            Ok(Exit::Returned(completion)) => returned(&mut state, completion).await?,
            Ok(Exit::Trapped(trap)) => trapped_in(&mut state, &trap).await?,
            Ok(Exit::Stopped) => halted(&mut state).await?,
            Ok(Exit::Fault(message)) => {
                faults += 1;
                fault(&mut state, &message, faults).await?
            }
            Err(expired) => ended_by_watch(&mut state, expired).await?,
        };
        match next {
            Next::Leave => return Ok(()),
            // A guest may not ask for anything that would let it notice.
            Next::Replay if state.signals.is_shutdown() => return state.flush(Then::Release).await,
            Next::Replay => {}
        }
    }
}

/// A run that was asked to stop before it began never begins; one whose grace period has passed
/// while nobody drove it is over.
fn over_before_it_runs(state: &RunState) -> Option<Ending> {
    let reason = state.cancelled()?.clone();
    let is_untouched = state.replay.length().0 == 0;
    let is_over = state
        .replay
        .grace_until()
        .is_some_and(|at| at <= state.shared.now());
    (is_untouched || is_over).then_some(Ending::Cancelled { reason })
}

async fn returned(state: &mut RunState, completion: Completion) -> Result<Next, Error> {
    if let Err(diverged) = state.replay.end() {
        state.halt = Some(Halt::Diverged(diverged));
        return halted(state).await;
    }
    if state.replay.running_attempt().is_some() {
        let message = "the workflow returned while the body of a step ran, before finish-step";
        let trap = Trap {
            kind: TrapKind::Misuse,
            message: message.to_owned(),
            backtrace: String::new(),
        };
        return trapped_in(state, &trap).await;
    }
    let limits = &state.shared.config.limits;
    let failed = |cause: Failure| {
        Ending::Failed(RunFailure {
            step: None,
            cause,
            backtrace: None,
        })
    };
    let too_large = |what, payload: &Payload| {
        let (size, max) = (payload.size_bytes(), limits.payload_bytes_max);
        (size > max).then(|| failed(durable::too_large(what, size, max)))
    };
    let ending = match completion {
        Completion::Done(output) => {
            too_large("the result", &output).unwrap_or(Ending::Completed(output))
        }
        Completion::ContinueAsNew(_)
            if state.is_idle && state.idle_generations >= limits.idle_generations_max =>
        {
            let message = format!(
                "the run has continued as new {} times in a row without a step, a task or a wait in between, which is the limit; \
                 sleep or wait for something before it continues",
                limits.idle_generations_max
            );
            failed(Failure::permanent("continue-limit", message))
        }
        Completion::ContinueAsNew(input) => {
            too_large("the input to continue with", &input).unwrap_or(Ending::ContinuedAsNew(input))
        }
        Completion::Failed(cause) => failed(bounded_failure(cause, limits).1),
        Completion::StepFailed(StepError {
            step,
            attempts,
            end,
            cause,
        }) => Ending::Failed(RunFailure {
            step: Some(StepOrigin {
                step: state::clip(step, limits.name_bytes_max),
                attempts,
                end,
            }),
            cause: bounded_failure(cause, limits).1,
            backtrace: None,
        }),
    };
    end(state, ending).await
}

/// Ends the run, or this journal of it. A cancel that was accepted earlier wins: the store refuses
/// the end until it has been seen.
async fn end(state: &mut RunState, ending: Ending) -> Result<Next, Error> {
    loop {
        let ending = state.ending(ending.clone());
        let input = match &ending {
            Ending::ContinuedAsNew(input) => Some(input.clone()),
            _ => None,
        };
        state.record(Record::Ended(ending));
        match state.flush(Then::End).await {
            Ok(()) => {
                let Some(input) = input else {
                    return Ok(Next::Leave);
                };
                state.begin_generation(input);
                return Ok(Next::Replay);
            }
            Err(Error::CancelRequested { .. }) => {
                state.take_back();
                state.look_again().await?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// A trap inside a step's body ends that attempt; elsewhere it fails the run, since the same trap
/// would come again.
async fn trapped_in(state: &mut RunState, trap: &Trap) -> Result<Next, Error> {
    let (attempt_end, cause) = trapped(trap);
    if state.replay.running_attempt().is_some() {
        let message = format!("an attempt trapped: {}", trap.message);
        state.log(
            LogLevel::Error,
            message,
            vec![("backtrace".to_owned(), trap.backtrace.clone())],
        );
        return end_attempt(state, attempt_end, cause).await;
    }
    // Other code than the journal's may trap where that one went on.
    if let Err(diverged) = state.replay.end() {
        state.halt = Some(Halt::Diverged(diverged));
        return halted(state).await;
    }
    let backtrace = (!trap.backtrace.is_empty()).then(|| trap.backtrace.clone());
    let cause = Failure {
        retryable: false,
        ..cause
    };
    end(
        state,
        Ending::Failed(RunFailure {
            step: None,
            cause,
            backtrace,
        }),
    )
    .await
}

/// Ends the attempt whose body was running, and has the run replayed to it.
async fn end_attempt(
    state: &mut RunState,
    attempt_end: AttemptEnd,
    cause: Failure,
) -> Result<Next, Error> {
    state.end_attempt(attempt_end, cause, draw());
    state.flush(Then::Run).await?;
    Ok(Next::Replay)
}

/// The guest was stopped from inside a call.
async fn halted(state: &mut RunState) -> Result<Next, Error> {
    match state.halt.take() {
        Some(Halt::Released) => Ok(Next::Leave),
        Some(Halt::GivenUp(error)) => Err(error),
        Some(Halt::Diverged(diverged)) => {
            let claim = &state.claim;
            let reason = format!(
                "diverged: {diverged}; component {} of version {} cannot go on with a journal that other code wrote. \
                 Register the code that wrote it as a version of its own, or terminate the run",
                claim.digest, claim.label
            );
            let held = Held::of(claim, state.stored());
            stick(&state.shared, &state.signals, &held, reason).await?;
            Ok(Next::Leave)
        }
        Some(Halt::LimitExceeded(cause)) => {
            end(
                state,
                Ending::Failed(RunFailure {
                    step: None,
                    cause,
                    backtrace: None,
                }),
            )
            .await
        }
        // Every `Stop::Now` is preceded by a halt.
        None => unreachable!("a guest was stopped for no reason"),
    }
}

/// The host could not run the guest: the run stays where its journal says, and is tried again.
async fn fault(state: &mut RunState, message: &str, faults: u32) -> Result<Next, Error> {
    tracing::error!(run = %state.claim.run, tenant = %state.claim.tenant, message, "a guest could not be run");
    if state.replay.running_attempt().is_some() {
        let cause = Failure::retryable("host-fault", message);
        return end_attempt(state, AttemptEnd::HostLost, cause).await;
    }
    state.flush(Then::Run).await?;
    let delay = Duration::from_millis(200).saturating_mul(1 << faults.min(8));
    tokio::select! {
        () = tokio::time::sleep(delay) => Ok(Next::Replay),
        () = async { while !state.signals.is_shutdown() && !state.signals.is_lost() { state.signals.rung().await } } => {
            state.flush(Then::Release).await?;
            Ok(Next::Leave)
        }
    }
}

async fn ended_by_watch(state: &mut RunState, expired: Expired) -> Result<Next, Error> {
    let running = state.replay.running_attempt();
    match (expired, running) {
        (Expired::Lost, _) => Err(state.lease_lost()),
        (Expired::Attempt(allowance), Some(_)) => {
            end_attempt(state, AttemptEnd::TimedOut, allowance.exceeded()).await
        }
        (Expired::Grace, Some(_)) if state.cancel_reason.is_none() => {
            let cause = Failure::permanent(
                "cancelled",
                "the run was cancelled, and the grace period passed",
            );
            end_attempt(state, AttemptEnd::Cancelled, cause).await
        }
        (Expired::Grace, _) => {
            let reason = state.cancelled().cloned().unwrap_or_default();
            state.log(
                LogLevel::Warn,
                "the clean-up was stopped: the grace period passed".to_owned(),
                Vec::new(),
            );
            end(state, Ending::Cancelled { reason }).await
        }
        (Expired::Shutdown, running) => {
            state.collect_tasks();
            if running.is_some() {
                let cause =
                    Failure::retryable("host-lost", "the host shut down while the attempt ran");
                state.end_attempt(AttemptEnd::HostLost, cause, 0.0);
            }
            state.flush(Then::Release).await?;
            Ok(Next::Leave)
        }
        // The body ended as its time did; nothing was lost but the instance.
        (Expired::Attempt(_), None) => {
            state.flush(Then::Run).await?;
            Ok(Next::Replay)
        }
    }
}

// ---- Small rules that steps and tasks share.

/// What a trap says about an attempt.
fn trapped(trap: &Trap) -> (AttemptEnd, Failure) {
    let end = if trap.kind.is_limit() {
        AttemptEnd::LimitExceeded
    } else {
        AttemptEnd::Trapped
    };
    (
        end,
        Failure::retryable(trap.kind.as_str(), trap.message.clone()),
    )
}

/// Refuses a result that is over the payload limit; trying again would give the same.
fn bounded(output: Payload, limits: &Limits) -> Result<Payload, (AttemptEnd, Failure)> {
    let (size, max) = (output.size_bytes(), limits.payload_bytes_max);
    if size > max {
        return Err((
            AttemptEnd::LimitExceeded,
            durable::too_large("the result", size, max),
        ));
    }
    Ok(output)
}

/// Cuts a failure that is over the payload limit: its details go first, then its message.
fn bounded_failure(failure: Failure, limits: &Limits) -> (AttemptEnd, Failure) {
    if failure.size_bytes() <= limits.payload_bytes_max {
        return (AttemptEnd::Failed, failure);
    }
    let cut = Failure {
        kind: state::clip(failure.kind, limits.name_bytes_max),
        message: state::clip(failure.message, limits.payload_bytes_max / 2),
        details: None,
        ..failure
    };
    (AttemptEnd::Failed, cut)
}
