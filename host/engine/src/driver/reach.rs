//! Patience with a store that cannot be reached: a fault of the host never changes a run's outcome,
//! so whatever a driver asks of the store is asked again until there is an answer.

use std::time::Duration;

use stepwell_core::id::RunId;
use stepwell_store::Error;

use crate::signals::Signals;

/// Waits between tries, from `DELAY_MIN` and doubling to `DELAY_MAX`.
const DELAY_MIN: Duration = Duration::from_millis(50);
/// Also how late a shutdown can be noticed while the store is away.
const DELAY_MAX: Duration = Duration::from_secs(2);

/// How long to wait before the next try.
#[derive(Debug)]
pub(crate) struct Patience {
    run: RunId,
    delay: Duration,
}

impl Patience {
    pub(crate) fn new(run: RunId) -> Self {
        Self {
            run,
            delay: DELAY_MIN,
        }
    }

    /// Returns when it is time for the next try.
    ///
    /// # Errors
    /// The error itself, if trying again is of no use, or the host shuts down.
    pub(crate) async fn wait(&mut self, error: Error, signals: &Signals) -> Result<(), Error> {
        let is_passing = matches!(error, Error::Unavailable { .. } | Error::Unknown { .. });
        if !is_passing || signals.is_shutdown() || signals.is_lost() {
            return Err(error);
        }
        tracing::warn!(run = %self.run, %error, "trying again in {:?}", self.delay);
        tokio::time::sleep(self.delay).await;
        self.delay = (self.delay * 2).min(DELAY_MAX);
        Ok(())
    }
}

/// Makes a call of the store that may be repeated, until it is answered.
///
/// # Errors
/// What the store answers, if trying again is of no use, or the host shuts down.
pub(crate) async fn reach<T, F>(
    run: RunId,
    signals: &Signals,
    mut call: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut patience = Patience::new(run);
    loop {
        match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => patience.wait(error, signals).await?,
        }
    }
}
