//! The workflow's handle on its run: every operation starts here.

use std::rc::Rc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::event::{Event, Wait};
use crate::failure::Failure;
use crate::operations::Operations;
use crate::payload;
use crate::sleep::Sleep;
use crate::span::IntoSpan;
use crate::step::{Attempt, Step};
use crate::task::{Task, TaskCall};
use crate::timestamp::Timestamp;

/// A workflow's handle on its run. Cheap to clone; every clone is the same run.
///
/// Each method that returns a future is one *operation*: it is recorded in the run's journal, and
/// a replay answers it from there. As with every future, nothing happens before it is polled, so
/// operations are numbered in the order in which they are first awaited (or polled by
/// [`join!`](crate::join), [`select!`](crate::select) and the like, which take theirs in the order
/// written). A future that is dropped before its answer came withdraws its operation: the timer is
/// disarmed, the event stays for the next wait, the task is stopped.
///
/// # Being asked to stop
///
/// A cancel is told once. If the run waits, all operations that it waits for at that moment end
/// with [`Error::Cancelled`]; if it asks for a step first, that step does, without running its
/// body, together with everything else that is waited for. Whatever is asked for later is
/// clean-up, and runs as usual until the grace period ends (30 seconds unless the version says
/// otherwise). The run ends `cancelled` whatever it then returns.
///
/// ```
/// use stepwell_sdk::{Ctx, Error, workflow};
///
/// /// Holds a seat for a day.
/// #[workflow]
/// async fn hold(ctx: Ctx, seat: String) -> Result<(), Error> {
///     ctx.step("take", || Ok(println!("takes {seat}"))).await?;
///     match ctx.sleep("hold", "1 day").await {
///         Err(error) if error.is_cancelled() => {
///             ctx.step("give back", || Ok(println!("gives {seat} back"))).await?;
///             Err(error)
///         }
///         other => other.map(|_| ()),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Ctx {
    pub(crate) operations: Rc<Operations>,
}

/// Who is running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo {
    /// The run's id.
    pub run_id: String,
    /// Its owner.
    pub tenant: String,
    /// The workflow's name.
    pub workflow: String,
    /// The label of the version that runs.
    pub version: String,
    /// When this journal began: at the start, or at the latest
    /// [`continue_as_new`](Ctx::continue_as_new).
    pub started_at: Timestamp,
}

impl Ctx {
    /// Runs a step: code that may talk to the outside, and whose result is recorded.
    ///
    /// Only inside a step are real time, real randomness and HTTP open. The body may run more than
    /// once (after a failure, a crash, a timeout), so it takes what it captures by reference and
    /// cannot change it. What it returns is written to the journal as JSON, and the value you get
    /// is always read back from there: live and on replay it is the same.
    ///
    /// A name may be used again; `charge` in a loop is recorded as `charge`, `charge#2`, …
    ///
    /// The body's error is always a [`Failure`], so that `?` on any other error works without a
    /// type being spelt out; `Ok(other()?)` converts the result of a function of yours.
    ///
    /// ```
    /// use stepwell_sdk::{Ctx, Error, Retry, http, workflow};
    ///
    /// /// Charges a card.
    /// #[workflow]
    /// async fn charge(ctx: Ctx, cents: u64) -> Result<String, Error> {
    ///     ctx.step("charge", || {
    ///         http::post("https://pay.example/charges").json(&cents).send()?.error_for_status()?.json()
    ///     })
    ///     .retry(Retry::exponential().max_attempts(8))
    ///     .timeout("30 seconds")
    ///     .await
    /// }
    /// ```
    ///
    /// A body that changes what it captured does not compile, since an attempt that was lost would
    /// have changed it too:
    ///
    /// ```compile_fail,E0594
    /// # use stepwell_sdk::{Ctx, Error, workflow};
    /// # /// Counts.
    /// # #[workflow]
    /// # async fn count(ctx: Ctx) -> Result<u32, Error> {
    /// let mut count = 0;
    /// ctx.step("count", || {
    ///     count += 1;
    ///     Ok(())
    /// })
    /// .await?;
    /// # Ok(count)
    /// # }
    /// ```
    pub fn step<T, F>(&self, name: &str, body: F) -> Step<impl Fn(&Attempt) -> Result<T, Failure>>
    where
        T: Serialize + DeserializeOwned + 'static,
        F: Fn() -> Result<T, Failure>,
    {
        self.step_with(name, move |_: &Attempt| body())
    }

