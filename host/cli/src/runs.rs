//! Everything about runs: `start`, `send`, `show`, `list`, `logs`, and the verbs.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::value::RawValue;
use stepwell_server::wire;

use crate::args::{List, Logs, Send, Show, Start};
use crate::client::{Client, Document, Path};
use crate::exit::Exit;
use crate::follow::{self, Follower};
use crate::payload;
use crate::render::{self, Paint};
use crate::terminal::Terminal;

/// Log lines that `show` ends with.
const SHOWN_LOG_LINES: usize = 10;

/// How long one request waits for news.
const WAIT_MS: u64 = 30_000;

pub(crate) fn start(terminal: &Terminal, client: &Client, start: Start) -> anyhow::Result<Exit> {
    let input = match (&start.input, &start.input_file) {
        (Some(text), _) => Some(payload::from_argument("--input", text)?),
        (None, Some(file)) => Some(payload::from_file(file)?),
        (None, None) => None,
    };
    let request = wire::Start {
        version: start.label,
        input,
        input_base64: None,
        idempotency_key: start.key,
        start_at: start.at,
        delay: start.after,
    };
    let document = client.post(&Path::of(&["workflows", &start.workflow, "runs"]), &request)?;
    let started: wire::Started = client.parse(&document)?;
    if start.wait {
        return wait(terminal, client, &started);
    }
    if terminal.is_json() {
        terminal.print_line(document.text())?;
    } else {
        terminal.print_line(&started.run)?;
        if !started.is_new {
            terminal.advise("this key had started it before");
        }
        terminal.advise(&format!("look at it:  stepwell show {}", started.run));
    }
    Ok(Exit::Ok)
}

/// Follows a run to its end. Progress goes to standard error and the result to standard output, so
/// that a script gets the result alone.
fn wait(terminal: &Terminal, client: &Client, started: &wire::Started) -> anyhow::Result<Exit> {
    let is_loud = !terminal.is_json();
    if is_loud {
        let known = if started.is_new {
            ""
        } else {
            " (started before with this key)"
        };
        let hint = terminal
            .err_style()
            .paint(Paint::Dim, "(Ctrl-C ends the watching, not the run)");
        terminal.tell(&format!("{}{known}  {hint}\n", started.run));
    }
    let follower = Follower {
        client,
        terminal,
        run: &started.run,
    };
    let document = follower.to_its_end(is_loud)?;
    let run: wire::Run = client.parse(&document)?;
    if terminal.is_json() {
        terminal.print_line(document.text())?;
    } else if let Some(result) = run.result.as_ref().filter(|_| run.status == "completed") {
        terminal.tell(&follow::epilogue(terminal.err_style(), &run));
        terminal.print_line(result.get())?;
    } else {
        terminal.tell(&follow::epilogue(terminal.err_style(), &run));
        terminal.tell(&render::ended(terminal.err_style(), &run));
    }
    Ok(Exit::of_status(&run.status))
}

pub(crate) fn send(terminal: &Terminal, client: &Client, send: Send) -> anyhow::Result<Exit> {
    let payload = send
        .payload
        .as_deref()
        .map(|text| payload::from_argument("--payload", text))
        .transpose()?;
    let request = wire::Send {
        payload,
        payload_base64: None,
        delivery_key: send.key,
    };
    let document = client.post(
        &Path::of(&["runs", &send.run, "events", &send.event]),
        &request,
    )?;
    let sent: wire::Sent = client.parse(&document)?;
    if send.wait {
        return wait_for_reply(terminal, client, &sent);
    }
    if terminal.is_json() {
        terminal.print_line(document.text())?;
    } else {
        let said = if sent.is_new {
            "sent as"
        } else {
            "was sent before as"
        };
        terminal.print_line(&format!("{said} {}", sent.event))?;
    }
    Ok(Exit::Ok)
}

fn wait_for_reply(terminal: &Terminal, client: &Client, sent: &wire::Sent) -> anyhow::Result<Exit> {
    loop {
        let path = Path::of(&["runs", &sent.run, "events", &sent.event]).with("wait_ms", WAIT_MS);
        let document = client.get(&path)?;
        let event: wire::Event = client.parse(&document)?;
        let is_answered =
            event.reply.is_some() || event.reply_base64.is_some() || event.failure.is_some();
        if !is_answered {
            let run: wire::Run = client.parse(&client.get(&Path::of(&["runs", &sent.run]))?)?;
            if run.is_final || run.status == "stuck" {
                anyhow::bail!(
                    "run {} is {} and has not answered {}",
                    sent.run,
                    run.status,
                    sent.event
                );
            }
            continue;
        }
        if terminal.is_json() {
            terminal.print_line(document.text())?;
        } else if let Some(failure) = &event.failure {
            terminal.tell(&format!(
                "{}: {}\n",
                render::plain(&failure.kind),
                render::plain(&failure.message)
            ));
        } else {
            let text = event
                .reply
                .as_ref()
                .map(|json| json.get().to_owned())
                .or(event.reply_base64);
            terminal.print_line(&text.unwrap_or_default())?;
        }
        return Ok(if event.failure.is_some() {
            Exit::RunFailed
        } else {
            Exit::Ok
        });
    }
}

