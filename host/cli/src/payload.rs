//! JSON that is given on the command line, in a file or on standard input.

use std::io::Read;
use std::path::Path;

use anyhow::Context;
use serde_json::value::RawValue;
use stepwell_server::wire::Json;

use crate::exit::Usage;

/// JSON from an argument: the text itself, or standard input for `-`.
pub(crate) fn from_argument(option: &str, text: &str) -> anyhow::Result<Json> {
    if text != "-" {
        return check(
            option,
            text.to_owned(),
            "; in most shells, JSON goes between single quotes",
        );
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .context("standard input could not be read as text")?;
    check("standard input", text, "")
}

/// JSON from a file.
pub(crate) fn from_file(path: &Path) -> anyhow::Result<Json> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{} could not be read as text", path.display()))?;
    check(&path.display().to_string(), text, "")
}

fn check(origin: &str, text: String, advice: &str) -> anyhow::Result<Json> {
    let text = text.trim().to_owned();
    RawValue::from_string(text)
        .map_err(|error| Usage(format!("{origin} is not JSON: {error}{advice}")).into())
}
