//! Compiling, off the async threads and under limits.
//!
//! A compiler has no bound on what it makes of its input: 32 KiB of nested loops keep it busy for
//! half a minute, a megabyte for hours, in gigabytes of memory, and nothing inside a process can
//! stop it. So a host that takes components from strangers compiles in a process of its own, which
//! is ended when it takes too long or too much; the two speak over its stdin and stdout.
//!
//! ```text
//! Compiler ── the component's bytes ──► worker ── precompile ──► code, or why not ──► Compiler
//! ```

use std::io::{Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use wasmtime::Engine;

use crate::check::Rejected;
use crate::code::Code;
use crate::{engine, trap};

/// What a worker says first: that code follows, or the reason why there is none.
const CODE: u8 = b'+';
const REASON: u8 = b'-';

/// Code of one component, in bytes; far beyond what the largest component compiles to.
const CODE_BYTES_MAX: u64 = 1 << 30;

/// How often the worker is looked after.
const LOOK: Duration = Duration::from_millis(5);

/// A process that compiles one component: a program that calls [`compile_worker`] when it is
/// started so.
#[derive(Debug, Clone)]
pub struct Worker {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What one compile may take, of real time.
    pub time_max: Duration,
    /// What one compile may take, of memory, in bytes.
    pub memory_bytes_max: u64,
}

impl Worker {
    /// The program that runs now, started with this argument: a minute and 2 GiB for a compile.
    ///
    /// # Errors
    /// When the system does not say which program that is.
    pub fn this_program(argument: &str) -> std::io::Result<Self> {
        // The link leads to the program that runs, also when its file has been replaced since; a
        // newer build would give code that is not for this one.
        let link = PathBuf::from("/proc/self/exe");
        let program = if link.exists() {
            link
        } else {
            std::env::current_exe()?
        };
        Ok(Self {
            program,
            arguments: vec![argument.to_owned()],
            time_max: Duration::from_secs(60),
            memory_bytes_max: 2 << 30,
        })
    }
}

/// Why there is no code.
#[derive(Debug)]
pub(crate) enum Failed {
    /// Because of the component.
    Rejected(Rejected),
    /// Because of the host.
    Host(String),
}

/// Compiles; blocks until it is done.
///
/// # Errors
/// Whose fault it is, and why.
pub(crate) fn compile(
    engine: &Engine,
    worker: Option<&Worker>,
    bytes: &[u8],
) -> Result<Code, Failed> {
    match worker {
        Some(worker) => in_worker(worker, bytes),
        None => {
            precompile(engine, bytes).map_err(|reason| Failed::Rejected(Rejected::Invalid(reason)))
        }
    }
}

fn precompile(engine: &Engine, bytes: &[u8]) -> Result<Code, String> {
    let code = engine
        .precompile_component(bytes)
        .map_err(|error| trap::chain(&error))?;
    Ok(Code::from_compiler(code))
}

/// The whole life of a worker: reads a component from stdin, and writes its code to stdout.
pub fn compile_worker() -> ExitCode {
    end_with_parent();
    let mut bytes = Vec::new();
    let mut answer = Vec::new();
    if std::io::stdin().lock().read_to_end(&mut bytes).is_err() {
        return ExitCode::FAILURE;
    }
    // One instance, since none is made; what is compiled does not depend on how many there may be.
    let compiled = engine::new(1, 1).map_err(|error| trap::chain(&error));
    match compiled.and_then(|engine| precompile(&engine, &bytes)) {
        Ok(code) => {
            answer.push(CODE);
            answer.extend_from_slice(code.bytes());
        }
        Err(reason) => {
            answer.push(REASON);
            answer.extend_from_slice(reason.as_bytes());
        }
    }
    match std::io::stdout().lock().write_all(&answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// A worker whose host has died would go on for nobody.
fn end_with_parent() {
    let parent = std::os::unix::process::parent_id();
    std::thread::spawn(move || {
        while std::os::unix::process::parent_id() == parent {
            std::thread::sleep(Duration::from_secs(1));
        }
        std::process::exit(1);
    });
}

fn in_worker(worker: &Worker, bytes: &[u8]) -> Result<Code, Failed> {
    let host = |error: std::io::Error| {
        Failed::Host(format!(
            "cannot run the compiler {}: {error}",
            worker.program.display()
        ))
    };
    let mut child = Command::new(&worker.program)
        .args(&worker.arguments)
        // Nothing of the host's surroundings is the compiler's business.
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // What a terminal sends to stop the host is not meant for a compile that it waits for.
        .process_group(0)
        .spawn()
        .map_err(host)?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Failed::Host(
            "the compiler has no stdin or stdout".to_owned(),
        ));
    };
    let mut answer = Vec::new();
    let ended = std::thread::scope(|scope| {
        // Both pipes end with the worker, however it ends.
        scope.spawn(move || input.write_all(bytes));
        let reader = scope.spawn(move || {
            let mut answer = Vec::new();
            output
                .take(CODE_BYTES_MAX)
                .read_to_end(&mut answer)
                .map(|_| answer)
        });
        let ended = look_after(&mut child, worker);
        answer = reader.join().ok().and_then(Result::ok).unwrap_or_default();
        ended
    });
    ended?;
    match answer.split_first() {
        // The worker is this program, and says of nothing that it is code but what its compiler gave.
        Some((&CODE, _)) => Ok(Code::from_compiler(answer.split_off(1))),
        Some((&REASON, reason)) => Err(Failed::Rejected(Rejected::Invalid(
            String::from_utf8_lossy(reason).into_owned(),
        ))),
        _ => Err(Failed::Rejected(Rejected::CompilerFailed)),
    }
}

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// Waits for the worker to end, and ends it when it takes too much.
fn look_after(child: &mut Child, worker: &Worker) -> Result<(), Failed> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            // Somebody ended it, or the machine is out of memory: that says nothing of the component.
            Ok(Some(status)) if matches!(status.signal(), Some(SIGINT | SIGKILL | SIGTERM)) => {
                return Err(Failed::Host("the compiler was killed".to_owned()));
            }
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {}
            Err(error) => {
                return Err(Failed::Host(format!(
                    "cannot wait for the compiler: {error}"
                )));
            }
        }
        let over = if begun.elapsed() > worker.time_max {
            Some(format!("{} s", worker.time_max.as_secs()))
        } else if memory_bytes(child.id()) > worker.memory_bytes_max {
            Some(format!("{} MiB of memory", worker.memory_bytes_max >> 20))
        } else {
            None
        };
        if let Some(limit) = over {
            // It may have ended by itself just now.
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failed::Rejected(Rejected::TooComplex { limit }));
        }
        std::thread::sleep(LOOK);
    }
}

/// Memory of a process that is in RAM; 0 where the system does not tell.
fn memory_bytes(process: u32) -> u64 {
    const PAGE_BYTES: u64 = 4096;
    let pages = std::fs::read_to_string(format!("/proc/{process}/statm")).ok();
    pages
        .and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok())
        .map_or(0, |pages| pages * PAGE_BYTES)
}
