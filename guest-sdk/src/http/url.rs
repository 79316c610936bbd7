//! The parts of a URL that a request needs. Not a parser of URLs in general: it splits, and leaves
//! to the host what a host name is.

/// The parts of an absolute `http` or `https` URL.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(
    not(target_arch = "wasm32"),
    allow(dead_code, reason = "a scripted answer needs no parts")
)]
pub(super) struct Url<'a> {
    pub(super) is_tls: bool,
    /// Host, and port if there is one.
    pub(super) authority: &'a str,
    /// From the path on, without the fragment; begins with `/`.
    pub(super) path_and_query: String,
}

impl<'a> Url<'a> {
    /// Splits a URL, or says what is wrong with it.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let (is_tls, rest) = if let Some(rest) = text.strip_prefix("https://") {
            (true, rest)
        } else if let Some(rest) = text.strip_prefix("http://") {
            (false, rest)
        } else {
            return Err("the URL must begin with `http://` or `https://`".to_owned());
        };
        if let Some(bad) = text.chars().find(|c| !c.is_ascii_graphic()) {
            return Err(format!(
                "the URL has {bad:?} in it, which must be percent-encoded"
            ));
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path_and_query) =
            rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.is_empty() {
            return Err("the URL names no host".to_owned());
        }
        if authority.contains('@') {
            return Err(
                "the URL has a user name in it; send an `Authorization` header instead".to_owned(),
            );
        }
        let slash = if path_and_query.starts_with('/') {
            ""
        } else {
            "/"
        };
        Ok(Self {
            is_tls,
            authority,
            path_and_query: format!("{slash}{path_and_query}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_into_what_is_sent() {
        for (text, is_tls, authority, path_and_query) in [
            ("http://shop", false, "shop", "/"),
            ("https://shop:8443/a/b?c=d#e", true, "shop:8443", "/a/b?c=d"),
            ("http://[::1]:80?q", false, "[::1]:80", "/?q"),
            ("http://shop/#top", false, "shop", "/"),
        ] {
            let expected = Url {
                is_tls,
                authority,
                path_and_query: path_and_query.to_owned(),
            };
            assert_eq!(Url::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_sent_says_why() {
        for (text, expected) in [
            ("shop/a", "the URL must begin with `http://` or `https://`"),
            (
                "ftp://shop",
                "the URL must begin with `http://` or `https://`",
            ),
            ("http:///a", "the URL names no host"),
            (
                "http://shop/a b",
                "the URL has ' ' in it, which must be percent-encoded",
            ),
            (
                "http://shop/\r\nX: y",
                "the URL has '\\r' in it, which must be percent-encoded",
            ),
            (
                "http://me:pw@shop/",
                "the URL has a user name in it; send an `Authorization` header instead",
            ),
        ] {
            assert_eq!(Url::parse(text), Err(expected.to_owned()));
        }
    }
}
