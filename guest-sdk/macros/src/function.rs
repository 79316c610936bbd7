//! What both attributes read off a function: name, summary, parameters, return type.

use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, FnArg, ItemFn, Lit, Meta, ReturnType, Safety, Type};

/// The first paragraph of the documentation, as one line; empty if there is none.
pub(crate) fn summary(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
        // Not `lines`, which has none for the empty text of an empty line.
        .flat_map(|text| {
            text.split('\n')
                .map(|line| line.trim().to_owned())
                .collect::<Vec<_>>()
        })
        .skip_while(String::is_empty)
        .take_while(|line| !line.is_empty())
        .collect();
    lines.join(" ")
}

/// Refuses what neither a workflow nor a task can be; `what` names it, with its article.
pub(crate) fn check_plain(function: &ItemFn, what: &str) -> Result<(), Error> {
    let signature = &function.sig;
    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        let message =
            format!("{what} cannot be generic: the host calls it by name, with one type of input");
        return Err(Error::new(signature.generics.span(), message));
    }
    if let Some(receiver) = signature.receiver() {
        let message = format!("{what} is a free function: it cannot take `self`");
        return Err(Error::new(receiver.span(), message));
    }
    if let Safety::Unsafe(keyword) = &signature.safety {
        return Err(Error::new(
            keyword.span(),
            format!("{what} cannot be unsafe"),
        ));
    }
    if let Some(abi) = &signature.abi {
        return Err(Error::new(
            abi.span(),
            format!("{what} cannot be extern; `component!` exports it"),
        ));
    }
    Ok(())
}

/// The types of the parameters.
pub(crate) fn parameters(function: &ItemFn) -> Vec<&Type> {
    function.sig.inputs.iter().filter_map(typed).collect()
}

fn typed(parameter: &FnArg) -> Option<&Type> {
    match parameter {
        FnArg::Typed(typed) => Some(&typed.ty),
        FnArg::Receiver(_) => None,
    }
}

/// The return type; `what` and `expected` are for the message.
pub(crate) fn output<'a>(
    function: &'a ItemFn,
    what: &str,
    expected: &str,
) -> Result<&'a Type, Error> {
    match &function.sig.output {
        ReturnType::Type(_, output) => Ok(output),
        ReturnType::Default => Err(Error::new(
            function.sig.ident.span(),
            format!("{what} returns `{expected}`; this returns nothing"),
        )),
    }
}

/// Whether the last word of a type's path is this one.
pub(crate) fn is_named(found: &Type, name: &str) -> bool {
    match found {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|segment| segment.ident == name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]

    use super::*;
    use syn::parse_quote;

    #[test]
    fn the_summary_is_the_first_paragraph() {
        let function: ItemFn = parse_quote! {
            #[doc = ""]
            #[doc = " Sends a mail "]
            #[doc = " and waits."]
            #[doc = ""]
            #[doc = " More."]
            fn f() {}
        };
        assert_eq!(summary(&function.attrs), "Sends a mail and waits.");
        let bare: ItemFn = parse_quote!(
            fn f() {}
        );
        assert_eq!(summary(&bare.attrs), "");
    }

    #[test]
    fn what_cannot_be_called_by_name_is_refused() {
        let check = |function: ItemFn| check_plain(&function, "a task").unwrap_err().to_string();
        assert_eq!(
            check(parse_quote!(
                fn f<T>(input: T) {}
            )),
            "a task cannot be generic: the host calls it by name, with one type of input"
        );
        assert_eq!(
            check(parse_quote!(
                fn f(&self) {}
            )),
            "a task is a free function: it cannot take `self`"
        );
        assert_eq!(
            check(parse_quote!(
                unsafe fn f() {}
            )),
            "a task cannot be unsafe"
        );
        assert_eq!(
            check(parse_quote!(
                extern "C" fn f() {}
            )),
            "a task cannot be extern; `component!` exports it"
        );
    }
}
