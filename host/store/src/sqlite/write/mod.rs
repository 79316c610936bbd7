//! The writing calls, one file each, as they run inside the writer's transaction. Each checks its
//! conditions before it writes, so that a refusal leaves nothing behind.

pub(super) mod append;
pub(super) mod claim;
pub(super) mod deliver;
pub(super) mod leases;
pub(super) mod register;
pub(super) mod start;
