//! A host in a process of its own: this binary again, as `serve`, on a folder of its own and a free
//! port of the loopback address.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use stepwell_server::wire;
use tempfile::TempDir;

use crate::client::Client;
use crate::error::Error;
use crate::guest::{STEPS, VERSION};

/// A host says within this time that it is ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Of what it wrote to its log, so much is told if it fails.
const LOG_LINES_TOLD: usize = 5;

/// A running host. Dropping it ends the process, and removes its folder.
#[derive(Debug)]
pub(crate) struct Host {
    child: Child,
    client: Client,
    folder: TempDir,
}

/// The resident memory of a process, in MiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// All of it.
    pub(crate) resident: f64,
    /// Without pages of files.
    pub(crate) anonymous: f64,
    /// The most that there ever was.
    pub(crate) most: f64,
}

impl Host {
    /// Starts a host, registers the workflows and runs one step, so that nothing that is done once
    /// is measured.
    pub(crate) fn start(folder: TempDir, component: &[u8]) -> Result<Self, Error> {
        let (child, client) = launch(folder.path())?;
        let host = Self {
            child,
            client,
            folder,
        };
        let _: wire::Registered = host.client.put(&format!("versions/{VERSION}"), component)?;
        let run = host.client.start(STEPS, 1)?;
        host.client.until_completed(&run)?;
        Ok(host)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Ends the process with SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<(), Error> {
        self.child
            .kill()
            .and_then(|()| self.child.wait().map(drop))
            .map_err(Error::system("the host could not be killed"))
    }

    /// Starts it again on the same folder.
    pub(crate) fn start_again(&mut self) -> Result<(), Error> {
        (self.child, self.client) = launch(self.folder.path())?;
        Ok(())
    }

    /// What its memory is now.
    pub(crate) fn memory(&self) -> Result<Memory, Error> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .map_err(Error::system("the host's memory could not be read"))?;
        Memory::of(&status)
            .ok_or_else(|| Error::unexpected("/proc/…/status does not tell the host's memory"))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Memory {
    /// From the text of `/proc/…/status`.
    fn of(status: &str) -> Option<Self> {
        let mib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: f64 = line
                .trim_start_matches(':')
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()?;
            Some(kib / 1024.0)
        };
        Some(Self {
            resident: mib("VmRSS")?,
            anonymous: mib("RssAnon")?,
            most: mib("VmHWM")?,
        })
    }
}

fn launch(folder: &Path) -> Result<(Child, Client), Error> {
    let program = std::env::current_exe().map_err(Error::system("this program was not found"))?;
    let log = folder.join("host.log");
    let stderr = File::options()
        .create(true)
        .append(true)
        .open(&log)
        .map_err(Error::system("the host's log could not be written"))?;
    let mut child = Command::new(program)
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder.join("data"))
        // What is measured is the host with its defaults.
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .map_err(Error::system("the host could not be started"))?;
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // Read to its end, so that the host never waits for the pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
    }
    // Its first line says where it is.
    let ready = receiver.recv_timeout(READY_WITHIN);
    let address = ready.as_deref().ok().and_then(|line| {
        let (_, address) = line.split_once("http://")?;
        address.split_whitespace().next()
    });
    if let Some(address) = address {
        let client = Client::new(address);
        return Ok((child, client));
    }
    let _ = child.kill();
    let _ = child.wait();
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let told = lines[lines.len().saturating_sub(LOG_LINES_TOLD)..].join("\n");
    Err(Error::unexpected(format!(
        "the host did not become ready: {told}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_status_of_a_process() {
        let status =
            "Name:\tstepwell\nVmHWM:\t   40960 kB\nVmRSS:\t   20480 kB\nRssAnon:\t    1024 kB\n";
        let memory = Memory::of(status).unwrap();
        assert_eq!(
            (memory.resident, memory.anonymous, memory.most),
            (20.0, 1.0, 40.0)
        );
        assert!(Memory::of("Name:\tstepwell\n").is_none());
    }
}
