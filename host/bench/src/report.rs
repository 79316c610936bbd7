//! What was measured, for people and for programs.
//!
//! The JSON is an interface: a field changes here on purpose or not at all.

use std::fmt::Write as _;

use serde::Serialize;

use crate::bare::{UNSTEADINESS, UNSTEADINESS_MAX};
use crate::figure::{Bound, Figure};
use crate::guest::STEP_RESULT;
use crate::hardware::Hardware;
use crate::workload::Workload;

/// All of it.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The version of Stepwell that was measured.
    pub version: String,
    /// How it was measured.
    pub settings: Settings,
    /// On what.
    pub hardware: Hardware,
    /// Why the figures say less than they seem to, if there is a reason.
    pub warnings: Vec<String>,
    /// What the file system and SQLite allow, without Stepwell.
    pub bare: Vec<Measured>,
    /// Those that were asked for, in order.
    pub workloads: Vec<WorkloadReport>,
}

/// How it was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Settings {
    /// Every figure is the median of so many runs of the bench.
    pub runs: u32,
    /// Whether the load was about a hundredth: then nothing was measured.
    pub is_quick: bool,
    /// When a commit counts as done.
    pub sync: String,
    /// What each step returns, in bytes.
    pub payload_bytes: usize,
}

/// One workload.
#[derive(Debug, Clone, Serialize)]
pub struct WorkloadReport {
    /// `W1` to `W8`.
    pub name: String,
    /// What it measures.
    pub title: String,
    /// What was found.
    pub figures: Vec<Measured>,
}

/// One number.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Of what.
    pub name: String,
    /// The number.
    pub value: f64,
    /// Its unit; empty for a count.
    pub unit: String,
    /// What it is to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// What a number is to keep. One of the two bounds is there.
#[derive(Debug, Clone, Serialize)]
pub struct Limit {
    /// No more than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// No less than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Whether it keeps it. Absent if the load was not the full one, of which the bound speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_reached: Option<bool>,
}

impl Settings {
    pub(crate) fn new(runs: u32, is_quick: bool) -> Self {
        Self {
            runs,
            is_quick,
            sync: "SQLite, write-ahead log, synchronous=FULL".to_owned(),
            payload_bytes: STEP_RESULT.len(),
        }
    }
}

impl Measured {
    fn new(figure: &Figure, is_quick: bool) -> Self {
        let limit = figure.bound.map(|bound| Limit {
            at_most: match bound {
                Bound::AtMost(most) => Some(most),
                Bound::AtLeast(_) => None,
            },
            at_least: match bound {
                Bound::AtMost(_) => None,
                Bound::AtLeast(least) => Some(least),
            },
            is_reached: (!is_quick).then(|| bound.is_kept(figure.value)),
        });
        Self {
            name: figure.name.to_owned(),
            value: figure.value,
            unit: figure.unit.to_owned(),
            limit,
        }
    }
}

impl Report {
    pub(crate) fn new(
        settings: Settings,
        hardware: Hardware,
        bare: Vec<Figure>,
        workloads: Vec<(Workload, Vec<Figure>)>,
    ) -> Self {
        let is_quick = settings.is_quick;
        let measured = |figures: Vec<Figure>| {
            figures
                .iter()
                .map(|figure| Measured::new(figure, is_quick))
                .collect()
        };
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            warnings: warnings(is_quick, &hardware, &bare),
            settings,
            hardware,
            bare: measured(bare),
            workloads: workloads
                .into_iter()
                .map(|(workload, figures)| WorkloadReport {
                    name: workload.code().to_owned(),
                    title: workload.title().to_owned(),
                    figures: measured(figures),
                })
                .collect(),
        }
    }

    /// Whether a bound is not kept.
    pub fn has_missed(&self) -> bool {
        self.missed().next().is_some()
    }

    /// As one JSON document.
    ///
    /// # Errors
    /// None that is known; serde has the type.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let Hardware {
            processor,
            cores,
            memory_mib,
            kernel,
            folder,
            file_system,
            is_in_memory: _,
            load_before,
            load_after,
        } = &self.hardware;
        let Settings {
            runs,
            is_quick,
            sync,
            payload_bytes,
        } = &self.settings;
        let mut line = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        line(&format!("Stepwell {} bench", self.version));
        line(&format!(
            "  machine  {processor}, {cores} cores, {} GiB, {kernel}",
            memory_mib.div_ceil(1_024)
        ));
        line(&format!("  data     {folder} on {file_system}; {sync}"));
        line(&format!(
            "  load     {load_before:.2} before, {load_after:.2} after; a step returns {payload_bytes} bytes"
        ));
        if *runs > 1 {
            line(&format!("  medians of {runs} runs"));
        }
        for warning in &self.warnings {
            line(&format!("  ! {warning}"));
        }
        line("\nbare limits");
        text.push_str(&lines(&self.bare));
        for WorkloadReport {
            name,
            title,
            figures,
        } in &self.workloads
        {
            let _ = writeln!(text, "\n{name}  {title}");
            text.push_str(&lines(figures));
        }
        if !is_quick {
            let missed: Vec<&str> = self.missed().collect();
            let all = self
                .workloads
                .iter()
                .flat_map(|workload| &workload.figures)
                .filter(|figure| figure.limit.is_some())
                .count();
            let _ = writeln!(text, "\n{} of {all} targets reached", all - missed.len());
        }
        text
    }

    /// The names of figures whose bound is not kept.
    fn missed(&self) -> impl Iterator<Item = &str> {
        self.workloads
            .iter()
            .flat_map(|workload| &workload.figures)
            .filter(|figure| {
                let limit = figure.limit.as_ref();
                limit.is_some_and(|limit| limit.is_reached == Some(false))
            })
            .map(|figure| figure.name.as_str())
    }
}

