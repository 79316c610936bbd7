//! What a fresh machine lacks: installed, or named.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Makes sure that everything a build needs is there.
pub(crate) fn setup() -> Result<()> {
    c_compiler()?;
    wasm_target()
}

/// SQLite and a little of wasmtime are C.
fn c_compiler() -> Result<()> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    if succeeds(&compiler, &["--version"]) {
        return Ok(());
    }
    let has_apt = succeeds("apt-get", &["--version"]);
    if !(has_apt
        && succeeds("apt-get", &["install", "--yes", "gcc", "libc6-dev"])
        && succeeds("cc", &["--version"]))
    {
        bail!(
            "no C compiler (`{compiler}`): install one, on Debian with `apt-get install gcc libc6-dev`"
        );
    }
    Ok(())
}

/// Guests are compiled for this.
fn wasm_target() -> Result<()> {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .context("rustc is not on the PATH")?;
    let sysroot = String::from_utf8(output.stdout).context("rustc printed no path")?;
    let installed = std::path::Path::new(sysroot.trim())
        .join("lib/rustlib/wasm32-wasip2")
        .is_dir();
    if !installed && !succeeds("rustup", &["target", "add", "wasm32-wasip2"]) {
        bail!("the target wasm32-wasip2 is not installed: run `rustup target add wasm32-wasip2`");
    }
    Ok(())
}

/// Installs a component of the toolchain, such as Clippy.
pub(crate) fn toolchain_component(command: &str, component: &str) -> Result<()> {
    if !succeeds("cargo", &[command, "--version"])
        && !succeeds("rustup", &["component", "add", component])
    {
        bail!("`cargo {command}` is not installed: run `rustup component add {component}`");
    }
    Ok(())
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
