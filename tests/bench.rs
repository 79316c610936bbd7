//! `stepwell bench`, as a person or a script calls it: with a hundredth of the load.

use std::process::{Command, Output};

use serde_json::Value;
use stepwell_tests::stepwell;

fn bench(arguments: &[&str]) -> Output {
    Command::new(stepwell())
        .arg("bench")
        .args(arguments)
        .output()
        .unwrap()
}

fn figure<'a>(figures: &'a Value, name: &str) -> &'a Value {
    figures
        .as_array()
        .unwrap()
        .iter()
        .find(|figure| figure["name"] == name)
        .unwrap_or_else(|| panic!("no figure `{name}`: {figures:#}"))
}

#[test]
fn every_workload_reports_and_a_killed_host_loses_and_doubles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let output = bench(&["--quick", "--json", "--data", data]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();

    assert_eq!(report["settings"]["is_quick"], true);
    assert!(report["hardware"]["cores"].as_u64().unwrap() > 0);
    let workloads = report["workloads"].as_array().unwrap();
    let names: Vec<&str> = workloads
        .iter()
        .map(|workload| workload["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8"]);
    let all = workloads
        .iter()
        .map(|workload| &workload["figures"])
        .chain([&report["bare"]]);
    for figure in all.flat_map(|figures| figures.as_array().unwrap()) {
        assert!(
            figure["value"].as_f64().is_some_and(f64::is_finite),
            "{figure}"
        );
    }
    for workload in workloads {
        let figures = workload["figures"].as_array().unwrap();
        assert!(
            figures.iter().any(|figure| figure["limit"].is_object()),
            "{workload:#}"
        );
    }
    // What holds whatever the machine is and however little is asked of it.
    let killed = &workloads[4]["figures"];
    assert_eq!(figure(killed, "steps lost")["value"], 0.0);
    assert_eq!(figure(killed, "steps doubled")["value"], 0.0);
    let before = figure(killed, "steps recorded before the kill")["value"]
        .as_f64()
        .unwrap();
    assert!(before > 0.0 && before < 100.0, "{before}");

    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn only_what_is_asked_for_is_measured_and_the_text_says_that_nothing_was_judged() {
    let output = bench(&["--quick", "--only", "w3,W6"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for part in [
        "bare limits",
        "W3  ",
        "W6  ",
        "fdatasync",
        "quick: a hundredth",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in ["W1  ", "W8  ", "reached", "MISSED"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_what_would() {
    for (arguments, code, part) in [
        (&["--only", "W9"][..], 2, "W1 to W8"),
        (&["--only", ""], 2, "W1 to W8"),
        (&["--runs", "0"], 2, "1..=100"),
        (&["--quick", "--check"], 2, "cannot be used with"),
        (&["--data", "/no/such/folder"], 7, "--data"),
    ] {
        let output = bench(arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.contains(part), "{arguments:?}: {told}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
