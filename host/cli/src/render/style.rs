//! Colour: on a terminal, and only there.

/// What a piece of text stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Names and headings.
    Strong,
    /// What may be overlooked.
    Dim,
    Good,
    Bad,
    /// Needs attention.
    Warn,
    /// Under way.
    Active,
}

/// Paints text, or leaves it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    has_colour: bool,
}

impl Style {
    pub(crate) const PLAIN: Self = Self { has_colour: false };
    pub(crate) const COLOUR: Self = Self { has_colour: true };

    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        if !self.has_colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Strong => "1",
            Paint::Dim => "2",
            Paint::Good => "32",
            Paint::Bad => "31",
            Paint::Warn => "33",
            Paint::Active => "36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// A status in its colour.
    pub(crate) fn status(self, status: &str) -> String {
        let paint = match status {
            "completed" => Paint::Good,
            "failed" | "stuck" => Paint::Bad,
            "cancelled" | "terminated" | "cancelling" | "paused" | "retrying" => Paint::Warn,
            "scheduled" | "queued" => Paint::Dim,
            _ => Paint::Active,
        };
        self.paint(paint, status)
    }
}
