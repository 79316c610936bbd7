//! A guest's backtrace as text: one frame a line, innermost first, names demangled, recursion
//! folded, and never longer than a screen or two.

use wasmtime::{FrameInfo, FrameSymbol, WasmBacktrace};

/// Frames shown; what is left out is counted.
const FRAMES_SHOWN_MAX: usize = 50;

/// The longest cycle of frames that is folded: mutual recursion of more functions is rare.
const CYCLE_FRAMES_MAX: usize = 8;

/// Renders a backtrace. Holds the guest's frames only; wasmtime records no others.
pub(crate) fn render(backtrace: &WasmBacktrace) -> String {
    let frames: Vec<String> = backtrace.frames().iter().flat_map(lines).collect();
    cut(fold(&frames)).join("\n")
}

/// One line for the frame, and one before it for each function inlined into it.
fn lines(frame: &FrameInfo) -> Vec<String> {
    // The name section has whole paths, the line tables only the last part of a name; but only
    // they know of functions that were inlined.
    let name = || match frame.func_name() {
        Some(name) => demangled(name),
        None => format!("function {}", frame.func_index()),
    };
    let Some((function, inlined)) = frame.symbols().split_last() else {
        return vec![match frame.module_offset() {
            Some(offset) => format!("{} (offset {offset:#x})", name()),
            None => name(),
        }];
    };
    let mut lines: Vec<String> = inlined
        .iter()
        .map(|symbol| {
            symbol
                .name()
                .map_or_else(|| "(unknown)".to_owned(), demangled)
                + &place(symbol)
        })
        .collect();
    lines.push(name() + &place(function));
    lines
}

/// Where a symbol is in the source, in parentheses; nothing if that is not known.
fn place(symbol: &FrameSymbol) -> String {
    match (symbol.file(), symbol.line(), symbol.column()) {
        (Some(file), Some(line), Some(column)) => format!(" ({}:{line}:{column})", short(file)),
        (Some(file), Some(line), None) => format!(" ({}:{line})", short(file)),
        _ => String::new(),
    }
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

/// Without the hash that Rust appends to tell equal names apart.
fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

/// Replaces what repeats by a line that says how often.
fn fold(frames: &[String]) -> Vec<String> {
    let mut folded = Vec::new();
    let mut rest = frames;
    'frames: while !rest.is_empty() {
        for length in 1..=CYCLE_FRAMES_MAX.min(rest.len() / 2) {
            let (cycle, following) = rest.split_at(length);
            let repeats = following
                .chunks_exact(length)
                .take_while(|next| *next == cycle)
                .count();
            // A single repetition is shorter written out.
            if repeats >= 2 {
                folded.extend_from_slice(cycle);
                folded.push(match length {
                    1 => format!("... the frame above repeats {repeats} more times"),
                    _ => format!("... the {length} frames above repeat {repeats} more times"),
                });
                rest = &following[repeats * length..];
                continue 'frames;
            }
        }
        folded.push(rest[0].clone());
        rest = &rest[1..];
    }
    folded
}

/// Cuts to what is worth showing.
fn cut(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > FRAMES_SHOWN_MAX {
        let left_out = lines.len() - FRAMES_SHOWN_MAX;
        lines.truncate(FRAMES_SHOWN_MAX);
        lines.push(format!("... {left_out} more frames"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(frames: &str, expected: &str) {
        let frames: Vec<String> = frames.split_whitespace().map(str::to_owned).collect();
        assert_eq!(cut(fold(&frames)).join(" | "), expected);
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
    fn paths_do_not_tell_about_the_machine() {
        assert_eq!(
            short("/root/.cargo/registry/src/index.crates.io-1949cf/wasip2-2.0.1/src/proxy.rs"),
            "wasip2-2.0.1/src/proxy.rs"
        );
        assert_eq!(
            short("/rustc/59807616e1/library/core/src/ptr/mod.rs"),
            "library/core/src/ptr/mod.rs"
        );
        assert_eq!(short("src/lib.rs"), "src/lib.rs");
    }

    #[test]
    fn long_backtraces_are_cut_and_counted() {
        let frames: Vec<String> = (0..60).map(|n| n.to_string()).collect();
        let shown = cut(fold(&frames));
        assert_eq!(shown.len(), FRAMES_SHOWN_MAX + 1);
        assert_eq!(shown[FRAMES_SHOWN_MAX], "... 10 more frames");
    }
}
