//! From wasmtime's opaque errors to what ended a guest. Nothing outside this module looks into a
//! [`wasmtime::Error`].
//!
//! A guest's failure and the host's are kept apart here: a pool without a free slot or a kernel
//! without memory is a fault, and says nothing about the guest.

use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, WasmBacktrace};

use crate::backtrace::{self, Frame};
use crate::guest::TrapKind;

/// Why a host function does not return to the guest. Carried through wasmtime as an error.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Halt {
    /// The engine wants the instance gone.
    #[error("stopped by the engine")]
    Stopped,
    /// The guest did something that ends it.
    #[error("{message}")]
    Trapped {
        /// What kind of trap.
        kind: TrapKind,
        /// For a person to read.
        message: String,
    },
    /// The host could not go on.
    #[error("{0}")]
    Fault(String),
}

impl Halt {
    /// Only allowed inside a step, or not at all.
    pub(crate) fn forbidden(message: impl Into<String>) -> wasmtime::Error {
        Self::trapped(TrapKind::Forbidden, message)
    }

    /// The contract was broken.
    pub(crate) fn misuse(message: impl Into<String>) -> wasmtime::Error {
        Self::trapped(TrapKind::Misuse, message)
    }

    /// A trap of this kind.
    pub(crate) fn trapped(kind: TrapKind, message: impl Into<String>) -> wasmtime::Error {
        Self::Trapped {
            kind,
            message: message.into(),
        }
        .into()
    }
}

/// When an error came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// While the instance was made. What is not clearly the guest's doing is the host's.
    Start,
    /// While an export ran. What is not clearly the host's doing is the guest's: an argument that
    /// cannot be lifted, a handle that does not exist.
    Call,
}

/// What ended a guest.
#[derive(Debug)]
pub(crate) enum End {
    /// The engine.
    Stopped,
    /// The host.
    Fault(String),
    /// Itself.
    Trapped {
        kind: TrapKind,
        message: String,
        frames: Vec<Frame>,
    },
}

/// Reads what ended a guest out of wasmtime's error. `panic` looks for a panic's message in what
/// the guest wrote to stderr.
pub(crate) fn end(
    error: &wasmtime::Error,
    phase: Phase,
    panic: impl FnOnce() -> Option<String>,
) -> End {
    let (kind, message) = match error.downcast_ref::<Halt>() {
        Some(Halt::Stopped) => return End::Stopped,
        Some(Halt::Fault(message)) => return End::Fault(message.clone()),
        Some(Halt::Trapped { kind, message }) => (*kind, message.clone()),
        None => match error.downcast_ref::<wasmtime::Trap>() {
            Some(trap) => explain(*trap, panic),
            None => match opaque(error, phase) {
                Ok(explained) => explained,
                Err(fault) => return End::Fault(fault),
            },
        },
    };
    let frames = error
        .downcast_ref::<WasmBacktrace>()
        .map(backtrace::frames)
        .unwrap_or_default();
    End::Trapped {
        kind,
        message,
        frames,
    }
}

/// Names a trap of WebAssembly itself.
fn explain(trap: wasmtime::Trap, panic: impl FnOnce() -> Option<String>) -> (TrapKind, String) {
    match trap {
        wasmtime::Trap::UnreachableCodeReached => (
            TrapKind::Panic,
            panic().unwrap_or_else(|| {
                "the guest executed `unreachable`, which is what a panic or an abort compiles to; \
                 it wrote no panic message to stderr"
                    .to_owned()
            }),
        ),
        wasmtime::Trap::MemoryOutOfBounds
        | wasmtime::Trap::TableOutOfBounds
        | wasmtime::Trap::ArrayOutOfBounds
        | wasmtime::Trap::StringOutOfBounds
        | wasmtime::Trap::ListOutOfBounds => (TrapKind::OutOfBounds, trap.to_string()),
        wasmtime::Trap::StackOverflow => (
            TrapKind::StackOverflow,
            format!(
                "the guest used up its stack of {} KiB; look for recursion without an end in the backtrace",
                crate::engine::STACK_BYTES_MAX / 1024
            ),
        ),
        other => (TrapKind::Other, other.to_string()),
    }
}

/// An error that is neither ours nor a trap of WebAssembly. `Err` is a fault of the host.
fn opaque(error: &wasmtime::Error, phase: Phase) -> Result<(TrapKind, String), String> {
    if let Some(full) = error.downcast_ref::<PoolConcurrencyLimitError>() {
        return Err(format!(
            "no instance is free: {full}; raise the instance count or keep fewer runs resident"
        ));
    }
    let chain = chain(error);
    if phase == Phase::Start || error.chain().any(|cause| cause.is::<std::io::Error>()) {
        return Err(format!("the guest could not be run: {chain}"));
    }
    match error.downcast_ref::<ResourceTableError>() {
        Some(ResourceTableError::Full) => Ok((
            TrapKind::MemoryLimit,
            format!(
                "the guest holds {} resources (streams, requests, pollables), which is the limit; drop those it is done with",
                crate::instance::RESOURCES_MAX
            ),
        )),
        Some(_) => Ok((
            TrapKind::Misuse,
            format!("the guest used a resource wrongly: {chain}"),
        )),
        None => Ok((TrapKind::Other, chain)),
    }
}

/// The error and its causes in one line, without wasmtime's backtrace.
pub(crate) fn chain(error: &wasmtime::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Wasmtime hangs its backtrace into the chain as a cause of its own.
        if !cause.starts_with("error while executing at wasm backtrace") {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(cause.trim());
        }
    }
    text
}
