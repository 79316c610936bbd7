//! Watching a run: pages of its journal and log as they come, across restarts of the server.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use stepwell_server::wire;

use crate::client::{Client, Document, Error, Path};
use crate::render::{Live, Paint, Style, line};
use crate::terminal::Terminal;

/// Entries and lines of one page.
const PAGE: u64 = 1_000;

/// How long one request waits for news.
const WAIT_MS: u64 = 30_000;

/// How long a server may be gone before we give up, and how often we look for it.
const GONE_MAX: Duration = Duration::from_secs(5 * 60);
const GONE_LOOK: Duration = Duration::from_millis(300);

/// A run that is watched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Follower<'a> {
    pub(crate) client: &'a Client,
    pub(crate) terminal: &'a Terminal,
    pub(crate) run: &'a str,
}

/// Something to show.
enum News {
    Entry(Box<wire::Entry>),
    Line(wire::Line),
}

impl Follower<'_> {
    /// Waits until the run has ended or is stuck; shows what happens on the way, if `is_loud`.
    pub(crate) fn to_its_end(self, is_loud: bool) -> anyhow::Result<Document> {
        if is_loud {
            self.show_news()?;
        }
        loop {
            let path = Path::of(&["runs", self.run, "wait"]).with("wait_ms", WAIT_MS);
            let document = self.patiently(&path)?;
            let run: wire::Run = self.client.parse(&document)?;
            if is_settled(&run.status) {
                return Ok(document);
            }
        }
    }

    /// Journal and log come from two requests that wait; what comes first is shown first.
    fn show_news(self) -> anyhow::Result<()> {
        let began = self
            .client
            .parse::<wire::Run>(&self.patiently(&Path::of(&["runs", self.run]))?)?
            .created_at;
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            let entries = sender.clone();
            // The receiver outlives both threads, so a send only fails when nobody looks any more.
            let history = scope.spawn(move || {
                self.history(&mut |entry| {
                    let _ = entries.send(News::Entry(Box::new(entry)));
                })
            });
            let log = scope.spawn(move || {
                self.log(&mut |line| {
                    let _ = sender.send(News::Line(line.clone()));
                    Ok(())
                })
            });
            let style = self.terminal.err_style();
            let mut live = Live::new(style);
            for news in receiver {
                match news {
                    News::Entry(entry) => self
                        .terminal
                        .tell(&live.entry(began, &entry).unwrap_or_default()),
                    News::Line(entry) => self.terminal.tell(&line(style, &entry)),
                }
            }
            for thread in [history, log] {
                match thread.join() {
                    Ok(outcome) => outcome?,
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(())
        })
    }

    /// Hands over every entry of the newest journal until the run has ended or is stuck.
    fn history(self, each: &mut dyn FnMut(wire::Entry)) -> anyhow::Result<()> {
        let (mut from, mut generation) = (0, None);
        loop {
            let path = Path::of(&["runs", self.run, "history"])
                .with("from", from)
                .with("limit", PAGE);
            let page: wire::History = self
                .client
                .parse(&self.patiently(&path.with("wait_ms", WAIT_MS))?)?;
            if generation
                .replace(page.generation)
                .is_some_and(|known| known != page.generation)
                && from != 0
            {
                // A fresh journal, from its beginning; what the old one ended with may be missed.
                from = 0;
                continue;
            }
            from = page.next;
            let is_over = is_settled(&page.status) && !page.more;
            page.entries.into_iter().for_each(&mut *each);
            if is_over {
                return Ok(());
            }
        }
    }

    /// Hands over every line of the log until the run has ended or is stuck.
    pub(crate) fn log(
        self,
        each: &mut dyn FnMut(&wire::Line) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut after = 0;
        loop {
            let path = Path::of(&["runs", self.run, "logs"])
                .with("after", after)
                .with("limit", PAGE);
            let page: wire::Logs = self
                .client
                .parse(&self.patiently(&path.with("wait_ms", WAIT_MS))?)?;
            after = page.next;
            page.lines.iter().try_for_each(&mut *each)?;
            if page.lines.is_empty() && is_settled(&page.status) {
                return Ok(());
            }
        }
    }

    /// Asks again while the server is gone: the run is safe, and goes on when it comes back.
    fn patiently(self, path: &Path) -> Result<Document, Error> {
        let mut gone_since = None;
        loop {
            let error = match self.client.get(path) {
                Ok(document) => return Ok(document),
                Err(error) => error,
            };
            if !matches!(error, Error::Unreachable { .. } | Error::Fault(_)) {
                return Err(error);
            }
            let since = *gone_since.get_or_insert_with(|| {
                let text = "the server does not answer; the run is safe, waiting for the server to come back";
                self.terminal.tell(&format!("{}\n", self.terminal.err_style().paint(Paint::Warn, text)));
                Instant::now()
            });
            if since.elapsed() > GONE_MAX {
                return Err(error);
            }
            std::thread::sleep(GONE_LOOK);
        }
    }
}

fn is_settled(status: &str) -> bool {
    matches!(
        status,
        "completed" | "failed" | "cancelled" | "terminated" | "continued" | "stuck"
    )
}

/// The last line of a run that was watched.
pub(crate) fn epilogue(style: Style, run: &wire::Run) -> String {
    let ms = run
        .updated_at
        .0
        .as_ms()
        .saturating_sub(run.created_at.0.as_ms());
    format!(
        "{} after {}\n",
        style.status(&run.status),
        crate::render::span(ms)
    )
}

/// All pages of a run's newest journal.
pub(crate) fn history(client: &Client, run: &str) -> anyhow::Result<Vec<Document>> {
    let (mut pages, mut from) = (Vec::new(), 0);
    loop {
        let document = client.get(
            &Path::of(&["runs", run, "history"])
                .with("from", from)
                .with("limit", PAGE),
        )?;
        let page: wire::History = client.parse(&document)?;
        pages.push(document);
        if !page.more || page.next == from {
            return Ok(pages);
        }
        from = page.next;
    }
}

/// A run's whole log.
pub(crate) fn log(client: &Client, run: &str) -> anyhow::Result<Vec<wire::Line>> {
    let (mut lines, mut after) = (Vec::new(), 0);
    loop {
        let path = Path::of(&["runs", run, "logs"])
            .with("after", after)
            .with("limit", PAGE);
        let page: wire::Logs = client.parse(&client.get(&path)?)?;
        if page.lines.is_empty() {
            return Ok(lines);
        }
        after = page.next;
        lines.extend(page.lines);
    }
}
