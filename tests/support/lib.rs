//! Runs real host processes and counts effects outside of them; for tests and for the demo.
//!
//! Everything listens on loopback, and a process is ended by its id, never by its name.

mod client;
mod effects;
mod guests;
mod host;

pub use client::{Answer, Client};
pub use effects::{Effect, Effects};
pub use guests::{
    build_guests, component, guest_packages, root, sample_packages, stepwell, target_dir,
};
pub use host::Host;
