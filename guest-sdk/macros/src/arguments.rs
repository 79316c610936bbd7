//! The arguments of the attributes: `name = "…"` and `events(…)`.

use proc_macro2::TokenStream;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Ident, LitStr, Path, Token, parenthesized};

/// The longest name, as in the host.
const NAME_LENGTH_MAX: usize = 128;

/// What stands in the brackets of the attribute.
#[derive(Default)]
pub(crate) struct Arguments {
    /// Instead of the function's name.
    pub(crate) name: Option<LitStr>,
    /// Paths of `Event` constants.
    pub(crate) events: Vec<Path>,
}

enum Argument {
    Name(LitStr),
    Events(Vec<Path>),
}

impl Arguments {
    /// Reads what stands in the brackets; `attribute` is for the messages.
    pub(crate) fn parse(attribute: &str, tokens: TokenStream) -> Result<Self, Error> {
        let mut read = Self::default();
        for argument in Punctuated::<Argument, Token![,]>::parse_terminated.parse2(tokens)? {
            match argument {
                Argument::Name(name) if read.name.is_none() => {
                    check_name(&name)?;
                    read.name = Some(name);
                }
                Argument::Name(name) => {
                    return Err(Error::new(name.span(), "the name is given twice"));
                }
                Argument::Events(events) if attribute == "workflow" => read.events.extend(events),
                Argument::Events(events) => {
                    let span = events
                        .first()
                        .map_or_else(proc_macro2::Span::call_site, Spanned::span);
                    return Err(Error::new(
                        span,
                        "a task waits for no events; only a workflow does",
                    ));
                }
            }
        }
        Ok(read)
    }
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> Result<Self, Error> {
        let key: Ident = input.parse()?;
        if key == "name" {
            input.parse::<Token![=]>()?;
            return Ok(Self::Name(input.parse()?));
        }
        if key == "events" {
            let events;
            parenthesized!(events in input);
            let events = Punctuated::<Path, Token![,]>::parse_terminated(&events)?;
            return Ok(Self::Events(events.into_iter().collect()));
        }
        let message = format!(
            "`{key}` is not known here; expected `name = \"…\"` or `events(FIRST, SECOND)`"
        );
        Err(Error::new(key.span(), message))
    }
}

fn check_name(name: &LitStr) -> Result<(), Error> {
    let text = name.value();
    let fits = text.len() <= NAME_LENGTH_MAX
        && text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if fits {
        return Ok(());
    }
    let message = format!(
        "`{text}` is not a name: expected 1 to {NAME_LENGTH_MAX} characters from a-z, A-Z, 0-9, `-`, `_`, `.`, the \
         first a letter or a digit"
    );
    Err(Error::new(name.span(), message))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]

    use super::*;
    use quote::quote;

    fn error(attribute: &str, tokens: TokenStream) -> String {
        match Arguments::parse(attribute, tokens) {
            Ok(_) => panic!("expected an error"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn name_and_events_are_read_in_any_order() {
        let read = Arguments::parse("workflow", quote!(events(A, b::C), name = "n-1")).unwrap();
        assert_eq!(read.name.unwrap().value(), "n-1");
        assert_eq!(read.events.len(), 2);
        let none = Arguments::parse("workflow", quote!()).unwrap();
        assert!(none.name.is_none() && none.events.is_empty());
    }

    #[test]
    fn what_is_not_known_is_answered_with_what_is() {
        assert_eq!(
            error("workflow", quote!(timeout = 5)),
            "`timeout` is not known here; expected `name = \"…\"` or `events(FIRST, SECOND)`"
        );
        assert_eq!(
            error("task", quote!(events(A))),
            "a task waits for no events; only a workflow does"
        );
        assert_eq!(
            error("workflow", quote!(name = "a", name = "b")),
            "the name is given twice"
        );
        assert_eq!(
            error("workflow", quote!(name = "über")),
            "`über` is not a name: expected 1 to 128 characters from a-z, A-Z, 0-9, `-`, `_`, `.`, the first a letter \
             or a digit"
        );
        assert!(error("workflow", quote!(name = "")).contains("is not a name"));
    }
}
