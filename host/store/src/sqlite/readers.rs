//! A few connections that read, each read from one snapshot, off the async threads. They never
//! block the writer, nor it them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use tokio::sync::Semaphore;

use super::fault::{Result, from_sqlite};
use crate::error::Error;

/// Reads at once. More would not be faster on the machines that one SQLite file serves.
const READERS_MAX: usize = 4;
const STATEMENTS_MAX: usize = 64;
const CACHE_KIB: i64 = 8 * 1024;

#[derive(Debug, Clone)]
pub(super) struct Readers(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    file: PathBuf,
    permits: Arc<Semaphore>,
    /// Opened when first needed.
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(file: PathBuf) -> Self {
        let permits = Arc::new(Semaphore::new(READERS_MAX));
        Self(Arc::new(Pool {
            file,
            permits,
            idle: Mutex::default(),
        }))
    }

    /// Carries out `read` on a snapshot that holds all that was committed before this call.
    pub(super) async fn read<T, F>(
        &self,
        action: &'static str,
        read: F,
    ) -> std::result::Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let unavailable = |detail: String| Error::Unavailable { action, detail };
        let permit = Arc::clone(&self.0.permits)
            .acquire_owned()
            .await
            .map_err(|_| unavailable("the store is closed".to_owned()))?;
        let pool = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            // Held until the connection is back, so that no more than those are ever open.
            let _permit = permit;
            pool.with(|connection| {
                let snapshot =
                    connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
                read(&snapshot)
            })
            .map_err(|fault| fault.into_error(action))
        });
        done.await
            .unwrap_or_else(|error| Err(unavailable(error.to_string())))
    }
}

impl Pool {
    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.open()?,
        };
        // A panic in `work` loses this connection, which is right: its state is unknown.
        let done = work(&mut connection);
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(connection);
        done
    }

    fn open(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.file, flags)
            .map_err(|error| from_sqlite("open a reader of the database", &error))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        Ok(connection)
    }
}
