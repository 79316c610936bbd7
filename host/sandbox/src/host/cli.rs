//! `wasi:cli`: the version's environment, no arguments, and the three standard streams, none of
//! them a terminal.

use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::bindings::cli;
use wasmtime_wasi::p2::bindings::cli::terminal_input::TerminalInput;
use wasmtime_wasi::p2::bindings::cli::terminal_output::TerminalOutput;
use wasmtime_wasi::p2::pipe::{ClosedInputStream, SinkOutputStream};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use crate::console::Stream;
use crate::guest::TrapKind;
use crate::instance::{Constant, Instance};
use crate::trap::Halt;

pub(super) fn link(linker: &mut Linker<Instance>) -> wasmtime::Result<()> {
    cli::environment::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    cli::exit::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    cli::stdin::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    cli::stdout::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    cli::stderr::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    cli::terminal_input::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    cli::terminal_output::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    cli::terminal_stdin::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    cli::terminal_stdout::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    cli::terminal_stderr::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    Ok(())
}

impl cli::environment::Host for Instance {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        Ok(self.environment.clone())
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(None)
    }
}

impl cli::exit::Host for Instance {
    fn exit(&mut self, status: Result<(), ()>) -> wasmtime::Result<()> {
        let status = if status.is_ok() { 0 } else { 1 };
        Err(exited(status))
    }

    fn exit_with_code(&mut self, status: u8) -> wasmtime::Result<()> {
        Err(exited(status))
    }
}

fn exited(status: u8) -> wasmtime::Error {
    Halt::trapped(
        TrapKind::Exit,
        format!(
            "the guest called exit({status}); a workflow or task ends by returning from its function"
        ),
    )
}

impl Instance {
    /// The stream behind the handle is never asked: its calls are answered in `streams`.
    fn output(&mut self, stream: Stream) -> wasmtime::Result<Resource<DynOutputStream>> {
        let sink: DynOutputStream = Box::new(SinkOutputStream);
        let handle = self.table.push(sink)?;
        self.constant.insert(handle.rep(), Constant::Output(stream));
        Ok(handle)
    }
}

impl cli::stdin::Host for Instance {
    fn get_stdin(&mut self) -> wasmtime::Result<Resource<DynInputStream>> {
        let closed: DynInputStream = Box::new(ClosedInputStream);
        let handle = self.table.push(closed)?;
        self.constant.insert(handle.rep(), Constant::Input);
        Ok(handle)
    }
}

impl cli::stdout::Host for Instance {
    fn get_stdout(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.output(Stream::Stdout)
    }
}

impl cli::stderr::Host for Instance {
    fn get_stderr(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.output(Stream::Stderr)
    }
}

impl cli::terminal_input::Host for Instance {}

impl cli::terminal_input::HostTerminalInput for Instance {
    fn drop(&mut self, terminal: Resource<TerminalInput>) -> wasmtime::Result<()> {
        self.table.delete(terminal)?;
        Ok(())
    }
}

impl cli::terminal_output::Host for Instance {}

impl cli::terminal_output::HostTerminalOutput for Instance {
    fn drop(&mut self, terminal: Resource<TerminalOutput>) -> wasmtime::Result<()> {
        self.table.delete(terminal)?;
        Ok(())
    }
}

impl cli::terminal_stdin::Host for Instance {
    fn get_terminal_stdin(&mut self) -> wasmtime::Result<Option<Resource<TerminalInput>>> {
        Ok(None)
    }
}

impl cli::terminal_stdout::Host for Instance {
    fn get_terminal_stdout(&mut self) -> wasmtime::Result<Option<Resource<TerminalOutput>>> {
        Ok(None)
    }
}

impl cli::terminal_stderr::Host for Instance {
    fn get_terminal_stderr(&mut self) -> wasmtime::Result<Option<Resource<TerminalOutput>>> {
        Ok(None)
    }
}
