//! `#[workflow]`: an async function that becomes a workflow.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, ItemFn};

use crate::arguments::Arguments;
use crate::function;

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    let arguments = Arguments::parse("workflow", arguments)?;
    let function: ItemFn = syn::parse2(item)?;
    function::check_plain(&function, "a workflow")?;
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        let message = "a workflow is an async function: write `async fn`";
        return Err(Error::new(signature.fn_token.span(), message));
    }
    let (input, call) = match function::parameters(&function)[..] {
        [context] if function::is_named(context, "Ctx") => (quote!(()), quote!(ctx)),
        [context, input] if function::is_named(context, "Ctx") => {
            (input.to_token_stream(), quote!(ctx, input))
        }
        _ => {
            let message = "a workflow takes `ctx: Ctx` and then at most one input; put several values into one struct";
            return Err(Error::new(signature.inputs.span(), message));
        }
    };
    let output = function::output(&function, "a workflow", "Result<T, stepwell_sdk::Error>")?;
    let identifier = &signature.ident;
    let name = arguments
        .name
        .map_or_else(|| plain(identifier), |name| name.value());
    let summary = function::summary(&function.attrs);
    let documentation = function
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"));
    let visibility = &function.vis;
    let events = arguments.events;
    let input_is_unused = if call.to_string() == "ctx" {
        quote!(let () = input;)
    } else {
        quote!()
    };

    // With the author's place, so that a type that does not fit is underlined there.
    let returned = quote_spanned!(output.span()=> <#output as ::stepwell_sdk::__private::WorkflowResult>::Output);

    Ok(quote! {
        #function

        #(#documentation)*
        #[allow(non_camel_case_types, reason = "named after its function")]
        #[derive(Debug)]
        #visibility struct #identifier {}

        impl ::stepwell_sdk::Workflow for #identifier {
            type Input = #input;
            type Output = #returned;
            const NAME: &'static str = #name;
            const SUMMARY: &'static str = #summary;

            fn events() -> ::std::vec::Vec<::stepwell_sdk::DeclaredEvent> {
                ::std::vec![#(::stepwell_sdk::DeclaredEvent::from(&#events)),*]
            }

            fn run(
                ctx: ::stepwell_sdk::Ctx,
                input: Self::Input,
            ) -> impl ::std::future::Future<Output = ::std::result::Result<Self::Output, ::stepwell_sdk::Error>> {
                #input_is_unused
                #identifier(#call)
            }
        }
    })
}

/// The function's name without the `r#` of a raw identifier.
pub(crate) fn plain(identifier: &syn::Ident) -> String {
    let text = identifier.to_string();
    text.strip_prefix("r#").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]

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
                fn f(ctx: Ctx) -> Result<(), Error> {}
            ),
            "a workflow is an async function: write `async fn`",
        );
        check(
            quote!(
                async fn f(ctx: Ctx) {}
            ),
            "a workflow returns `Result<T, stepwell_sdk::Error>`; this returns nothing",
        );
        let parameters = "a workflow takes `ctx: Ctx` and then at most one input; put several values into one struct";
        check(
            quote!(
                async fn f() -> R {}
            ),
            parameters,
        );
        check(
            quote!(
                async fn f(input: u32) -> R {}
            ),
            parameters,
        );
        check(
            quote!(
                async fn f(ctx: Ctx, a: u32, b: u32) -> R {}
            ),
            parameters,
        );
    }

    #[test]
    fn the_name_is_the_functions_unless_given() {
        let expanded = |arguments| {
            expand(
                arguments,
                quote!(
                    async fn send_mail(ctx: stepwell_sdk::Ctx) -> R {}
                ),
            )
            .unwrap()
            .to_string()
        };
        assert!(expanded(quote!()).contains("NAME : & 'static str = \"send_mail\""));
        assert!(
            expanded(quote!(name = "send-mail")).contains("NAME : & 'static str = \"send-mail\"")
        );
    }
}
