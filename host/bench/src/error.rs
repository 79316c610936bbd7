//! Why there is no report.

use std::io;
use std::path::PathBuf;

/// A measurement that broke off.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder for temporary files cannot be used.
    #[error(
        "no temporary folder can be made in {}: {source}; name another one with --data",
        folder.display()
    )]
    Folder {
        /// Where.
        folder: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The system refused something.
    #[error("{doing}: {source}")]
    System {
        /// What was attempted.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The host process could not be reached.
    #[error("{request}: {source}")]
    Http {
        /// What was asked.
        request: String,
        /// Why there is no answer.
        source: io::Error,
    },
    /// The host, or this bench, did something else than it should.
    #[error("{0}")]
    Unexpected(String),
    /// The bare database failed.
    #[error("the bare database: {0}")]
    Database(#[from] rusqlite::Error),
    /// The store failed.
    #[error("the store: {0}")]
    Store(#[from] stepwell_store::Error),
    /// The sandbox failed.
    #[error("the sandbox: {0}")]
    Sandbox(#[from] stepwell_sandbox::Error),
    /// The bench's own component was not accepted.
    #[error("the bench's workflows were not registered: {0}")]
    Register(#[from] stepwell_engine::register::Error),
    /// A run was not started.
    #[error("a run was not started: {0}")]
    Start(#[from] stepwell_engine::start::Error),
}

impl Error {
    /// For `map_err` on what the system does.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }

    /// Something else than it should be.
    pub(crate) fn unexpected(what: impl Into<String>) -> Self {
        Self::Unexpected(what.into())
    }
}
