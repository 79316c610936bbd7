//! Everything that people and CI run, one command each. No step is in CI that is not here.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool"
)]

mod cargo;
mod demo;
mod setup;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
cargo xtask <command>

  demo     set everything up, run the samples on a real host, kill it in the middle, see them finish
  test     set everything up and run every test
  check    what CI runs: format, Clippy, test, docs
  guests   build the sample workflows and the test guests
  setup    install what is needed, or say what is missing";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["demo"] => demo::demo(),
        ["test"] => cargo::test(),
        ["check"] => cargo::check(),
        ["guests"] => setup::setup().and_then(|()| stepwell_tests::build_guests()),
        ["setup"] => setup::setup(),
        [] | ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("`{}` is not a command\n\n{USAGE}", arguments.join(" ")),
    }
}
