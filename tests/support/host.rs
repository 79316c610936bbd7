//! A real `stepwell serve` process on a data folder, which can be killed and started again.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::client::Client;

/// A running host. Dropping it kills the process.
#[derive(Debug)]
pub struct Host {
    binary: PathBuf,
    data: PathBuf,
    arguments: Vec<String>,
    child: Child,
    url: String,
}

impl Host {
    /// Starts `binary serve` on this data folder and a free port, and waits until it is ready.
    ///
    /// # Errors
    /// If it does not become ready within 30 seconds; with what it wrote.
    pub fn start(binary: &Path, data: &Path, arguments: &[&str]) -> Result<Self> {
        let arguments: Vec<String> = arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect();
        let (child, url) = launch(binary, data, &arguments)?;
        Ok(Self {
            binary: binary.to_owned(),
            data: data.to_owned(),
            arguments,
            child,
            url,
        })
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder that it keeps everything in.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Talks to it over HTTP.
    pub fn client(&self) -> Client {
        Client::new(&self.url)
    }

    /// Kills the process with SIGKILL: it gets no chance to tidy up.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill().context("the host could not be killed")?;
        self.child
            .wait()
            .context("the host could not be waited for")?;
        Ok(())
    }

    /// Asks the process to stop with SIGTERM, and waits for it.
    ///
    /// # Errors
    /// If it has not stopped within 30 seconds, or ended with an error.
    pub fn stop(&mut self) -> Result<()> {
        let id = self.child.id().to_string();
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .context("kill could not be run")?;
        let give_up = Instant::now() + Duration::from_secs(30);
        while Instant::now() < give_up {
            if let Some(status) = self
                .child
                .try_wait()
                .context("the host could not be waited for")?
            {
                if status.success() {
                    return Ok(());
                }
                bail!("the host ended with {status}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("the host did not stop within 30 s of SIGTERM");
    }

    /// Starts it again on the same folder, on another port, after it was killed or stopped.
    ///
    /// # Errors
    /// As [`Host::start`].
    pub fn start_again(&mut self) -> Result<()> {
        (self.child, self.url) = launch(&self.binary, &self.data, &self.arguments)?;
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn launch(binary: &Path, data: &Path, arguments: &[String]) -> Result<(Child, String)> {
    let mut child = Command::new(binary)
        .arg("serve")
        .arg("--data")
        .arg(data)
        .args(["--listen", "127.0.0.1:0"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .with_context(|| format!("{} could not be started", binary.display()))?;
    let stdout = child.stdout.take().context("stdout is piped")?;
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // The pipe is read to its end, so that the host never blocks on it.
            let _ = sender.send(line);
        }
    });
    let give_up = Instant::now() + Duration::from_secs(30);
    let mut said = Vec::new();
    while let Ok(line) = receiver.recv_timeout(give_up.saturating_duration_since(Instant::now())) {
        if let Some(start) = line.find("http://") {
            let url = line[start..]
                .split_whitespace()
                .next()
                .unwrap_or_default()
                .trim_end_matches(['/', '.']);
            return Ok((child, url.to_owned()));
        }
        said.push(line);
    }
    let _ = child.kill();
    let status = child.wait().context("the host could not be waited for")?;
    bail!("the host did not say that it is ready; it ended with {status} and said {said:?}");
}