fn warnings(is_quick: bool, hardware: &Hardware, bare: &[Figure]) -> Vec<String> {
    let unsteady = bare
        .iter()
        .find(|figure| figure.name == UNSTEADINESS && figure.value > UNSTEADINESS_MAX);
    let mut warnings = Vec::new();
    if is_quick {
        warnings.push(
            "quick: a hundredth of the load, which shows that it works and measures nothing".into(),
        );
    }
    if hardware.is_in_memory {
        warnings.push(
            "the data is in memory, where a sync costs nothing: name a folder on a disk with --data".into(),
        );
    }
    if let Some(figure) = unsteady {
        warnings.push(format!(
            "syncs are unsteady: a slow one takes {} times as long as a fast one; the machine or its disk is busy, and what is compared with a commit says little",
            readable(figure.value)
        ));
    }
    warnings
}

fn lines(figures: &[Measured]) -> String {
    let mut text = String::new();
    for figure in figures {
        let number = with_unit(figure.value, &figure.unit);
        let line = format!("  {:42}{number:>14}", figure.name);
        let verdict = figure.limit.as_ref().map_or(String::new(), |limit| {
            let bound = match (limit.at_most, limit.at_least) {
                (Some(most), _) => format!("at most {}", with_unit(most, &figure.unit)),
                (None, Some(least)) => format!("at least {}", with_unit(least, &figure.unit)),
                (None, None) => String::new(),
            };
            match limit.is_reached {
                Some(true) => format!("   {bound:22}reached"),
                Some(false) => format!("   {bound:22}MISSED"),
                None => format!("   {bound}"),
            }
        });
        let _ = writeln!(text, "{}", (line + &verdict).trim_end());
    }
    text
}

fn with_unit(value: f64, unit: &str) -> String {
    let number = readable(value);
    match unit {
        "" => number,
        "/s" | "%" => format!("{number}{unit}"),
        _ => format!("{number} {unit}"),
    }
}

/// Three digits at least, none that says nothing, and commas between thousands.
fn readable(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 || value.fract() == 0.0 {
        let plain = format!("{value:.0}");
        let (sign, digits) = plain
            .strip_prefix('-')
            .map_or(("", plain.as_str()), |digits| ("-", digits));
        let mut grouped = String::new();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place) % 3 == 0 {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        format!("{sign}{grouped}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 1.0 {
        // Three, since bounds are near: 1.002.
        format!("{value:.3}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(is_quick: bool) -> Report {
        let hardware = Hardware {
            processor: "AMD EPYC".to_owned(),
            cores: 2,
            memory_mib: 24_105,
            kernel: "Linux 6.18.0".to_owned(),
            folder: "/tmp".to_owned(),
            file_system: "tmpfs".to_owned(),
            is_in_memory: true,
            load_before: 0.04,
            load_after: 1.7,
        };
        Report::new(
            Settings::new(5, is_quick),
            hardware,
            vec![Figure::new(
                "SQLite FULL commits of one small row",
                8_129.4,
                "/s",
            )],
            vec![
                (
                    Workload::Sequential,
                    vec![
                        Figure::new("per step", 136.42, "µs"),
                        Figure::new("per step, in bare commits", 1.2871, "×").at_most(1.3),
                    ],
                ),
                (
                    Workload::Many,
                    vec![Figure::new("steps", 34_999.0, "/s").at_least(35_000.0)],
                ),
                (
                    Workload::Killed,
                    vec![
                        Figure::new("steps lost", 0.0, "").never(),
                        Figure::new("steps recorded before the kill", 52.34, "%"),
                    ],
                ),
            ],
        )
    }

    #[test]
    fn the_report_says_which_targets_are_reached() {
        let report = Report {
            version: "1.2.3".to_owned(),
            ..report(false)
        };
        assert!(report.has_missed());
        insta::assert_snapshot!("text", report.text());
        insta::assert_snapshot!("json", report.json().unwrap());
    }

    #[test]
    fn a_quick_report_judges_nothing() {
        let report = report(true);
        assert!(!report.has_missed());
        assert!(!report.text().contains("MISSED") && !report.text().contains("reached"));
        assert!(!report.json().unwrap().contains("is_reached"));
    }

    #[test]
    fn unsteady_syncs_are_warned_of() {
        let warned = |value| {
            let report = Report::new(
                Settings::new(1, false),
                report(false).hardware,
                vec![Figure::new(UNSTEADINESS, value, "×")],
                Vec::new(),
            );
            report.text().contains("syncs are unsteady")
        };
        assert!(!warned(1.5) && !warned(UNSTEADINESS_MAX) && warned(43.2));
    }

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        for (value, text) in [
            (0.0, "0"),
            (0.125, "0.12"),
            (1.0019, "1.002"),
            (12.34, "12.3"),
            (999.9, "1,000"),
            (1_234_567.8, "1,234,568"),
            (-1_500.0, "-1,500"),
            (-0.25, "-0.25"),
        ] {
            assert_eq!(readable(value), text);
        }
    }
}
