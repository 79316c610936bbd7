//! `register` and `versions`.

use anyhow::Context;
use stepwell_server::wire;

use crate::args::Register;
use crate::client::{Client, Path};
use crate::exit::Exit;
use crate::render;
use crate::terminal::Terminal;

pub(crate) fn register(
    terminal: &Terminal,
    client: &Client,
    register: &Register,
) -> anyhow::Result<Exit> {
    let file = register.file.display();
    let component = std::fs::read(&register.file).with_context(|| {
        format!("{file} could not be read; `stepwell build` makes a component of a workflow crate")
    })?;
    let path = register.environment.iter().fold(
        Path::of(&["versions", &register.label]),
        |path, variable| path.with("env", variable),
    );
    let document = client.put(&path, &component)?;
    if terminal.is_json() {
        terminal.print_line(document.text())?;
    } else {
        let registered: wire::Registered = client.parse(&document)?;
        terminal.print(&render::registered(terminal.style(), &registered))?;
    }
    Ok(Exit::Ok)
}

pub(crate) fn list(terminal: &Terminal, client: &Client) -> anyhow::Result<Exit> {
    let document = client.get(&Path::of(&["versions"]))?;
    if terminal.is_json() {
        terminal.print_line(document.text())?;
    } else {
        let versions: wire::Versions = client.parse(&document)?;
        terminal.print(&render::versions(
            terminal.style(),
            terminal.now(),
            &versions,
        ))?;
    }
    Ok(Exit::Ok)
}
