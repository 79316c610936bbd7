//! `bench`: measures this machine, and prints the report.

use anyhow::Context;
use stepwell_bench::Options;

use crate::args::Bench;
use crate::exit::Exit;
use crate::render::Paint;
use crate::terminal::Terminal;

pub(crate) fn bench(terminal: &Terminal, bench: Bench) -> anyhow::Result<Exit> {
    let options = Options {
        data: bench.data,
        only: bench.only,
        runs: bench.runs,
        is_quick: bench.quick,
    };
    let style = terminal.err_style();
    let report = stepwell_bench::run(&options, &mut |line| {
        terminal.tell(&format!("{}\n", style.paint(Paint::Dim, line)));
    })?;
    if terminal.is_json() {
        let json = report.json().context("the report is not JSON")?;
        terminal.print_line(&json)?;
    } else {
        terminal.print(&report.text())?;
    }
    if bench.check && report.has_missed() {
        Ok(Exit::RunFailed)
    } else {
        Ok(Exit::Ok)
    }
}
