//! `build`: a workflow crate becomes a component, and the component is checked as a server would.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use stepwell_core::limits::Limits;
use stepwell_sandbox::{Checked, Config, Sandbox};
use stepwell_server::wire::{Task, Workflow};

use crate::args::Build;
use crate::exit::Exit;
use crate::render::{self, Paint};
use crate::terminal::Terminal;

/// What cargo must build for.
const TARGET: &str = "wasm32-wasip2";

pub(crate) fn build(terminal: &Terminal, build: &Build) -> anyhow::Result<Exit> {
    let manifest = build.folder.join("Cargo.toml");
    let manifest = manifest.canonicalize().with_context(|| {
        format!(
            "{} is no crate; give the folder of a workflow crate",
            manifest.display()
        )
    })?;
    require_package(&manifest)?;
    require_target(&build.folder)?;
    let component = compile(&build.folder, &manifest)?;
    let bytes = std::fs::read(&component)
        .with_context(|| format!("{} could not be read", component.display()))?;
    let size = bytes.len();
    let checked = check(bytes.into())?;
    let out = match &build.out {
        Some(out) => out.clone(),
        None => PathBuf::from(component.file_name().context("cargo named no file")?),
    };
    std::fs::copy(&component, &out)
        .with_context(|| format!("{} could not be written", out.display()))?;
    tell(terminal, &out, size, &checked)?;
    Ok(Exit::Ok)
}

/// Says so before cargo builds a whole workspace for a target that most of it was not made for.
fn require_package(manifest: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(manifest)
        .with_context(|| format!("{} could not be read", manifest.display()))?;
    if !text.lines().any(|line| line.trim() == "[package]") {
        bail!(
            "{} is a workspace and no crate; give the folder of the workflow crate in it",
            manifest.display()
        );
    }
    Ok(())
}

/// Says what to install before cargo fails on a missing `core`, which tells nobody anything.
fn require_target(folder: &Path) -> anyhow::Result<()> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .current_dir(folder)
        .stderr(Stdio::inherit())
        .output()
        .context("rustc could not be run; install Rust from https://rustup.rs")?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if output.status.success() && !libraries.is_dir() {
        bail!("Rust has no libraries for {TARGET}\nrustup target add {TARGET}");
    }
    Ok(())
}

/// One line of cargo's account of a build.
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

fn compile(folder: &Path, manifest: &Path) -> anyhow::Result<PathBuf> {
    // Cargo's own progress and messages go to the terminal as ever.
    let output = Command::new("cargo")
        .args([
            "build",
            "--release",
            "--lib",
            "--target",
            TARGET,
            "--message-format",
            "json-render-diagnostics",
        ])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo could not be run; install Rust from https://rustup.rs")?;
    if !output.status.success() {
        bail!(
            "cargo did not build {}; its messages are above",
            manifest.display()
        );
    }
    let made = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.reason == "compiler-artifact")
        .filter(|message| {
            message
                .manifest_path
                .as_deref()
                .is_some_and(|path| path == manifest)
        })
        .flat_map(|message| message.filenames)
        .find(|file| {
            file.extension()
                .is_some_and(|extension| extension == "wasm")
        });
    made.with_context(|| {
        format!(
            "cargo built {} and made no .wasm of it\nadd to its Cargo.toml:  [lib]  crate-type = [\"cdylib\"]",
            manifest.display()
        )
    })
}

fn check(bytes: Arc<[u8]>) -> anyhow::Result<Checked> {
    let sandbox = Sandbox::new(Config {
        instances_max: 4,
        ..Config::default()
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime
        .block_on(sandbox.check(bytes, &Limits::default()))
        .context("a server would not accept this component")
}

/// What `--json` prints.
#[derive(Serialize)]
struct Built<'a> {
    file: &'a Path,
    size_bytes: usize,
    digest: String,
    sdk: &'a str,
    workflows: Vec<Workflow>,
    tasks: Vec<Task>,
}

fn tell(terminal: &Terminal, out: &Path, size: usize, checked: &Checked) -> anyhow::Result<()> {
    let built = Built {
        file: out,
        size_bytes: size,
        digest: checked.digest.to_string(),
        sdk: &checked.manifest.sdk,
        workflows: checked
            .manifest
            .workflows
            .iter()
            .map(Workflow::from)
            .collect(),
        tasks: checked.manifest.tasks.iter().map(Task::from).collect(),
    };
    if terminal.is_json() {
        terminal.print_line(&serde_json::to_string(&built)?)?;
        return Ok(());
    }
    let style = terminal.style();
    let name = style.paint(Paint::Strong, &out.display().to_string());
    let size = render::bytes(u64::try_from(size).unwrap_or(u64::MAX));
    let offers = render::offers(style, &built.workflows, &built.tasks);
    let digest = style.paint(Paint::Dim, &built.digest);
    terminal.print(&format!(
        "{name}  {size}, fit to register\n{offers}{digest}\n"
    ))?;
    terminal.advise(&format!(
        "\nregister it:  stepwell register {} --version 1.0",
        out.display()
    ));
    Ok(())
}
