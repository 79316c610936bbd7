//! Guests as files: building all of them, and where they are then.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

/// The workspace.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
        .to_path_buf()
}

/// The folder that cargo builds into.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The `stepwell` binary, which `cargo xtask` builds before anything that needs it.
pub fn stepwell() -> PathBuf {
    target_dir().join("release/stepwell")
}

/// The names of the packages whose code runs as a guest.
///
/// # Errors
/// If cargo cannot tell.
pub fn guest_packages() -> Result<Vec<String>> {
    packages_below(&["/sample-workflows/", "/tests/guests/"])
}

/// The names of the sample workflows' packages.
///
/// # Errors
/// If cargo cannot tell.
pub fn sample_packages() -> Result<Vec<String>> {
    packages_below(&["/sample-workflows/"])
}

fn packages_below(folders: &[&str]) -> Result<Vec<String>> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .context("cargo metadata could not be run")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata has no packages")?;
    let is_guest = |package: &&serde_json::Value| {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        folders.iter().any(|folder| manifest.contains(folder))
    };
    Ok(packages
        .iter()
        .filter(is_guest)
        .filter_map(|package| package["name"].as_str().map(str::to_owned))
        .collect())
}

/// Builds every guest.
///
/// # Errors
/// If cargo fails; it says why on stderr.
pub fn build_guests() -> Result<()> {
    let mut command = Command::new("cargo");
    command
        .args(["build", "--quiet", "--release", "--target", "wasm32-wasip2"])
        .current_dir(root());
    for package in guest_packages()? {
        command.args(["--package", &package]);
    }
    let status = command.status().context("cargo could not be run")?;
    if !status.success() {
        bail!("the guests were not built: cargo ended with {status}");
    }
    Ok(())
}

/// The component that a guest package is built into. The first call builds all guests.
///
/// # Panics
/// If they cannot be built: without guests nothing can be tested.
pub fn component(package: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| build_guests().expect("the guests must build"));
    let file = target_dir()
        .join("wasm32-wasip2/release")
        .join(format!("{}.wasm", package.replace('-', "_")));
    assert!(
        file.is_file(),
        "package {package} was not built into {}",
        file.display()
    );
    file
}
