//! What a component may import and must export, read from its bytes before anything is compiled.

use wasmparser::{Parser, Payload};

use crate::check::Rejected;

/// The contract's package, and the version of it that this host offers.
pub(crate) const CONTRACT: &str = "stepwell:workflow";
pub(crate) const CONTRACT_VERSION: &str = "0.1.0";

/// What a component must export.
pub(crate) const GUEST: &str = "stepwell:workflow/guest@0.1.0";

/// What toolchains import by habit, and outbound HTTP. All of version 0.2.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "wasi:cli",
        &[
            "environment",
            "exit",
            "stdin",
            "stdout",
            "stderr",
            "terminal-input",
            "terminal-output",
            "terminal-stdin",
            "terminal-stdout",
            "terminal-stderr",
        ],
    ),
    ("wasi:clocks", &["wall-clock", "monotonic-clock"]),
    ("wasi:filesystem", &["types", "preopens"]),
    ("wasi:http", &["types", "outgoing-handler"]),
    ("wasi:io", &["error", "poll", "streams"]),
    ("wasi:random", &["random", "insecure", "insecure-seed"]),
];

/// The interfaces of the contract that a component may import.
const CONTRACT_IMPORTS: &[&str] = &["durable", "log", "types"];

/// Checks the outside of a component.
///
/// # Errors
/// The first thing found that keeps it from running here.
pub(crate) fn check(bytes: &[u8]) -> Result<(), Rejected> {
    if !bytes.starts_with(b"\0asm") {
        return Err(Rejected::NotWebAssembly);
    }
    if Parser::is_core_wasm(bytes) {
        return Err(Rejected::CoreModule);
    }
    let mut exports = Vec::new();
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| Rejected::Invalid(error.to_string()))? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    let import = import.map_err(|error| Rejected::Invalid(error.to_string()))?;
                    check_import(import.name.name)?;
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    let export = export.map_err(|error| Rejected::Invalid(error.to_string()))?;
                    exports.push(export.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    check_exports(&exports)
}

fn check_import(name: &str) -> Result<(), Rejected> {
    let forbidden = |reason: &'static str| Rejected::ForbiddenImport {
        import: name.to_owned(),
        reason,
    };
    let Some((package, interface, version)) = split(name) else {
        return Err(forbidden(
            "it is not an interface of a package, and only those can be given to a component",
        ));
    };
    if package == CONTRACT {
        return match compatible(version, CONTRACT_VERSION) {
            false => Err(Rejected::ContractVersion {
                found: name.to_owned(),
            }),
            true if CONTRACT_IMPORTS.contains(&interface) => Ok(()),
            true => Err(forbidden("the contract has no such interface to import")),
        };
    }
    if package == "wasi:sockets" {
        return Err(forbidden(
            "there are no sockets here; use wasi:http/outgoing-handler inside a step",
        ));
    }
    let Some((_, interfaces)) = ALLOWED.iter().find(|(allowed, _)| *allowed == package) else {
        return Err(forbidden("this host has no such package"));
    };
    if !interfaces.contains(&interface) {
        return Err(forbidden(
            "this host does not offer this interface of the package",
        ));
    }
    if !compatible(version, "0.2.0") {
        return Err(forbidden(
            "this host offers version 0.2 of WASI; build with --target wasm32-wasip2",
        ));
    }
    Ok(())
}

fn check_exports(exports: &[String]) -> Result<(), Rejected> {
    let found = exports.iter().find(|name| {
        split(name)
            .is_some_and(|(package, interface, _)| package == CONTRACT && interface == "guest")
    });
    match found {
        None => Err(Rejected::MissingExport {
            found: exports.to_vec(),
        }),
        Some(name) => match split(name) {
            Some((_, _, version)) if compatible(version, CONTRACT_VERSION) => Ok(()),
            _ => Err(Rejected::ContractVersion {
                found: name.clone(),
            }),
        },
    }
}

/// `wasi:io/poll@0.2.3` as package, interface and version.
fn split(name: &str) -> Option<(&str, &str, &str)> {
    let (path, version) = name.split_once('@')?;
    let (package, interface) = path.split_once('/')?;
    Some((package, interface, version))
}

/// Whether both are 0.x with the same x, which is what compatible means below 1.0.
fn compatible(found: &str, offered: &str) -> bool {
    let minor = |version: &str| {
        let mut parts = version.split(['.', '-', '+']);
        let (major, minor) = (
            parts.next()?.parse::<u64>().ok()?,
            parts.next()?.parse::<u64>().ok()?,
        );
        // A pre-release is compatible with nothing but itself.
        (!version.contains('-')).then_some((major, minor))
    };
    minor(found).is_some() && minor(found) == minor(offered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(name: &str) -> String {
        match check_import(name) {
            Ok(()) => "allowed".to_owned(),
            Err(rejected) => rejected.to_string(),
        }
    }

    #[test]
    fn the_contract_and_what_toolchains_import_are_allowed() {
        for name in [
            "stepwell:workflow/durable@0.1.0",
            "stepwell:workflow/types@0.1.7",
            "wasi:io/streams@0.2.12",
            "wasi:filesystem/preopens@0.2.0",
            "wasi:http/outgoing-handler@0.2.3",
        ] {
            assert_eq!(check_one(name), "allowed", "{name}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_its_reason() {
        for (name, reason) in [
            ("wasi:sockets/tcp@0.2.0", "no sockets"),
            (
                "wasi:http/incoming-handler@0.2.0",
                "does not offer this interface",
            ),
            ("wasi:clocks/wall-clock@0.3.0", "version 0.2 of WASI"),
            ("wasi:clocks/wall-clock@0.2.0-rc1", "version 0.2 of WASI"),
            ("acme:bank/ledger@1.0.0", "no such package"),
            ("ledger", "not an interface of a package"),
            (
                "stepwell:workflow/guest@0.1.0",
                "no such interface to import",
            ),
            ("stepwell:workflow/durable@0.2.0", "0.1"),
        ] {
            let message = check_one(name);
            assert!(
                message.contains(name) && message.contains(reason),
                "{name}: {message}"
            );
        }
    }
}
