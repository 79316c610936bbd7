//! One number that was measured, with the bound that it must keep, if there is one.

/// A number with its unit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) bound: Option<Bound>,
    over_runs: OverRuns,
}

/// What the number must keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// What several runs of the bench make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OverRuns {
    Median,
    /// What must never happen is not made good by its not happening in most runs.
    Largest,
}

impl Bound {
    pub(crate) fn is_kept(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }
}

impl Figure {
    pub(crate) fn new(name: &'static str, value: f64, unit: &'static str) -> Self {
        Self {
            name,
            value,
            unit,
            bound: None,
            over_runs: OverRuns::Median,
        }
    }

    pub(crate) fn at_most(self, most: f64) -> Self {
        Self {
            bound: Some(Bound::AtMost(most)),
            ..self
        }
    }

    pub(crate) fn at_least(self, least: f64) -> Self {
        Self {
            bound: Some(Bound::AtLeast(least)),
            ..self
        }
    }

    /// A count of what must never happen: of several runs the largest counts.
    pub(crate) fn never(self) -> Self {
        Self {
            over_runs: OverRuns::Largest,
            ..self.at_most(0.0)
        }
    }
}

/// The figures of several runs as one: medians.
///
/// # Panics
/// If the runs have not the same figures; they come from the same code.
pub(crate) fn combine(runs: &[Vec<Figure>]) -> Vec<Figure> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    assert!(runs.iter().all(|run| run.len() == first.len()));
    let one = |place: usize, figure: &Figure| {
        let mut values: Vec<f64> = runs.iter().map(|run| run[place].value).collect();
        values.sort_by(f64::total_cmp);
        let value = match figure.over_runs {
            OverRuns::Median => median(&values),
            OverRuns::Largest => values[values.len() - 1],
        };
        Figure {
            value,
            ..figure.clone()
        }
    };
    first
        .iter()
        .enumerate()
        .map(|(place, figure)| one(place, figure))
        .collect()
}

/// Of sorted values, at least one: the middle one, or the mean of the two.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_runs_give_medians_and_the_largest_of_what_must_never_happen() {
        let run = |time: f64, lost: f64| {
            vec![
                Figure::new("time", time, "ms").at_most(5.0),
                Figure::new("lost", lost, "").never(),
            ]
        };
        let values = |runs: &[Vec<Figure>]| -> Vec<f64> {
            combine(runs).iter().map(|figure| figure.value).collect()
        };
        assert_eq!(values(&[run(3.0, 0.0)]), [3.0, 0.0]);
        assert_eq!(
            values(&[run(9.0, 0.0), run(1.0, 2.0), run(2.0, 0.0)]),
            [2.0, 2.0]
        );
        assert_eq!(values(&[run(1.0, 0.0), run(2.0, 0.0)]), [1.5, 0.0]);
        assert_eq!(combine(&[]), []);
    }

    #[test]
    fn bounds_include_themselves() {
        for (bound, value, is_kept) in [
            (Bound::AtMost(1.3), 1.3, true),
            (Bound::AtMost(1.3), 1.31, false),
            (Bound::AtLeast(35.0), 35.0, true),
            (Bound::AtLeast(35.0), 34.9, false),
            (Bound::AtMost(1.3), f64::NAN, false),
            (Bound::AtLeast(1.3), f64::NAN, false),
        ] {
            assert_eq!(bound.is_kept(value), is_kept, "{bound:?} {value}");
        }
    }
}
