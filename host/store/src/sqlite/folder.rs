//! The data folder, and the lock that gives it to one process.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::Error;

const DATABASE: &str = "stepwell.sqlite";
const LOCK: &str = "stepwell.lock";

/// A data folder that this process has for itself until this is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// The kernel frees the lock with the file, also when the process is killed.
    _lock: File,
}

impl Folder {
    pub(super) fn lock(path: &Path) -> Result<Self, Error> {
        let refused = |detail: io::Error| Error::Unavailable {
            action: "open the data folder",
            detail: format!("{}: {detail}", path.display()),
        };
        if path.symlink_metadata().is_ok() && !path.is_dir() {
            let detail = "it is there and no folder; choose another one with --data";
            return Err(refused(io::Error::other(detail)));
        }
        // Journals hold what customers sent: for the owner's eyes only.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(refused)?;
        let lock = open_private(&path.join(LOCK)).map_err(refused)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::InUse {
                    folder: path.display().to_string(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(refused(error)),
        }
        // SQLite gives its journals the mode of the database file.
        open_private(&path.join(DATABASE)).map_err(refused)?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    pub(super) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }
}

fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}
