//! `stepwell:workflow/log`: structured lines, beside those that stdout and stderr give.

use crate::bindings::stepwell::workflow::log::{Host, Level};
use crate::guest::LogLevel;
use crate::instance::Instance;

impl Host for Instance {
    fn log(
        &mut self,
        level: Level,
        message: String,
        fields: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        let level = match level {
            Level::Trace => LogLevel::Trace,
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Warn => LogLevel::Warn,
            Level::Error => LogLevel::Error,
        };
        if let Some(sink) = self.host.sink() {
            self.console.log(level, message, fields, sink);
        }
        Ok(())
    }
}
