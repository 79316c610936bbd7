//! The cargo commands behind `test`, `check` and `guests`: one profile, `release`, for all.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::setup;

/// The folder that cargo builds into.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The workspace.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the workspace").to_path_buf()
}

/// A component that `guests` has built.
pub(crate) fn component(package: &str) -> PathBuf {
    target_dir().join("wasm32-wasip2/release").join(format!("{}.wasm", package.replace('-', "_")))
}

/// The `stepwell` binary that `binary` has built.
pub(crate) fn stepwell() -> PathBuf {
    target_dir().join("release/stepwell")
}

/// Builds the host.
pub(crate) fn binary() -> Result<()> {
    cargo(&["build", "--release", "--package", "stepwell-cli"])
}

/// Builds every package whose code runs as a guest.
pub(crate) fn guests() -> Result<()> {
    let packages = guest_packages()?;
    let mut arguments = vec!["build", "--release", "--target", "wasm32-wasip2"];
    arguments.extend(packages.iter().flat_map(|package| ["--package", package]));
    cargo(&arguments)
}

/// The packages below `sample-workflows/` and `tests/guests/`.
fn guest_packages() -> Result<Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .context("cargo metadata could not be run")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let is_guest = |package: &&serde_json::Value| {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        manifest.contains("/sample-workflows/") || manifest.contains("/tests/guests/")
    };
    Ok(packages.iter().filter(is_guest).filter_map(|package| package["name"].as_str().map(str::to_owned)).collect())
}

/// `cargo xtask test`.
pub(crate) fn test() -> Result<()> {
    setup::setup()?;
    binary()?;
    guests()?;
    cargo(&["test", "--release"])
}

/// `cargo xtask check`.
pub(crate) fn check() -> Result<()> {
    setup::toolchain_component("fmt", "rustfmt")?;
    setup::toolchain_component("clippy", "clippy")?;
    setup::setup()?;
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--release", "--all-targets", "--", "--deny", "warnings"])?;
    let packages = guest_packages()?;
    let mut arguments = vec!["clippy", "--release", "--target", "wasm32-wasip2"];
    arguments.extend(packages.iter().flat_map(|package| ["--package", package]));
    arguments.extend(["--", "--deny", "warnings"]);
    cargo(&arguments)?;
    test()?;
    run(Command::new(env!("CARGO")).args(["doc", "--release", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings"))
}

fn cargo(arguments: &[&str]) -> Result<()> {
    run(Command::new(env!("CARGO")).args(arguments))
}

fn run(command: &mut Command) -> Result<()> {
    eprintln!("+ cargo {}", command.get_args().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(" "));
    let status = command.current_dir(root()).status().context("cargo could not be run")?;
    if !status.success() {
        bail!("cargo ended with {status}");
    }
    Ok(())
}