    /// As [`step`](Self::step), with a body that is told which attempt it is.
    ///
    /// ```
    /// # use stepwell_sdk::{Ctx, Error, http, workflow};
    /// # /// Charges a card.
    /// # #[workflow]
    /// # async fn charge(ctx: Ctx, cents: u64) -> Result<u16, Error> {
    /// let status = ctx
    ///     .step_with("charge", |attempt| {
    ///         let request = http::post("https://pay.example/charges").json(&cents);
    ///         let response = request.header("X-Attempt", attempt.number.to_string()).send()?;
    ///         Ok(response.status)
    ///     })
    ///     .await?;
    /// # Ok(status)
    /// # }
    /// ```
    pub fn step_with<T, F>(&self, name: &str, body: F) -> Step<F>
    where
        T: Serialize + DeserializeOwned + 'static,
        F: Fn(&Attempt) -> Result<T, Failure>,
    {
        Step::new(Rc::clone(&self.operations), name, body)
    }

    /// Sleeps. The run needs no memory meanwhile; a restart of the host does not move the end.
    ///
    /// Zero elapses at once, more than ten years is refused with an error.
    ///
    /// ```
    /// # use stepwell_sdk::{Ctx, Error, Wake, workflow};
    /// # /// Waits.
    /// # #[workflow]
    /// # async fn wait(ctx: Ctx) -> Result<(), Error> {
    /// match ctx.sleep("cool-down", "1 day").await? {
    ///     Wake::Elapsed => {}
    ///     Wake::Woken => stepwell_sdk::info!("somebody was in a hurry"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn sleep(&self, name: &str, span: impl IntoSpan) -> Sleep {
        Sleep::span(Rc::clone(&self.operations), name, span.into_span())
    }

    /// Sleeps until a point in time; one that has passed elapses at once.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use stepwell_sdk::{Ctx, Error, workflow};
    /// # /// Waits.
    /// # #[workflow]
    /// # async fn wait(ctx: Ctx) -> Result<(), Error> {
    /// let trial_ends = ctx.info().started_at.after(Duration::from_secs(14 * 24 * 60 * 60));
    /// ctx.sleep_until("trial", trial_ends).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sleep_until(&self, name: &str, at: Timestamp) -> Sleep {
        Sleep::until(Rc::clone(&self.operations), name, at)
    }

    /// Takes the oldest event of this name that no other wait has taken, now or later. With
    /// [`timeout`](Wait::timeout) it gives up in time.
    ///
    /// ```
    /// # use stepwell_sdk::{Ctx, Error, Event, workflow};
    /// const APPROVAL: Event<bool> = Event::new("approval");
    ///
    /// # /// Waits.
    /// # #[workflow]
    /// # async fn wait(ctx: Ctx) -> Result<bool, Error> {
    /// let approval = ctx.wait_for_event(&APPROVAL).await?;
    /// approval.reply(&"thank you")?;
    /// # Ok(approval.payload)
    /// # }
    /// ```
    pub fn wait_for_event<T>(&self, event: &Event<T>) -> Wait<T>
    where
        T: DeserializeOwned + 'static,
    {
        Wait::new(Rc::clone(&self.operations), event.name())
    }

    /// Runs a [`#[task]`](crate::task) in an instance of its own, beside the workflow and beside
    /// other tasks.
    ///
    /// ```
    /// use stepwell_sdk::{Ctx, Error, Failure, task, try_join, workflow};
    ///
    /// /// Counts the words of a page.
    /// #[task]
    /// fn count_words(page: String) -> Result<usize, Failure> {
    ///     Ok(page.split_whitespace().count())
    /// }
    ///
    /// /// Counts the words of a letter, both pages at once.
    /// #[workflow]
    /// async fn count(ctx: Ctx, pages: (String, String)) -> Result<usize, Error> {
    ///     let (front, back) =
    ///         try_join!(ctx.call_task(count_words, pages.0), ctx.call_task(count_words, pages.1))?;
    ///     Ok(front + back)
    /// }
    /// ```
    pub fn call_task<T: Task>(&self, task: T, input: T::Input) -> TaskCall<T::Output> {
        let _ = task;
        self.call_task_by_name(T::NAME, &input)
    }

    /// As [`call_task`](Self::call_task), for a name that is only known at run time.
    ///
    /// ```
    /// # use stepwell_sdk::{Ctx, Error, workflow};
    /// # /// Counts.
    /// # #[workflow]
    /// # async fn count(ctx: Ctx, page: String) -> Result<usize, Error> {
    /// let words: usize = ctx.call_task_by_name("count_words", &page).await?;
    /// # Ok(words)
    /// # }
    /// ```
    pub fn call_task_by_name<O>(
        &self,
        name: &str,
        input: &(impl Serialize + 'static),
    ) -> TaskCall<O>
    where
        O: DeserializeOwned + 'static,
    {
        let input = payload::encode(input, &format!("the input of task `{name}`"));
        TaskCall::new(Rc::clone(&self.operations), name, input)
    }

    /// Shows a value to the outside under a key, durably: progress, a status, a link. A later
    /// value under the same key replaces the earlier one.
    ///
    /// # Errors
    /// [`Error::Failed`] if the value is not writable as JSON or is over the payload limit.
    ///
    /// ```
    /// # use stepwell_sdk::{Ctx, Error, workflow};
    /// # /// Counts.
    /// # #[workflow]
    /// # async fn count(ctx: Ctx) -> Result<(), Error> {
    /// ctx.publish("progress", &"half way")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn publish<T: Serialize + 'static>(&self, key: &str, value: &T) -> Result<(), Error> {
        let value = payload::encode(value, &format!("the value of `{key}`"))?;
        self.operations
            .host
            .publish(key, &value)
            .map_err(|refused| Error::Failed(Failure::from_wire(refused)))
    }

    /// Workflow time: when the newest thing that this run has seen happened. The same on replay,
    /// and never goes back. [`std::time::SystemTime::now`] gives the same time.
    ///
    /// ```
    /// # use stepwell_sdk::{Ctx, Error, workflow};
    /// # /// Tells the time.
    /// # #[workflow]
    /// # async fn time(ctx: Ctx) -> Result<String, Error> {
    /// Ok(ctx.now().to_string())
    /// # }
    /// ```
    pub fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.operations.host.now())
    }

    /// Who is running.
    ///
    /// ```
    /// # use stepwell_sdk::{Ctx, Error, workflow};
    /// # /// Tells its name.
    /// # #[workflow]
    /// # async fn name(ctx: Ctx) -> Result<String, Error> {
    /// Ok(ctx.info().run_id)
    /// # }
    /// ```
    pub fn info(&self) -> RunInfo {
        let info = self.operations.host.info();
        RunInfo {
            run_id: info.run_id,
            tenant: info.tenant,
            workflow: info.workflow,
            version: info.version,
            started_at: Timestamp::from_ms(info.started_at),
        }
    }

    /// Makes the ending that closes this journal and lets the run go on under the same id with a
    /// fresh one and this input: for what never ends, and so that no journal grows without bound.
    ///
    /// ```
    /// use stepwell_sdk::{Ctx, Error, workflow};
    ///
    /// /// Sends a report every day.
    /// #[workflow]
    /// async fn report(ctx: Ctx, day: u32) -> Result<(), Error> {
    ///     ctx.step("send", || Ok(())).await?;
    ///     ctx.sleep("until tomorrow", "1 day").await?;
    ///     Err(ctx.continue_as_new(&(day + 1)))
    /// }
    /// ```
    pub fn continue_as_new<T: Serialize + 'static>(&self, input: &T) -> Error {
        Error::continue_as_new(input)
    }
}

impl std::fmt::Debug for Ctx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ctx")
    }
}
