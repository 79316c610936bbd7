//! A guest's backtrace as text: one function a line, innermost first, names demangled, recursion
//! folded, and never longer than a screen or two.

use wasmtime::WasmBacktrace;

use crate::symbols::{Place, Symbols};

/// Lines shown; what is left out is counted.
const LINES_MAX: usize = 50;

/// The longest cycle of frames that is folded: mutual recursion of more functions is rare.
const CYCLE_FRAMES_MAX: usize = 8;

/// One call on a guest's stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// As the component's name section has it.
    name: Option<String>,
    /// Of the function in its module.
    index: u32,
    /// Of the instruction in the component's bytes.
    offset: Option<usize>,
}

/// The calls on a guest's stack; wasmtime records no others.
pub(crate) fn frames(backtrace: &WasmBacktrace) -> Vec<Frame> {
    let frame = |frame: &wasmtime::FrameInfo| Frame {
        name: frame.func_name().map(str::to_owned),
        index: frame.func_index(),
        offset: frame.module_offset(),
    };
    backtrace.frames().iter().map(frame).collect()
}

/// Renders frames, with their places in the source as far as the symbols know them.
pub(crate) fn render(frames: &[Frame], symbols: &Symbols<'_>) -> String {
    let mut shown = Vec::new();
    let mut folded = fold(below_panic(frames)).into_iter();
    for part in folded.by_ref().take(LINES_MAX) {
        match part {
            Part::Frame(frame) => shown.extend(lines(&frame, symbols)),
            Part::Note(note) => shown.push(note),
        }
    }
    let left_out = shown.len().saturating_sub(LINES_MAX) + folded.count();
    shown.truncate(LINES_MAX);
    if left_out > 0 {
        shown.push(format!("... {left_out} more"));
    }
    shown.join("\n")
}

/// Without what Rust itself does to panic, which comes first and hides where it happened.
fn below_panic(frames: &[Frame]) -> &[Frame] {
    let panics = |frame: &Frame| {
        let name = frame.name.as_deref().map(demangled).unwrap_or_default();
        ["__rustc::", "core::panicking::"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    let below = frames.iter().rposition(panics).map_or(0, |last| last + 1);
    if below < frames.len() {
        &frames[below..]
    } else {
        frames
    }
}

/// One line for the frame, and one before it for each function inlined into it.
fn lines(frame: &Frame, symbols: &Symbols<'_>) -> Vec<String> {
    // The name section has whole paths, the line tables only the last part of a name; but only
    // they know of functions that were inlined.
    let name = match &frame.name {
        Some(name) => demangled(name),
        None => format!("function {}", frame.index),
    };
    let places = frame
        .offset
        .map(|offset| symbols.places(offset))
        .unwrap_or_default();
    match places.split_last() {
        Some((function, inlined)) => {
            let inlined = inlined.iter().map(|place| {
                place
                    .function
                    .as_deref()
                    .map_or_else(|| "(inlined)".to_owned(), demangled)
                    + &position(place)
            });
            inlined.chain([name + &position(function)]).collect()
        }
        None => vec![match frame.offset {
            Some(offset) => format!("{name} (offset {offset:#x})"),
            None => name,
        }],
    }
}

/// Where something is in the source, in parentheses; nothing if that is not known.
fn position(place: &Place) -> String {
    match (&place.file, place.line, place.column) {
        (Some(file), Some(line), Some(column)) => format!(" ({}:{line}:{column})", short(file)),
        (Some(file), Some(line), None) => format!(" ({}:{line})", short(file)),
        _ => String::new(),
    }
}

/// Without the hash that Rust appends to tell equal names apart.
fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

/// A path without what only tells about the machine that built it: `library/core/src/ptr/mod.rs`,
/// `serde_json-1.0.0/src/de.rs`.
fn short(path: &str) -> &str {
    let after = |mark: &str| {
        let (_, rest) = path.split_once(mark)?;
        // The hash of the compiler or of the registry.
        Some(rest.split_once('/')?.1)
    };
    after("/registry/src/")
        .or_else(|| after("/rustc/"))
        .unwrap_or(path)
}

/// A frame, or what stands for frames that were left out.
#[derive(Debug)]
enum Part {
    Frame(Frame),
    Note(String),
}

/// Replaces what repeats by a note that says how often.
fn fold(frames: &[Frame]) -> Vec<Part> {
    let mut folded = Vec::new();
    let mut rest = frames;
    'frames: while let Some((first, others)) = rest.split_first() {
        for length in 1..=CYCLE_FRAMES_MAX.min(rest.len() / 2) {
            let (cycle, following) = rest.split_at(length);
            let repeats = following
                .chunks_exact(length)
                .take_while(|next| *next == cycle)
                .count();
            // A single repetition is shorter written out.
            if repeats >= 2 {
                folded.extend(cycle.iter().cloned().map(Part::Frame));
                folded.push(Part::Note(match length {
                    1 => format!("... the frame above repeats {repeats} more times"),
                    _ => format!("... the {length} frames above repeat {repeats} more times"),
                }));
                rest = &following[repeats * length..];
                continue 'frames;
            }
        }
        folded.push(Part::Frame(first.clone()));
        rest = others;
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(names: impl Iterator<Item = String>) -> String {
        let frames: Vec<Frame> = names
            .map(|name| Frame {
                name: Some(name),
                index: 0,
                offset: None,
            })
            .collect();
        render(&frames, &Symbols::none())
    }

    fn check(names: &str, expected: &str) {
        assert_eq!(
            rendered(names.split(' ').map(str::to_owned)).replace('\n', " | "),
            expected
        );
    }

    #[test]
    fn recursion_is_folded() {
        check("a b c", "a | b | c");
        check("a a b", "a | a | b");
        check(
            "a a a b",
            "a | ... the frame above repeats 2 more times | b",
        );
        check(
            "p a b a b a b q",
            "p | a | b | ... the 2 frames above repeat 2 more times | q",
        );
    }

    #[test]
    fn long_backtraces_are_cut_and_counted() {
        let shown = rendered((0..60).map(|number| number.to_string()));
        assert_eq!(shown.lines().count(), LINES_MAX + 1);
        assert_eq!(shown.lines().last(), Some("... 10 more"));
    }

    #[test]
    fn what_rust_does_to_panic_is_left_out() {
        check(
            "std::process::abort __rustc::rust_panic std::panicking::x core::panicking::panic_fmt a b",
            "a | b",
        );
        check("core::panicking::panic_fmt", "core::panicking::panic_fmt");
    }

    #[test]
    fn names_are_demangled() {
        check(
            "_ZN9raw_guest4ends5outer17h05af221e174051e9E",
            "raw_guest::ends::outer",
        );
    }

    #[test]
    fn paths_do_not_tell_about_the_machine() {
        let registry = "/root/.cargo/registry/src/index.crates.io-1949cf/wasip2-2.0.1/src/proxy.rs";
        assert_eq!(short(registry), "wasip2-2.0.1/src/proxy.rs");
        assert_eq!(
            short("/rustc/59807616e1/library/core/src/ptr/mod.rs"),
            "library/core/src/ptr/mod.rs"
        );
        assert_eq!(short("src/lib.rs"), "src/lib.rs");
    }
}
