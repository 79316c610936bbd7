//! The `stepwell` command as a person or a script uses it: the built binary, as a process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stepwell_tests::{Host, component, root, stepwell};

/// A host, and commands that talk to it.
struct Desk {
    host: Host,
    folder: tempfile::TempDir,
}

impl Desk {
    /// With these guests registered as version 1.0.
    fn with(guests: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::start(&stepwell(), &folder.path().join("data"), &[]).unwrap();
        let desk = Self { host, folder };
        for guest in guests {
            let file = component(guest);
            desk.ok(&["register", file.to_str().unwrap(), "--version", "1.0"]);
        }
        desk
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.env("STEPWELL_SERVER", self.host.url());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        Ended::from(self.command(arguments).output().unwrap())
    }

    /// Standard output of a command that must succeed.
    fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, 0, "{arguments:?}: {}{}", ended.out, ended.err);
        ended.out
    }

    /// The one document that a command prints with `--json`.
    fn json(&self, arguments: &[&str]) -> Value {
        let mut with_json = vec!["--json"];
        with_json.extend(arguments);
        let out = self.ok(&with_json);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {out}"))
    }

    fn start(&self, workflow: &str, input: &str) -> String {
        self.ok(&["start", workflow, "--input", input])
            .trim()
            .to_owned()
    }

    fn until(&self, run: &str, status: &str) {
        let give_up = Instant::now() + Duration::from_secs(30);
        while self.json(&["show", run])["run"]["status"] != status {
            assert!(Instant::now() < give_up, "{}", self.ok(&["show", run]));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A command without a server.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(stepwell());
    command.args(arguments).stdin(Stdio::null());
    for name in [
        "STEPWELL_SERVER",
        "STEPWELL_TENANT",
        "STEPWELL_DATA",
        "RUST_LOG",
    ] {
        command.env_remove(name);
    }
    command
}

/// What a command left behind.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Starts `serve` by hand, for tests of how it begins and ends.
fn serve(data: &Path, arguments: &[&str]) -> Child {
    command(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
        data.to_str().unwrap(),
    ])
    .args(arguments)
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap()
}

