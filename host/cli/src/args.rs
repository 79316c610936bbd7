//! What may be typed.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use stepwell_bench::Workload;
use stepwell_core::id::TenantName;
use stepwell_core::run::Status;
use stepwell_server::wire::{Instant, Span};

use crate::exit;

/// Durable workflows as WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "stepwell", version, after_help = exit::HELP, max_term_width = 100)]
#[command(
    propagate_version = true,
    disable_help_subcommand = true,
    args_override_self = true
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Where the server is
    #[arg(
        long,
        global = true,
        help_heading = "Everywhere",
        env = "STEPWELL_SERVER",
        default_value = "http://127.0.0.1:7117",
        value_name = "URL",
        value_parser = server_url
    )]
    pub(crate) server: String,

    /// Whose workflows and runs
    #[arg(
        long,
        global = true,
        help_heading = "Everywhere",
        env = "STEPWELL_TENANT",
        default_value = "default",
        value_name = "NAME"
    )]
    pub(crate) tenant: TenantName,

    /// Print one JSON document for programs instead of text for people
    #[arg(long, help_heading = "Everywhere", global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server
    Serve(Serve),
    /// Build a workflow crate into a component, and check it
    Build(Build),
    /// Register a component's workflows under a version
    Register(Register),
    /// List registered versions
    Versions,
    /// Start a run
    Start(Start),
    /// Send an event to a run
    Send(Send),
    /// Draw a run: its operations in time, what it publishes, how it ended
    Show(Show),
    /// List runs, newest first
    List(List),
    /// Print a run's log
    Logs(Logs),
    /// Ask a run to stop; it may clean up for a while
    Cancel(Stop),
    /// Stop a run at once, without clean-up
    Terminate(Stop),
    /// Hold a run before its next operation
    Pause(Verb),
    /// Let a paused or stuck run go on
    Resume(Verb),
    /// End a run's sleep early
    Wake(Verb),
    /// Measure this machine: steps, latency, memory, crashes and timers, beside its bare limits
    Bench(Bench),
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The folder that everything is kept in; made if it is not there
    #[arg(
        long,
        env = "STEPWELL_DATA",
        default_value = "./stepwell-data",
        value_name = "FOLDER"
    )]
    pub(crate) data: PathBuf,

    /// Where to listen; port 0 takes a free one
    #[arg(
        long,
        default_value = "127.0.0.1:7117",
        value_name = "ADDRESS",
        value_parser = listen_address
    )]
    pub(crate) listen: String,

    /// Where runs are kept
    #[arg(long, value_enum, default_value_t = StoreKind::Sqlite)]
    pub(crate) store: StoreKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreKind {
    /// In a file of the data folder
    Sqlite,
    /// In memory: nothing survives a restart
    Memory,
}

#[derive(Debug, Args)]
pub(crate) struct Build {
    /// The folder of the workflow crate
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,

    /// Where to put the component; `<name>.wasm` in the current folder if absent
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Register {
    /// The component
    pub(crate) file: PathBuf,

    /// The label of all its workflows, for example 1.0
    #[arg(long = "version", id = "label", value_name = "LABEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) label: String,

    /// An environment variable that its runs see; may be given several times
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) environment: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Start {
    /// The workflow
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workflow: String,

    /// A version other than the workflow's default
    #[arg(long = "version", id = "label", value_name = "LABEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) label: Option<String>,

    /// What the workflow is given, as JSON; `-` reads it from standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) input: Option<String>,

    /// A file with the JSON that the workflow is given
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    pub(crate) input_file: Option<PathBuf>,

    /// An idempotency key: at most one run starts with it
    #[arg(long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) key: Option<String>,

    /// When it may begin, for example 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<Instant>,

    /// How much later it may begin, for example "5 minutes"
    #[arg(long, value_name = "SPAN", conflicts_with = "at")]
    pub(crate) after: Option<Span>,

    /// Follow the run to its end, and print its result
    #[arg(long, short)]
    pub(crate) wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// The run
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) run: String,

