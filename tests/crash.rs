//! Kills a real host with SIGKILL at chosen moments, starts it again, and counts the effects in a
//! listener outside of it.

use std::time::Duration;

use serde_json::{Value, json};
use stepwell_tests::{Client, Effects, Host, component, stepwell};

/// A package, the label it is registered under, and its environment.
type Registration<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// A host with one component registered, and a listener that counts.
struct Setting {
    host: Host,
    effects: Effects,
    _folder: tempfile::TempDir,
}

impl Setting {
    fn new(packages: &[Registration<'_>]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Builds the guests first, if nobody has.
        component(packages[0].0);
        let host = Host::start(&stepwell(), &folder.path().join("data"), &[]).unwrap();
        for (package, label, environment) in packages {
            register(&host.client(), package, label, environment);
        }
        Self {
            host,
            effects: Effects::listen().unwrap(),
            _folder: folder,
        }
    }

    fn kill_and_start_again(&mut self) {
        self.host.kill().unwrap();
        self.host.start_again().unwrap();
    }

    fn start(&self, workflow: &str, version: Option<&str>, input: &Value) -> String {
        let mut body = json!({ "input": input });
        if let Some(version) = version {
            body["version"] = json!(version);
        }
        let path = format!("/v1/workflows/{workflow}/runs");
        let run = self.host.client().post(&path, &body).unwrap().ok().unwrap();
        run["run"].as_str().unwrap().to_owned()
    }

    fn run(&self, run: &str) -> Value {
        self.host
            .client()
            .get(&format!("/v1/runs/{run}"))
            .unwrap()
            .ok()
            .unwrap()
    }

    fn end(&self, run: &str) -> Value {
        let path = format!("/v1/runs/{run}/wait?wait_ms=30000");
        let run = self.host.client().get(&path).unwrap().ok().unwrap();
        assert_eq!(run["is_final"], true, "{run:#}");
        run
    }

    fn until(&self, run: &str, status: &str) {
        for _ in 0..3_000 {
            if self.run(run)["status"] == status {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("not {status}: {:#}", self.run(run));
    }

    fn history(&self, run: &str) -> Vec<Value> {
        let path = format!("/v1/runs/{run}/history?limit=1000");
        let history = self.host.client().get(&path).unwrap().ok().unwrap();
        history["entries"].as_array().unwrap().clone()
    }

    /// The attempts that the journal counts for the operation of this number.
    fn attempts(&self, run: &str, operation: u64) -> u64 {
        let entries = self.history(run);
        let of_operation = entries
            .iter()
            .filter(|entry| entry["operation"] == operation);
        of_operation
            .filter_map(|entry| entry["attempts"].as_u64())
            .max()
            .unwrap_or(0)
    }

    fn effect_url(&self) -> String {
        format!("{}/effect", self.effects.url())
    }
}

fn register(client: &Client, package: &str, label: &str, environment: &[(&str, &str)]) {
    let mut path = format!("/v1/versions/{label}");
    for (index, (name, value)) in environment.iter().enumerate() {
        path.push_str(&format!(
            "{}env={name}={value}",
            if index == 0 { '?' } else { '&' }
        ));
    }
    let bytes = std::fs::read(component(package)).unwrap();
    client
        .send("PUT", &path, "application/wasm", &bytes)
        .unwrap()
        .ok()
        .unwrap();
}

#[test]
fn killed_between_an_effect_and_its_checkpoint_the_attempt_is_repeated_and_counted() {
    let mut setting = Setting::new(&[("guest-steps", "1.0", &[])]);
    setting.effects.hold("step-1");
    let input = json!({ "count": 3, "effect_url": setting.effect_url() });
    let run = setting.start("steps", None, &input);
    setting.effects.wait_for("step-1", 1).unwrap();
    setting.kill_and_start_again();
    setting.effects.wait_for("step-1", 2).unwrap();
    setting.effects.release();
    let end = setting.end(&run);
    assert_eq!(
        (&end["status"], &end["result"]),
        (&json!("completed"), &json!(3)),
        "{end:#}"
    );
    // At least once: the effect happened twice, under one key, and the journal says so.
    let count = |step| (setting.effects.count(step), setting.effects.distinct(step));
    assert_eq!(
        [count("step-0"), count("step-1"), count("step-2")],
        [(1, 1), (2, 1), (1, 1)]
    );
    assert_eq!(
        [0, 1, 2].map(|step| setting.attempts(&run, step)),
        [1, 2, 1]
    );
}

#[test]
fn killed_after_a_checkpoint_no_effect_is_repeated() {
    let mut setting = Setting::new(&[("guest-steps", "1.0", &[])]);
    setting.effects.hold("step-2");
    let input = json!({ "count": 4, "effect_url": setting.effect_url() });
    let run = setting.start("steps", None, &input);
    // Step 2 has begun, so the checkpoints of 0 and 1 are durable.
    setting.effects.wait_for("step-2", 1).unwrap();
    setting.kill_and_start_again();
    setting.effects.release();
    assert_eq!(setting.end(&run)["result"], 6);
    assert_eq!(
        (
            setting.effects.count("step-0"),
            setting.effects.count("step-1")
        ),
        (1, 1)
    );
    assert_eq!([0, 1].map(|step| setting.attempts(&run, step)), [1, 1]);
}

#[test]
fn a_step_with_one_attempt_begins_at_most_once() {
    let mut setting = Setting::new(&[("guest-steps", "1.0", &[])]);
    setting.effects.hold("step-1");
    let input = json!({ "count": 3, "max_attempts": 1, "effect_url": setting.effect_url() });
    let run = setting.start("steps", None, &input);
    setting.effects.wait_for("step-1", 1).unwrap();
    setting.kill_and_start_again();
    setting.effects.release();
    let end = setting.end(&run);
    assert_eq!(end["status"], "failed", "{end:#}");
    assert_eq!(setting.effects.count("step-1"), 1);
    let failure = end["failure"].to_string();
    assert!(
        failure.contains("host-lost") && failure.contains("step-1"),
        "{failure}"
    );
}

#[test]
fn killed_while_the_run_sleeps_it_wakes_when_it_was_due() {
    let mut setting = Setting::new(&[("guest-sleeper", "1.0", &[])]);
    let run = setting.start("sleeper", None, &json!({ "ms": 1_500 }));
    setting.until(&run, "sleeping");
    let due = setting.run(&run)["due_at"].clone();
    setting.kill_and_start_again();
    assert_eq!(setting.run(&run)["due_at"], due);
    let end = setting.end(&run);
    let slept_ms = end["result"]["slept_ms"].as_u64().unwrap();
    assert!((1_500..3_000).contains(&slept_ms), "{end:#}");
    assert_eq!(end["result"]["woken"], 0);
}

#[test]
fn killed_while_tasks_run_their_attempts_are_lost_and_counted() {
    let mut setting = Setting::new(&[("guest-fan-out", "1.0", &[])]);
    setting.effects.hold("effect");
    let input = json!({ "tasks": 4, "max_attempts": 3, "effect_url": setting.effect_url() });
    let run = setting.start("fan-out", None, &input);
    setting.effects.wait_for("effect", 4).unwrap();
    setting.kill_and_start_again();
    setting.effects.wait_for("effect", 8).unwrap();
    setting.effects.release();
    let end = setting.end(&run);
    assert_eq!(end["result"]["sum"], 14, "{end:#}");
    assert_eq!(
        [0, 1, 2, 3].map(|task| setting.attempts(&run, task)),
        [2, 2, 2, 2]
    );
    assert_eq!(
        (
            setting.effects.count("effect"),
            setting.effects.distinct("effect")
        ),
        (8, 4)
    );
}

#[test]
fn two_versions_finish_each_on_its_own_code_across_a_kill() {
    let mut setting = Setting::new(&[("onboarding-v1", "1.0", &[]), ("onboarding-v2", "2.0", &[])]);
    let customer = json!({ "name": "Ada", "email": "ada@example.org" });
    let runs = ["1.0", "2.0"].map(|version| setting.start("onboarding", Some(version), &customer));
    setting.until(&runs[0], "sleeping");
    setting.until(&runs[1], "waiting");
    setting.kill_and_start_again();
    let client = setting.host.client();
    let mut results = Vec::new();
    for run in &runs {
        // 1.0 sleeps for days, 2.0 waits for a login; what does not apply is refused.
        while setting.run(run)["is_final"] == false {
            client
                .post(&format!("/v1/runs/{run}/wake"), &json!({}))
                .unwrap();
            let login = format!("/v1/runs/{run}/events/login");
            client.post(&login, &json!({ "payload": null })).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        let end = setting.end(run);
        assert_eq!(end["status"], "completed", "{end:#}");
        results.push(end["result"].clone());
    }
    assert_ne!(results[0], results[1]);
}

#[test]
fn a_run_that_takes_its_host_down_every_time_is_set_aside() {
    let mut setting = Setting::new(&[("guest-steps", "1.0", &[])]);
    setting.effects.hold("step-0");
    let input = json!({ "count": 1, "max_attempts": 100, "effect_url": setting.effect_url() });
    let run = setting.start("steps", None, &input);
    for claim in 1..=5 {
        setting.effects.wait_for("step-0", claim).unwrap();
        setting.kill_and_start_again();
    }
    setting.until(&run, "stuck");
    assert_eq!(
        setting.effects.count("step-0"),
        5,
        "no sixth host is brought down"
    );
    setting.effects.release();
    setting
        .host
        .client()
        .post(&format!("/v1/runs/{run}/resume"), &json!({}))
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(setting.end(&run)["status"], "completed");
}

/// `STEPWELL_CRASH_SEED=<seed> cargo test --release --test stepwell crash::twenty` repeats it.
#[test]
fn twenty_runs_survive_kills_at_random_moments() {
    let seed = std::env::var("STEPWELL_CRASH_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_261_130_u64);
    let mut setting = Setting::new(&[("guest-steps", "1.0", &[])]);
    let input = json!({ "count": 10, "sleep_ms_in_step": 20, "max_attempts": 100, "effect_url": setting.effect_url() });
    let runs: Vec<String> = (0..20)
        .map(|_| setting.start("steps", None, &input))
        .collect();
    let mut random = seed;
    for _ in 0..4 {
        // SplitMix64.
        random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^= mixed >> 27;
        std::thread::sleep(Duration::from_millis(mixed % 120));
        setting.kill_and_start_again();
    }
    for run in &runs {
        let end = setting.end(run);
        assert_eq!(
            (&end["status"], &end["result"]),
            (&json!("completed"), &json!(45)),
            "seed {seed}: {end:#}"
        );
    }
    // Every step of every run had its effect, each under one key, and every request was counted.
    assert_eq!(setting.effects.distinct("effect"), 200, "seed {seed}");
    let counted: u64 = runs
        .iter()
        .map(|run| (0..10).map(|step| setting.attempts(run, step)).sum::<u64>())
        .sum();
    let seen = setting.effects.count("effect") as u64;
    assert!(
        counted >= seen,
        "seed {seed}: {seen} effects, {counted} attempts counted"
    );
    // A kill costs a run at most one attempt that never began.
    assert!(
        counted <= seen + 4 * 20,
        "seed {seed}: {seen} effects, {counted} attempts counted"
    );
}
