//! The workflows that are run: `guest.wat` beside this file.

use std::sync::Arc;

use crate::error::Error;

/// The component, as it is registered.
///
/// # Errors
/// If the text is not WebAssembly, which the tests exclude.
pub(crate) fn component() -> Result<Arc<[u8]>, Error> {
    wat::parse_str(include_str!("guest.wat"))
        .map(Arc::from)
        .map_err(|error| Error::unexpected(format!("guest.wat: {error}")))
}

/// The label that it is registered under.
pub(crate) const VERSION: &str = "1";

/// Input N: N steps one after another.
pub(crate) const STEPS: &str = "steps";

/// Input N: the same, and then it waits for the event [`GO`].
pub(crate) const WAITER: &str = "waiter";

/// Input T: sleeps until T, in milliseconds since 1970.
pub(crate) const SLEEPER: &str = "sleeper";

/// What [`WAITER`] waits for.
pub(crate) const GO: &str = "go";

/// What each step returns.
pub(crate) const STEP_RESULT: &str = r#"{"charged":4200}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_component_is_what_is_said_about_it() {
        let component = component().unwrap();
        let has = |text: &str| {
            component
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        for text in [STEPS, WAITER, SLEEPER, GO, STEP_RESULT] {
            assert!(has(text), "{text}");
        }
        // What the code says about its length.
        assert_eq!(STEP_RESULT.len(), 16);
    }
}
