//! `#[task]`: a function that becomes a task.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, ItemFn, Type};

use crate::arguments::Arguments;
use crate::function;
use crate::workflow::plain;

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    let arguments = Arguments::parse("task", arguments)?;
    let mut function: ItemFn = syn::parse2(item)?;
    function::check_plain(&function, "a task")?;
    if let Some(asyncness) = &function.sig.asyncness {
        let message = "a task is a plain function: it may block, and the host runs tasks side by side; remove `async`";
        return Err(Error::new(asyncness.span(), message));
    }
    let unit: Type = syn::parse_quote!(());
    let is_context = |found: &Type| function::is_named(found, "TaskContext");
    let parameters: Vec<Type> = function::parameters(&function)
        .into_iter()
        .cloned()
        .collect();
    let (input, call) = match &parameters[..] {
        [] => (&unit, quote!()),
        [context] if is_context(context) => (&unit, quote!(context)),
        [input] => (input, quote!(input)),
        [context, input] if is_context(context) => (input, quote!(context, input)),
        _ => {
            let message = "a task takes at most one input, and before it a `TaskContext` if it wants to know its \
                           attempt; put several values into one struct";
            return Err(Error::new(function.sig.inputs.span(), message));
        }
    };
    let output = function::output(&function, "a task", "Result<T, stepwell_sdk::Failure>")?.clone();
    let identifier = function.sig.ident.clone();
    let name = arguments
        .name
        .map_or_else(|| plain(&identifier), |name| name.value());
    let summary = function::summary(&function.attrs);
    let visibility = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let (documentation, attributes): (Vec<_>, Vec<_>) = std::mem::take(&mut function.attrs)
        .into_iter()
        .partition(|attribute| attribute.path().is_ident("doc"));
    function.attrs = attributes;

    // With the author's place, so that a type that does not fit is underlined there.
    let returned =
        quote_spanned!(output.span()=> <#output as ::stepwell_sdk::__private::TaskResult>::Output);

    Ok(quote! {
        #(#documentation)*
        #[allow(non_camel_case_types, reason = "named after its function")]
        #[derive(Debug, Clone, Copy)]
        #visibility struct #identifier;

        impl #identifier {
            #function
        }

        // The value can be called like the function that it was made of.
        impl ::std::ops::Deref for #identifier {
            type Target = fn(#(#parameters),*) -> #output;

            fn deref(&self) -> &Self::Target {
                const FUNCTION: fn(#(#parameters),*) -> #output = #identifier::#identifier;
                &FUNCTION
            }
        }

        impl ::stepwell_sdk::Task for #identifier {
            type Input = #input;
            type Output = #returned;
            const NAME: &'static str = #name;
            const SUMMARY: &'static str = #summary;

            #[allow(unused_variables, reason = "a task may take neither")]
            fn run(
                context: ::stepwell_sdk::TaskContext,
                input: Self::Input,
            ) -> ::std::result::Result<Self::Output, ::stepwell_sdk::Failure> {
                Self::#identifier(#call)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(item: TokenStream, expected: &str) {
        match expand(quote!(), item) {
            Ok(_) => panic!("expected: {expected}"),
            Err(error) => assert_eq!(error.to_string(), expected),
        }
    }

    #[test]
    fn wrong_signatures_say_what_is_right() {
        check(
            quote!(
                async fn f(input: u32) -> R {}
            ),
            "a task is a plain function: it may block, and the host runs tasks side by side; remove `async`",
        );
        check(
            quote!(
                fn f(a: u32, b: u32) -> R {}
            ),
            "a task takes at most one input, and before it a `TaskContext` if it wants to know its attempt; put \
             several values into one struct",
        );
        check(
            quote!(
                fn f(input: u32) {}
            ),
            "a task returns `Result<T, stepwell_sdk::Failure>`; this returns nothing",
        );
    }

    #[test]
    fn every_right_signature_is_taken() {
        for right in [
            quote!(
                fn f() -> R {}
            ),
            quote!(
                fn f(input: u32) -> R {}
            ),
            quote!(
                fn f(context: TaskContext) -> R {}
            ),
            quote!(
                pub(crate) fn f(context: stepwell_sdk::TaskContext, input: u32) -> R {}
            ),
        ] {
            assert!(expand(quote!(), right).is_ok());
        }
    }
}
