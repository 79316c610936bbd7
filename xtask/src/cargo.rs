//! The cargo commands behind `test`, `check` and `guests`: one profile, `release`, for all.

use std::process::Command;

use anyhow::{Context, Result, bail};
use stepwell_tests::{build_guests, guest_packages, root, sample_packages};

use crate::setup;

/// Builds the host, and with it everything that is tested: a build of the host alone has other
/// features (the tests' dependencies add some), so wasmtime would be compiled twice.
pub(crate) fn host() -> Result<()> {
    cargo(&["build", "--release", "--all-targets"])
}

/// `cargo xtask test`.
pub(crate) fn test() -> Result<()> {
    setup::setup()?;
    host()?;
    build_guests()?;
    cargo(&["test", "--release"])?;
    let mut arguments = vec!["test", "--release"];
    let samples = sample_packages()?;
    arguments.extend(
        samples
            .iter()
            .flat_map(|package| ["--package", package.as_str()]),
    );
    cargo(&arguments)
}

/// `cargo xtask check`.
pub(crate) fn check() -> Result<()> {
    setup::toolchain_component("fmt", "rustfmt")?;
    setup::toolchain_component("clippy", "clippy")?;
    setup::setup()?;
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&[
        "clippy",
        "--release",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ])?;
    let packages = guest_packages()?;
    let mut arguments = vec!["clippy", "--release", "--target", "wasm32-wasip2"];
    arguments.extend(packages.iter().flat_map(|package| ["--package", package]));
    arguments.extend(["--", "--deny", "warnings"]);
    cargo(&arguments)?;
    test()?;
    run(Command::new(env!("CARGO"))
        .args(["doc", "--release", "--no-deps"])
        .env("RUSTDOCFLAGS", "--deny warnings"))
}

fn cargo(arguments: &[&str]) -> Result<()> {
    run(Command::new(env!("CARGO")).args(arguments))
}

fn run(command: &mut Command) -> Result<()> {
    eprintln!(
        "+ cargo {}",
        command
            .get_args()
            .map(|part| part.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    );
    let status = command
        .current_dir(root())
        .status()
        .context("cargo could not be run")?;
    if !status.success() {
        bail!("cargo ended with {status}");
    }
    Ok(())
}