pub(crate) fn show(terminal: &Terminal, client: &Client, show: &Show) -> anyhow::Result<Exit> {
    let id = resolve(client, &show.run)?;
    let run_document = client.get(&Path::of(&["runs", &id]))?;
    let published_document = client.get(&Path::of(&["runs", &id, "published"]))?;
    let pages = follow::history(client, &id)?;
    let mut lines = follow::log(client, &id)?;
    if terminal.is_json() {
        terminal.print_line(&one_document(&run_document, &published_document, &pages)?)?;
        return Ok(Exit::Ok);
    }
    let mut entries = Vec::new();
    for page in &pages {
        entries.extend(client.parse::<wire::History>(page)?.entries);
    }
    let published: wire::Published = client.parse(&published_document)?;
    let run: wire::Run = client.parse(&run_document)?;
    let shown = render::Shown {
        event_schemas: event_schemas(client, &run)?,
        run,
        entries,
        published: published.published,
        logs: lines.split_off(lines.len().saturating_sub(SHOWN_LOG_LINES)),
        has_values: show.values,
    };
    terminal.print(&render::run(terminal.style(), terminal.now(), &shown))?;
    Ok(Exit::Ok)
}

/// What the run's version says about the events it waits for; only asked if it waits.
fn event_schemas(client: &Client, run: &wire::Run) -> anyhow::Result<BTreeMap<String, String>> {
    #[derive(serde::Deserialize)]
    struct Manifest {
        #[serde(default)]
        events: Vec<Event>,
    }
    #[derive(serde::Deserialize)]
    struct Event {
        name: String,
        schema: Option<wire::Json>,
    }
    if run.status != "waiting" {
        return Ok(BTreeMap::new());
    }
    let document = client.get(&Path::of(&["workflows", &run.workflow, "versions"]))?;
    let versions: wire::Versions = client.parse(&document)?;
    let version = versions
        .versions
        .into_iter()
        .find(|version| version.version == run.version);
    let manifest = version.and_then(|version| version.manifest);
    // It only helps with a hint: a manifest of another shape is no reason to fail.
    let manifest = manifest.and_then(|json| serde_json::from_str::<Manifest>(json.get()).ok());
    let events = manifest
        .map(|manifest| manifest.events)
        .unwrap_or_default()
        .into_iter();
    Ok(events
        .filter_map(|event| Some((event.name, event.schema?.get().to_owned())))
        .collect())
}

/// A run, what it has published and its journal in one document, every payload as it came.
fn one_document(
    run: &Document,
    published: &Document,
    pages: &[Document],
) -> anyhow::Result<String> {
    #[derive(serde::Deserialize)]
    struct Published<'a> {
        #[serde(borrow)]
        published: &'a RawValue,
    }
    #[derive(serde::Deserialize)]
    struct Page<'a> {
        #[serde(borrow)]
        entries: Vec<&'a RawValue>,
    }
    #[derive(serde::Serialize)]
    struct Whole<'a> {
        run: &'a RawValue,
        published: &'a RawValue,
        entries: Vec<&'a RawValue>,
    }
    let mut entries = Vec::new();
    for page in pages {
        entries.extend(serde_json::from_str::<Page<'_>>(page.text())?.entries);
    }
    let published: Published<'_> = serde_json::from_str(published.text())?;
    let whole = Whole {
        run: serde_json::from_str(run.text())?,
        published: published.published,
        entries,
    };
    serde_json::to_string(&whole).context("the document could not be written")
}

pub(crate) fn list(terminal: &Terminal, client: &Client, list: &List) -> anyhow::Result<Exit> {
    let mut path = Path::of(&["runs"]).with("limit", list.limit);
    if let Some(workflow) = &list.workflow {
        path = path.with("workflow", workflow);
    }
    if let Some(status) = &list.status {
        path = path.with("status", status);
    }
    let document = client.get(&path)?;
    if terminal.is_json() {
        terminal.print_line(document.text())?;
    } else {
        let runs: wire::Runs = client.parse(&document)?;
        terminal.print(&render::runs(terminal.style(), terminal.now(), &runs))?;
    }
    Ok(Exit::Ok)
}

pub(crate) fn logs(terminal: &Terminal, client: &Client, logs: &Logs) -> anyhow::Result<Exit> {
    let id = resolve(client, &logs.run)?;
    if logs.follow {
        let follower = Follower {
            client,
            terminal,
            run: &id,
        };
        follower.log(&mut |line| {
            let text = match terminal.is_json() {
                true => serde_json::to_string(line)? + "\n",
                false => render::line(terminal.style(), line),
            };
            Ok(terminal.print(&text)?)
        })?;
        return Ok(Exit::Ok);
    }
    let lines = follow::log(client, &id)?;
    if terminal.is_json() {
        terminal.print_line(&serde_json::to_string(&lines)?)?;
    } else if lines.is_empty() {
        terminal.advise("the run has logged nothing");
    } else {
        terminal.print(
            &lines
                .iter()
                .map(|line| render::line(terminal.style(), line))
                .collect::<String>(),
        )?;
    }
    Ok(Exit::Ok)
}

pub(crate) fn verb(
    terminal: &Terminal,
    client: &Client,
    verb: &str,
    run: &str,
    reason: Option<String>,
) -> anyhow::Result<Exit> {
    let document = client.post(&Path::of(&["runs", run, verb]), &wire::Verb { reason })?;
    if terminal.is_json() {
        terminal.print_line(document.text())?;
    } else {
        let verdict: wire::Verdict = client.parse(&document)?;
        let said = if verdict.is_new {
            "accepted"
        } else {
            "nothing changed: it was asked before"
        };
        terminal.print_line(&format!(
            "{verb}: {said}; the run is {}",
            terminal.style().status(&verdict.status)
        ))?;
    }
    Ok(Exit::Ok)
}

/// The run's id: as given, or of the newest run for `latest`. Only for commands that change nothing.
fn resolve(client: &Client, run: &str) -> anyhow::Result<String> {
    if run != "latest" {
        return Ok(run.to_owned());
    }
    let runs: wire::Runs = client.parse(&client.get(&Path::of(&["runs"]).with("limit", 1))?)?;
    let newest = runs
        .runs
        .into_iter()
        .next()
        .context("there is no run yet; `stepwell start <workflow>` starts one")?;
    Ok(newest.run)
}
