//! `cargo xtask demo`: the samples on a real host, which is killed in the middle of its work.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use stepwell_tests::{Client, Effects, Host, build_guests, component, root, stepwell};

use crate::{cargo, setup};

/// Sets everything up, and shows that no crash loses or doubles anything that is checkpointed.
pub(crate) fn demo() -> Result<()> {
    setup::setup()?;
    cargo::host()?;
    build_guests()?;

    let data = stepwell_tests::target_dir().join("demo-data");
    if data.exists() {
        std::fs::remove_dir_all(&data)
            .with_context(|| format!("cannot empty {}", data.display()))?;
    }
    // The shop: it counts what reaches it, and no crash of the host undoes that.
    let shop = Effects::listen()?;
    say("a real host, on one SQLite file");
    let mut host = Host::start(&stepwell(), &data, &[])?;
    println!("{} with {}", host.url(), data.display());

    say("components, registered while it runs; two versions of `onboarding` side by side");
    for (package, label, environment) in [
        ("approval", "1.0", None),
        ("onboarding-v1", "1.0", None),
        ("onboarding-v2", "2.0", None),
        ("order", "1.0", Some(format!("SHOP_URL={}", shop.url()))),
        ("import", "1.0", None),
    ] {
        let file = component(package);
        let mut arguments = vec!["register", path(&file)?, "--version", label];
        if let Some(environment) = &environment {
            arguments.extend(["--env", environment]);
        }
        cli(&host, &arguments)?;
    }

    let client = host.client();
    let ada = json!({ "name": "Ada", "email": "ada@example.org" });
    let onboardings =
        ["1.0", "2.0"].map(|version| start(&client, "onboarding", Some(version), &ada));
    let onboardings = onboardings.into_iter().collect::<Result<Vec<_>>>()?;

    say(
        "an order that needs approval; the host is killed with SIGKILL while the charge is under way",
    );
    let order = json!({ "id": "A-17", "item": "kettle", "quantity": 2, "cents": 240_000 });
    let order = start(&client, "order", None, &order)?;
    shop.wait_for("reserve", 1)?;
    shop.hold("charge");
    cli(
        &host,
        &[
            "send",
            &order,
            "approval",
            "--payload",
            r#"{"by":"Grace","approved":true}"#,
        ],
    )?;
    shop.wait_for("charge", 1)?;
    host.kill()?;
    println!("killed: the shop has charged, and nobody has written it down");
    host.start_again()?;
    println!("started again on the same file: {}", host.url());
    shop.wait_for("charge", 2)?;
    shop.release();
    let client = host.client();
    let receipt = end(&client, &order)?;
    cli(&host, &["show", &order])?;
    for (what, requests) in [("reserve", 1), ("charge", 2), ("ship", 1)] {
        let (count, keys) = (shop.count(what), shop.distinct(what));
        println!("the shop saw {what} {count} time(s), under {keys} idempotency key(s)");
        ensure!(
            (count, keys) == (requests, 1),
            "expected {requests} request(s) to {what} under one key"
        );
    }
    ensure!(
        receipt["charge"].is_string(),
        "the order has no charge: {receipt}"
    );

    say("a file of 5,000 sales, imported by tasks side by side");
    let csv = std::fs::read_to_string(root().join("sample-workflows/import/sales.csv"))
        .context("sales.csv")?;
    let import = start(&client, "import", None, &json!({ "csv": csv }))?;
    println!("{}", end(&client, &import)?);

    say(
        "both versions of `onboarding`, asleep since before the crash: woken, each ends on its own code",
    );
    for run in &onboardings {
        while status(&client, run)? != "completed" {
            // 1.0 sleeps for days, 2.0 waits for a login; what does not apply is refused.
            client.post(&format!("/v1/runs/{run}/wake"), &json!({}))?;
            client.post(
                &format!("/v1/runs/{run}/events/login"),
                &json!({ "payload": null }),
            )?;
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        println!("{}", end(&client, run)?);
    }
    cli(&host, &["list"])?;
    host.stop()?;
    say("done: every run finished, and every effect was counted");
    Ok(())
}

fn say(what: &str) {
    println!("\n── {what}");
}

fn path(file: &Path) -> Result<&str> {
    file.to_str().context("a path that is not text")
}

fn cli(host: &Host, arguments: &[&str]) -> Result<()> {
    println!("$ stepwell {}", arguments.join(" "));
    let status = Command::new(stepwell())
        .args(["--server", host.url()])
        .args(arguments)
        .status();
    let status = status.context("stepwell could not be run")?;
    ensure!(
        status.success(),
        "stepwell {} ended with {status}",
        arguments[0]
    );
    Ok(())
}

fn start(client: &Client, workflow: &str, version: Option<&str>, input: &Value) -> Result<String> {
    let mut body = json!({ "input": input });
    if let Some(version) = version {
        body["version"] = json!(version);
    }
    let run = client
        .post(&format!("/v1/workflows/{workflow}/runs"), &body)?
        .ok()?;
    run["run"]
        .as_str()
        .map(str::to_owned)
        .context("a started run has an id")
}

fn status(client: &Client, run: &str) -> Result<String> {
    let run = client.get(&format!("/v1/runs/{run}"))?.ok()?;
    run["status"]
        .as_str()
        .map(str::to_owned)
        .context("a run has a status")
}

fn end(client: &Client, run: &str) -> Result<Value> {
    let run = client
        .get(&format!("/v1/runs/{run}/wait?wait_ms=60000"))?
        .ok()?;
    if run["status"] != "completed" {
        bail!("the run did not complete: {run:#}");
    }
    Ok(run["result"].clone())
}
