//! Lines for the run's log. Best effort: a replay writes none again, and the host bounds them.

use crate::bindings::stepwell::workflow::log;

/// How grave a line is.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// What the macros call.
#[doc(hidden)]
pub fn write(level: Level, message: &str, fields: &[(String, String)]) {
    // Natively there is no log; a test reads what a workflow does, not what it says.
    if cfg!(target_arch = "wasm32") {
        let level = match level {
            Level::Trace => log::Level::Trace,
            Level::Debug => log::Level::Debug,
            Level::Info => log::Level::Info,
            Level::Warn => log::Level::Warn,
            Level::Error => log::Level::Error,
        };
        log::log(level, message, fields);
    }
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log {
    ($level:ident, $format:literal $(, $argument:expr)* $(,)? ; $($field:ident = $value:expr),+ $(,)?) => {
        $crate::__private::write_log(
            $crate::__private::Level::$level,
            &::std::format!($format $(, $argument)*),
            &[$((
                ::std::string::String::from(::std::stringify!($field)),
                ::std::string::ToString::to_string(&$value),
            )),+],
        )
    };
    ($level:ident, $($format:tt)+) => {
        $crate::__private::write_log($crate::__private::Level::$level, &::std::format!($($format)+), &[])
    };
}

/// Writes a line to the run's log, as [`info!`](crate::info) does, at level `trace`.
#[macro_export]
macro_rules! trace {
    ($($line:tt)+) => { $crate::__log!(Trace, $($line)+) };
}

/// Writes a line to the run's log, as [`info!`](crate::info) does, at level `debug`.
#[macro_export]
macro_rules! debug {
    ($($line:tt)+) => { $crate::__log!(Debug, $($line)+) };
}

/// Writes a line to the run's log: text as for [`format!`], and after a semicolon fields for
/// programs.
///
/// It may stand anywhere, also in a step; a replay does not write it again.
///
/// ```
/// let (order, cents) = ("A-7", 1999);
/// stepwell_sdk::info!("charged {order}");
/// stepwell_sdk::info!("charged {}", order; cents = cents, currency = "EUR");
/// ```
#[macro_export]
macro_rules! info {
    ($($line:tt)+) => { $crate::__log!(Info, $($line)+) };
}

/// Writes a line to the run's log, as [`info!`](crate::info) does, at level `warn`.
#[macro_export]
macro_rules! warn {
    ($($line:tt)+) => { $crate::__log!(Warn, $($line)+) };
}

/// Writes a line to the run's log, as [`info!`](crate::info) does, at level `error`.
#[macro_export]
macro_rules! error {
    ($($line:tt)+) => { $crate::__log!(Error, $($line)+) };
}
