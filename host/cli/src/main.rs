//! The `stepwell` binary: arguments, configuration, wiring, exit codes.
//!
//! ```text
//! args ──► serve ──► store, sandbox, engine, server      the one place that names them all
//!      ──► build ──► cargo, sandbox
//!      ──► bench ──► the crate of that name, which runs `serve` as well
//!      ──► versions, runs, follow ──► client ──► a server ──► render ──► terminal
//! ```
//!
//! Everything but `serve`, `build` and `bench` only speaks HTTP, and could run on another machine.

mod args;
mod bench;
mod build;
mod client;
mod exit;
mod follow;
mod payload;
mod render;
mod runs;
mod serve;
mod terminal;
mod versions;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use client::Client;
use exit::Exit;
use terminal::Terminal;

/// What the host starts itself with to compile a component; nothing for people.
const COMPILE_WORKER: &str = "compile-worker";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(COMPILE_WORKER) {
        return stepwell_sandbox::compile_worker();
    }
    let arguments = Arguments::parse();
    let terminal = Terminal::new(arguments.global.json);
    match run(&terminal, arguments) {
        Ok(exit) => exit.into(),
        // `stepwell list | head` ends the pipe early, which is nobody's mistake.
        Err(error) if is_broken_pipe(&error) => Exit::Ok.into(),
        Err(error) => {
            terminal.error(&error);
            Exit::of(&error).into()
        }
    }
}

fn run(terminal: &Terminal, arguments: Arguments) -> anyhow::Result<Exit> {
    let client = Client::new(
        &arguments.global.server,
        &arguments.global.tenant.to_string(),
    );
    match arguments.command {
        Command::Serve(serve) => serve::serve(terminal, &serve),
        Command::Build(build) => build::build(terminal, &build),
        Command::Register(register) => versions::register(terminal, &client, &register),
        Command::Versions => versions::list(terminal, &client),
        Command::Start(start) => runs::start(terminal, &client, start),
        Command::Send(send) => runs::send(terminal, &client, send),
        Command::Show(show) => runs::show(terminal, &client, &show),
        Command::List(list) => runs::list(terminal, &client, &list),
        Command::Logs(logs) => runs::logs(terminal, &client, &logs),
        Command::Cancel(stop) => runs::verb(terminal, &client, "cancel", &stop.run, stop.reason),
        Command::Terminate(stop) => {
            runs::verb(terminal, &client, "terminate", &stop.run, stop.reason)
        }
        Command::Pause(verb) => runs::verb(terminal, &client, "pause", &verb.run, None),
        Command::Resume(verb) => runs::verb(terminal, &client, "resume", &verb.run, None),
        Command::Bench(bench) => bench::bench(terminal, bench),
        Command::Wake(verb) => runs::verb(terminal, &client, "wake", &verb.run, None),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
