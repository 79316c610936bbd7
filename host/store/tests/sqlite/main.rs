//! What only a store in a file has to promise.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::sync::Arc;

use rusqlite::Connection;
use stepwell_store::{SqliteStore, Then};
use tempfile::TempDir;

mod commits;
mod damage;
mod lifetime;
#[allow(
    dead_code,
    reason = "shared with the contract suite, which uses all of it"
)]
#[path = "../contract/support.rs"]
mod support;

use support::{Driven, World, step};

const DATABASE: &str = "stepwell.sqlite";

/// A world whose folder outlives it.
async fn world(folder: &TempDir) -> World {
    World::over(Arc::new(SqliteStore::open(folder.path()).unwrap())).await
}

fn reopened(folder: &TempDir) -> World {
    World {
        store: Arc::new(SqliteStore::open(folder.path()).unwrap()),
        folder: None,
    }
}

fn database(folder: &TempDir) -> Connection {
    Connection::open(folder.path().join(DATABASE)).unwrap()
}

async fn appended(driven: &mut Driven<'_>, entries: u32) {
    for number in 0..entries {
        driven.append(20, vec![step(20, number)], Then::Run).await;
    }
}