fn signal(child: &Child, name: &str) {
    assert!(
        Command::new("kill")
            .args([name, &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
}

/// Reads up to the line that says the server is ready.
fn until_ready(child: &mut Child) -> String {
    use std::io::{BufRead, BufReader};
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    line
}

#[test]
fn waiting_prints_the_result_alone_on_standard_output() {
    let desk = Desk::with(&["guest-steps"]);
    let ended = desk.run(&["start", "steps", "--input", r#"{"count":3}"#, "--wait"]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "3\n"),
        "{}",
        ended.err
    );
    for part in ["✓ step step-0", "✓ step step-2", "completed after"] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    assert!(
        !ended.err.contains('\u{1b}'),
        "colour is for terminals: {}",
        ended.err
    );
}

#[test]
fn exit_codes_tell_how_a_run_ended() {
    let desk = Desk::with(&["guest-steps", "guest-sleeper"]);
    let failed = desk.run(&[
        "start",
        "steps",
        "--input",
        r#"{"count":2,"fail":{"1":"no such card"}}"#,
        "-w",
    ]);
    assert_eq!(
        (failed.code, failed.out.as_str()),
        (1, ""),
        "{}",
        failed.err
    );
    assert!(
        failed
            .err
            .contains("failed in step-1 after 1 attempt: told-to-fail\n  no such card"),
        "{}",
        failed.err
    );

    let stopped = desk
        .command(&[
            "start",
            "sleeper",
            "--input",
            r#"{"ms":600000}"#,
            "--key",
            "k",
            "--wait",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let run = desk
        .ok(&[
            "start",
            "sleeper",
            "--input",
            r#"{"ms":600000}"#,
            "--key",
            "k",
        ])
        .trim()
        .to_owned();
    desk.until(&run, "sleeping");
    desk.ok(&["terminate", &run, "--reason", "enough"]);
    let stopped = Ended::from(stopped.wait_with_output().unwrap());
    assert_eq!(stopped.code, 5, "{}", stopped.err);
    assert!(
        stopped.err.contains("terminated: enough"),
        "{}",
        stopped.err
    );
}

#[test]
fn exit_codes_tell_who_is_to_blame() {
    let desk = Desk::with(&["guest-steps"]);
    let cases: &[(&[&str], i32, &str)] = &[
        (&["nonsense"], 2, "unrecognized subcommand"),
        (
            &["start", "steps", "--input", "{oops"],
            2,
            "--input is not JSON",
        ),
        (
            &["start", "steps", "--after", "a while"],
            2,
            "is not a span of time",
        ),
        (
            &["start", "steps", "--input", r#"{"count":"x"}"#],
            3,
            "at /count",
        ),
        (&["show", "run_1"], 3, "is not a run id"),
        (
            &["cancel", "run_00000000000000000000000000000000"],
            3,
            "there is no run",
        ),
        (
            &["--server", "http://127.0.0.1:1", "list"],
            4,
            "start one with `stepwell serve`",
        ),
        (
            &["register", "/nowhere.wasm", "--version", "1"],
            7,
            "could not be read",
        ),
        (&["build", "/nowhere"], 7, "is no crate"),
    ];
    for (arguments, code, said) in cases {
        let ended = desk.run(arguments);
        assert_eq!(ended.code, *code, "{arguments:?}: {}", ended.err);
        assert!(ended.err.contains(said), "{arguments:?}: {}", ended.err);
        assert_eq!(ended.out, "", "{arguments:?}");
    }
    let wasm = desk.folder.path().join("x.wasm");
    std::fs::write(&wasm, "not wasm").unwrap();
    let workspace = desk.run(&["build", root().to_str().unwrap()]);
    assert!(
        workspace.err.contains("is a workspace and no crate"),
        "{}",
        workspace.err
    );
    let ended = desk.run(&["register", wasm.to_str().unwrap(), "--version", "1"]);
    assert_eq!(ended.code, 3, "{}", ended.err);
    // A refusal that comes before all of the upload was read must still arrive.
    std::fs::write(&wasm, vec![0; 8 << 20]).unwrap();
    let ended = desk.run(&[
        "register",
        wasm.to_str().unwrap(),
        "--version",
        "not a label",
    ]);
    assert_eq!(ended.code, 3, "{}", ended.err);
    assert!(
        ended.err.contains("is not a version label"),
        "{}",
        ended.err
    );
}

#[test]
fn json_is_one_document_with_every_digit() {
    let desk = Desk::with(&["guest-steps", "guest-waiter"]);
    let run = desk.json(&["start", "steps", "--input", r#"{"count":2}"#, "--wait"]);
    assert_eq!(
        (&run["status"], &run["result"]),
        (&json!("completed"), &json!(1))
    );
    assert_eq!(
        desk.json(&["versions"])["versions"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(desk.json(&["list"])["runs"].as_array().unwrap().len(), 1);

    let run = desk.start("waiter", r#"{"event":"go"}"#);
    let sent = desk.json(&[
        "send",
        &run,
        "go",
        "--payload",
        r#"{"n":12345678901234567890123}"#,
        "--key",
        "k",
    ]);
    assert_eq!(
        (&sent["event"], &sent["is_new"]),
        (&json!("evt_1"), &json!(true))
    );
    let again = desk.json(&["send", &run, "go", "--payload", "1", "--key", "k"]);
    assert_eq!(
        (&again["event"], &again["is_new"]),
        (&json!("evt_1"), &json!(false))
    );
    desk.until(&run, "completed");
    let shown = desk.ok(&["--json", "show", &run]);
    assert!(
        shown.contains(r#"{"n":12345678901234567890123}"#),
        "{shown}"
    );
}

#[test]
fn a_person_sees_what_a_run_did_and_what_to_do_next() {
    let desk = Desk::with(&["guest-waiter", "guest-publisher"]);
    let run = desk.start("waiter", r#"{"event":"go"}"#);
    desk.until(&run, "waiting");
    let shown = desk.ok(&["show", "latest"]);
    assert!(
        shown.contains(&format!("stepwell send {run} go --payload")),
        "{shown}"
    );
    assert!(desk.ok(&["list"]).contains("waiting"));
    assert_eq!(
        desk.ok(&["list", "--status", "failed"]),
        "no runs; `stepwell start <workflow>` starts one\n"
    );

    let run = desk.start("publisher", r#"{"count":1,"log":true}"#);
    desk.until(&run, "completed");
    let shown = desk.ok(&["show", &run]);
    assert!(shown.contains("◆ finished = true"), "{shown}");
    let logged = desk.ok(&["logs", &run, "--follow"]);
    assert!(logged.contains("published 1  done=1  of=1"), "{logged}");
    assert_eq!(logged, desk.ok(&["logs", &run]));
}

#[test]
fn the_verbs_do_what_they_say() {
    let desk = Desk::with(&["guest-sleeper"]);
    let run = desk.start("sleeper", r#"{"ms":600000}"#);
    desk.until(&run, "sleeping");
    assert_eq!(
        desk.ok(&["pause", &run]),
        "pause: accepted; the run is paused\n"
    );
    assert_eq!(
        desk.ok(&["pause", &run]),
        "pause: nothing changed: it was asked before; the run is paused\n"
    );
    assert_eq!(
        desk.ok(&["resume", &run]),
        "resume: accepted; the run is sleeping\n"
    );
    desk.ok(&["wake", &run]);
    desk.until(&run, "completed");
    let refused = desk.run(&["wake", &run]);
    assert_eq!(refused.code, 3);
    assert!(
        refused
            .err
            .contains("it is completed, and nothing more can happen to it"),
        "{}",
        refused.err
    );
}

#[test]
fn an_answered_event_is_waited_for() {
    let desk = Desk::with(&["guest-waiter"]);
    let run = desk.start("waiter", r#"{"event":"go","reply":true}"#);
    assert_eq!(
        desk.ok(&["send", &run, "go", "--payload", "7", "--wait"]),
        "{\"got\":7}\n"
    );
}

#[test]
fn input_comes_from_a_file_or_from_standard_input() {
    use std::io::Write;
    let desk = Desk::with(&["guest-steps"]);
    let file = desk.folder.path().join("input.json");
    std::fs::write(&file, "{\"count\":\n  3}\n").unwrap();
    assert_eq!(
        desk.ok(&[
            "start",
            "steps",
            "--input-file",
            file.to_str().unwrap(),
            "--wait"
        ]),
        "3\n"
    );
    let mut child = desk
        .command(&["start", "steps", "--input", "-", "--wait"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"{\"count\":4}")
        .unwrap();
    assert_eq!(Ended::from(child.wait_with_output().unwrap()).out, "6\n");
}

#[test]
fn watching_survives_the_death_of_the_server() {
    let mut desk = Desk::with(&["guest-steps"]);
    // Its port must be the same after the restart, so it is chosen here.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    desk.host.stop().unwrap();
    let data = desk.host.data().to_owned();
    desk.host = Host::start(&stepwell(), &data, &["--listen", &address]).unwrap();
    let watching = desk
        .command(&[
            "start",
            "steps",
            "--input",
            r#"{"count":8,"sleep_ms_in_step":150}"#,
            "--wait",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(600));
    desk.host.kill().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    desk.host.start_again().unwrap();
    let ended = Ended::from(watching.wait_with_output().unwrap());
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "28\n"),
        "{}",
        ended.err
    );
    assert!(
        ended.err.contains("waiting for the server to come back"),
        "{}",
        ended.err
    );
    for step in 0..8 {
        let count = ended.err.matches(&format!("✓ step step-{step} ")).count();
        assert_eq!(count, 1, "step-{step}: {}", ended.err);
    }
}

#[test]
fn serve_says_that_it_is_ready_and_stops_in_good_order() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["-TERM", "-INT"] {
        let mut child = serve(folder.path(), &[]);
        let ready = until_ready(&mut child);
        assert!(ready.contains("is ready at http://127.0.0.1:"), "{ready}");
        signal(&child, name);
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!(ended.code, 0, "{name}: {}", ended.err);
        assert!(
            ended.err.contains("every run goes on from its journal"),
            "{}",
            ended.err
        );
    }
}

#[test]
fn a_data_folder_has_one_host_and_a_port_one_listener() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = serve(folder.path(), &[]);
    let ready = until_ready(&mut first);
    let address = ready
        .split("http://")
        .nth(1)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap();

    let second = Ended::from(serve(folder.path(), &[]).wait_with_output().unwrap());
    assert_eq!(second.code, 7, "{}", second.err);
    assert!(
        second.err.contains("is in use by another host"),
        "{}",
        second.err
    );

    let other = folder.path().join("other");
    let third = command(&[
        "serve",
        "--listen",
        address,
        "--data",
        other.to_str().unwrap(),
    ])
    .output()
    .unwrap();
    let third = Ended::from(third);
    assert_eq!(third.code, 7, "{}", third.err);
    assert!(
        third.err.contains("another process listens there"),
        "{}",
        third.err
    );
    assert!(
        !other.exists(),
        "a port in use leaves the data folder alone"
    );
    signal(&first, "-TERM");
    assert_eq!(first.wait().unwrap().code(), Some(0));
}

#[test]
fn the_memory_store_warns_that_nothing_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut child = serve(&data, &["--store", "memory"]);
    until_ready(&mut child);
    signal(&child, "-TERM");
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert!(
        ended
            .err
            .contains("everything is lost when this process ends"),
        "{}",
        ended.err
    );
    assert!(!data.exists());
}

#[test]
fn build_makes_a_component_that_a_server_accepts() {
    let desk = Desk::with(&[]);
    let out: PathBuf = desk.folder.path().join("steps.wasm");
    let guest = root().join("tests/guests/steps");
    let built = desk.json(&[
        "build",
        guest.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(built["workflows"][0]["name"], "steps", "{built}");
    let registered = desk.json(&[
        "register",
        out.to_str().unwrap(),
        "--version",
        "1.0",
        "--env",
        "A=b",
    ]);
    assert_eq!(
        (&registered["digest"], &registered["is_new"]),
        (&built["digest"], &json!(true))
    );
    assert_eq!(
        desk.json(&["versions"])["versions"][0]["environment"],
        json!({ "A": "b" })
    );
}

#[test]
fn a_pipe_that_ends_early_is_no_error() {
    let desk = Desk::with(&["guest-steps"]);
    let mut child = desk
        .command(&["versions"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
}
