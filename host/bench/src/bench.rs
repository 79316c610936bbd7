//! What all workloads share: where, how much, and on what.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use crate::Options;
use crate::bare::Bare;
use crate::error::Error;
use crate::guest;
use crate::host::Host;
use crate::in_process::World;

/// The surroundings of a workload. Everything in its folder goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Bench {
    bare: Bare,
    component: Arc<[u8]>,
    is_quick: bool,
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let parent = options.data.clone().unwrap_or_else(std::env::temp_dir);
        let folder = temporary(&parent)?;
        Ok(Self {
            bare: Bare::open(folder.path())?,
            component: guest::component()?,
            is_quick: options.is_quick,
            folder,
        })
    }

    /// The folder that all others are made in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The bare limits of the file system.
    pub(crate) fn bare(&self) -> &Bare {
        &self.bare
    }

    pub(crate) fn is_quick(&self) -> bool {
        self.is_quick
    }

    /// How many of something there are, of which the full load has so many: a hundredth if quick.
    pub(crate) fn load(&self, full: u32) -> u32 {
        if self.is_quick {
            (full / 100).max(1)
        } else {
            full
        }
    }

    /// An engine in this process, with the workflows registered.
    pub(crate) fn world(&self) -> Result<World, Error> {
        World::open(temporary(self.folder())?, &self.component)
    }

    /// A host in a process of its own, with the workflows registered.
    pub(crate) fn host(&self) -> Result<Host, Error> {
        Host::start(temporary(self.folder())?, &self.component)
    }
}

fn temporary(parent: &Path) -> Result<TempDir, Error> {
    tempfile::Builder::new()
        .prefix("stepwell-bench-")
        .tempdir_in(parent)
        .map_err(|source| Error::Folder {
            folder: PathBuf::from(parent),
            source,
        })
}