    /// The event's name
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) event: String,

    /// What to send, as JSON; `-` reads it from standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) payload: Option<String>,

    /// A delivery key: the event is delivered at most once with it
    #[arg(long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) key: Option<String>,

    /// Wait until the workflow has answered it, and print the answer
    #[arg(long, short)]
    pub(crate) wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The run, or `latest`
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) run: String,

    /// Show what each operation returned, too
    #[arg(long)]
    pub(crate) values: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only of this workflow
    #[arg(long)]
    pub(crate) workflow: Option<String>,

    /// Only in this status; several with commas between them
    #[arg(long, value_name = "STATUS", value_parser = statuses)]
    pub(crate) status: Option<String>,

    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The run, or `latest`
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) run: String,

    /// Go on until the run has ended
    #[arg(long, short)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// The run
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) run: String,

    /// Why; kept with the run
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Verb {
    /// The run
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) run: String,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Where to put temporary folders, which decides what a sync costs; the system's temporary
    /// folder if absent
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,

    /// Only these workloads, for example W1,W3
    #[arg(long, value_name = "WORKLOAD", value_delimiter = ',')]
    pub(crate) only: Vec<Workload>,

    /// Measure everything so many times, and report the medians
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,

    /// A hundredth of the load: shows that it works, and measures nothing
    #[arg(long)]
    pub(crate) quick: bool,

    /// End with exit code 1 if a target is missed
    #[arg(long, conflicts_with = "quick")]
    pub(crate) check: bool,
}

// ---- Values that make no sense are refused before anything is asked of a server.

fn server_url(text: &str) -> Result<String, String> {
    let advice = "write it as http://127.0.0.1:7117";
    let url: ureq::http::Uri = text.parse().map_err(|error| format!("{error}; {advice}"))?;
    let is_http = url.scheme_str() == Some("http") || url.scheme_str() == Some("https");
    let has_port = |authority: &ureq::http::uri::Authority| {
        authority.as_str().ends_with(authority.host()) || authority.port_u16().is_some()
    };
    if is_http && url.authority().is_some_and(has_port) {
        Ok(text.to_owned())
    } else {
        Err(format!("it is not the address of an HTTP server; {advice}"))
    }
}

fn listen_address(text: &str) -> Result<String, String> {
    let is_address = text
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if is_address {
        Ok(text.to_owned())
    } else {
        Err("an address is written as 127.0.0.1:7117".to_owned())
    }
}

fn variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err("a variable is written as NAME=VALUE".to_owned()),
    }
}

fn statuses(text: &str) -> Result<String, String> {
    for status in text.split(',') {
        status
            .parse::<Status>()
            .map_err(|error| error.to_string())?;
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_make_no_sense_are_refused() {
        for (url, is_one) in [
            ("http://127.0.0.1:7117", true),
            ("https://stepwell.example", true),
            ("http://[::1]:7117/", true),
            ("", false),
            ("foo", false),
            ("127.0.0.1:7117", false),
            ("ftp://stepwell.example", false),
            ("http://127.0.0.1:99999", false),
        ] {
            assert_eq!(server_url(url).is_ok(), is_one, "{url}");
        }
        for (address, is_one) in [
            ("127.0.0.1:0", true),
            ("[::1]:7117", true),
            ("localhost:7117", true),
            ("nonsense", false),
            (":7117", false),
            ("127.0.0.1:70000", false),
        ] {
            assert_eq!(listen_address(address).is_ok(), is_one, "{address}");
        }
        for (text, is_one) in [("A=1", true), ("A=", true), ("A", false), ("=1", false)] {
            assert_eq!(variable(text).is_ok(), is_one, "{text}");
        }
        for (text, is_one) in [("failed,stuck", true), ("foo", false), ("failed,", false)] {
            assert_eq!(statuses(text).is_ok(), is_one, "{text}");
        }
    }
}
