//! How long each of many things took.

use std::time::Duration;

/// Durations, sorted.
#[derive(Debug, Clone)]
pub(crate) struct Sample(Vec<Duration>);

impl Sample {
    /// # Panics
    /// If there is none: nothing can be said about it.
    pub(crate) fn new(mut took: Vec<Duration>) -> Self {
        assert!(!took.is_empty(), "a sample of nothing");
        took.sort_unstable();
        Self(took)
    }

    /// Both in one.
    pub(crate) fn with(self, other: Self) -> Self {
        Self::new([self.0, other.0].concat())
    }

    /// The smallest that at least `percent` of all do not exceed; from 1 to 100.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100);
        self.0[rank.clamp(1, self.0.len()) - 1]
    }

    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }

    pub(crate) fn largest(&self) -> Duration {
        self.percentile(100)
    }

    pub(crate) fn mean(&self) -> Duration {
        let sum: Duration = self.0.iter().sum();
        Duration::from_secs_f64(sum.as_secs_f64() / self.0.len() as f64)
    }
}

/// In microseconds.
pub(crate) fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

/// In milliseconds.
pub(crate) fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(of_ms: impl IntoIterator<Item = u64>) -> Sample {
        Sample::new(of_ms.into_iter().map(Duration::from_millis).collect())
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        for (values, percent, expected) in [
            (vec![7], 50, 7),
            (vec![7], 99, 7),
            (vec![2, 1], 50, 1),
            (vec![3, 1, 2], 50, 2),
            ((1..=100).rev().collect(), 50, 50),
            ((1..=100).collect(), 99, 99),
            ((1..=200).collect(), 99, 198),
            ((1..=200).collect(), 100, 200),
            ((1..=10).collect(), 99, 10),
            ((1..=10).collect(), 1, 1),
        ] {
            let found = sample(values.clone()).percentile(percent);
            assert_eq!(
                found,
                Duration::from_millis(expected),
                "{percent} % of {values:?}"
            );
        }
    }

    #[test]
    fn the_mean_is_of_all() {
        let both = sample([1, 2]).with(sample([6]));
        assert_eq!(both.mean(), Duration::from_millis(3));
        assert_eq!(both.largest(), Duration::from_millis(6));
    }
}
