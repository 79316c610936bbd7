//! Other people's text, made fit for a terminal.

/// Text with its control characters escaped: a guest's log line must not move the cursor, set the
/// window's title or colour what follows.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .fold(String::with_capacity(text.len()), |mut plain, c| {
            if c.is_control() || is_invisible(c) {
                plain.extend(c.escape_default());
            } else {
                plain.push(c);
            }
            plain
        })
}

/// Characters that turn the direction of what follows, or show nothing.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The same on one line, cut to so many characters.
pub(crate) fn short(text: &str, characters_max: usize) -> String {
    let mut text = plain(text);
    if let Some((at, _)) = text.char_indices().nth(characters_max) {
        let keep = text
            .char_indices()
            .nth(characters_max.saturating_sub(1))
            .map_or(at, |(at, _)| at);
        text.truncate(keep);
        text.push('…');
    }
    text
}

/// The same as one word for a shell: names come from guests, and a command that we suggest must not
/// run another one.
pub(crate) fn word(text: &str) -> String {
    let text = plain(text);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A number of bytes for people.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // Tenths are enough, and integers show no surprise.
    let (mut tenths, mut unit) = (u128::from(bytes) * 10 / 1024, 0);
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(
            plain("a\u{1b}[31mb\r\n\u{202e}c"),
            "a\\u{1b}[31mb\\r\\n\\u{202e}c"
        );
        assert_eq!(plain("größer ✓"), "größer ✓");
    }

    #[test]
    fn short_text_says_that_it_was_cut() {
        assert_eq!(short("abcdef", 6), "abcdef");
        assert_eq!(short("abcdefg", 6), "abcde…");
        assert_eq!(short("ääääääää", 3), "ää…");
    }

    #[test]
    fn a_name_is_one_word_of_a_suggested_command() {
        assert_eq!(word("order.paid"), "order.paid");
        assert_eq!(word("x; rm -rf ~"), "'x; rm -rf ~'");
        assert_eq!(word("it's $(x)"), r"'it'\''s $(x)'");
        assert_eq!(word("--server"), "'--server'");
    }

    #[test]
    fn bytes_are_shown_in_the_unit_that_fits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(25 * 1024 * 1024), "25.0 MiB");
        assert_eq!(bytes(u64::MAX), "16777215.9 TiB");
    }
}
